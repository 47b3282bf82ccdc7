package execute

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Collector checks the rows of a query as they come: cells in their range, counts not negative, no combination of cells
// twice. A database that breaks this is at fault, whatever it means.
//
// Memory that runs short is shown to everybody (docs/adr/0053), so what a result takes is not to depend on its rows: a
// query of at most maxReserved combinations of cells has room for all of them from the start, however few come. Of the
// keys of a discovery, and of more combinations, the room is that of what comes.
type Collector struct {
	query  rewrite.Query
	most   int                 // combinations of cells
	Seen   map[string]struct{} // keys, or cells where there are too many combinations for bits
	Bits   []uint64            // by combination: it has come
	Cells  []int32             // of all groups
	Counts []int64
	Groups []privacy.Group
}

// Results collects what a query's scan counts, measure by measure.
type Results struct {
	Of            []*Collector
	Cells, Counts int // columns of the answer
}

// NewResults collects what the scan of a query counts.
func NewResults(q rewrite.Query) *Results {
	r := &Results{}
	r.Cells, r.Counts = q.Width()
	for _, m := range q.Measures() {
		r.Of = append(r.Of, NewCollector(m))
	}
	return r
}

// Row is a row of an answer: its small columns are the cells and, where there are several measures, before them the
// number of its own.
type Row struct {
	Small  []int32
	Counts []int64
}

// Row is one for the answer's rows to be read into.
func (r *Results) Row() Row {
	return Row{make([]int32, min(len(r.Of)-1, 1)+r.Cells), make([]int64, r.Counts)}
}

// Width is how many columns it has.
func (row Row) Width() int { return len(row.Small) + len(row.Counts) }

// AddRow takes a row, of which it keeps a copy.
func (r *Results) AddRow(row Row) error {
	if len(row.Small) > r.Cells {
		return r.Add(row.Small[0], row.Small[1:], row.Counts)
	}
	return r.Add(0, row.Small, row.Counts)
}

// Add takes one row of a measure, of which it keeps a copy. Columns that the measure does not have are 0.
func (r *Results) Add(measure int32, cells []int32, counts []int64) error {
	if measure < 0 || int(measure) >= len(r.Of) {
		return ErrResult
	}
	into := r.Of[measure]
	own, its := min(into.query.Grain(), len(cells)), min(into.query.Counters(), len(counts))
	for _, cell := range cells[own:] {
		if cell != 0 {
			return ErrResult
		}
	}
	for _, n := range counts[its:] {
		if n != 0 {
			return ErrResult
		}
	}
	return into.Add(cells[:own], counts[:its])
}

// Groups are those of each measure.
func (r *Results) Groups() (list [][]privacy.Group) {
	for _, c := range r.Of {
		list = append(list, c.Groups)
	}
	return list
}

// NewCollector collects what a measure counts.
func NewCollector(q rewrite.Query) *Collector {
	c := &Collector{query: q, most: backend.Combinations(q)}
	if backend.ReservedAlone(q) == 0 {
		c.Seen = map[string]struct{}{}
		return c
	}
	c.Bits, c.Groups = make([]uint64, (c.most+63)/64), make([]privacy.Group, 0, c.most)
	c.Cells, c.Counts = make([]int32, 0, c.most*q.Grain()), make([]int64, 0, c.most*q.Counters())
	return c
}

// twice reports whether a combination of cells has come before.
func (c *Collector) twice(cells []int32) bool {
	if c.Seen == nil {
		at := 0
		for i, cell := range cells {
			at = at*c.query.Size(i) + int(cell)
		}
		bit := uint64(1) << (at % 64)
		before := c.Bits[at/64] & bit
		c.Bits[at/64] |= bit
		return before != 0
	}
	key := make([]byte, 0, 4*len(cells))
	for _, cell := range cells {
		key = binary.BigEndian.AppendUint32(key, uint32(cell))
	}
	_, before := c.Seen[string(key)]
	c.Seen[string(key)] = struct{}{}
	return before
}

// AddKey takes one key and its number of units. Of too many, one more than are of use is kept. A key that no client
// could be sent is nobody's.
func (c *Collector) AddKey(key *string, units int64) error {
	text := privacy.NullKey
	if key != nil {
		text = "=" + *key
	}
	switch {
	case units < 0:
		return ErrResult
	case len(c.Groups) > mechanisms.MaxFound || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil
	}
	if _, twice := c.Seen[text]; twice {
		return ErrResult
	}
	c.Seen[text] = struct{}{}
	c.Groups = append(c.Groups, privacy.Group{Key: text, Counts: []int64{units}})
	return nil
}

// Add takes one row, of which it keeps a copy.
func (c *Collector) Add(cells []int32, counts []int64) error {
	if len(cells) != c.query.Grain() || len(counts) != c.query.Counters() || len(c.Groups) >= c.most {
		return ErrResult
	}
	for i, cell := range cells {
		if cell < 0 || int(cell) >= c.query.Size(i) {
			return ErrResult
		}
	}
	for i, n := range counts {
		if n < 0 && !c.query.Signed(i) {
			return ErrResult
		}
	}
	if c.twice(cells) {
		return ErrResult
	}
	c.Cells, c.Counts = append(c.Cells, cells...), append(c.Counts, counts...)
	from, at := len(c.Cells)-len(cells), len(c.Counts)-len(counts)
	c.Groups = append(c.Groups, privacy.Group{Cells: c.Cells[from:len(c.Cells):len(c.Cells)], Counts: c.Counts[at:len(c.Counts):len(c.Counts)]})
	return nil
}

// CollectKeys takes every key.
func CollectKeys(rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}, into *Collector) error {
	for rows.Next() {
		var key *string
		var units int64
		if err := rows.Scan(&key, &units); err != nil {
			return ErrResult // its text would hold the value
		}
		if err := into.AddKey(key, units); err != nil {
			return err
		}
	}
	return rows.Err()
}
