package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/ledger/chain"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// rung is an item of a ladder up to ε = 1: its first level, or one that refines a release.
func rung(cost, level, from int64) Item {
	it := item(1, eps(cost))
	it.Spec = mechanisms.Spec{Counters: 1, Cells: 2, Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1_000_000, Den: level}}}
	it.Ladder = Ladder{privacy.MicroEpsilon(1_000_000), privacy.MicroEpsilon(level), from}
	return it
}

func finest(t testing.TB) mechanisms.Finest {
	t.Helper()
	s := rung(100_000, 100_000, 0).Spec
	fine, ok := s.At(privacy.MicroEpsilon(100_000), privacy.MicroEpsilon(1_000_000))
	if !ok {
		t.Fatal("no level")
	}
	_, out, err := mechanisms.ReleaseFirst(s, fine, func(cells []int32, _ int) int { return int(cells[0]) }, privacy.Seal([]privacy.Group{}), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// begin buys the first level of a ladder.
func begin(t testing.TB, f *keeper, user string) (id int64, of mechanisms.Finest) {
	t.Helper()
	out := charge(t, f, request(user, rung(100_000, 100_000, 0)))
	if err := out[0].Receipt.Spend(out[0].Receipt.digest); err != nil {
		t.Fatal(err)
	}
	of = finest(t)
	id, err := f.Save(ctx, out[0].Receipt, mechanisms.Drawn{Noisy: noisy(5, 6), Finest: of})
	if err != nil {
		t.Fatal(err)
	}
	return id, of
}

// TestLadder: a release is refined for the difference, once, by whoever has paid for it; its refinement is refined
// further; all of it is the same after the ledger was closed and opened, and the finest level is in no released value.
func TestLadder(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	id, of := begin(t, f, "alice")
	reopen := func() {
		t.Helper()
		verify(t, f)
		f.Close()
		f = open(t, path, Options{})
	}
	reopen()
	ids := []int64{id}
	for i, step := range []struct{ cost, level int64 }{{200_000, 300_000}, {400_000, 700_000}, {300_000, 1_000_000}} {
		last := ids[i]
		held := f.Holdings("alice", "census")
		if h := held[len(held)-1]; h.ID != last || h.Item.Ladder.Finest.Micro() != 1_000_000 {
			t.Fatalf("held %+v", h)
		}
		got, err := f.Finest(ctx, "alice", last)
		if err != nil || !bytes.Equal(got.AppendTo(nil), of.AppendTo(nil)) {
			t.Fatalf("another finest level: %v", err)
		}
		ids = append(ids, buy(t, f, "alice", rung(step.cost, step.level, last), int64(i), 2))
		if i == 1 {
			reopen()
		}
		_, err = f.Charge(ctx, request("alice", rung(step.cost-1, step.level-1, last)))
		wantErr(t, err, ErrRefined)
		for _, h := range f.Holdings("alice", "census") {
			if h.ID == last && h.Item.Ladder != (Ladder{}) {
				t.Errorf("release %d was refined, and still shows %+v", last, h.Item.Ladder)
			}
		}
	}
	wantSpent(t, f, "alice", 1_000_000, 1_000_000)
	got, err := f.Load(ctx, "alice", ids[0])
	if err != nil || !slices.Equal(got.Noisy.Value().Observations, []int64{5, 6}) {
		t.Errorf("the first level is %+v, %v", got, err)
	}
	reopen()
	out := charge(t, f, request("alice", rung(200_000, 300_000, ids[0])))
	if out[0].Receipt != nil || out[0].ID != ids[1] {
		t.Errorf("asked again: %+v", out[0])
	}
	wantSpent(t, f, "alice", 1_000_000, 1_000_000)
	verify(t, f)
}

// TestLadderRefused: whose release it is not, at another price, from what is gone, to more than the finest.
func TestLadderRefused(t *testing.T) {
	f := fresh(t, Options{}, census())
	id, _ := begin(t, f, "alice")
	for name, c := range map[string]struct {
		user string
		item Item
	}{
		"another user":   {"bob", rung(200_000, 300_000, id)},
		"too cheap":      {"alice", rung(199_999, 300_000, id)},
		"too dear":       {"alice", rung(300_000, 300_000, id)},
		"beyond":         {"alice", rung(1_100_000, 1_200_000, id)},
		"no release":     {"alice", rung(200_000, 300_000, id+100)},
		"another finest": {"alice", func() Item { it := rung(200_000, 300_000, id); it.Ladder.Finest = privacy.MicroEpsilon(2e6); return it }()},
		"another digest": {"alice", func() Item { it := rung(200_000, 300_000, id); it.Digest[0]++; return it }()},
		"shared":         {"alice", func() Item { it := rung(200_000, 300_000, id); it.Shared = true; return it }()},
		"a wrong first":  {"alice", rung(100_000, 200_000, 0)},
	} {
		if _, err := f.Charge(ctx, request(c.user, c.item)); err == nil {
			t.Errorf("%s was charged", name)
		}
	}
	wantSpent(t, f, "alice", 100_000, 100_000)
	if _, err := f.Finest(ctx, "bob", id); err == nil {
		t.Error("bob sees alice's finest level")
	}
	next := buy(t, f, "alice", rung(200_000, 300_000, id), 1, 2)
	if err := f.Revoke(ctx, id); err != nil {
		t.Fatal(err)
	}
	for _, h := range f.Holdings("alice", "census") {
		if h.Item.Ladder != (Ladder{}) {
			t.Errorf("%d can be refined without its finest level", h.ID)
		}
	}
	_, err := f.Charge(ctx, request("alice", rung(100_000, 400_000, next)))
	wantErr(t, err, ErrRefined)
	if _, err := f.Finest(ctx, "alice", next); err == nil {
		t.Error("the finest level of a revoked release")
	}
	verify(t, f)
}

// TestLadderCrash: a refinement that was paid for and not saved is spent; nothing of it was shown, so the release can
// be refined again, at a new charge.
func TestLadderCrash(t *testing.T) {
	path := place(t)
	f := open(t, path, Options{})
	adopt(t, f, census())
	id, _ := begin(t, f, "alice")
	out := charge(t, f, request("alice", rung(200_000, 300_000, id)))
	if err := out[0].Receipt.Spend(out[0].Receipt.digest); err != nil {
		t.Fatal(err)
	}
	f.Close() // between the charge and the save
	f = open(t, path, Options{})
	wantSpent(t, f, "alice", 300_000, 300_000)
	buy(t, f, "alice", rung(400_000, 500_000, id), 3, 4)
	wantSpent(t, f, "alice", 700_000, 700_000)
	verify(t, f)
}

// TestLadderOneAtATime: of two that refine one release at a time, to different levels, one waits and then learns that
// it was refined; nothing was charged for it.
func TestLadderOneAtATime(t *testing.T) {
	f := fresh(t, Options{}, census())
	id, _ := begin(t, f, "alice")
	first := charge(t, f, request("alice", rung(200_000, 300_000, id)))
	waiting := make(chan error, 1)
	go func() {
		_, err := f.Charge(ctx, request("alice", rung(300_000, 400_000, id)))
		waiting <- err
	}()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := f.Charge(short, request("alice", rung(500_000, 600_000, id))); err != context.DeadlineExceeded {
		t.Errorf("a third did not wait: %v", err)
	}
	keep(t, f, first[0].Receipt, 1, 2)
	wantErr(t, <-waiting, ErrRefined)
	wantSpent(t, f, "alice", 300_000, 300_000)
}

// TestLadderUnderZCDP: when the dataset turns to zCDP, a refinement is worth ε²/2 of its whole level, with nothing
// taken off.
func TestLadderUnderZCDP(t *testing.T) {
	f := fresh(t, Options{}, census())
	id, _ := begin(t, f, "alice")
	buy(t, f, "alice", rung(200_000, 300_000, id), 1, 2)
	d := census()
	d.Accountant, d.Cap = privacy.ZCDP, privacy.Cost{Rho: privacy.PicoRho(1e13)}
	d.Budgets = map[string]BudgetTerms{"*": {Limit: privacy.Cost{Rho: privacy.PicoRho(1e13)}}}
	adopt(t, f, d)
	b, err := f.Balance(ctx, "alice", "census")
	if want := int64(5e9 + 45e9); err != nil || b.LifeSpent.Rho.Pico() != want {
		t.Errorf("spent %s (%v), want %d pico", b.LifeSpent.Rho, err, want)
	}
	if _, err := f.Charge(ctx, request("alice", rung(100_000, 400_000, id+100))); err == nil {
		t.Error("a ladder under zCDP")
	}
	verify(t, f)
}

// TestBodies: what charges and saves say is read back whole, and no part of it is read, nor any other form.
func TestBodies(t *testing.T) {
	c := chargeBody{kind: "count", cost: eps(5), capped: true, pool: eps(7), ladder: Ladder{privacy.MicroEpsilon(9), privacy.MicroEpsilon(7), 3}}
	s := saveBody{item: rung(1, 1, 0), family: Digest{4}, of: 8}
	s.item.Described = []byte("sum")
	if got, err := decodeCharge(c.encode()); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("%+v (%v), want %+v", got, err, c)
	}
	if got, err := decodeSave(s.encode()); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%+v (%v), want %+v", got, err, s)
	}
	decode := map[string]func([]byte) error{
		"charge": func(b []byte) error { _, err := decodeCharge(b); return err },
		"save":   func(b []byte) error { _, err := decodeSave(b); return err },
		"terms":  func(b []byte) error { _, err := decodeTerms(b); return err },
	}
	for name, b := range map[string][]byte{"charge": c.encode(), "save": s.encode(), "terms": encodeTerms(census())} {
		for cut := range b {
			if decode[name](b[:cut]) == nil {
				t.Errorf("the first %d bytes of a %s passed", cut, name)
			}
		}
		if decode[name](append(bytes.Clone(b), 0)) == nil {
			t.Errorf("a %s with a byte more passed", name)
		}
		for _, other := range []byte{0, chain.Form + 1, 255} {
			b[0] = other
			if err := decode[name](b); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("its form is %d", other)) {
				t.Errorf("form %d of a %s: %v", other, name, err)
			}
		}
	}
}

