package rewrite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Which of the measures that are bought at one moment share a scan (joint.go writes it): those over the same rows, as
// long as the scan's answer stays small, and as long as one scan takes less than one for each. Of
//
//	count(*) WHERE seen >= '2025-12-01', count(*) WHERE seen >= '2025-12-01' AND sex = 'f', count(*) WHERE born < '1930-01-01'
//
// the first two share one, WHERE seen >= '2025-12-01'; the third has its own, for a scan of all three would be one of
// all rows, and an index finds either's.
//
// Claim. Which measures are read in one scan is a function of their plans. Proof. together reads the measures and the
// policy, never rows. So what one failure says is public, too: all measures of a scan have no groups then.

// A scan is of at most so many measures and counters, so that the text stays of one size with those of single measures,
// and its answer of so many combinations of cells, which are in memory together.
const (
	maxLeaves   = 16
	maxCounters = 128
	maxRows     = 1 << 17
)

// fewJoint is how many combinations of stored values a tally for several measures may have: beyond it, adding up the
// tally for each measure is no less than reading the rows again.
const fewJoint = 1 << 14

// maxTried is how many scans over the same rows are looked at for a measure: those that were begun last.
const maxTried = 4

// readTogether are measures that are read in one scan, and their places in a list.
type readTogether struct {
	by       shared
	places   []int
	measures []*plans.Measure
	counters int
	rows     int            // of the answer, at most
	grain    *plans.Measure // by what they are tallied; nil means their rows are numbered
}

// together parts measures into those that are read in one scan, in order.
func together(list []*plans.Measure, d dialect.Dialect) (sets []*readTogether) {
next:
	for i, m := range list {
		own := readTogether{places: []int{i}, measures: []*plans.Measure{m}, counters: len(m.Counters), rows: maxCombinations(m)}
		if len(list) > 1 {
			own.by = sharedBy(m, d)
		}
		if own.by.table != nil && (mayBeStored(m.Table, d) || m.Table.Derived != nil) {
			own.grain = merged(&plans.Measure{Table: m.Table}, m)
		}
		tried := 0
		for _, set := range slices.Backward(sets) {
			if own.by == (shared{}) || tried == maxTried {
				break
			}
			if set.by != own.by {
				continue
			}
			if tried++; set.takes(&own, d) {
				continue next
			}
		}
		sets = append(sets, &own)
	}
	return sets
}

// takes adds a measure over the same rows to a scan, if it may be read there.
func (s *readTogether) takes(own *readTogether, d dialect.Dialect) bool {
	m := own.measures[0]
	if len(s.places) == maxLeaves || s.counters+own.counters > maxCounters || s.rows+own.rows > maxRows {
		return false
	}
	if s.grain != nil {
		grain := merged(s.grain, m)
		if writerOf(m, d, assumed{}).tallyRows(grain) > fewJoint {
			return false
		}
		s.grain = grain
	}
	s.places, s.measures = append(s.places, own.places...), append(s.measures, m)
	s.counters, s.rows = s.counters+own.counters, s.rows+own.rows
	return true
}

// maxCombinations is how many combinations of cells a measure has, or one more than a scan may have.
func maxCombinations(m *plans.Measure) int {
	rows := 1
	for i := range m.Grain {
		if rows *= m.Size(i); rows > maxRows {
			return maxRows + 1
		}
	}
	return rows
}

// mayBeStored reports whether the rows of a table of the policy are read as they are stored, as far as may be expected:
// where a unit has one row a constraint most often proves it (where rows are not kept none is believed).
func mayBeStored(t *policy.Table, d dialect.Dialect) bool {
	return alwaysStored(t) || t.MaxRowsPerUnit == 1 && provable(t) && d.OneScan && !d.KeepsNoRows
}

// alwaysStored reports whether they are, whatever constraints there are.
func alwaysStored(t *policy.Table) bool { return t.Dataset.Unit.Row || t.RowRank != "" }

// shared is what measures that may be read in one scan have alike; the zero value: a measure is read by itself.
type shared struct {
	table *policy.Table
	rows  string // of a derived table: the text that reads them; of one that is read as it is stored: the conditions by which an index may find them
}

// sharedBy finds it. A derived table's rows are kept for several measures where they are numbered whatever constraints
// prove: else reading them twice takes less than keeping them, and they are tallied, for measures of one SELECT, or
// each measure reads them.
func sharedBy(m *plans.Measure, d dialect.Dialect) shared {
	a := assumed{}
	if m.Table.Derived != nil {
		a.single = singles(m.Table, d)
	}
	w := writerOf(m, d, a)
	switch {
	case m.Open != nil || m.Window != nil || w.groupsBounded(m):
		return shared{}
	case m.Table.Derived == nil && mayBeStored(m.Table, d):
		if !d.OneScan {
			return shared{}
		}
		return shared{table: m.Table, rows: w.narrowConditions(m)}
	}
	w.used = m.Table.Columns
	text, bound := w.source()
	switch {
	case w.numberings > 0 && d.KeepsNoRows:
		return shared{}
	case w.err != nil || w.numberings == 0 && (m.Table.Derived == nil || !d.OneScan):
		return shared{}
	case w.numberings == 0:
		return shared{table: m.Table, rows: w.narrowConditions(m)}
	case m.Table.Derived == nil:
		return shared{table: m.Table}
	}
	return shared{rows: text + "\x00" + strings.Join(bound, "") + "\x00" + joinedArgs(w.args)}
}

