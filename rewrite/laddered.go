package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// laddered writes the shares of units in the steps of a ladder (derived.Laddered, package totals), added up by keys and
// steps. A unit's rows are added up for each of its groups (x), however many rows there are; q is the group's part of
// the unit's 2^30 parts, in proportion to the size s of x; and q is split by where the size of all groups together, y,
// lies between two steps: r of it is the upper step's.
//
//	SELECT t.n1, t.i + d.d - 1 AS n2, CASE WHEN d.d = 0 THEN t.q - t.r ELSE t.r END AS n3
//	FROM (SELECT n1, i, sum(q) AS q, sum(r) AS r
//	      FROM (SELECT n1, q, CASE WHEN y < 1 THEN 0 WHEN y < 3 THEN 1 … END AS i, CASE WHEN y < 1 THEN q * y … AS r
//	            FROM (SELECT n1, least(m, top) AS y, s * 2^30 / m AS q
//	                  FROM (SELECT n1, s, sum(s) OVER (PARTITION BY u) AS m
//	                        FROM (SELECT u, n1, sum(…) AS s FROM rows GROUP BY u, n1))))
//	      GROUP BY n1, i) AS t
//	JOIN (VALUES (0), (1)) AS d (d) ON t.i + d.d BETWEEN 1 AND L
//
// Claim. The shares of a unit are whole numbers from 0 on and come to at most totals.Parts, whatever rows there are; n3
// are their sums over the units of an interval. Neighbours: a unit's rows are absent, or others; the rows of other
// units' shares follow from their own rows alone. Proof. All rows of a unit have one u, none NULL (known, in source.go;
// derived.CanLadder), and s, m, y are functions of rows with that u: GROUP BY and PARTITION BY compare it by one
// equality. With one group q is Parts; else Σ q = Σ ⌊s·Parts/m⌋ ≤ Parts, as m = Σ s, or 1 where all are 0 (shareOf). Of
// a group's two shares one is q − r and one r, with 0 ≤ r ≤ q (totals.Shares, which this is): together q, and their
// squares no more than q². Both are of the interval i and the side b that the group has: so sum(q) − sum(r) is the sum
// of q − r over the units there, and sum(r) that of r. What the cell below the first step has is left out. So a sum of
// shares, in whatever cells a placement puts them, moves by at most Parts in L1 between neighbours under add-remove,
// hence in L2, and by two such moves under replace-one: what one row from 0 to Parts moves (mechanisms, moves). Where
// noise is by L2 (Root) m is no less than the root of Σ s² (totals.Norm of the largest s and of their sum, functions of
// the unit's rows): then Σ q² ≤ Parts² · Σ s²/m² ≤ Parts², and no two shares of a unit are in one observation (apart),
// so that a sum of them moves by at most Parts in L2, and by √2 · Parts under replace-one, as none is below 0. A row of
// this table is of many units: nothing may ask which of them there are, or bound them one by one (checkLaddered, and
// sum, which adds them up as they are). ∎
//
// Nothing can fail: sums are of the type that no number of rows overflows, sizes are cut before they are int8, what is
// multiplied as int8 is below 2^33 and 2^30, and every divisor is a constant above 0, or at least 1. Limit: of a unit
// with above 2^36 rows of 2^61 each, s · 2^30 is beyond DuckDB's HUGEINT.
func (w *writer) laddered(l *derived.Laddered) string {
	if len(l.Keys)+2 != len(w.table.Columns) || len(l.Steps) == 0 || !derived.CanLadder(l.From) {
		w.fail("a ladder over rows that have none")
		return "()"
	}
	all := w.allRows
	w.allRows = true
	defer func() { w.allRows = all }()
	from, keys := w.sizes(l), ""
	for i := range l.Keys {
		keys += "t.n" + strconv.Itoa(i+1) + " AS n" + strconv.Itoa(i+1) + ", "
	}
	below, above := w.intervals(l.Steps)
	from = "(SELECT " + keys + "t.b AS b, t.q AS q, " + below + " AS i, " + above + " AS r\n  FROM " + from + " AS t)"
	by := append(namesOf("t.n", len(l.Keys)), "t.i")
	if l.Signs {
		by = append(by, "t.b")
	}
	from = "(SELECT " + strings.Join(by, ", ") + ", " + w.summed("t.q", 0) + " AS q, " + w.summed("t.r", 0) +
		" AS r\n  FROM " + from + " AS t\n  GROUP BY " + strings.Join(by, ", ") + ")"
	step := w.operate("t.i", "+", w.cast("d.d", "int8"))
	number := w.operate(step, "-", w.whole(1))
	if l.Signs {
		number = w.operate(number, "+", "t.b")
	}
	share := "CASE WHEN " + w.operate("d.d", "=", w.int4(0)) + " THEN " + w.operate("t.q", "-", "t.r") + " ELSE t.r END"
	at, last := len(l.Keys)+1, w.whole(int64(len(l.Steps)))
	named := keys + number + " AS n" + strconv.Itoa(at) + ", " + share + " AS n" + strconv.Itoa(at+1)
	within := w.operate(step, ">=", w.whole(1)) + " AND " + w.operate(step, "<=", last)
	return "(SELECT " + named + "\n  FROM " + from + " AS t\n  JOIN " +
		w.parallel("d", []string{"d"}, []string{"0", "1"}) + "\n    ON " + within + ")"
}

