package ledger

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// atLevel is a shared release that is drawn at ε 0.8, 0.4 and 0.1, as who is at one of these levels buys it.
func atLevel(n byte, level int) Item {
	it := shared(n, eps(0))
	it.Levels = []mechanisms.Level{{Cost: eps(800_000), Spec: spec(5, 4)}, {Cost: eps(400_000), Spec: spec(5, 2)}, {Cost: eps(100_000), Spec: spec(10, 1)}}
	it.Cost, it.Spec = it.Levels[level].Cost, it.Levels[level].Spec
	return it
}

func drawnLevels(values ...int64) (list []privacy.Released[mechanisms.Noisy]) {
	for _, v := range values {
		list = append(list, privacy.Published(mechanisms.Noisy{Observations: []int64{v}}))
	}
	return list
}

// drawLevels buys a level that nobody has had drawn, and saves all.
func drawLevels(t testing.TB, f *keeper, user string, it Item, values ...int64) int64 {
	t.Helper()
	r := charge(t, f, request(user, it))[0].Receipt
	if r == nil {
		t.Fatal("nothing is to be drawn")
	}
	if err := r.Spend(it.Digest); err != nil {
		t.Fatal(err)
	}
	id, err := f.Save(ctx, r, mechanisms.Drawn{Levels: drawnLevels(values...)})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// joinLevel buys a level of what is drawn already.
func joinLevel(t testing.TB, f *keeper, user string, it Item) int64 {
	t.Helper()
	out := charge(t, f, request(user, it))
	if out[0].Receipt != nil || out[0].ID == 0 || out[0].Charged != it.Cost {
		t.Fatalf("%s: %+v", user, out[0])
	}
	return out[0].ID
}

// TestLevels: whoever comes first, each pays her level and reads it and no other; the cap pays the finest, once. All of
// it remains after a restart, and a verification.
func TestLevels(t *testing.T) {
	values := []int64{1000, 2000, 3000}
	for first := range values {
		path := place(t)
		f := open(t, path, Options{})
		adopt(t, f, census())
		users := []string{"alice", "bob", "carol"}
		ids := make([]int64, 3)
		ids[first] = drawLevels(t, f, users[first], atLevel(1, first), values...)
		for i, user := range users {
			if i != first {
				ids[i] = joinLevel(t, f, user, atLevel(1, i))
			}
		}
		look := func() {
			for i, user := range users {
				own, pool := spent(t, f, user)
				if want := atLevel(1, i).Cost.Epsilon.Micro(); own != want || pool != 800_000 {
					t.Errorf("%s first: %s has spent %d of %d, the cap %d", users[first], user, own, want, pool)
				}
				for j := range ids {
					r, err := f.Load(ctx, user, ids[j])
					if (err == nil) != (i == j) {
						t.Errorf("%s first: %s loads level %d: %v", users[first], user, j, err)
					}
					if i == j && (r.Noisy.Value().Observations[0] != values[i] || r.Item.Cost != atLevel(1, i).Cost) {
						t.Errorf("%s first: %s has %+v", users[first], user, r)
					}
				}
				if held := f.Holdings(user, "census"); len(held) != 1 || held[0].ID != ids[i] || held[0].Refined {
					t.Errorf("%s first: %s holds %+v", users[first], user, held)
				}
				if out := charge(t, f, request(user, atLevel(1, i))); out[0].ID != ids[i] || !out[0].Charged.IsZero() {
					t.Errorf("%s first: %s asks again: %+v", users[first], user, out[0])
				}
			}
			verify(t, f)
		}
		look()
		f.Close()
		f = open(t, path, Options{})
		adopt(t, f, census())
		look()
		if err := f.Revoke(ctx, ids[2]); err != nil {
			t.Fatal(err)
		}
		for i, user := range users {
			if _, err := f.Load(ctx, user, ids[i]); !errors.Is(err, ErrNotHeld) || len(f.Holdings(user, "census")) != 0 {
				t.Errorf("level %d of a draw that was revoked: %v", i, err)
			}
		}
		drawLevels(t, f, "alice", atLevel(1, 0), values...)
		if _, pool := spent(t, f, "alice"); pool != 1_600_000 {
			t.Errorf("after the second draw the cap has spent %d", pool)
		}
		verify(t, f)
	}
}

// TestLevelsOfAnotherList: after a change of the levels who has not paid has them drawn anew; who has keeps hers.
func TestLevelsOfAnotherList(t *testing.T) {
	f := fresh(t, Options{}, census())
	old := drawLevels(t, f, "alice", atLevel(1, 0), 1, 2, 3)
	shorter := atLevel(1, 1)
	shorter.Levels = shorter.Levels[:2]
	drawLevels(t, f, "bob", shorter, 4, 5)
	alone := atLevel(1, 0)
	alone.Levels = nil
	buy(t, f, "carol", alone, 6)
	if _, pool := spent(t, f, "bob"); pool != 2_400_000 {
		t.Errorf("the cap has spent %d", pool)
	}
	if r, err := f.Load(ctx, "alice", old); err != nil || r.Noisy.Value().Observations[0] != 1 {
		t.Errorf("alice's: %+v, %v", r, err)
	}
	verify(t, f)
}

// TestFinerLevel: who pays for a finer level of the same draw pays it whole, and reads that one alone.
func TestFinerLevel(t *testing.T) {
	f := fresh(t, Options{}, census())
	coarse := drawLevels(t, f, "alice", atLevel(1, 2), 1, 2, 3)
	fine := joinLevel(t, f, "alice", atLevel(1, 0))
	if own, pool := spent(t, f, "alice"); own != 900_000 || pool != 800_000 {
		t.Errorf("she has spent %d, the cap %d", own, pool)
	}
	refined := map[int64]bool{}
	for _, r := range f.Holdings("alice", "census") {
		refined[r.ID] = r.Refined
	}
	if len(refined) != 2 || !refined[coarse] || refined[fine] {
		t.Errorf("refined: %v", refined)
	}
}

// TestLevelsAndTheCap: no level is sold that the cap could not pay the finest for, drawn or not: else what is for sale
// would tell what others have bought (privacy rule 1).
func TestLevelsAndTheCap(t *testing.T) {
	for _, drawn := range []bool{false, true} {
		d := census()
		d.Cap = eps(1_500_000)
		f := fresh(t, Options{}, d)
		before := eps(800_000) // so that as much is spent of the cap either way
		if drawn {
			drawLevels(t, f, "alice", atLevel(1, 2), 1, 2, 3)
		} else {
			buy(t, f, "alice", item(9, before), 1)
		}
		if _, err := f.Charge(ctx, request("bob", atLevel(1, 2))); !errors.Is(err, ErrCap) {
			t.Errorf("drawn %v: %v", drawn, err)
		}
	}
}

// TestLevelsAtOnce: of many who come at once, at all levels, one draws.
func TestLevelsAtOnce(t *testing.T) {
	f := fresh(t, Options{}, census())
	var done sync.WaitGroup
	var mu sync.Mutex
	draws := 0
	for i := range 12 {
		done.Add(1)
		go func() {
			defer done.Done()
			it := atLevel(1, i%3)
			out, err := f.Charge(ctx, request(string(rune('a'+i)), it))
			if err != nil {
				t.Error(err)
				return
			}
			if r := out[0].Receipt; r != nil {
				mu.Lock()
				draws++
				mu.Unlock()
				if err := r.Spend(it.Digest); err != nil {
					t.Error(err)
				}
				if _, err := f.Save(ctx, r, mechanisms.Drawn{Levels: drawnLevels(1, 2, 3)}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	done.Wait()
	if _, pool := spent(t, f, "a"); draws != 1 || pool != 800_000 {
		t.Errorf("%d draws, the cap has spent %d", draws, pool)
	}
	verify(t, f)
}

// TestLevelsAreChecked: malformed levels are refused before anything is charged, and others are not saved.
func TestLevelsAreChecked(t *testing.T) {
	f := fresh(t, Options{}, census())
	for name, spoil := range map[string]func(*Item){
		"not shared":      func(it *Item) { it.Shared = false },
		"none of them":    func(it *Item) { it.Cost = eps(300_000) },
		"cheaper spec":    func(it *Item) { it.Spec = it.Levels[0].Spec },
		"rising":          func(it *Item) { it.Levels = []mechanisms.Level{it.Levels[1], it.Levels[0]} },
		"a free one":      func(it *Item) { it.Levels[2].Cost = eps(0) },
		"one twice":       func(it *Item) { it.Levels[0] = it.Levels[1] },
		"of a ladder":     func(it *Item) { it.Ladder = Ladder{Finest: eps(900_000).Epsilon, Level: it.Cost.Epsilon} },
		"other unit":      func(it *Item) { it.Levels[0].Cost = rho(5) },
		"without a noise": func(it *Item) { it.Levels[0].Spec = spec(0, 1) },
	} {
		it := atLevel(1, 1)
		it.Levels = slices.Clone(it.Levels)
		spoil(&it)
		if out, err := f.Charge(ctx, request("alice", it)); err == nil {
			t.Errorf("%s: %+v", name, out)
		}
	}
	it := atLevel(1, 1)
	r := charge(t, f, request("alice", it))[0].Receipt
	if err := r.Spend(it.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Noisy: drawnLevels(1)[0]}); err == nil {
		t.Error("one of the levels was saved by itself")
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Levels: drawnLevels(1, 2)}); err == nil {
		t.Error("two levels of three were saved")
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Levels: append(drawnLevels(1, 2), privacy.Released[mechanisms.Noisy]{})}); err == nil {
		t.Error("nothing was saved for a level")
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Levels: drawnLevels(1, 2, 3)}); err != nil {
		t.Error(err)
	}
	if _, err := f.Save(ctx, r, mechanisms.Drawn{Levels: drawnLevels(1, 2, 3)}); err == nil {
		t.Error("saved twice")
	}
	if own, pool := spent(t, f, "alice"); own != 400_000 || pool != 800_000 {
		t.Errorf("she has spent %d, the cap %d", own, pool)
	}
	one := item(3, eps(100_000))
	plain := charge(t, f, request("alice", one))[0].Receipt
	if err := plain.Spend(one.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Save(ctx, plain, mechanisms.Drawn{Levels: drawnLevels(1)}); err == nil {
		t.Error("levels were saved where none were paid for")
	}
	f.Abandon(plain)
}
