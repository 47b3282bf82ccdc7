package inspect

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// CompareTable holds one table against the database's catalog.
func CompareTable(t *policy.Table, have Shape, in dialect.Dialect) []backend.Finding {
	schema, name := RelationOf(t, in)
	at := func(column string) (ColumnShape, bool) {
		c, ok := have[ColumnOf(schema, name, column)]
		return c, ok
	}
	columns := make([]string, 0, len(t.Columns)+1)
	for _, c := range t.Columns {
		columns = append(columns, c.Source)
	}
	columns = append(columns, KeyColumns(t)...)
	first := slices.IndexFunc(columns, func(c string) bool { _, ok := at(c); return ok })
	if first < 0 && t.View.Text != "" {
		return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("table %s: the database does not accept its SELECT, or that shows none of the policy's columns; every table in it must be written with its schema, which dpproxy's role may read", t.Name)}}
	}
	if first < 0 {
		return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("table %s: %s.%s does not exist in the database, has none of the policy's columns, or may not be seen by dpproxy's role", t.Name, schema, name)}}
	}
	relation, _ := at(columns[first])
	list := kindFindings(t, relation.Kind)
	for _, key := range KeyColumns(t) {
		what := "join key"
		switch key {
		case t.UnitColumn:
			what = "unit's column"
		case t.RowRank:
			what = "row_rank"
		}
		if _, ok := at(key); !ok {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s: the %s %s does not exist in the database", t.Name, what, key)})
		}
	}
	for _, c := range t.Columns {
		if actual, ok := at(c.Source); ok {
			list = append(list, CompareColumn(c, actual, in)...)
		} else {
			list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s: column %s (%s) does not exist in the database", t.Name, c.Name, c.Source)})
		}
	}
	return list
}

// kindFindings says what kind of relation the table is, where that matters.
func kindFindings(t *policy.Table, kind string) []backend.Finding {
	switch {
	case kind == "table" || kind == "partitioned table" || kind == KindTrusted:
		return nil
	case t.Public:
		return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("public table %s is a %s; only a plain table can be public, because a %s may show private rows", t.Name, kind, kind)}}
	}
	return []backend.Finding{{Text: fmt.Sprintf("table %s is a %s: that each of its rows depends on one unit's rows alone is assumed, not enforced", t.Name, kind)}}
}

var decimalType = regexp.MustCompile(`^DECIMAL\(\d+,(\d+)\)$`)

// CompareColumn holds one column's type against the policy's.
func CompareColumn(c *policy.Column, actual ColumnShape, in dialect.Dialect) []backend.Finding {
	base, scale := actual.Base, actual.Scale
	if m := decimalType.FindStringSubmatch(base); m != nil {
		base = "DECIMAL"
		scale, _ = strconv.Atoi(m[1])
	}
	if len(base) > 4 && base[:5] == "ENUM(" {
		base = "ENUM"
	}
	declared := c.Type.Format(c.Typmod)
	if c.Table.Public { // copied through text, so that any type that can be read as the declared one will do
		if base == "character" && c.Type.Textual() && c.Blanks == 0 {
			return []backend.Finding{{Text: fmt.Sprintf("public table %s, column %s: the policy says %s, the database says %s: here its values are texts without the blanks at their end, so that LIKE 'a' finds what is 'a  ' there, = 'a ' does not find 'a', nor is it equal to a varchar 'a ': declare it as char(n)",
				c.Table.Name, c.Name, declared, actual.KindOf)}}
		}
		return nil
	}
	types := in.Accepts[c.Type]
	if c.Enum {
		declared, types = "enum", []string{"enum", "ENUM"}
	}
	if c.Blanks > 0 {
		declared = fmt.Sprintf("char(%d)", c.Blanks)
	}
	where := fmt.Sprintf("table %s, column %s: the policy says %s, the database says %s", c.Table.Name, c.Name, declared, actual.KindOf)
	switch at := slices.Index(types, base); {
	case base == "domain of an enum":
		return []backend.Finding{{Fatal: true, Text: where + ", a domain over an enumerated type, which a view as source can cast to text"}}
	case at < 0 && strings.EqualFold(base, "enum") && c.Type == policy.Text:
		return []backend.Finding{{Fatal: true, Text: where + ", an enumerated type, whose labels are texts: declare it as enum"}}
	case at < 0:
		return []backend.Finding{{Fatal: true, Text: where}}
	case actual.Loose && !in.Collates:
		return []backend.Finding{{Fatal: true, Text: where + ", under a collation, by which other texts than the policy's are equal to them: make it one without (ALTER … TYPE VARCHAR COLLATE C)"}}
	case base == "character" && c.Blanks > 0:
		return nil
	case base == "character":
		return []backend.Finding{{Text: where + ": declared as char(n), trailing blanks of constants do not count, as they do not there"}}
	case c.Blanks > 0 && slices.Contains(types, "character"): // which the database has, and this is none
		return []backend.Finding{{Text: where + ", where trailing blanks count"}}
	case at > 0 && !c.Enum:
		return []backend.Finding{{Text: where + "; its values are read as the policy says"}}
	}
	if c.Type != policy.NumericType || c.Typmod < 0 {
		return nil
	}
	if _, most := policy.NumericTypmod(c.Typmod); scale < 0 || scale > int(most) {
		return []backend.Finding{{Fatal: true, Text: where + fmt.Sprintf(" with digits beyond the %d after the point that the policy counts on", most)}}
	}
	return nil
}

