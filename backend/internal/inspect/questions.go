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
	for _, pair := range ComparedKeys(d) {
		a, known := have.of(pair[0].Table, pair[0].Source, in)
		b, both := have.of(pair[1].Table, pair[1].Source, in)
		if !known || !both {
			continue
		}
		where := fmt.Sprintf("table %s, column %s (%s), and table %s, column %s (%s): ",
			pair[0].Table.Name, pair[0].Source, a.Keyed(), pair[1].Table.Name, pair[1].Source, b.Keyed())
		switch joined := q.Joined(a, b); {
		case joined == Coarser:
			list = append(list, backend.Finding{Fatal: true, Text: where + in.Name +
				" takes different keys of the one for equal to one of the other; give both one type and collation"})
		case joined == OfTexts && q.Class(a) != q.Class(b):
			list = append(list, backend.Finding{Fatal: copied, Text: where +
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