// namesOf are so many names.
func namesOf(name string, n int) (list []string) {
	for i := range n {
		list = append(list, name+strconv.Itoa(i+1))
	}
	return list
}

// fewParts is up to where sizes are int8 when they are multiplied by totals.Parts: below 2^63.
const fewParts = 1 << 33

// sizes write, for each unit and its keys, all of them int8: b, what the numbers of its steps begin after; y, the size
// of all of its groups together, cut at the top; and q, the group's part. PostgreSQL puts an expression in the place of
// each use of its name: so what is wide becomes int8 where rows are grouped, or a window is over them, which it does
// not look through. Beside b, k and h are the sizes s and m cut for shareOf.
func (w *writer) sizes(l *derived.Laddered) string {
	a := w.sub(l.From, "a")
	items, groups := a.groupedByUnit(l.Keys)
	zero, top := w.literal("0", "wide"), w.whole(l.Steps[len(l.Steps)-1])
	size, kind, behind := w.call("count", "*"), "int8", w.whole(0)
	if sum, is := l.Value.(*plans.Sum); is {
		x := "COALESCE(" + a.sum(sum, "") + ", " + zero + ")"
		size, kind = "GREATEST("+x+", "+zero+")", "wide"
		if l.Signs {
			size = "GREATEST(" + x + ", " + w.operate(zero, "-", x) + ")"
			behind = "CASE WHEN " + w.operate(x, "<", zero) + " THEN " + w.whole(int64(len(l.Steps))) + " ELSE " +
				w.whole(0) + " END"
		}
	}
	cut := func(n, most string) string {
		if kind == "int8" {
			return "LEAST(" + n + ", " + most + ")"
		}
		return w.cast("LEAST("+n+", "+w.cast(most, "wide")+")", "int8")
	}
	items = append(items, behind+" AS b")
	if len(l.Keys) == 0 {
		items = append(items, cut(size, top)+" AS y", w.whole(totals.Parts)+" AS q")
	} else {
		items = append(items, size+" AS s", cut(size, w.whole(fewParts))+" AS k")
	}
	where := a.only(l.Where)
	input := a.input()
	if w.dialect.SortsGroups { // units are many, and the window over them takes their groups in this order
		if len(l.Keys) > 0 || l.Value != nil || l.Where != nil { // an index has the order, and not the rows
			input = "(SELECT * FROM " + input + where + " OFFSET 0) AS " + a.alias
			where = ""
		}
		input = "(SELECT * FROM " + input + where + " ORDER BY " + strings.Join(groups, ", ") + ") AS " + a.alias
		where = ""
	}
	from := "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + input + where +
		"\n  GROUP BY " + strings.Join(groups, ", ") + ")"
	if len(l.Keys) == 0 {
		return from
	}
	names := strings.Join(namesOf("t.n", len(l.Keys)), ", ") + ", t.b"
	over, largest := " OVER (PARTITION BY t.u)", ""
	if l.Root {
		largest = ", t.u, " + cut(w.call("max", "t.s")+over, w.whole(totals.Wide)) + " AS x"
	}
	m := w.summed("t.s", 0) + over
	kind = "wide"
	within := func(m string) { // for each row what is a unit's
		items := []string{names, "t.s", "t.k", m + " AS m", cut(m, w.whole(1<<62)) + " AS h" + largest}
		from = "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + from + " AS t)"
	}
	if within(m); l.Root {
		largest = ""
		within(w.call("max", "CASE WHEN "+w.operate("t.h", "<", w.whole(totals.Wide))+" THEN "+
			w.cast(norm(w, "t.x", "t.h"), "wide")+" ELSE t.m END") + over)
	}
	return "(SELECT " + names + ", LEAST(t.h, " + top + ") AS y, " + w.shareOf() + " AS q\n  FROM " + from + " AS t)"
}

