package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
)

// holdingsIndex keeps the planner's inventory of each user and dataset. The ledger hands out one immutable list for them;
// when that is longer, what is new is added, and when something has gone from it, the inventory is made anew.
type holdingsIndex struct{ byUser sync.Map }

// heldIndex is the inventory of one user and dataset.
type heldIndex struct {
	mu  sync.Mutex // for changes
	now atomic.Pointer[inventoryOf]
}

// inventoryOf is an inventory with the list that it was made of. It may already hold more.
type inventoryOf struct {
	from      []ledger.Release
	inventory *planner.Inventory
}

func (h *holdingsIndex) of(releases []ledger.Release, user, dataset string) *planner.Inventory {
	key := [2]string{user, dataset}
	got, ok := h.byUser.Load(key)
	if !ok {
		got, _ = h.byUser.LoadOrStore(key, &heldIndex{})
	}
	return got.(*heldIndex).of(releases)
}

func (h *heldIndex) of(releases []ledger.Release) *planner.Inventory {
	if now := h.now.Load(); now != nil && sameList(now.from, releases) {
		return now.inventory
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	next, from := &inventoryOf{from: releases}, 0
	if now := h.now.Load(); now != nil && isPrefix(now.from, releases) {
		next.inventory, from = now.inventory, len(now.from)
	} else if now != nil && isPrefix(releases, now.from) && len(releases) > 0 {
		return now.inventory // a list that has grown since
	} else {
		next.inventory = planner.NewInventory()
	}
	for _, r := range releases[from:] {
		next.inventory.Add(planner.Holding{ID: r.ID, Digest: planner.Digest(r.Item.Digest), Spec: r.Item.Spec, At: r.At, Cost: r.Item.Cost, Described: r.Item.Described})
	}
	h.now.Store(next)
	return next.inventory
}

func sameList(a, b []ledger.Release) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// isPrefix tells whether a list begins with the releases of another.
func isPrefix(a, b []ledger.Release) bool {
	if len(a) > len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || !a[i].At.Equal(b[i].At) {
			return false
		}
	}
	return true
}
