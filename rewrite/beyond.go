package rewrite

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A bare count of the rows up to a bound compares each row's rank, and PostgreSQL takes each row apart for that, where her own `SELECT count(*) FROM visits` reads none of
// its columns. Where an index has the rows beyond the bound it is the number of all rows less theirs:
//
//	SELECT ((SELECT count(*) FROM visits AS t) - (SELECT count(*) FROM visits AS t WHERE (t.dp_rank > 10 OR t.dp_rank IS NULL))) AS k1
//
// Claim. It is count(*) WHERE dp_rank >= 1 AND dp_rank <= 10 AND who IS NOT NULL. Proof. Both counts are of one statement, so of the rows of one snapshot. By Rank, which the same snapshot
// proves, a row's rank is NULL, which the condition does not let through and the second count has, or 1 and more, of a row that names its unit: of these the condition lets through those
// up to 10, and the second count has the others. Every row is of one kind. The index says which plan is quick and proves nothing.
// Limits. How long it takes hangs on how many rows lie beyond the bound, as how long a scan takes hangs on how many there are.

// countsBeyond tells whether a measure asks for the number of a table's rows up to their bound and nothing else.
func countsBeyond(m *plans.Measure, d dialect.Dialect) bool {
	t := m.Table
	return d.PartialIndexes && t.Derived == nil && t.RowRank != "" && !t.NullEach && m.Open == nil && m.Window == nil && len(m.Grain) == 0 && m.Where == nil && countsAlone(m) &&
		!slices.ContainsFunc(t.Columns, func(c *policy.Column) bool { return len(writerOf(m, d, assumed{}).kept(c)) > 0 })
}

// lessBeyond writes the query of such a measure.
func (w *writer) lessBeyond() string {
	from, _ := w.stored(false)
	rank := "t." + w.name(w.table.RowRank)
	count := "(SELECT " + w.call("count", "*") + " FROM " + from
	beyond := " WHERE (" + w.operate(rank, ">", w.whole(w.table.MaxRowsPerUnit)) + " OR " + rank + " IS NULL)"
	return "SELECT " + w.output(w.operate(count+")", "-", count+beyond+")"), "k1")
}
