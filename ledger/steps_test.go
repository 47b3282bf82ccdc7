package ledger

import (
	"reflect"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

func onlineItem() Item {
	it := item(40, eps(1e6))
	it.Kind, it.Name = "online", "o"
	it.Spec = mechanisms.Spec{Counters: 1, Cells: 8, Kind: &mechanisms.Online{Rule: mechanisms.MultiplicativeWeights, Rows: 1000, Spare: 1000, Updates: 5,
		Contribution: privacy.Contribution{Rows: 2, Groups: 2, PerGroup: 1, Neighbors: privacy.AddRemove}, Cost: eps(1e6)}}
	return it
}

// TestStepsOfAnOnlineRelease: they are durable when Extend and Resume return, in their order, cost nothing more, are
// loaded and verified again after the ledger was opened anew; a receipt of Resume runs the measure once and saves
// nothing; nobody else may extend the release, and no release of another kind has steps.
func TestStepsOfAnOnlineRelease(t *testing.T) {
	f := fresh(t, Options{}, census())
	id := buy(t, f, "alice", onlineItem())
	steps := [][]byte{{'h', 1}, {'h', 2, 3}}
	for _, s := range steps {
		if err := f.Extend(ctx, "alice", id, s); err != nil {
			t.Fatal(err)
		}
	}
	r, err := f.Resume(ctx, "alice", id, []byte{'r'})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Spend(onlineItem().Digest); err != nil {
		t.Fatal(err)
	}
	if err := r.Spend(onlineItem().Digest); err == nil {
		t.Error("a receipt was spent twice")
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: noisy(1)}); err == nil {
		t.Error("something was saved on the receipt of a restart")
	}
	f.Abandon(r)
	wantErr(t, f.Extend(ctx, "bob", id, []byte{1}), ErrNotHeld)
	count := buy(t, f, "alice", item(1, eps(10)), 3)
	wantErr(t, f.Extend(ctx, "alice", count, []byte{1}), ErrNotHeld)
	if err := f.Extend(ctx, "alice", id, nil); err == nil {
		t.Error("a step of nothing passed")
	}
	wantSpent(t, f, "alice", 1e6+10, 1e6+10)
	want := append(steps, []byte{'r'})
	for range 2 {
		got, err := f.Load(ctx, "alice", id)
		if err != nil || !reflect.DeepEqual(got.Steps, want) || !reflect.DeepEqual(got.Item.Spec, onlineItem().Spec) {
			t.Errorf("%v: steps %v, want %v; %+v", err, got.Steps, want, got.Item.Spec.Kind.(*mechanisms.Online))
		}
		verify(t, f)
		if out := charge(t, f, request("alice", onlineItem())); out[0].Receipt != nil || out[0].ID != id {
			t.Error("asked again, it is charged again")
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = open(t, pathOf(f), Options{})
		adopt(t, f, census())
	}
}

// TestRevokedOnlineReleaseTakesNoStep: what the operator withdrew goes on nowhere.
func TestRevokedOnlineReleaseTakesNoStep(t *testing.T) {
	f := fresh(t, Options{}, census())
	id := buy(t, f, "alice", onlineItem())
	if err := f.Revoke(ctx, id); err != nil {
		t.Fatal(err)
	}
	wantErr(t, f.Extend(ctx, "alice", id, []byte{'h'}), ErrNotHeld)
	_, err := f.Resume(ctx, "alice", id, []byte{'r'})
	wantErr(t, err, ErrNotHeld)
}