// BoundFinding says how the bound of rows per unit holds.
func BoundFinding(t *policy.Table, proven bool) []backend.Finding {
	switch {
	case t.Public || t.Dataset.Unit.Row:
		return nil
	case t.RowRank != "":
		return []backend.Finding{{Note: true, Text: fmt.Sprintf("table %s: %s numbers the rows of each %s; each query reads those from 1 to %d", t.Name, t.RowRank, t.Dataset.Unit.Name, t.MaxRowsPerUnit)}}
	case proven:
		return []backend.Finding{{Note: true, Text: fmt.Sprintf("table %s: a unique constraint on %s proves one row per %s, so no rows are left out", t.Name, t.UnitColumn, t.Dataset.Unit.Name)}}
	case t.AnyRows:
		text := fmt.Sprintf("table %s: a %s may have any number of rows; what they add up to is bounded",
			t.Name, t.Dataset.Unit.Name)
		return []backend.Finding{{Note: true, Text: text}}
	case t.MaxGroups > 0:
		return []backend.Finding{{Note: true, Numbered: t.Name, Text: fmt.Sprintf("table %s: no constraint proves the rows per %s; each query keeps %d of its groups, and %d rows of each, both in the order of a fixed hash",
			t.Name, t.Dataset.Unit.Name, t.MaxGroups, t.MaxPerGroup)}}
	case t.MaxRowsPerUnit == 1 && t.UnitColumn != "" && t.View.Text == "":
		return []backend.Finding{{Numbered: t.Name, Text: fmt.Sprintf("table %s: no constraint proves one row per %s; each query sorts the rows to keep one (a unique constraint on %s would spare that)",
			t.Name, t.Dataset.Unit.Name, t.UnitColumn)}}
	}
	return []backend.Finding{{Note: true, Numbered: t.Name, Text: fmt.Sprintf("table %s: no constraint proves the rows per %s; each query keeps the first %d in the order of a fixed hash",
		t.Name, t.Dataset.Unit.Name, t.MaxRowsPerUnit)}}
}

// Fatal reports whether a finding keeps a policy from being served.
func Fatal(list []backend.Finding) bool {
	return slices.ContainsFunc(list, func(f backend.Finding) bool { return f.Fatal })
}

// FatalIf is a fatal finding that says what the error does, or none if it is nil.
func FatalIf(err error) []backend.Finding {
	if err == nil {
		return nil
	}
	return []backend.Finding{{Fatal: true, Text: err.Error()}}
}

