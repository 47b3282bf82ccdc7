package rewrite

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What counts the rows up to a bound compares each row's rank, and PostgreSQL takes each row apart as far as that,
// where her own `SELECT count(*) FROM visits` reads none of its columns, and `GROUP BY ward` the first few. Where an
// index has what is read of the rows beyond the bound, all rows are counted, and theirs are taken away:
//
//	SELECT … AS c1, sum(s.k1) AS k1
//	FROM (SELECT t.ward AS x1, count(*) AS k1 FROM visits AS t WHERE t.minutes > 20 GROUP BY 1
//	      UNION ALL
//	      SELECT t.ward AS x1, 0 - count(*) AS k1 FROM visits AS t WHERE t.minutes > 20 AND (t.dp_rank > 10 OR t.dp_rank IS NULL) GROUP BY 1) AS s
//	GROUP BY 1
//
// Claim. Each counter of each cell is what it is with dp_rank >= 1 AND dp_rank <= 10 AND who IS NOT NULL in the place
// of the two parts, so that whatever was claimed of that, its sensitivity first of all, is true of this. Proof. Both
// parts are of one statement, so of the rows of one snapshot. By Rank, which the same snapshot proves, a row's rank is
// NULL, which the condition does not let through and the second part has, or 1 and more, of a row that names its unit:
// of these the condition lets through those up to 10, and the second part has the others. Every row is of one kind. A
// counter is a number of rows, or what exact numbers of them add up to (sum.go), neither rounded nor cut before all
// parts are added: that of all rows is that of those let through, and that of the others. A cell all of whose rows are
// beyond counts 0, as one that does not come does. The index says which plan is quick and proves nothing. Limits. How
// long it takes depends on how many rows lie beyond the bound, as how long a scan takes depends on how many there are.

// countsBeyond reports whether a measure may be counted so: its rows are counted by their stored values, or all of
// them.
func countsBeyond(m *plans.Measure, d dialect.Dialect) bool {
	t := m.Table
	if !d.PartialIndexes || t.Derived != nil || t.Via != nil || t.RowRank == "" || t.NullEach || m.Open != nil || m.Window != nil {
		return false
	}
	w := writerOf(m, d, assumed{ranks: ranksBeyond})
	return !w.groupsBounded(m) && w.tallies(m)
}

// beyond holds for the rows beyond the bound.
func (w *columns) beyond() string {
	rank := "t." + w.name(w.table.RowRank)
	return "(" + w.operate(rank, ">", w.whole(w.table.MaxRowsPerUnit)) + " OR " + rank + " IS NULL)"
}

// taken are counters that are taken away from what they are added to.
func (w *composed) taken(counters []string) (list []string) {
	for _, c := range counters {
		list = append(list, w.operate(w.whole(0), "-", c))
	}
	return list
}

// A count of the rows from a value on compares each row's with the domain's other end as well, which her own `WHERE age
// > 40` does not. DuckDB knows the least and the largest value of each block of rows, and looks at none of a block for
// a comparison that all or none of them satisfy, but for one of two it looks at all. So all rows from the value on are
// counted, less those past the end, which it looks for where there may be some:
//
//	SELECT (SELECT count(*) FROM people AS t WHERE t.age >= 41) - (SELECT count(*) FROM people AS t WHERE t.age > 119) AS k1
//
// Claim. It is count(*) WHERE age >= 41 AND age <= 119. Proof. Both counts are of one statement, so of the rows of one
// snapshot, under the same other conditions. 41 lies in the domain, which ends at 119: so a row past the end is one
// from 41 on, and the second count has just those of the first that the claim has not. A NULL is in neither; NaN, above
// every number, is in both, or from below in neither. Limits. Where blocks have rows past the end, these are read
// twice.

// end is how the condition on a column that reaches to one end of its domain is written in one part of a count.
type end struct {
	column *policy.Column
	past   bool // the rows past the end; else all up to the other
}

// within writes it for the cells from a on, or, with a at 0, for those before the cell that comes after them.
func (e *end) within(w cells, raw string, a, b int) string {
	d := e.column.Domain
	switch {
	case e.past && a > 0:
		return w.operate(raw, ">", w.constant(e.column, d.Max))
	case e.past:
		return w.operate(raw, "<", w.constant(e.column, d.Min))
	case a > 0:
		return w.operate(raw, ">=", w.constant(e.column, d.Low(a)))
	}
	return w.operate(raw, "<", w.constant(e.column, d.Low(b)))
}

// oneEnded finds the column of which a count is written so: the condition on it is a range of cells, beside others of
// other columns, which reaches to one end of its domain; nil means none.
func (w *composed) oneEnded(m *plans.Measure) *policy.Column {
	if !w.dialect.EndsApart || !countsAlone(m) {
		return nil
	}
	parts := predicate.Conjuncts(m.Where)
	for i, p := range parts {
		in, ok := p.(predicate.InCells)
		if !ok || in.Column.Open != nil || !in.Column.Domain.Ordered() || in.Column.Outside == policy.OutsideClamp || len(in.Spans) != 1 || !reachesOneEnd(in.Column.Domain, in.Spans[0]) {
			continue
		}
		if !slices.ContainsFunc(slices.Delete(slices.Clone(parts), i, i+1), func(o predicate.Pred) bool {
			columns, _ := predicate.Columns(o, nil)
			return slices.Contains(columns, in.Column)
		}) {
			return in.Column
		}
	}
	return nil
}

func reachesOneEnd(d *policy.Domain, s mechanisms.Span) bool {
	return s.To <= d.Valued() && (s.From > 0) != (s.To < d.Valued())
}

// lessPast writes such a count.
func (w *writer) lessPast(m *plans.Measure, c *policy.Column) string {
	var counts []string
	ruled := slices.DeleteFunc(slices.Clone(m.Table.Columns), func(o *policy.Column) bool { return o == c }) // whose values of the domain no rule leaves out
	for _, past := range []bool{false, true} {
		w.end = &end{c, past}
		from, conditions := w.storedRows(m, ruled)
		counts = append(counts, "(SELECT "+w.call("count", "*")+" FROM "+from+where("", conditions)+")")
	}
	w.end = nil
	return "SELECT " + w.operate(counts[0], "-", counts[1]) + " AS k1"
}
