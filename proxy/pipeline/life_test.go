package pipeline

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// TestChoicesEndOnAStep: what takes longer or shorter by what the rows are, beside the query itself, ends at a step of
// its own, whatever comes of it; noise on counts takes the same whatever they are, and is not held.
func TestChoicesEndOnAStep(t *testing.T) {
	const step = 100 * time.Millisecond
	for name, m := range map[string]*plans.Measure{
		"a choice":     {Spec: mechanisms.Spec{Kind: &mechanisms.Choice{}}},
		"made-up rows": {Spec: mechanisms.Spec{Kind: &mechanisms.Synthetic{}}},
		"keys":         {Open: &policy.Column{}},
	} {
		begun := time.Now()
		_, err := onStep(m.Drawing(nil), privacy.Sensitive[[]privacy.Group]{}, rand.Reader, step)
		if after := time.Since(begun); err == nil || after < step {
			t.Errorf("%s: %v after %s of a step of %s", name, err, after, step)
		}
	}
}
