package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A domain may be the keys of a public table, or of those of its rows for which a condition holds:
//
//	{name: sex, type: integer, domain: {keys_of: concept.concept_id, where: "domain_id = 'Gender'"}}
//
// The file does not say them: whoever has opened the database reads them (planner.ListValues) and reads the policy
// again with them (WithLists). Until then nothing is answered over the column.

// List is where the values of a column's domain are read.
type List struct {
	Column *Column // of a private table
	Of     *Table  // public, in the same dataset
	Key    *Column // of it
	Where  string  // a condition over its columns, as SQL; empty means all rows

	Line, At int // of the domain in the policy file

	path string // of Key, as the file has it
	at   place  // while the file is read
}

// Name tells one list of a policy from the others.
func (l *List) Name() string {
	t := l.Column.Table
	return fmt.Sprintf("%q.%q.%q", t.Dataset.ID, t.Name, l.Column.Name)
}

// Lists are all of a policy, in its order.
func (p *Policy) Lists() []*List {
	var all []*List
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			for _, c := range t.Columns {
				if c.List != nil {
					all = append(all, c.List)
				}
			}
		}
	}
	return all
}

// WithLists reads the policy again with the values of all its lists, by their names; a policy without lists is itself.
func (p *Policy) WithLists(values map[string][]string) (*Policy, error) {
	if len(p.Lists()) == 0 {
		return p, nil
	}
	return parse(p.text, p.Path, false, values)
}

// SameLists reports whether two readings of a policy found the same values.
func (p *Policy) SameLists(q *Policy) bool { return maps.EqualFunc(p.lists, q.lists, slices.Equal) }

// MaxListed and MaxListedTexts are how many values a list has at most: of whole numbers, and of texts and uuids, which
// travel to PostgreSQL as arguments, of which a query has at most 60,000.
const (
	MaxListed      = 1 << 17
	MaxListedTexts = 50_000
)

// listColumn notes that a column's values are the keys of a public table; the dataset's tables may follow in the file.
func listColumn(col *Column, f *columnT, at place) {
	here := at.key("domain")
	list := &List{Column: col, Where: f.Domain.Where, path: f.Domain.KeysOf, at: here}
	list.Line, list.At = here.node.Line, here.node.Column
	values, read := col.Table.Dataset.lists[list.Name()]
	switch {
	case col.Outside == OutsideClamp:
		at.key("outside").problem("outside is clamp, which needs an ordered column")
		return
	case f.Domain.Values != nil || f.Domain.ends() != "":
		here.problem("keys_of is given, and takes the place of values, min, max, below and step")
		return
	case !col.Type.Integer() && !col.Type.Textual() && col.Type != UUID || col.Enum:
		here.problem("keys_of is for columns of whole numbers, text, varchar and uuid; %s has no keys",
			col.Type.Format(col.Typmod))
		return
	case read && len(values) > 0: // an empty table's keys may come yet
		col.Domain = keysDomain(col, f, values, at)
	default:
		rules := Rules{Nulls: col.Nulls, Outside: col.Outside}
		d, err := (&Domain{Type: col.Type, Scale: -1, Other: -1, Null: -1, index: map[string]int{}}).spare(rules)
		if err != nil {
			here.problem("%v", err)
		}
		col.Private, col.Domain = true, d
	}
	col.List = list
}

// keysDomain is the domain of the keys that were read. Whole numbers that are too many for a list are all from the least
// to the largest.
func keysDomain(col *Column, f *columnT, values []string, at place) *Domain {
	here, most := at.key("domain"), MaxListedTexts
	if col.Type.Integer() {
		most = MaxListed
	}
	switch {
	case len(values) <= most:
		texts := make([]scalar, len(values))
		for i, v := range values {
			texts[i] = scalar(v)
		}
		return enumerated(col, &domainT{Values: texts}, Rules{Nulls: col.Nulls, Outside: col.Outside}, at)
	case !col.Type.Integer():
		here.problem("keys_of: there are %d keys, must be at most %d: where says which", len(values), most)
		return nil
	}
	least, largest := slices.MinFunc(values, byNumber), slices.MaxFunc(values, byNumber)
	rules := Rules{Nulls: col.Nulls, Outside: col.Outside}
	d, err := Steps(col.Type, col.Typmod, number(least), number(largest), Step{Whole: 1}, rules)
	if err != nil {
		here.problem("keys_of: there are %d keys, more than %d, and from the least to the largest %v; where says which",
			len(values), most, err)
	}
	return d
}

// resolveLists finds the public tables that lists are read from.
func resolveLists(d *Dataset) {
	for _, t := range d.Tables {
		for _, c := range t.Columns {
			if c.List == nil {
				continue
			}
			if err := c.List.resolve(d); err != nil {
				c.List.at.problem("keys_of %v", err)
			}
			c.List.at = place{} // the file's tree is not kept
		}
	}
}

// resolve finds the table and the column of its path.
func (l *List) resolve(d *Dataset) error {
	path := l.path
	for _, t := range d.Tables {
		for _, c := range t.Columns {
			if path != t.Name+"."+c.Name && path != t.Schema+"."+t.Name+"."+c.Name {
				continue
			}
			if l.Of, l.Key = t, c; !t.Public {
				return fmt.Errorf("is %.127q, of a table that is not public: its keys would tell of its rows", path)
			}
			own := l.Column.Type
			same := own.Integer() == c.Type.Integer() && own.Textual() == c.Type.Textual()
			if !same || (own == UUID) != (c.Type == UUID) {
				return fmt.Errorf("is %.127q, which is %s, and the column is %s", path, c.Type.Format(c.Typmod),
					own.Format(l.Column.Typmod))
			}
			return nil
		}
	}
	if path == "" {
		return errors.New("is missing: where is a condition over the table that it names")
	}
	return fmt.Errorf("is %.127q, must be table.column of a public table of this dataset", path)
}
