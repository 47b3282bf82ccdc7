package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// laddered writes the shares of units in the steps of a ladder (derived.Laddered, package totals). A unit's rows are
// added up for each of its groups (x), however many rows there are; q is the group's part of the unit's 2^30 parts, in
// proportion to the size of x; and q is split by where the size of all groups together, y, lies between two steps: r of
// it is the upper step's.
//
//	SELECT c.u, c.n1, c.i + d.d - 1 AS n2, CASE WHEN d.d = 0 THEN c.q - c.r ELSE c.r END AS n3
//	FROM (SELECT …, CASE WHEN y < 1 THEN 0 WHEN y < 3 THEN 1 … END AS i, CASE WHEN y < 1 THEN q * y / 1 … END AS r
//	      FROM (… FROM (SELECT u, n1, sum(…) AS x FROM rows GROUP BY u, n1) …)) AS c
//	JOIN (VALUES (0), (1)) AS d (d) ON c.i + d.d BETWEEN 1 AND L
//
// Claim. The shares of a unit are whole numbers from 0 on and come to at most totals.Parts, whatever rows there are.
// Neighbours: a unit's rows are absent, or others; the rows of other units' shares follow from their own rows alone.
// Proof. All rows of a unit have one u, none NULL (known, in source.go; derived.CanLadder), and x, m, y are functions
// of rows with that u: GROUP BY and PARTITION BY compare it by one equality. With one group q is Parts; else Σ q = Σ
// ⌊|x|·Parts/m⌋ ≤ Parts, as m = Σ |x|, or 1 where all are 0. Of the two rows of a group one has q − r and one r, with 0
// ≤ r ≤ q (totals.Shares, which this is): together q. Rows of the cell below the first step are left out. So a sum of
// shares, in whatever cells a placement puts them, moves by at most Parts in L1 between neighbours under add-remove,
// hence in L2, and by two such moves under replace-one: what one row from 0 to Parts moves (mechanisms, moves). ∎
//
// Nothing can fail: sums are of the type that no number of rows overflows, sizes are cut at the top before they are
// int8, what is divided is below 2^63 or wide, and every divisor is a constant above 0, or at least 1.
func (w *writer) laddered(l *derived.Laddered) string {
	if len(l.Keys)+2 != len(w.table.Columns) || len(l.Steps) == 0 || !derived.CanLadder(l.From) {
		w.fail("a ladder over rows that have none")
		return "()"
	}
	all := w.allRows
	w.allRows = true
	defer func() { w.allRows = all }()
	from, top := w.totals(l), w.whole(l.Steps[len(l.Steps)-1])
	names := "t.u AS u"
	for i := range l.Keys {
		names += ", t.n" + strconv.Itoa(i+1) + " AS n" + strconv.Itoa(i+1)
	}
	size, part := "GREATEST(t.x, "+w.literal("0", "wide")+")", w.whole(totals.Parts)
	if l.Signs {
		size = "GREATEST(t.x, " + w.operate(w.literal("0", "wide"), "-", "t.x") + ")"
	}
	if len(l.Keys) > 0 {
		from = "(SELECT " + names + ", t.x AS x, " + size + " AS s, " + w.summed(size, 0) +
			" OVER (PARTITION BY t.u) AS m\n  FROM " + from + " AS t)"
		parts := w.operate("t.s", "*", w.literal(strconv.Itoa(totals.Parts), "wide"))
		all := "GREATEST(t.m, " + w.literal("1", "wide") + ")"
		size, part = "t.m", w.cast(dialect.Fill(w.dialect.WideQuotient, parts, all), "int8")
	}
	most := w.cast("LEAST("+size+", "+w.cast(top, "wide")+")", "int8")
	from = "(SELECT " + names + ", t.x AS x, " + most + " AS y, " + part + " AS q\n  FROM " + from + " AS t)"
	below, above := w.intervals(l.Steps)
	from = "(SELECT " + names + ", t.x AS x, t.q AS q, " + below + " AS i, " + above + " AS r\n  FROM " +
		from + " AS t)"
	step := w.operate("t.i", "+", w.cast("d.d", "int8"))
	number := w.operate(step, "-", w.whole(1))
	if l.Signs {
		negative := w.operate("t.x", "<", w.literal("0", "wide"))
		behind := "CASE WHEN " + negative + " THEN " + w.whole(int64(len(l.Steps))) + " ELSE " + w.whole(0) + " END"
		number = w.operate(number, "+", behind)
	}
	share := "CASE WHEN " + w.operate("d.d", "=", w.int4(0)) + " THEN " + w.operate("t.q", "-", "t.r") + " ELSE t.r END"
	at, last := len(l.Keys)+1, w.whole(int64(len(l.Steps)))
	named := names + ", " + number + " AS n" + strconv.Itoa(at) + ", " + share + " AS n" + strconv.Itoa(at+1)
	within := w.operate(step, ">=", w.whole(1)) + " AND " + w.operate(step, "<=", last)
	return "(SELECT " + named + "\n  FROM " + from + " AS t\n  JOIN " +
		w.parallel("d", []string{"d"}, []string{"0", "1"}) + "\n    ON " + within + ")"
}

