package pipeline

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
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
	if _, err := a.takeRun(t.Context(), &Session{User: "alice"}, 1, a.watches.of(1), ledger.Digest{}); err != errElsewhere || l.loads > 0 {
		t.Errorf("%v, after the steps were read %d times", err, l.loads)
	}
}

// stepping is a ledger that saves what it is given, and says in whose name steps are made.
type stepping struct {
	ledger.Ledger
	by []string
}

func (l *stepping) Save(context.Context, *ledger.Receipt, privacy.Released[mechanisms.Noisy]) (int64, error) {
	return 7, nil
}

func (l *stepping) Extend(_ context.Context, user string, _ int64, _ []byte) error {
	l.by = append(l.by, user)
	return nil
}

// TestStepsAreHersWhoAsks: a run that one member of a group has opened goes on when she has left the group: a yes is a step of the
// member who asks.
func TestStepsAreHersWhoAsks(t *testing.T) {
	spec, err := mechanisms.NewAlarm(mechanisms.AlarmFor(2, mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}))
	if err != nil {
		t.Fatal(err)
	}
	l := &stepping{}
	a := NewAnswerer(nil, l, nil, rand.NewChaCha8([32]byte{1}), nil, nil)
	id, err := a.watches.open(t.Context(), a, newExecution(&Session{User: "alice"}, ""), &plans.Measure{Spec: spec}, nil, func(save func([]byte) error) (*mechanisms.Watch, error) {
		return mechanisms.OpenWatch(spec, a.random, save)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"alice", "bob"} {
		run := a.watches.of(id)
		if err := run.lockFor(t.Context(), &Session{User: user}); err != nil {
			t.Fatal(err)
		}
		if yes, err := run.asked.Ask(func([]int32, int) int { return 0 }, privacy.Seal([]privacy.Group{{Counts: []int64{1_000_000}}}), 10); err != nil || !yes.Value() {
			t.Fatalf("%s is answered %t, %v", user, yes.Value(), err)
		}
		run.unlock()
	}
	if len(l.by) != 2 || l.by[0] != "alice" || l.by[1] != "bob" {
		t.Errorf("steps are made by %v", l.by)
	}
}
