package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Questions are what each source of private rows answers before a policy over it is accepted (privacy rule 30): a
// source that leaves one out does not compile. The answers are judged here, alike for all sources; Inspect and
// CopyFindings ask through Judge and KeyFindings alone. docs/threats.md lists each source's answers with their tests
// (internal/threats, Answers).
//
// Claim. Under a policy that is accepted, a unit, and each value of a key that a bound of rows counts on, are the same
// rows for everything that is written over them: GROUP BY and PARTITION BY, =, a constraint, the hash of a text
// (rewrite/roworder.go). Proof. GROUP BY and constraints go by the equality of the column's type. A column that has a
// class has equal values exactly where its texts are equal, so that all of them agree: so is each unit's column, and
// each key that joins by texts. Other keys join by the values of both columns, where no value of one is equal to
// several of the other.
type Questions interface {
	// Class answers when two values of a key are equal: it names the types of which they are where, and only where,
	// their texts are, one name for all that compare with each other so. It is empty where that is not so, or not
	// known.
	Class(c ColumnShape) string
	// Joined answers by which equality a join compares two columns.
	Joined(a, b ColumnShape) Equality
	// Fails answers whether a stored value could fail a read of a column of a table, or be read as another value: the
	// reason, and what to do about it; empty means none can.
	Fails(t *policy.Table, c ColumnShape) string
	// Types names types that keys may have, for whom class is empty.
	Types() string
	// Shows answers what each of these tables, which name relations, is: whose rows it shows.
	Shows(ctx context.Context, tables []*policy.Table) ([]Extent, error)
}

// Equality is how a join compares two columns, beside the equality by which a constraint of either takes its values for
// different. The zero value is none.
type Equality uint8

const (
	OfValues Equality = 1 + iota // by both of them
	OfTexts                      // by that of the values' texts
	Coarser                      // different values of one may be equal to one value of the other
)

// Extent is whose rows a relation shows.
type Extent struct {
	Of     map[string]bool // identities of what rows lie in: two relations that share one show rows of it
	View   bool            // that more than its name decides which
	Opaque string          // why of may lack some; empty means it has all
}

// Copies are the answers for snapshots of a source, where units and keys that are no whole numbers are compared as
// texts.
type Copies struct{ Questions }

func (Copies) Joined(ColumnShape, ColumnShape) Equality { return OfTexts }

// Judge says what the answers of a source mean for a dataset.
func Judge(ctx context.Context, q Questions, p *policy.Policy, d *policy.Dataset, have Shape, in dialect.Dialect) ([]backend.Finding, error) {
	list := slices.Concat(unitTypeFinding(d, have, in), KeyFindings(q, d, have, in), failFindings(q, d, have, in))
	tables := Named(p)
	of, err := q.Shows(ctx, tables)
	if err != nil {
		return nil, err
	}
	return append(list, overlapFindings(d, tables, of, in)...), nil
}

// KeyFindings judges when values of units and keys are equal.
func KeyFindings(q Questions, d *policy.Dataset, have Shape, in dialect.Dialect) (list []backend.Finding) {
	refuse := func(format string, args ...any) {
		list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf(format, args...)})
	}
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		for _, key := range KeyColumns(t) {
			c, ok := have.of(t, key, in)
			if !ok { // which CompareTable says
				continue
			}
			what := "key"
			if key == t.UnitColumn {
				what = "unit's column"
			}
			switch class := q.Class(c); {
			case key != t.UnitColumn && q.Joined(c, c) != OfTexts:
			case class == "":
				refuse("table %s: the %s %s is %s, of which equal values may have different texts; give it %s", t.Name, what, key, c.Keyed(), q.Types())
			case !strings.HasPrefix(class, "whole") && rewrite.WholeKey(t, key):
				refuse("table %s: the %s %s is %s, and the policy says that it is a whole number: give it a type of whole numbers, or the policy another", t.Name, what, key, c.KindOf)
			}
		}
	}
	return append(list, comparedFindings(q, d, have, in)...)
}

// comparedFindings judges keys that are compared with each other.
func comparedFindings(q Questions, d *policy.Dataset, have Shape, in dialect.Dialect) (list []backend.Finding) {
	_, copied := q.(Copies)
	for _, pair := range ComparedKeys(d, have, in) {
		a, b := pair.Left.Kind, pair.Right.Kind
		switch joined := q.Joined(a, b); {
		case joined == Coarser:
			list = append(list, backend.Finding{Fatal: true, Text: pair.String() + in.Name +
				" takes different keys of the one for equal to one of the other; give both one type and collation"})
		case joined == OfTexts && q.Class(a) != q.Class(b):
			list = append(list, backend.Finding{Fatal: copied, Text: pair.String() +
				"keys are compared as texts, in which equal values of these types differ; give both one type"})
		}
	}
	return list
}