// totals writes what the rows of each unit add up to, x, wide, for each combination of the keys.
func (w *writer) totals(l *derived.Laddered) string {
	a := w.sub(l.From, "a")
	items, groups := a.groupedByUnit(l.Keys)
	x := w.cast(w.call("count", "*"), "wide")
	if sum, is := l.Value.(*plans.Sum); is {
		x = "COALESCE(" + a.sum(sum, "") + ", " + w.literal("0", "wide") + ")"
	}
	items = append(items, x+" AS x")
	where := a.only(l.Where)
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + a.input() + where +
		"\n  GROUP BY " + strings.Join(groups, ", ") + ")"
}

// intervals write the number of the interval of y, and how much of q is the upper step's: totals.Shares.
func (w *writer) intervals(steps totals.Ladder) (below, above string) {
	list := steps.Intervals()
	for i, step := range steps {
		when := " WHEN " + w.operate("t.y", "<", w.whole(step)) + " THEN "
		place := "t.y"
		if list[i].From > 0 {
			place = w.operate(place, "-", w.whole(list[i].From))
		}
		if list[i].Shift > 0 {
			place = w.operate(place, "/", w.whole(1<<list[i].Shift))
		}
		below += when + w.whole(int64(i))
		parts := w.operate(w.operate("t.q", "*", place), "+", w.whole(list[i].Wide/2))
		above += when + w.operate(parts, "/", w.whole(list[i].Wide))
	}
	below += " ELSE " + w.whole(int64(len(steps)))
	return "CASE" + below + " END", "CASE" + above + " ELSE " + w.whole(0) + " END"
}

// checkLaddered refuses whatever is asked of a ladder but what the shares come to, once, by keys and steps: of its rows
// a unit has several, and nothing bounds the sums of other things.
func checkLaddered(m *plans.Measure) bool {
	if !derived.IsLaddered(m.Table) {
		return true
	}
	share := m.Table.Columns[len(m.Table.Columns)-1]
	if len(m.Sums) != 1 || m.Sums[0] == nil || m.Open != nil || m.Window != nil || m.Contribution().Rows != 1 {
		return false
	}
	sum, asItIs := m.Sums[0], plans.Factor{Column: share, High: totals.Parts}
	return sum.Values == 0 && sum.Over <= 1 && sum.Bound == mechanisms.Bound{High: totals.Parts} &&
		len(sum.Terms) == 1 && sum.Terms[0].Times == 1 && slices.Equal(sum.Terms[0].Factors, []plans.Factor{asItIs}) &&
		!slices.Contains(m.Grain, share)
}
