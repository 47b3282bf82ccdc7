package pipeline

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// elsewhere is a ledger in which every run of alarms lives in another proxy.
type elsewhere struct {
	ledger.Ledger
	loads int
}

func (e *elsewhere) Ask(context.Context, string, int64, ledger.Digest) (*ledger.Receipt, error) {
	return nil, ledger.ErrElsewhere
}

func (e *elsewhere) Load(context.Context, string, int64) (ledger.Release, error) {
	e.loads++
	return ledger.Release{}, ledger.ErrNotHeld
}

// TestRunIsHeldBeforeItIsRestored: the steps of a run that lives elsewhere are not read, since more may follow.
func TestRunIsHeldBeforeItIsRestored(t *testing.T) {
	l := &elsewhere{}
	a := NewAnswerer(nil, l, nil, nil, nil, nil)
	x, run := newExecution(&Session{User: "alice"}, ""), &plans.Run{Threshold: &plans.ThresholdQuestion{Measure: &plans.Measure{}}}
	if _, err := a.releases.resume(t.Context(), x, &plans.Measure{}, 1, a.releases.live.of(1), rewrite.Query{}, run); err != errElsewhere || l.loads > 0 {
		t.Errorf("%v, after the steps were read %d times", err, l.loads)
	}
}

// stepping is a ledger that saves what it is given, and says in whose name steps are made.
type stepping struct {
	ledger.Ledger
	by []string
}

func (l *stepping) Save(context.Context, *ledger.Receipt, mechanisms.Drawn) (int64, error) {
	return 7, nil
}

func (l *stepping) Extend(_ context.Context, user string, _ int64, _ []byte) error {
	l.by = append(l.by, user)
	return nil
}

// TestStepsAreHersWhoAsks: a run that one member of a group has opened goes on when she has left the group: a yes is a
// step of the member who asks.
func TestStepsAreHersWhoAsks(t *testing.T) {
	spec, err := mechanisms.NewAlarm(mechanisms.AlarmFor(2, mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}))
	if err != nil {
		t.Fatal(err)
	}
	l := &stepping{}
	a := NewAnswerer(nil, l, nil, rand.NewChaCha8([32]byte{1}), nil, nil)
	paid := trueCounts{func() (none privacy.Sensitive[[]privacy.Group], _ error) { return none, nil }, func() {}}
	x := newExecution(&Session{User: "alice", Policy: &policy.Policy{}}, "")
	id, err := a.releases.draw(t.Context(), x, &plans.Measure{Spec: spec, Table: &policy.Table{}}, paid, nil, &ledger.Receipt{})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"alice", "bob"} {
		run := a.releases.live.of(id)
		if err := run.lockFor(t.Context(), &Session{User: user}); err != nil {
			t.Fatal(err)
		}
		q := mechanisms.Question{Place: func([]int32, int) int { return 0 }, Groups: privacy.Seal([]privacy.Group{{Counts: []int64{1_000_000}}}), Least: 10}
		if yes, err := run.asked.Answer(q); err != nil || yes.Value().Value != 1 {
			t.Fatalf("%s is answered %v, %v", user, yes.Value(), err)
		}
		run.unlock()
	}
	if len(l.by) != 2 || l.by[0] != "alice" || l.by[1] != "bob" {
		t.Errorf("steps are made by %v", l.by)
	}
}