// failFindings judges whether a stored value could fail a read.
func failFindings(q Questions, d *policy.Dataset, have Shape, in dialect.Dialect) (list []backend.Finding) {
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		columns := KeyColumns(t)
		for _, c := range t.Columns {
			columns = append(columns, c.Source)
		}
		slices.Sort(columns)
		for _, name := range slices.Compact(columns) {
			if c, ok := have.of(t, name, in); ok {
				if why := q.Fails(t, c); why != "" {
					list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("table %s: %s %s", t.Name, name, why)})
				}
			}
		}
	}
	return list
}

// of is what the catalog says of a column of a table.
func (s Shape) of(t *policy.Table, column string, in dialect.Dialect) (ColumnShape, bool) {
	schema, name := RelationOf(t, in)
	c, ok := s[ColumnOf(schema, name, column)]
	return c, ok
}

// RequiredFinding says what a table lacks whose units are found through another, or whose rows have a rank.
func RequiredFinding(t *policy.Table, proven bool) []backend.Finding {
	if t.RowRank != "" && !proven {
		return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("table %s: no unique constraint on %s and %s, of which the latter is a smallint, integer or bigint, proves that no two rows of a %s have the same row_rank; dpproxy prepare prints the SQL that makes one",
			t.Name, t.UnitColumn, t.RowRank, t.Dataset.Unit.Name)}}
	}
	if t.Via == nil || proven {
		return nil
	}
	return []backend.Finding{{Fatal: true, Text: fmt.Sprintf("table %s: its %ss are found through %s.%s, which no unique, NOT NULL constraint proves different in each row; one %[2]s's new row could move another's",
		t.Name, t.Dataset.Unit.Name, t.Via.Table.Name, t.Via.Key)}}
}

// DeclaredKeys are the keys that the policy declares unique, as a proof is asked of each.
func DeclaredKeys(t *policy.Table) (list []rewrite.Unique) {
	for _, columns := range t.Unique {
		list = append(list, rewrite.Unique{Table: t, Columns: columns, Nullable: true})
	}
	return list
}

// UniqueFindings says of each key that the policy declares unique whether a constraint proves it.
func UniqueFindings(t *policy.Table, proven func(rewrite.Unique) bool) (list []backend.Finding) {
	for _, u := range DeclaredKeys(t) {
		key := strings.Join(u.Columns, ", ")
		if proven(u) {
			list = append(list, backend.Finding{Note: true, Text: fmt.Sprintf("table %s: a constraint proves that %s is unique, so joins along it need no more numbering", t.Name, key)})
			continue
		}
		list = append(list, backend.Finding{Text: fmt.Sprintf("table %s: no constraint proves that (%s) is unique; in joins that rely on it, of the rows of one %s that share it one is taken, which each query sorts for",
			t.Name, key, t.Dataset.Unit.Name)})
	}
	return list
}

// Keyed names the type of a column that is a key.
func (c ColumnShape) Keyed() string {
	if c.Loose {
		return c.KindOf + " under a collation that is not deterministic"
	}
	return c.KindOf
}

// unitTypeFinding says what a policy leaves out that would make numbering a unit's rows quicker: of a unit that is not
// declared as a whole number each row's text is hashed.
func unitTypeFinding(d *policy.Dataset, have Shape, in dialect.Dialect) []backend.Finding {
	if d.Unit.Row || d.Unit.Type != 0 {
		return nil
	}
	for _, t := range d.Tables {
		if t.UnitColumn == "" || t.Public || t.Analysed() || t.View.Text != "" {
			continue
		}
		schema, name := RelationOf(t, in)
		switch base := have[ColumnOf(schema, name, t.UnitColumn)].Base; base {
		case "smallint", "integer", "int", "bigint":
			return []backend.Finding{{Note: true, Text: fmt.Sprintf("unit: %s.%s is %s; saying so (type: %[3]s) lets queries that number a %s's rows do it almost twice as fast, and hides releases that were bought before", t.Name, t.UnitColumn, base, d.UnitName())}}
		}
	}
	return nil
}
