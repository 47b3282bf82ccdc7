package planner

import (
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

const ofAnotherEpoch = "of an epoch gone by"

// hold makes a measure one that is held.
func hold(m *Measure, h Holding, why string) {
	m.Spec, m.Held, m.HeldID, m.Cost, m.Why = h.Spec, true, h.ID, privacy.Cost{}, why
}

// isRelease tells releases, which answer whatever they can for free, from the answer to one question.
func (m *heldMeasure) isRelease() bool {
	return m.shared || m.kind == "range" || m.kind == "keys" || m.kind == cube
}

// declaredAs finds the policy's release that a measure holds.
func declaredAs(t *policy.Table, shared bool, name string) *policy.Release {
	for _, r := range t.All() {
		if shared && r.Name == name {
			return r
		}
	}
	return nil
}

// epochOf numbers the epoch of a time.
func epochOf(at time.Time, refresh time.Duration) int64 { return at.UnixNano() / int64(refresh) }

// epochDate writes when the epoch of a time began.
func epochDate(at time.Time, refresh time.Duration) string {
	begin := time.Unix(0, epochOf(at, refresh)*int64(refresh)).UTC()
	switch {
	case refresh%(24*time.Hour) == 0:
		return begin.Format("2006-01-02")
	case refresh%time.Minute == 0:
		return begin.Format("2006-01-02 15:04 UTC")
	}
	return begin.Format("2006-01-02 15:04:05 UTC")
}
