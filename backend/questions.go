package backend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// questions are what each source of private rows answers before a policy over it is accepted (privacy rule 30): a source that leaves one
// out does not compile. The answers are judged here, alike for all sources; Inspect and copyFindings ask through judge and keyFindings alone.
// docs/threats.md lists each source's answers with their tests (internal/threats, Answers).
//
// Claim. Under a policy that is accepted, a unit, and each value of a key that a bound of rows counts on, are the same rows for everything
// that is written over them: GROUP BY and PARTITION BY, =, a constraint, the hash of a text (rewrite/roworder.go). Proof. GROUP BY and
// constraints go by the equality of the column's type. A column that has a class has equal values exactly where its texts are equal, so
// that all of them agree: so is each unit's column, and each key that joins by texts. Other keys join by the values of both columns, where no
// value of one is equal to several of the other.
type questions interface {
	// class answers when two values of a key are equal: it names the types of which they are where, and only where, their texts are, one name
	// for all that compare with each other so. It is empty where that is not so, or not known.
	class(c columnShape) string
	// joined answers by which equality a join compares two columns.
	joined(a, b columnShape) equality
	// fails answers whether a stored value could fail a read of a column of a table, or be read as another value: the reason, and what to do
	// about it; empty: none can.
	fails(t *policy.Table, c columnShape) string
	// types names types that keys may have, for whom class is empty.
	types() string
	// shows answers what each of these tables, which name relations, is: whose rows it shows.
	shows(ctx context.Context, tables []*policy.Table) ([]extent, error)
}

// equality is how a join compares two columns, beside the equality by which a constraint of either takes its values for different. The zero
// value is none.
type equality uint8

const (
	ofValues equality = 1 + iota // by both of them
	ofTexts                      // by that of the values' texts
	coarser                      // different values of one may be equal to one value of the other
)

// extent is whose rows a relation shows.
type extent struct {
	of     map[string]bool // identities of what rows lie in: two relations that share one show rows of it
	view   bool            // that more than its name decides which
	opaque string          // why of may lack some; empty: it has all
}

// copies are the answers for snapshots of a source, where units and keys that are no whole numbers are compared as texts.
type copies struct{ questions }

func (copies) joined(columnShape, columnShape) equality { return ofTexts }

// judge says what the answers of a source mean for a dataset.
func judge(ctx context.Context, q questions, p *policy.Policy, d *policy.Dataset, have shape, in dialect.Dialect) ([]Finding, error) {
	list := slices.Concat(unitTypeFinding(d, have, in), keyFindings(q, d, have, in), failFindings(q, d, have, in))
	tables := named(p)
	of, err := q.shows(ctx, tables)
	if err != nil {
		return nil, err
	}
	return append(list, overlapFindings(d, tables, of, in)...), nil
}

// keyFindings judges when values of units and keys are equal.
func keyFindings(q questions, d *policy.Dataset, have shape, in dialect.Dialect) (list []Finding) {
	_, copied := q.(copies)
	refuse := func(format string, args ...any) {
		list = append(list, Finding{Fatal: true, Text: fmt.Sprintf(format, args...)})
	}
	for _, t := range d.Tables {
		if t.Public || t.Analysed() {
			continue
		}
		for _, key := range keyColumns(t) {
			c, ok := have.of(t, key, in)
			if !ok { // which compareTable says
				continue
			}
			what := "key"
			if key == t.UnitColumn {
				what = "unit's column"
			}
			switch class := q.class(c); {
			case key != t.UnitColumn && q.joined(c, c) != ofTexts:
			case class == "":
				refuse("table %s: the %s %s is %s, of which equal values may have different texts; give it %s", t.Name, what, key, c.keyed(), q.types())
			case !strings.HasPrefix(class, "whole") && rewrite.WholeKey(t, key):
				refuse("table %s: the %s %s is %s, and the policy says that it is a whole number: give it a type of whole numbers, or the policy another", t.Name, what, key, c.kindOf)
			}
		}
	}
	for _, pair := range comparedKeys(d) {
		var shapes [2]columnShape
		both := true
		for i, k := range pair {
			var ok bool
			shapes[i], ok = have.of(k.Table, k.Source, in)
			both = both && ok
		}
		if !both {
			continue
		}
		where := fmt.Sprintf("table %s, column %s (%s), and table %s, column %s (%s): ",
			pair[0].Table.Name, pair[0].Source, shapes[0].keyed(), pair[1].Table.Name, pair[1].Source, shapes[1].keyed())
		switch q.joined(shapes[0], shapes[1]) {
		case coarser:
			refuse("%s%s takes different keys of the one for equal to one of the other; give both one type and collation", where, in.Name)
		case ofTexts:
			if q.class(shapes[0]) != q.class(shapes[1]) {
				list = append(list, Finding{Fatal: copied, Text: where + "keys are compared as texts, in which equal values of these types differ; give both one type"})
			}
		}
	}
	return list
}

// failFindings judges whether a stored value could fail a read.
func failFindings(q questions, d *policy.Dataset, have shape, in dialect.Dialect) (list []Finding) {
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		columns := keyColumns(t)
		for _, c := range t.Columns {
			columns = append(columns, c.Source)
		}
		slices.Sort(columns)
		for _, name := range slices.Compact(columns) {
			if c, ok := have.of(t, name, in); ok {
				if why := q.fails(t, c); why != "" {
					list = append(list, Finding{Fatal: true, Text: fmt.Sprintf("table %s: %s %s", t.Name, name, why)})
				}
			}
		}
	}
	return list
}

// of is what the catalog says of a column of a table.
func (s shape) of(t *policy.Table, column string, in dialect.Dialect) (columnShape, bool) {
	schema, name := relationOf(t, in)
	c, ok := s[columnName{schema, name, column}]
	return c, ok
}
