// Package nested draws statements over the tables of a policy in which sub-queries, joins by keys, set operations,
// WITH, DISTINCT, GROUP BY within the unit and window functions are nested, in every place that SQL has for
// them. Only tests import it: what plans such a statement must not panic, and what answers it must answer as PostgreSQL
// does.
package nested

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Drawer draws statements over the private tables of a dataset.
type Drawer struct {
	dice   *rand.Rand
	tables []relation
	named  int        // aliases given out
	ctes   []string   // of the statement that is being drawn
	shared []relation // what they show
}

// relation is a name in FROM, and what it shows.
type relation struct {
	name    string
	columns []column
}

// column is what a relation shows: a key, a column with a domain, or both.
type column struct {
	name   string
	key    string   // which key it is: what has the same may be equal. The unit's is unitKey, and of no key it is empty
	typ    string   // of one with a domain
	values []string // some of it, as literals
}

// unitKey is what names the unit.
const unitKey = "unit"

// New is a Drawer over a dataset's private tables that draws from a source of numbers.
func New(d *policy.Dataset, source rand.Source) *Drawer {
	out := &Drawer{dice: rand.New(source)}
	for _, t := range d.Tables {
		if t.Public || t.View.Text != "" {
			continue
		}
		r := relation{name: t.Name}
		for _, k := range t.Keys {
			c := column{name: k.Name, key: unitKey}
			if !k.Unit {
				c.key = k.Origin().Table.Name + "." + k.Origin().Source
			}
			r.columns = append(r.columns, c)
		}
		for _, c := range t.Shown() {
			at := slices.IndexFunc(r.columns, func(have column) bool { return have.name == c.Name })
			if c.Open != nil || c.Reading != nil {
				continue
			}
			if at < 0 {
				at = len(r.columns)
				r.columns = append(r.columns, column{name: c.Name})
			}
			r.columns[at].typ, r.columns[at].values = c.Type.Name(), literals(c)
		}
		out.tables = append(out.tables, r)
	}
	return out
}

// Without keeps columns out of what is drawn.
func (d *Drawer) Without(names ...string) *Drawer {
	for i := range d.tables {
		d.tables[i].columns = slices.DeleteFunc(d.tables[i].columns, func(c column) bool { return slices.Contains(names, c.name) })
	}
	return d
}

// literals are some values of a column, as SQL writes them.
func literals(c *policy.Column) (list []string) {
	for _, cell := range []int{0, c.Domain.Regular / 3, c.Domain.Regular / 2, c.Domain.Regular - 1} {
		text := policy.FormatValue(c.Type, c.Domain.Low(cell))
		if c.Type != policy.Bool && !c.Type.Integer() && c.Type != policy.NumericType && !c.Type.Floating() {
			text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
		}
		if c.Type.Moment() {
			text += "::" + c.Type.Name()
		}
		list = append(list, text)
	}
	return list
}

// Bytes is a source of numbers that a fuzzer steers: each is decided by a byte, and where there are no more by how many
// have been drawn.
type Bytes struct {
	Data []byte
	n    uint64
}

// Uint64 is the next number.
func (b *Bytes) Uint64() uint64 {
	b.n++
	mixed := (b.n + uint64(len(b.Data))) * 0x9E3779B97F4A7C15
	mixed ^= mixed >> 29
	if len(b.Data) == 0 {
		return mixed * 0xBF58476D1CE4E5B9
	}
	next := uint64(b.Data[0])
	b.Data = b.Data[1:]
	return next<<56 | next<<24 | mixed>>8&0xffffff
}
