package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

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
