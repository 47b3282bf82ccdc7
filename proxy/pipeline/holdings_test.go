package pipeline

import (
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// TestHoldingsOfALaterVersion: a release by a strategy that this version does not know is left out, the others are
// found, the most exact first, whatever their strategies.
func TestHoldingsOfALaterVersion(t *testing.T) {
	noise := func(num int64) mechanisms.Noise {
		return mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: num, Den: 1}
	}
	release := func(id int64, y mechanisms.Strategy, n mechanisms.Noise) ledger.Release {
		return ledger.Release{ID: id, Item: ledger.Item{Digest: ledger.Digest{7}, Table: "public.people", Spec: mechanisms.Spec{Counters: 1, Cells: 64, Kind: &mechanisms.Counts{Strategy: y, Noise: n}}}}
	}
	releases := []ledger.Release{
		release(1, mechanisms.Strategy{Kind: mechanisms.PIdentity, Version: 1}, noise(655360)), // an error of 55
		release(2, mechanisms.Strategy{Kind: mechanisms.PIdentity, Version: 999}, noise(1)),
		release(3, mechanisms.Strategy{Kind: mechanisms.Identity}, noise(10)), // 66
		release(4, mechanisms.Strategy{Kind: mechanisms.PIdentity, Version: 1}, noise(65536)),
		release(5, mechanisms.Strategy{Kind: 99}, noise(1)),
	}
	held := (&holdingsIndex{}).of(releases, "ann", "clinic").Held(plans.Digest{7})
	var ids []int64
	for _, h := range held {
		ids = append(ids, h.ID)
	}
	if len(ids) != 3 || ids[0] != 4 || ids[1] != 1 || ids[2] != 3 {
		t.Errorf("held are %v, want 4, 1, 3", ids)
	}
}

// TestHoldingsThatWereWithdrawn: what is gone from the list is not found any more, be it the last that was in it, and
// what comes after it is.
func TestHoldingsThatWereWithdrawn(t *testing.T) {
	release := func(id int64) ledger.Release {
		return ledger.Release{ID: id, Item: ledger.Item{Digest: ledger.Digest{7}, Table: "public.people", Spec: mechanisms.Spec{Counters: 1, Cells: 64,
			Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1, Den: 1}}}}}
	}
	h := &holdingsIndex{}
	for _, ids := range [][]int64{{1, 3}, {1}, {1, 4}, {4}, {}, {5}} {
		var list []ledger.Release
		for _, id := range ids {
			list = append(list, release(id))
		}
		found := map[int64]bool{}
		for _, held := range h.of(list, "ann", "clinic").Held(plans.Digest{7}) {
			found[held.ID] = true
		}
		for _, id := range ids {
			if !found[id] {
				t.Errorf("of %v, %d is not found", ids, id)
			}
		}
		if len(found) != len(ids) {
			t.Errorf("of %v, %v are found", ids, found)
		}
	}
}

// TestHoldingsThatGrow: of a list that grows where it lies what is new alone is looked at, and what is refined since is
// found no more.
func TestHoldingsThatGrow(t *testing.T) {
	release := func(id int64) ledger.Release {
		return ledger.Release{ID: id, Item: ledger.Item{Digest: ledger.Digest{7}, Table: "public.people", Spec: mechanisms.Spec{Counters: 1, Cells: 64,
			Kind: &mechanisms.Counts{Strategy: mechanisms.Strategy{Kind: mechanisms.Identity}, Noise: mechanisms.Noise{Kind: mechanisms.DiscreteLaplace, Num: 1, Den: 1}}}}}
	}
	h, list := &holdingsIndex{}, make([]ledger.Release, 0, 8)
	holds := func(what string, list []ledger.Release, want ...int64) {
		t.Helper()
		found := map[int64]bool{}
		for _, held := range h.of(list, "ann", "clinic").Held(plans.Digest{7}) {
			found[held.ID] = true
		}
		for _, id := range want {
			if !found[id] {
				t.Errorf("%s: %d is not found", what, id)
			}
		}
		if len(found) != len(want) {
			t.Errorf("%s: %v are found, want %v", what, found, want)
		}
	}
	list = append(list, release(1))
	holds("the first", list[:1:1], 1)
	first := h.of(list[:1:1], "ann", "clinic")
	list = append(list, release(2), release(3))
	holds("two more", list[:3:3], 1, 2, 3)
	if h.of(list[:3:3], "ann", "clinic") != first {
		t.Error("the inventory was made anew")
	}
	holds("as it was for who asked before", list[:1:1], 1)
	holds("and as it is", list[:3:3], 1, 2, 3)
	refined := append([]ledger.Release(nil), list...)
	refined[1].Refined = true
	refined = append(refined, release(4))
	holds("one refined", refined, 1, 3, 4)
	refined = append(refined[:len(refined):len(refined)], release(5))
	holds("and another", refined, 1, 3, 4, 5)
}