// Two tables of a policy may show the same rows though they name different relations: a partition beside its parent, a
// view beside what it reads, two names of one file. The policy alone cannot know. Such rows must have one unit (privacy
// rule 9), one dataset (rule 8), and be public in both or in neither (rule 13). A relation that reads what nobody can
// follow may show any rows. What a foreign table or a trusted SELECT reads is not followed: these are assumed to be as
// the owner says.

// Named are the tables of a policy that name relations.
func Named(p *policy.Policy) (list []*policy.Table) {
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.View.Text == "" {
				list = append(list, t)
			}
		}
	}
	return list
}

// RelationNames are the schemas and names of the relations that tables name.
func RelationNames(tables []*policy.Table, in dialect.Dialect) (schemas, names []string) {
	for _, t := range tables {
		schema, name := rewrite.Relation(t.Source, in)
		schemas, names = append(schemas, schema), append(names, name)
	}
	return schemas, names
}

// Add adds what rows lie in.
func (s *Extent) Add(identity string) {
	if s.Of == nil {
		s.Of = map[string]bool{}
	}
	s.Of[identity] = true
}

// overlapFindings judges what the tables that name relations show: which of a dataset show rows that another table of
// the policy shows too. Tables that name one relation are the policy's own to judge.
func overlapFindings(d *policy.Dataset, tables []*policy.Table, of []Extent, in dialect.Dialect) (list []backend.Finding) {
	schemas, names := RelationNames(tables, in)
	same := func(a, b string) bool { return a == b || !in.PostgreSQLs && strings.EqualFold(a, b) }
	for i, a := range tables {
		for k := i + 1; k < len(tables); k++ {
			b, one, other := tables[k], of[i], of[k]
			if same(schemas[i], schemas[k]) && same(names[i], names[k]) {
				continue
			}
			both := slices.Sorted(maps.Keys(one.Of))
			both = slices.DeleteFunc(both, func(name string) bool { return !other.Of[name] })
			switch {
			case len(both) > 0:
				list = append(list, overlapFinding(d, a, b, fmt.Sprintf("table %s and table %s both show rows of %s", a.Name, b.Name, both[0]), one.View || other.View)...)
			case one.Opaque != "" || other.Opaque != "":
				name, why := a.Name, one.Opaque
				if why == "" {
					name, why = b.Name, other.Opaque
				}
				list = append(list, overlapFinding(d, a, b, fmt.Sprintf("table %s and table %s may both show the same rows, since %s %s", a.Name, b.Name, name, why), true)...)
			}
		}
	}
	return list
}

// overlapFinding says what is wrong with two tables that show rows of one relation. It is a finding of the second's
// dataset.
func overlapFinding(d *policy.Dataset, a, b *policy.Table, shown string, view bool) []backend.Finding {
	path := a.UnitColumn == b.UnitColumn && (a.Via == nil) == (b.Via == nil) &&
		(a.Via == nil || a.Via.Table == b.Via.Table && a.Via.Column == b.Via.Column && a.Via.Key == b.Via.Key)
	switch {
	case b.Dataset != d || a.Public && b.Public:
		return nil
	case a.Public != b.Public:
		return []backend.Finding{{Fatal: true, Text: shown + ", and one is public and the other private: list the relation once, or in both as private"}}
	case a.Dataset != b.Dataset:
		return []backend.Finding{{Fatal: true, Text: shown + fmt.Sprintf(", the first in dataset %s: two datasets over the same rows would be two budgets for them; list both in one dataset", a.Dataset.ID)}}
	case d.Unit.Row, !path:
		return []backend.Finding{{Fatal: true, Text: shown + fmt.Sprintf(", and name their %ss differently: a row would belong to two %[1]ss, and the bounds of neither table would hold for both; "+
			"keep one of the tables, or give both one unit", d.UnitName())}}
	case view:
		return []backend.Finding{{Text: shown + fmt.Sprintf(": that both name the same %s for a row is assumed, not enforced", d.UnitName())}}
	}
	return nil
}
