package snapshot

import (
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/rewrite"
)

// While rows are read they are counted by a hash of their units, so that a table of which no unit has very many rows
// (rewrite.MaxRanked) need not be grouped by its units to find that out. Where many units share a hash it may be
// grouped in vain. Neither decides which rank a row has.

// UnitCounts are numbers of rows by the last bits of a hash of their unit.
type UnitCounts []uint32

// CountsLength is few enough of them for a processor's own memory, a megabyte, and as many as tell ten thousand million
// rows of ordinary units from a heavy one: units share them, and of seventeen thousand million rows each has MaxRanked.
const (
	countsBits   = 18
	CountsLength = 1 << countsBits
)

// Counted adds up what several have counted of a table.
type Counted struct {
	mu   sync.Mutex
	sums UnitCounts // nil: nobody has
}

// Of counts so many rows of the units with a hash.
func (c UnitCounts) Of(h uint64, rows int32) {
	const golden = 0x9E3779B97F4A7C15
	c[h*golden>>(64-countsBits)] += uint32(rows)
}

// Add adds up what was counted.
func (c *Counted) Add(more UnitCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums = make(UnitCounts, CountsLength)
	}
	for i, n := range more {
		if c.sums[i] += n; c.sums[i] < n {
			c.sums[i] = ^uint32(0)
		}
	}
}

// Light reports whether it is known that no unit has very many rows.
func (c *Counted) Light() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sums != nil && !slices.ContainsFunc(c.sums, func(n uint32) bool { return n > rewrite.MaxRanked })
}
