package rewrite

import (
	"errors"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Copy writes the query that reads a public table: its columns in policy order, as text, at most most rows.
func Copy(t *policy.Table, d dialect.Dialect, most int) (string, error) {
	if !t.Public || d.Words == nil {
		return "", errors.New("rewrite: only public tables are copied")
	}
	w := newWriter(d, t, "")
	items := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		items[i] = w.cast("t."+w.name(c.Source), "text")
	}
	sql := "SELECT " + strings.Join(items, ", ") + "\nFROM " + w.relation(t) + " AS t\nLIMIT " + strconv.Itoa(most)
	return sql, w.err
}

// Probe writes a query that uses every column of a private table in every way that a measure can. It is prepared and
// never run: where the database accepts it, it accepts every measure of the table.
func Probe(t *policy.Table, d dialect.Dialect) (Query, error) {
	m := &plans.Measure{Table: t, Grain: t.Columns}
	for _, c := range t.Columns {
		if c.Domain == nil {
			return Query{}, errors.New("rewrite: a private column without a domain")
		}
		pieces, cuts := c.Domain.Size(), []int(nil)
		if pieces > policy.MaxCells || c.Private { // whose cells are told apart by comparisons too, some hundreds of them
			cuts = []int{0, c.Domain.Regular / 3, c.Domain.Regular / 2}
			if c.Domain.Null >= 0 {
				cuts = append(cuts, c.Domain.Null)
			}
			pieces = len(cuts)
		}
		m.Cuts = append(m.Cuts, cuts)
		m.Groups = append(m.Groups, plans.Grouping{Columns: 1, Cells: pieces, Classes: pieces})
		m.Counters = append(m.Counters, predicate.InCells{Column: c, Spans: []mechanisms.Span{{From: c.Domain.Size() / 2, To: c.Domain.Size()}}})
	}
	if len(m.Counters) == 0 {
		m.Counters = []predicate.Pred{nil}
	}
	return Render(m, d)
}

// DescribeView writes a query that shows all that a trusted SELECT does. It is described and never run.
func DescribeView(t *policy.Table, d dialect.Dialect) (string, error) {
	if d.Words == nil {
		return "", errors.New("rewrite: no such dialect")
	}
	w := newWriter(d, t, "")
	return "SELECT t.* FROM " + w.relation(t) + " AS t", w.err
}

// CompareKeys writes a query that compares two join keys as joins and sub-queries do. A database that accepts it
// accepts the comparison in every measure. It is prepared and never run.
func CompareKeys(a, b *policy.Column, d dialect.Dialect) (string, error) {
	if d.Words == nil {
		return "", errors.New("rewrite: no such dialect")
	}
	w := newWriter(d, a.Table, "a")
	sql := "SELECT " + w.equal("a."+w.name(a.Source), "b."+w.name(b.Source)) +
		" FROM " + w.relation(a.Table) + " AS a, " + w.relation(b.Table) + " AS b"
	return sql, w.err
}
