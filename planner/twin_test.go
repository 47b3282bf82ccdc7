package planner

import (
	"fmt"
	"math/big"
	"math/rand"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The naive twin reads a SELECT the slow way: it evaluates WHERE, FILTER and the keys on each row of a small random
// table. The plan's way is followed beside it: the measure's SQL as a loop, the placement, the spans of the leaf. Both
// must agree on every count, with noise left out.

// randomRows draws normalised rows. Columns of steps take values anywhere in their steps.
func randomRows(r *rand.Rand, t *policy.Table, n int) []scalar.Row {
	rows := make([]scalar.Row, n)
	for i := range rows {
		row := make(scalar.Row, len(t.Columns))
		for j, c := range t.Columns {
			if c.Private { // nothing reads it
				continue
			}
			cell := r.Intn(c.Domain.Size())
			row[j] = c.Domain.Low(cell)
			if !c.Domain.Single() && cell < c.Domain.Regular && r.Intn(2) == 0 {
				row[j] = semantics.InnerOf(c.Domain, cell, semantics.LastOf(c.Domain, cell))
			}
		}
		rows[i] = row
	}
	return rows
}

// holdsOn evaluates a predicate on a row, as the database would.
func holdsOn(t *testing.T, p predicate.Pred, row scalar.Row, at map[*policy.Column]int) bool {
	switch p := p.(type) {
	case nil:
		return true
	case predicate.AllOf:
		for _, q := range p {
			if !holdsOn(t, q, row, at) {
				return false
			}
		}
		return true
	case predicate.AnyOf:
		for _, q := range p {
			if holdsOn(t, q, row, at) {
				return true
			}
		}
		return false
	case predicate.InCells:
		cell, ok := p.Column.Domain.Cell(row[at[p.Column]])
		if !ok {
			t.Fatalf("%s: value %v lies in no cell", p.Column.Name, row[at[p.Column]])
		}
		return predicate.Contains(p.Spans, cell)
	case predicate.Compare:
		v := row[at[p.Column]]
		if v == nil {
			return false
		}
		d := scalar.Compare(p.Column.Type, v, p.Value)
		return map[string]bool{"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0, "=": d == 0, "<>": d != 0}[p.Op]
	case predicate.Past:
		v := row[at[p.Column]]
		if v == nil {
			return false
		}
		cell, _ := p.Column.Domain.Cell(v)
		past := microsIn(v) - microsIn(p.Column.Domain.Low(cell))
		return map[string]bool{"<": past < p.By, "<=": past <= p.By, ">": past > p.By, ">=": past >= p.By, "=": past == p.By, "<>": past != p.By}[p.Op]
	case predicate.Sum:
		total := new(big.Rat)
		for _, term := range p.Terms {
			v := unitsOf(row[at[term.Column]])
			if v == nil {
				return false
			}
			total.Add(total, v.Mul(v, big.NewRat(term.Times, 1)))
		}
		d := total.Cmp(unitsOf(p.Value))
		return map[string]bool{"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0, "=": d == 0, "<>": d != 0}[p.Op]
	case predicate.Between:
		a, b := row[at[p.Left]], row[at[p.Right]]
		if a == nil || b == nil {
			return false
		}
		d := scalar.Compare(p.Left.Type, a, b)
		return map[string]bool{"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0, "=": d == 0, "<>": d != 0}[p.Op]
	}
	return false
}

// unitsOf is a value as sums add it up; nil means it is NULL.
func unitsOf(v policy.Value) *big.Rat {
	switch v.(type) {
	case nil:
		return nil
	case policy.Timestamp, policy.Timestamptz:
		return big.NewRat(microsIn(v), 1)
	}
	x, _ := derived.RatOf(v)
	return x
}

// measureOn is the true vector of a measure: by counter, by cell.
func measureOn(t *testing.T, m *plans.Measure, rows []scalar.Row) [][]int64 {
	at := places(m.Table)
	out := make([][]int64, m.Spec.Counters)
	for c := range out {
		out[c] = make([]int64, m.Spec.Cells)
	}
	cells := make([]int32, len(m.Grain))
	seen := map[[2]int]bool{} // values that a counter of different ones has seen, with their cells
	for _, row := range rows {
		row = withSums(t, m.Table, row)
		if !holdsOn(t, m.Where, row, at) {
			continue
		}
		for i, g := range m.Grain {
			cell, ok := g.Domain.Cell(row[at[g]])
			if !ok {
				t.Fatalf("%s: no cell", g.Name)
			}
			cells[i] = int32(m.Piece(i, cell))
		}
		for c, p := range m.Counters {
			if !holdsOn(t, p, row, at) {
				continue
			}
			place, values := m.Place(cells, c), 0
			if m.Sums != nil && m.Sums[c] != nil {
				values = m.Sums[c].Values
			}
			switch {
			case place < 0:
			case values == 0:
				out[c][place]++
			case !seen[[2]int{c, place}]:
				seen[[2]int{c, place}] = true
				out[c][place/values]++
			}
		}
	}
	return out
}

// places are the positions of a table's columns.
func places(t *policy.Table) map[*policy.Column]int {
	at := map[*policy.Column]int{}
	for i, c := range t.Columns {
		at[c] = i
	}
	return at
}

// withSums is a row of a table of the policy with the computed columns of one that is made of it, and with the truths of
// its conditions.
func withSums(t *testing.T, of *policy.Table, row scalar.Row) scalar.Row {
	if d, ok := of.Derived.(*derived.Tested); ok {
		row, at := slices.Clone(withSums(t, d.From, row)), places(d.From)
		cell := slices.IndexFunc(d.Arms, func(arm predicate.Pred) bool { return holdsOn(t, arm, row, at) })
		if cell < 0 {
			cell = len(d.Arms)
		}
		for i, c := range d.Conditions {
			if got, want := d.Cells[cell][i], truthOn(t, c, row, at); got != want {
				t.Fatalf("condition %d of %q is %c in the cell of %v, and %c there", i, d.Cells, got, row, want)
			}
		}
		return append(row, int64(cell))
	}
	d, ok := of.Derived.(*derived.Computed)
	if !ok {
		return row
	}
	row = slices.Clone(withSums(t, d.From, row))
	for _, sum := range d.Columns {
		total := new(big.Rat)
		for _, term := range sum {
			v := row[slices.Index(d.From.Columns, term.Column)]
			if v == nil {
				total = nil
				break
			}
			x, ok := derived.RatOf(v)
			if at, moment := v.(policy.Timestamp); moment {
				x, ok = new(big.Rat).SetInt64(int64(at)), true
			}
			if !ok {
				t.Fatalf("%v is added up", v)
			}
			total.Add(total, x.Mul(x, new(big.Rat).SetInt64(term.Times)))
		}
		switch {
		case total == nil:
			row = append(row, nil)
		case !sum.Decimal():
			row = append(row, total.Num().Int64())
		default:
			scale := int32(semantics.DecimalsOf(total))
			scaled := new(big.Rat).Mul(total, new(big.Rat).SetInt(derived.Tens(scale)))
			row = append(row, policy.Numeric{Coefficient: scaled.Num(), Scale: scale})
		}
	}
	return row
}

// truthOn is the truth value of a condition on a row.
func truthOn(t *testing.T, c derived.Condition, row scalar.Row, at map[*policy.Column]int) byte {
	switch {
	case holdsOn(t, c.Holds, row, at):
		return 't'
	case holdsOn(t, c.Fails, row, at):
		return 'f'
	}
	return 'n'
}

// trueVectors are those of a plan's measures.
func trueVectors(t *testing.T, p *plans.Plan, rows []scalar.Row) [][][]int64 {
	out := make([][][]int64, len(p.Measures))
	for i, m := range p.Measures {
		out[i] = measureOn(t, m, rows)
	}
	return out
}

// rowsAbove is the number of rows above a run.
func rowsAbove(l *plans.Leaf, column int, run *plans.Run) (rows int) {
	for i := range l.Counts[column].Runs {
		if &l.Counts[column].Runs[i] == run {
			break
		}
		rows += len(l.Counts[column].Runs[i].Spans)
	}
	return rows
}

// mixedTruth is a row read from several measures; without noise it is a whole number.
func mixedTruth(row []plans.Term, truth [][][]int64) int64 {
	sum := new(big.Rat)
	for _, t := range row {
		for _, s := range t.Spans {
			for _, n := range truth[t.Measure][t.Counter][s.From:s.To] {
				sum.Add(sum, big.NewRat(t.Num*n, t.Den))
			}
		}
	}
	if !sum.IsInt() {
		return -1 << 40
	}
	return sum.Num().Int64()
}

// answer reads a leaf from the true vectors of its measures.
func answer(l *plans.Leaf, truth [][][]int64) map[string][]int64 {
	out := map[string][]int64{}
	for r := 0; r < l.Rows; r++ {
		values := make([]policy.Value, len(l.Keys))
		for k := range l.Keys {
			values[k] = l.Keys[k].Values[r]
		}
		counts := make([]int64, len(l.Counts))
		for i, c := range l.Counts {
			run, spans := c.At(r)
			if run != nil && run.Mix != nil {
				counts[i] = mixedTruth(run.Mix[r-rowsAbove(l, i, run)], truth)
			}
			for _, s := range spans {
				for cell := s.From; cell < s.To; cell++ {
					counts[i] += truth[run.Measure][run.Counter][cell]
				}
			}
		}
		out[semantics.KeyText(values)] = counts
	}
	return out
}

func agree(t *testing.T, sql string, got, want map[string][]int64) {
	t.Helper()
	for key, counts := range want {
		if fmt.Sprint(got[key]) != fmt.Sprint(counts) {
			t.Errorf("%s: key %q is %v, the twin counts %v", sql, key, got[key], counts)
		}
	}
	for key, counts := range got {
		if want[key] == nil {
			for _, n := range counts {
				if n != 0 {
					t.Errorf("%s: key %q is %v, the twin has no such row", sql, key, counts)
				}
			}
		}
	}
}

// TestTwinFresh: fresh measures count what the SQL says.
func TestTwinFresh(t *testing.T) {
	const seed = 1
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	answered := 0
	for n := 0; n < 400; n++ {
		// At the larger ε different values are counted as they are, at the other each of few values by itself.
		c.Settings.Epsilon = epsilon(t, []string{"0.1", "100"}[n%2])
		sql := randomSQL(r)
		p := planOrRefusal(t, c, sql)
		if p == nil {
			continue
		}
		answered++
		rows := randomRows(r, people, 60)
		agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), naive(t, c, sql, rows))
	}
	if answered < 200 {
		t.Errorf("seed %d: only %d of 400 statements were answered", seed, answered)
	}
}

func planOrRefusal(t *testing.T, c reuse.Context, sql string) *plans.Plan {
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatalf("%s: %v", sql, refusal)
	}
	p, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		if refusal.ID != "off-grid-expression" && refusal.ID != "off-grid-zone" && refusal.ID != "too-many-cells" && refusal.ID != "planning-limit" {
			t.Errorf("%s: %s: %v", sql, refusal.ID, refusal)
		}
		return nil
	}
	return p
}

