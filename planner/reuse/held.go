package reuse

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

const OfAnotherEpoch = "of an epoch gone by"

// Hold makes a measure one that is held.
func Hold(m *plans.Measure, h Holding, why string) {
	m.Spec, m.Held, m.HeldID, m.Cost, m.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// IsRelease tells releases, which answer whatever they can for free, from the answer to one question.
func IsRelease(m *plans.Measure) bool {
	return m.Shared || m.Kind == "range" || m.Kind == "keys" || m.Kind == Cube || m.Kind == policy.OnlineRelease.String()
}

// DeclaredAs finds the policy's release that a measure holds.
func DeclaredAs(t *policy.Table, shared bool, name string) *policy.Release {
	for _, r := range t.All() {
		if shared && r.Name == name {
			return r
		}
	}
	return nil
}

// EpochOf numbers the epoch of a time.
func EpochOf(at time.Time, refresh time.Duration) int64 { return at.UnixNano() / int64(refresh) }

// EpochDate writes when the epoch of a time began.
func EpochDate(at time.Time, refresh time.Duration) string {
	begin := time.Unix(0, EpochOf(at, refresh)*int64(refresh)).UTC()
	switch {
	case refresh%(24*time.Hour) == 0:
		return begin.Format("2006-01-02")
	case refresh%time.Minute == 0:
		return begin.Format("2006-01-02 15:04 UTC")
	}
	return begin.Format("2006-01-02 15:04:05 UTC")
}
