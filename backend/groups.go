package backend

import (
	"encoding/binary"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// collector checks the rows of a query as they come: cells in their range, counts not negative, no combination of cells
// twice. A database that breaks this is at fault, whatever it means.
type collector struct {
	query  rewrite.Query
	most   int // combinations of cells
	seen   map[string]struct{}
	groups []privacy.Group
}

func newCollector(q rewrite.Query) *collector {
	most := 1
	for i := range q.Grain() {
		if size := q.Size(i); most > math.MaxInt/size {
			most = math.MaxInt
		} else {
			most *= size
		}
	}
	return &collector{query: q, most: most, seen: map[string]struct{}{}}
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
	case len(c.groups) > mechanisms.MostFound || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil
	}
	if _, twice := c.seen[text]; twice {
		return errResult
	}
	c.seen[text] = struct{}{}
	c.groups = append(c.groups, privacy.Group{Key: text, Counts: []int64{units}})
	return nil
}

// add takes one row.
func (c *collector) add(cells []int32, counts []int64) error {
	if len(cells) != c.query.Grain() || len(counts) != c.query.Counters() || len(c.groups) >= c.most {
		return errResult
	}
	key := make([]byte, 0, 4*len(cells))
	for i, cell := range cells {
		if cell < 0 || int(cell) >= c.query.Size(i) {
			return errResult
		}
		key = binary.BigEndian.AppendUint32(key, uint32(cell))
	}
	for i, n := range counts {
		if n < 0 && !c.query.Signed(i) {
			return errResult
		}
	}
	if _, twice := c.seen[string(key)]; twice {
		return errResult
	}
	c.seen[string(key)] = struct{}{}
	c.groups = append(c.groups, privacy.Group{Cells: cells, Counts: counts})
	return nil
}
