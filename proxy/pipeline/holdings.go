package pipeline

import (
	"sync"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// holdingsIndex keeps the planner's inventory of each user and dataset. The ledger hands out one immutable list for
// them; when that is longer, what is new is added, and when something has gone from it, the inventory is made anew.
type holdingsIndex struct{ byUser sync.Map }

// heldIndex is the inventory of one user and dataset.
type heldIndex struct {
	mu  sync.Mutex // for changes
	now atomic.Pointer[inventoryOf]
}

// inventoryOf is an inventory with the list that it was made of. It may already hold more.
type inventoryOf struct {
	from      []ledger.Release
	kept      []ledger.Release // of these, those that were not refined: what refines them has taken their place
	inventory *reuse.Index
}

func (h *holdingsIndex) of(releases []ledger.Release, user, dataset string) *reuse.Index {
	key := [2]string{user, dataset}
	got, ok := h.byUser.Load(key)
	if !ok {
		got, _ = h.byUser.LoadOrStore(key, &heldIndex{})
	}
	return got.(*heldIndex).of(releases)
}

func (h *heldIndex) of(releases []ledger.Release) *reuse.Index {
	if now := h.now.Load(); now != nil && sameList(now.from, releases) {
		return now.inventory
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now, next, from := h.now.Load(), &inventoryOf{from: releases}, 0
	grown := now != nil && hasGrown(now.from, releases)
	if grown {
		next.kept = appendStanding(now.kept, releases[len(now.from):])
	} else {
		next.kept = appendStanding(nil, releases)
	}
	if grown || now != nil && isPrefix(now.kept, next.kept) {
		next.inventory, from = now.inventory, len(now.kept)
	} else { // something has gone, be it the last of them: it was withdrawn, or she has left a group
		next.inventory = reuse.NewIndex()
	}
	for _, r := range next.kept[from:] {
		next.inventory.Add(reuse.Holding{ID: r.ID, Digest: plans.Digest(r.Item.Digest), Spec: r.Item.Spec, At: r.At, AsOf: r.Item.AsOf, Cost: r.Item.Cost, Described: r.Item.Described,
			Refinable: plans.RefinableLevels{Level: r.Item.Ladder.Level, Top: r.Item.Ladder.Finest}})
	}
	h.now.Store(next)
	return next.inventory
}

// hasGrown reports whether a list is another with more behind it, as the ledger makes it of what is bought: for all
// else it makes a new one.
func hasGrown(before, now []ledger.Release) bool {
	return len(before) > 0 && len(before) <= len(now) && &before[0] == &now[0]
}

// appendStanding adds the releases that were not refined.
func appendStanding(kept, releases []ledger.Release) []ledger.Release {
	for _, r := range releases {
		if !r.Refined {
			kept = append(kept, r)
		}
	}
	return kept
}

func sameList[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// isPrefix reports whether a list begins with the releases of another.
func isPrefix(a, b []ledger.Release) bool {
	if len(a) > len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || !a[i].At.Equal(b[i].At) || a[i].Item.Ladder != b[i].Item.Ladder {
			return false
		}
	}
	return true
}