// TestSaveFirstNeedsALadder: a finest level is saved where a ladder begins, and nowhere else.
func TestSaveFirstNeedsALadder(t *testing.T) {
	f := fresh(t, Options{}, census())
	out := charge(t, f, request("alice", item(1, eps(100_000)), func() Item { it := rung(100_000, 100_000, 0); it.Digest[0] = 77; return it }()))
	for _, o := range out {
		if err := o.Receipt.Spend(o.Receipt.digest); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Save(ctx, out[0].Receipt, mechanisms.Drawn{Noisy: noisy(1), Finest: finest(t)}); err == nil {
		t.Error("a finest level where no ladder begins")
	}
	if _, err := f.Save(ctx, out[1].Receipt, mechanisms.Drawn{Noisy: noisy(1, 2)}); err == nil {
		t.Error("a ladder without its finest level")
	}
	if _, err := f.Save(ctx, out[1].Receipt, mechanisms.Drawn{Noisy: noisy(1, 2), Finest: mechanisms.Finest{}}); err == nil {
		t.Error("a finest level that was never drawn")
	}
}

// TestRevokedRungIsNoSecondAnswer: when a release between two levels is withdrawn, the lower one stays unread beside
// the higher, of which it is made; when the higher is gone too, it is read again.
func TestRevokedRungIsNoSecondAnswer(t *testing.T) {
	f := fresh(t, Options{}, census())
	ids := []int64{0, 0, 0}
	ids[0], _ = begin(t, f, "alice")
	ids[1] = buy(t, f, "alice", rung(200_000, 300_000, ids[0]), 1, 2)
	ids[2] = buy(t, f, "alice", rung(400_000, 700_000, ids[1]), 3, 4)
	for _, c := range []struct{ revoked, read int64 }{{ids[1], ids[2]}, {ids[2], ids[0]}} {
		if err := f.Revoke(ctx, c.revoked); err != nil {
			t.Fatal(err)
		}
		for _, h := range f.Holdings("alice", "census") {
			if h.Refined == (h.ID == c.read) {
				t.Errorf("after %d was revoked: %d is read: %t", c.revoked, h.ID, !h.Refined)
			}
		}
	}
	verify(t, f)
}

// TestLadderBegunTwice: one question at two levels in one moment. Both are planned before anything of it is held;
// whoever comes second waits, and is planned anew, to refine what the first has drawn: together they pay for the finer
// level, and not for both.
func TestLadderBegunTwice(t *testing.T) {
	for _, saved := range []bool{false, true} { // whether the first is saved before the second is charged
		f := fresh(t, Options{}, census())
		first := charge(t, f, request("alice", rung(100_000, 100_000, 0)))
		if err := first[0].Receipt.Spend(first[0].Receipt.digest); err != nil {
			t.Fatal(err)
		}
		save := func() {
			if _, err := f.Save(ctx, first[0].Receipt, mechanisms.Drawn{Noisy: noisy(5, 6), Finest: finest(t)}); err != nil {
				t.Fatal(err)
			}
		}
		if saved {
			save()
		}
		second := request("alice", rung(300_000, 300_000, 0))
		second.Since = 1
		done := make(chan error, 1)
		go func() {
			_, err := f.Charge(ctx, second)
			done <- err
		}()
		if !saved {
			select {
			case err := <-done:
				t.Fatalf("did not wait: %v", err)
			case <-time.After(50 * time.Millisecond):
			}
			save()
		}
		wantErr(t, <-done, ErrRefined)
		wantSpent(t, f, "alice", 100_000, 100_000)
		held := f.Holdings("alice", "census")
		from := held[len(held)-1].ID
		buy(t, f, "alice", rung(200_000, 300_000, from), 1, 2)
		wantSpent(t, f, "alice", 300_000, 300_000)
		// Whoever knows of it may begin another: where its finest level is too coarse for what she asks.
		second.Since = from + 2
		charge(t, f, second)
		verify(t, f)
	}
}
