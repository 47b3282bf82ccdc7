package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Keys are compared by what they are, and not pair by pair: what a database makes of a = b depends on the types and
// collations of both alone, of which a schema has few, while pairs grow with the square of its tables.

// Keys are some keys of one kind.
type Keys struct {
	Kind    ColumnShape // without what does not decide how values compare
	Columns []*policy.Column
}

// Compared are two kinds of keys, one perhaps, of which the planner may compare each of the one with some of the other.
type Compared struct{ Left, Right Keys }

// kind is what decides how a column's values compare.
func (c ColumnShape) kind() ColumnShape {
	return ColumnShape{KindOf: c.KindOf, Base: c.Base, Scale: c.Scale, Loose: c.Loose, More: c.More}
}

// ComparedKeys lists the pairs of kinds of keys that the planner may compare (policy.Column.Comparable): those that
// name units, those through which units are found, and join keys of like declared types. A key is also compared with
// itself, in a self-join. Keys that the database does not have are left out.
func ComparedKeys(d *policy.Dataset, have Shape, in dialect.Dialect) []Compared {
	groups := map[policy.ComparedBy][]Keys{}
	var order []policy.ComparedBy
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		for _, key := range t.Keys {
			c, ok := have.of(t, key.Source, in)
			if !ok {
				continue
			}
			for _, by := range key.ComparedBy() {
				if groups[by] == nil {
					order = append(order, by)
				}
				groups[by] = addKeys(groups[by], Keys{c.kind(), []*policy.Column{key}})
			}
		}
	}
	var list []Compared
	at := map[[2]ColumnShape]int{}
	for _, by := range order {
		for i, a := range groups[by] {
			for _, b := range groups[by][i:] {
				kinds := [2]ColumnShape{a.Kind, b.Kind}
				if n, known := at[[2]ColumnShape{b.Kind, a.Kind}]; known && a.Kind != b.Kind {
					list[n].add(b, a)
				} else if n, known := at[kinds]; known {
					list[n].add(a, b)
				} else {
					at[kinds] = len(list)
					list = append(list, Compared{a, b})
				}
			}
		}
	}
	return list
}

// addKeys adds keys to those of their kind.
func addKeys(list []Keys, more Keys) []Keys {
	i := slices.IndexFunc(list, func(k Keys) bool { return k.Kind == more.Kind })
	if i < 0 {
		return append(list, more)
	}
	list[i].Columns = append(list[i].Columns, more.Columns...)
	return list
}

// add adds keys of the same kinds, which are compared for another reason.
func (c *Compared) add(left, right Keys) {
	c.Left.Columns = append(slices.Clip(c.Left.Columns), left.Columns...)
	c.Right.Columns = append(slices.Clip(c.Right.Columns), right.Columns...)
}

// mostNamed is how many keys of one kind a finding names.
const mostNamed = 4

// String names the keys, the first of many, with their types.
func (k Keys) String() string {
	var names []string
	named := map[*policy.Column]bool{}
	for _, c := range k.Columns {
		if named[c] {
			continue
		}
		if named[c] = true; len(named) <= mostNamed {
			names = append(names, fmt.Sprintf("table %s, column %s", c.Table.Name, c.Source))
		}
	}
	text := strings.Join(names, "; ")
	if more := len(named) - mostNamed; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%s (%s)", text, k.Kind.Keyed())
}

// String names both, at the beginning of what is said of them.
func (c Compared) String() string {
	if c.Left.Kind == c.Right.Kind {
		return c.Left.String() + ": "
	}
	return c.Left.String() + ", and " + c.Right.String() + ": "
}
