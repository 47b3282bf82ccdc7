package ledger

import (
	"context"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// TestRunsOfAlarms: a run's questions are run on receipts of their own, which cost nothing, are spent once and save
// nothing; its steps are durable, and only its owner asks it.
func TestRunsOfAlarms(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	spec, err := mechanisms.NewAlarm(mechanisms.AlarmFor(3, mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, eps(1000)))
	if err != nil {
		t.Fatal(err)
	}
	run := item(7, eps(1000))
	run.Kind, run.Spec = "alarms", spec
	id, ctx := buy(t, f, "alice", run), context.Background()
	counts := buy(t, f, "alice", item(8, eps(1000)), 5)
	own, pool := spent(t, f, "alice")
	question := Digest{42}
	r, err := f.Ask(ctx, "alice", id, question)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Spend(run.Digest); err == nil {
		t.Error("a question's receipt is good for another measure")
	}
	if err := r.Spend(question); err != nil {
		t.Error(err)
	}
	if err := r.Spend(question); err == nil {
		t.Error("a question's receipt is spent twice")
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(1)}); err == nil {
		t.Error("a question's answer is saved as a release")
	}
	for _, wrong := range []struct {
		user string
		id   int64
	}{{"bob", id}, {"alice", counts}, {"alice", id + 1000}} {
		if _, err := f.Ask(ctx, wrong.user, wrong.id, question); err == nil {
			t.Errorf("%+v is asked", wrong)
		}
	}
	wantErr(t, f.Extend(ctx, "bob", id, []byte{1, 1}), ErrNotHeld)
	for _, step := range [][]byte{{1, 1}, {2, 2}} {
		if err := f.Extend(ctx, "alice", id, step); err != nil {
			t.Fatal(err)
		}
	}
	wantSpent(t, f, "alice", own, pool)
	f.Close()
	f = open(t, path, Options{})
	adopt(t, f, census())
	release, err := f.Load(ctx, "alice", id)
	if err != nil || !slices.EqualFunc(release.Steps, [][]byte{{1, 1}, {2, 2}}, slices.Equal) {
		t.Errorf("after opening again: steps %v (%v)", release.Steps, err)
	}
	if left, err := release.Item.Spec.LeftAfter(release.Steps, true); err != nil || left != 0 {
		t.Errorf("%d left (%v), want 0", left, err)
	}
	verify(t, f)
}
