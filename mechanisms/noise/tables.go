package noise

import (
	"sync"
)

// tables keeps what Fill has built, for the whole process. What it keeps, and what it forgets, depends on public
// parameters and numbers of samples alone.
var tables = cache{most: 16 << 20}

// cache builds a law's table once as many samples have been asked for as pay for it, and forgets the one that was asked
// for the longest time ago when the tables together take more than most bytes.
type cache struct {
	sync.Mutex
	known       map[law]*kept
	most, bytes int
	clock       uint64
}

type kept struct {
	table  *table // nil until it pays
	wanted float64
	asked  uint64 // by the cache's clock
}

// maxKnown is how many laws are remembered, most of them without a table.
const maxKnown = 4096

func (t *table) bytes() int { return 8*cap(t.digits) + 2*len(t.guide) }

// pays is how many samples a table must serve before it costs less than it saves: filling the guide takes as long as
// some 1,500 samples without it, an entry as long as half of one.
func (l law) pays() float64 { return 1500 + l.entries()/2 }

// of returns the law's table for n more samples, or nil where they are drawn without.
func (c *cache) of(l law, n int) *table {
	if l.entries() > maxEntries-1 {
		return nil
	}
	c.Lock()
	defer c.Unlock()
	k := c.known[l]
	if k == nil {
		if len(c.known) >= maxKnown || c.known == nil {
			c.known, c.bytes = map[law]*kept{}, 0
		}
		k = &kept{}
		c.known[l] = k
	}
	c.clock++
	k.asked = c.clock
	if k.wanted += float64(n); k.table == nil && k.wanted >= l.pays() {
		k.table = build(l)
		c.bytes += k.table.bytes()
		c.shrink(k)
	}
	return k.table
}

// shrink forgets tables, the longest unasked first, but not the newest.
func (c *cache) shrink(newest *kept) {
	for c.bytes > c.most {
		oldest := newest
		for _, k := range c.known {
			if k.table != nil && k.asked < oldest.asked {
				oldest = k
			}
		}
		if oldest == newest {
			return
		}
		c.bytes -= oldest.table.bytes()
		oldest.table, oldest.wanted = nil, 0
	}
}

// law returns the law of |noise|, its parameter in lowest terms.
func (d Distribution) law() law {
	a, b := d.num, d.den
	for b != 0 {
		a, b = b, a%b
	}
	return law{kind: d.kind, num: d.num / a, den: d.den / a, folded: true}
}

// Fill draws len(out) times from the distribution, like Sample, four or so to a word of randomness: by a table where
// one is there or pays, which it does for distributions up to a deviation of some 3,000 from some thousand samples on,
// in one call or in many. The caller must look at r.Err() before it uses any.
func (d Distribution) Fill(r *Reader, out []int64) {
	if d.kind == 0 {
		panic("noise: samples of a distribution that New did not make")
	}
	if r.fixed {
		f := fixedOf(d)
		for i := range out {
			out[i] = f.sample(r)
		}
		return
	}
	if t := tables.of(d.law(), len(out)); t != nil {
		t.fill(r, out)
		return
	}
	for i := range out {
		out[i] = d.Sample(r)
	}
}