// TestTwinHeld: what is read from a release of finer cells is what the SQL says.
func TestTwinHeld(t *testing.T) {
	const seed = 2
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	c.Settings.Epsilon = epsilon(t, "0.0001") // so that what is held is always more exact
	held := c
	held.Settings.Epsilon = epsilon(t, "5")
	shelf := c.Holdings.(*shelf)
	for _, sql := range []string{"SELECT count(*) FROM people WHERE age < 5", "SELECT sex, kids, active, count(*) FROM people GROUP BY 1, 2, 3",
		"SELECT age / 10, sex, count(*) FROM people GROUP BY 1, 2", "SELECT extract(year FROM hired), count(*) FROM people GROUP BY 1", "SELECT sex, age > 40, kids > 3, count(*) FROM people GROUP BY 1, 2, 3"} {
		shelf.buy(planOrRefusal(t, held, sql))
	}
	reused := map[string]int{}
	for n := 0; n < 600; n++ {
		sql := randomSQL(r)
		p := planOrRefusal(t, c, sql)
		if p == nil {
			continue
		}
		held := 0
		for _, m := range p.Measures {
			if m.Held {
				reused[m.Name]++
				held++
			}
		}
		if held == 0 {
			continue
		}
		rows := randomRows(r, people, 60)
		agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), naive(t, c, sql, rows))
	}
	if len(reused) < 4 {
		t.Errorf("seed %d: releases re-used: %v", seed, reused)
	}
}