// A condition is narrow where it holds in less than an eighth of its column's cells.
const narrow = 8

// narrowConditions are the narrow ones of a measure, by which an index may find its rows: measures that are read in one
// scan have the same ones.
func (w *composed) narrowConditions(m *plans.Measure) string {
	var texts []string
	for _, c := range w.conditionsOf(m) {
		if isNarrow(c.pred) {
			texts = append(texts, c.text)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\x00")
}

func isNarrow(p predicate.Pred) bool {
	switch p := p.(type) {
	case predicate.Never:
		return true
	case predicate.AnyOf:
		return !slices.ContainsFunc(p, func(part predicate.Pred) bool { return !isNarrow(part) })
	case predicate.AllOf:
		return slices.ContainsFunc(p, isNarrow)
	case predicate.InCells:
		return mechanisms.CellsIn(p.Spans)*narrow < p.Column.Domain.Size()
	case predicate.Compare:
		d := p.Column.Domain
		below, ok := d.Cell(p.Value)
		switch {
		case p.Op == "=":
			return true
		case !ok || !d.Ordered():
			return false
		case p.Op == "<" || p.Op == "<=":
			return below*narrow < d.Size()
		}
		return p.Op != "<>" && (d.Size()-below)*narrow < d.Size()
	}
	return false
}

// Where the policy bounds a unit's groups, they are bounded measure by measure, by the groups that are released:
// bounding by anything finer would let a unit into more of them, or with more rows. Of the rows that the measure asks
// for, a unit's groups are put in the order of a hash of the unit and the group, and the first are taken; in each, the
// first rows in the order of theirs (roworder.go). Both orders are functions of the unit's own rows alone (privacy rule
// 10).
//
// A group goes by the first combination of cells of its class in each grouping, f1, f2, …, NULL where there is none.

// maxRuns bounds the text of one class.
const maxRuns = 1 << 12

// groupsBounded reports whether the measure's table bounds groups and no constraint in w.proven does.
func (w *composed) groupsBounded(m *plans.Measure) bool {
	groups := 1
	for _, g := range m.Groups {
		groups = max(groups, g.Classes) // more than one if their product is
	}
	return m.Table.BoundsGroups(groups) && !slices.Contains(w.proven, m.Table)
}

// groupedRows writes the bounded rows of a measure, as source does; the measure's condition is in it.
func (w *writer) groupedRows(m *plans.Measure) (from string, bound []string) {
	var columns, classes []string
	for i := range w.table.Columns {
		columns = append(columns, "g.n"+strconv.Itoa(i+1))
	}
	for i := range m.Groups {
		classes = append(classes, "g.f"+strconv.Itoa(i+1))
	}
	rows := w.call("row_number") + " OVER (PARTITION BY " + strings.Join(append([]string{"g.u"}, classes...), ", ") + w.rowOrder("g") + ")"
	rows = w.single("g.u", "1", rows) + " AS r"
	ranks := w.single("g.u", "1", w.call("dense_rank")+" OVER "+w.byUnit(m, classes)) + " AS d"
	from = "(SELECT " + strings.Join(append([]string{rows, ranks}, columns...), ", ") +
		"\n  FROM " + w.classed(m, true) + " AS g\n  WHERE " + strings.Join(classes, " IS NOT NULL AND ") + " IS NOT NULL)"
	return from, []string{"s.r <= " + strconv.FormatInt(w.table.MaxPerGroup, 10) + " AND s.d <= " + strconv.FormatInt(w.table.MaxGroups, 10)}
}

// groupedCounts writes a whole query for a measure that only counts rows: how many of them a unit has in a group, and
// not which, is then all that matters.
func (w *writer) groupedCounts(m *plans.Measure) string {
	var items, classes, outer []string
	for i, g := range m.Groups {
		f := "s.f" + strconv.Itoa(i+1)
		outer, classes = append(outer, f), append(classes, "g.f"+strconv.Itoa(i+1))
		at := len(items)
		rest := g.Cells
		for k := range g.Columns {
			cell := f
			size := m.Size(at + k)
			if rest /= size; rest > 1 {
				cell = w.operate(cell, "/", w.int4(rest))
			}
			if k > 0 {
				cell = w.operate(cell, "%", w.int4(size))
			}
			items = append(items, w.output(cell, "c"+strconv.Itoa(at+k+1)))
		}
	}
	unit := ""
	if w.table.NullEach {
		unit = ", g.u"
	}
	most := w.summed(w.single("s.u", "s.k", "LEAST(s.k, "+strconv.FormatInt(w.table.MaxPerGroup, 10)+")"), 0)
	items = append(items, w.output(most, "k1"))
	ranked := w.single("g.u", "1", w.call("row_number")+" OVER "+w.byUnit(m, classes)) + " AS d"
	counted := "(SELECT g.u, " + strings.Join(classes, ", ") + ", " + w.call("count", "*") + " AS k\n  FROM " + w.classed(m, false) +
		" AS g\n  WHERE " + strings.Join(classes, " IS NOT NULL AND ") + " IS NOT NULL\n  GROUP BY g.u, " + strings.Join(classes, ", ") + ")"
	return "SELECT " + strings.Join(items, ",\n       ") + "\nFROM (SELECT g.k" + unit + ", " + strings.Join(append(classes, ranked), ", ") + "\n  FROM " + counted +
		" AS g) AS s\nWHERE s.d <= " + strconv.FormatInt(w.table.MaxGroups, 10) + "\nGROUP BY " + strings.Join(outer, ", ")
}

// countsAlone reports whether groupedCounts says all that the measure asks.
func countsAlone(m *plans.Measure) bool {
	return len(m.Counters) == 1 && m.Counters[0] == nil && (m.Sums == nil || m.Sums[0] == nil) && m.Weigh == nil &&
		!slices.ContainsFunc(m.Groups, func(g plans.Grouping) bool { return g.Partly })
}

// classed writes the table's normalised rows that satisfy the measure's condition, with the class of each grouping, in
// parentheses. With everything they have all columns and keys, else the unit alone.
func (w *writer) classed(m *plans.Measure, everything bool) string {
	v := w.over(w.table, "b")
	items := []string{"b.u"}
	at := 0
	for i, g := range m.Groups {
		items = append(items, v.class(m, at, g)+" AS f"+strconv.Itoa(i+1))
		at += g.Columns
	}
	conditions := v.conditions(m.Where)
	if everything {
		if w.dialect.Ready {
			items = append(items, "b.r")
		}
		for i := range w.table.Columns {
			items = append(items, "b.n"+strconv.Itoa(i+1))
		}
		for i, k := range w.table.Keys {
			if !k.Unit {
				items = append(items, "b.j"+strconv.Itoa(i+1))
			}
		}
	}
	return "(SELECT " + strings.Join(items, ", ") + "\n  FROM " + v.base(everything, 0) + " AS b" + where("  ", conditions) + ")"
}

// class writes the first combination of cells of a row's class.
func (w *writer) class(m *plans.Measure, at int, g plans.Grouping) string {
	number := ""
	for i, c := range m.Grain[at : at+g.Columns] {
		number = w.nextDigit(i, number, m.Size(at+i), w.piece(m, at+i, w.use(c)))
	}
	first := make([]int, g.Classes)
	for i := range first {
		first[i] = -1
	}
	var runs []run
	same, from := true, 0
	for _, r := range g.Runs {
		to := -1
		if r.Class >= 0 {
			if first[r.Class] < 0 {
				first[r.Class] = from
			}
			to = first[r.Class]
		}
		same = same && to == from && r.Length == 1
		if n := len(runs); n == 0 || runs[n-1].to != to {
			runs = append(runs, run{from, to})
		}
		from += r.Length
	}
	switch {
	case same: // or there are none
		return number
	case len(runs) > maxRuns:
		w.fail("groups that are made of more than %d ranges of cells", maxRuns)
		return "NULL"
	}
	return w.among(number, runs)
}

// run are neighbouring combinations of cells, from one on, that belong to one class.
type run struct{ from, to int }

// among finds the run of a number by halves.
func (w cells) among(number string, runs []run) string {
	if len(runs) == 1 && runs[0].to < 0 {
		return w.cast("NULL", "int4")
	}
	if len(runs) == 1 {
		return w.int4(runs[0].to)
	}
	half := len(runs) / 2
	return "CASE WHEN " + w.operate(number, "<", w.int4(runs[half].from)) + " THEN " + w.among(number, runs[:half]) +
		" ELSE " + w.among(number, runs[half:]) + " END"
}

// byUnit is the window in which a unit's groups are in their order.
func (w *columns) byUnit(m *plans.Measure, classes []string) string {
	limbs := []limb{w.unitLimb("g.u")}
	for i, g := range m.Groups {
		limbs = append(limbs, limb{w.cast(classes[i], "int8"), int64(g.Cells)})
	}
	return "(PARTITION BY g.u ORDER BY " + strings.Join(append([]string{w.hashed(limbs)}, classes...), ", ") + ")"
}
