package backend

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// collector checks the rows of a query as they come: cells in their range, counts not negative, no combination of cells
// twice. A database that breaks this is at fault, whatever it means.
//
// Memory that runs short is told to everybody (docs/adr/0053), so what a result takes is not to depend on its rows: a query of
// at most maxReserved combinations of cells has room for all of them from the start, however few come. Of the keys of a
// discovery, and of more combinations, the room is that of what comes.
type collector struct {
	query  rewrite.Query
	most   int                 // combinations of cells
	seen   map[string]struct{} // keys, or cells where there are too many combinations for bits
	bits   []uint64            // by combination: it has come
	cells  []int32             // of all groups
	counts []int64
	groups []privacy.Group
}

// results collects what a query's scan counts, measure by measure.
type results struct {
	of            []*collector
	cells, counts int // columns of the answer
}

func newResults(q rewrite.Query) *results {
	r := &results{}
	r.cells, r.counts = q.Width()
	for _, m := range q.Measures() {
		r.of = append(r.of, newCollector(m))
	}
	return r
}

// leading is how many columns stand before the cells: that of the number of the measure, where there are several.
func (r *results) leading() int { return min(len(r.of)-1, 1) }

// numberOf is the number of a row's measure, by the columns before its cells.
func numberOf(leading []int32) int32 {
	if len(leading) == 0 {
		return 0
	}
	return leading[0]
}

// add takes one row of a measure, of which it keeps a copy. Columns that the measure does not have are 0.
func (r *results) add(measure int32, cells []int32, counts []int64) error {
	if measure < 0 || int(measure) >= len(r.of) {
		return errResult
	}
	into := r.of[measure]
	own, its := min(into.query.Grain(), len(cells)), min(into.query.Counters(), len(counts))
	for _, cell := range cells[own:] {
		if cell != 0 {
			return errResult
		}
	}
	for _, n := range counts[its:] {
		if n != 0 {
			return errResult
		}
	}
	return into.add(cells[:own], counts[:its])
}

// groups are those of each measure.
func (r *results) groups() (list [][]privacy.Group) {
	for _, c := range r.of {
		list = append(list, c.groups)
	}
	return list
}

func newCollector(q rewrite.Query) *collector {
	c := &collector{query: q, most: combinations(q)}
	if reserved(q) == 0 {
		c.seen = map[string]struct{}{}
		return c
	}
	c.bits, c.groups = make([]uint64, (c.most+63)/64), make([]privacy.Group, 0, c.most)
	c.cells, c.counts = make([]int32, 0, c.most*q.Grain()), make([]int64, 0, c.most*q.Counters())
	return c
}

// twice tells whether a combination of cells has come before.
func (c *collector) twice(cells []int32) bool {
	if c.seen == nil {
		at := 0
		for i, cell := range cells {
			at = at*c.query.Size(i) + int(cell)
		}
		bit := uint64(1) << (at % 64)
		before := c.bits[at/64] & bit
		c.bits[at/64] |= bit
		return before != 0
	}
	key := make([]byte, 0, 4*len(cells))
	for _, cell := range cells {
		key = binary.BigEndian.AppendUint32(key, uint32(cell))
	}
	_, before := c.seen[string(key)]
	c.seen[string(key)] = struct{}{}
	return before
}

// addKey takes one key and its number of units. Of too many, one more than are of use is kept. A key that no client could
// be sent is nobody's.
func (c *collector) addKey(key *string, units int64) error {
	text := privacy.NullKey
	if key != nil {
		text = "=" + *key
	}
	switch {
	case units < 0:
		return errResult
	case len(c.groups) > mechanisms.MaxFound || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil
	}
	if _, twice := c.seen[text]; twice {
		return errResult
	}
	c.seen[text] = struct{}{}
	c.groups = append(c.groups, privacy.Group{Key: text, Counts: []int64{units}})
	return nil
}

// add takes one row, of which it keeps a copy.
func (c *collector) add(cells []int32, counts []int64) error {
	if len(cells) != c.query.Grain() || len(counts) != c.query.Counters() || len(c.groups) >= c.most {
		return errResult
	}
	for i, cell := range cells {
		if cell < 0 || int(cell) >= c.query.Size(i) {
			return errResult
		}
	}
	for i, n := range counts {
		if n < 0 && !c.query.Signed(i) {
			return errResult
		}
	}
	if c.twice(cells) {
		return errResult
	}
	c.cells, c.counts = append(c.cells, cells...), append(c.counts, counts...)
	from, at := len(c.cells)-len(cells), len(c.counts)-len(counts)
	c.groups = append(c.groups, privacy.Group{Cells: c.cells[from:len(c.cells):len(c.cells)], Counts: c.counts[at:len(c.counts):len(c.counts)]})
	return nil
}

// collectKeys takes every key.
func collectKeys(rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}, into *collector) error {
	for rows.Next() {
		var key *string
		var units int64
		if err := rows.Scan(&key, &units); err != nil {
			return errResult // its text would hold the value
		}
		if err := into.addKey(key, units); err != nil {
			return err
		}
	}
	return rows.Err()
}