// TestStatementNeverDearer: whatever is asked and held, a statement costs at most dp.epsilon.
func TestStatementNeverDearer(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	for n := 0; n < 250; n++ {
		c.Settings.Epsilon = epsilon(t, []string{"0.1", "0.5", "0.9", "2"}[r.Intn(4)])
		c.Settings.Release = r.Intn(2) == 0
		sql := "SELECT (SELECT count(*) FROM people WHERE " + condition(r, 1) + "), (SELECT count(*) FROM people WHERE " + condition(r, 1) + "), (" + "SELECT count(*) FROM people WHERE age < 50)"
		switch r.Intn(4) {
		case 0:
			sql = randomSQL(r)
		case 1: // leaves that may be read from each other
			where := " FROM people WHERE " + condition(r, 1)
			sql = "SELECT sex, n, (SELECT count(*)" + where + ") FROM (SELECT sex, count(*) AS n" + where + " GROUP BY sex) t"
		}
		p := planOrRefusal(t, c, sql)
		if p == nil {
			continue
		}
		if limit := (&choose.Optimizer{Weigher: choose.Weigher{Context: c}}).Share(1); !p.Cost.Fits(limit) {
			t.Errorf("%s costs %s at dp.epsilon %s", sql, p.Cost, c.Settings.Epsilon)
		}
		if r.Intn(3) == 0 {
			c.Holdings.(*shelf).buy(p)
			if again := planOrRefusal(t, c, sql); !again.Cost.IsZero() {
				t.Errorf("%s asked again costs %s", sql, again.Cost)
			}
		}
	}
}