// norm is totals.Norm of sums below totals.Wide.
func norm(w *writer, largest, sum string) string {
	var terms []string
	for h := range totals.Halvings + 1 {
		power := int64(1) << h
		half := w.operate(w.operate(sum, "+", w.whole(power-1)), "/", w.whole(power))
		both := w.operate(w.operate(w.operate(largest, "*", w.whole(power)), "+", half), "+", w.whole(1))
		terms = append(terms, w.operate(both, "/", w.whole(2)))
	}
	return "LEAST(" + strings.Join(terms, ", ") + ")"
}

// shareOf is ⌊s·Parts/m⌋, an int8, of s from 0 to m, and of m as 1 where it is 0. h is m, and k is s, where these are
// below fewParts, as s is where m is: so far no product is beyond 2^63, whichever of the two an engine calculates.
func (w *writer) shareOf() string {
	parts := w.operate(w.operate("LEAST(t.k, "+w.whole(fewParts-1)+")", "*", w.whole(totals.Parts)), "/",
		"GREATEST(t.h, "+w.whole(1)+")")
	wide := w.operate(w.cast("t.s", "wide"), "*", w.literal(strconv.Itoa(totals.Parts), "wide"))
	wide = w.cast(dialect.Fill(w.dialect.WideQuotient, wide, "GREATEST(t.m, "+w.literal("1", "wide")+")"), "int8")
	return "CASE WHEN " + w.operate("t.h", "<", w.whole(fewParts)) + " THEN " + parts + " ELSE " + wide + " END"
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

// checkLaddered refuses whatever is asked of a ladder but what the shares come to, once, by keys and steps: a row of it
// is of many units, and nothing bounds the sums of other things, or of some of the rows by what their shares are.
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
		!slices.Contains(m.Grain, share) && !asksOf(m.Where, share) && !asksOf(m.Counters[0], share)
}

// asksOf reports whether a predicate looks at a column for more than whether it is NULL.
func asksOf(p predicate.Pred, c *policy.Column) bool {
	rest := withoutNulls(p, []*policy.Column{c})
	if rest == nil {
		return false
	}
	columns, _ := predicate.Columns(rest, nil)
	return slices.Contains(columns, c)
}

// apart reports whether, of shares whose squares add up (Root), no two of a unit are in one observation, and noise is
// by squares: each combination of keys' classes and of steps is placed in a cell of its own, and cells are observed as
// they are. Classes are what rows are grouped by, each shown by its first cell (unitKey).
func apart(m *plans.Measure) bool {
	l, is := m.Table.Derived.(*derived.Laddered)
	if !is || !l.Root {
		return true
	}
	own := m.Spec.Counts()
	if m.Place == nil || own.Strategy.Kind != mechanisms.Identity || len(own.Sums) != 1 ||
		own.Sums[0].Noise.Kind != mechanisms.DiscreteGaussian || len(m.Grain) != len(l.Keys)+1 {
		return false
	}
	shown, combinations := make([][]int32, len(m.Grain)), 1
	for i, c := range m.Grain {
		classes := derived.Singles(c.Domain.Size())
		if at := slices.Index(m.Table.Columns, c); at < len(l.Keys) {
			classes = l.Keys[at].First
		}
		first, cells := derived.FirstCells(classes)
		for _, at := range first {
			shown[i] = append(shown[i], int32(m.Piece(i, at)))
		}
		if combinations *= len(first); combinations > derived.MostApart || cells != c.Domain.Size() {
			return false
		}
	}
	return placedApart(m, shown, combinations)
}

// placedApart reports whether each of so many combinations of pieces is placed in a cell of its own, or in none.
func placedApart(m *plans.Measure, shown [][]int32, combinations int) bool {
	taken, cells := make([]bool, m.Spec.Cells), make([]int32, len(shown))
	for n := range combinations {
		for i, pieces := range shown {
			cells[i], n = pieces[n%len(pieces)], n/len(pieces)
		}
		at := m.Place(cells, 0)
		if at >= len(taken) || at >= 0 && taken[at] {
			return false
		}
		if at >= 0 {
			taken[at] = true
		}
	}
	return true
}
