package planner

import (
	"fmt"
	"math/big"
	"math/rand"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// The naive twin reads a SELECT the slow way: it evaluates WHERE, FILTER and the keys on each row of a small random table.
// The plan's way is followed beside it: the measure's SQL as a loop, the placement, the spans of the leaf. Both must agree
// on every count, with noise left out.

// randomRows draws normalised rows. Columns of steps take values anywhere in their steps.
func randomRows(r *rand.Rand, t *policy.Table, n int) []scalar.Row {
	rows := make([]scalar.Row, n)
	for i := range rows {
		row := make(scalar.Row, len(t.Columns))
		for j, c := range t.Columns {
			cell := r.Intn(c.Domain.Size())
			row[j] = c.Domain.Low(cell)
			if !c.Domain.Single() && cell < c.Domain.Regular && r.Intn(2) == 0 {
				row[j] = innerOf(c.Domain, cell, lastOf(c.Domain, cell))
			}
		}
		rows[i] = row
	}
	return rows
}

// holdsOn evaluates a predicate on a row, as the database would.
func holdsOn(t *testing.T, p Pred, row scalar.Row, at map[*policy.Column]int) bool {
	switch p := p.(type) {
	case nil:
		return true
	case AllOf:
		for _, q := range p {
			if !holdsOn(t, q, row, at) {
				return false
			}
		}
		return true
	case AnyOf:
		for _, q := range p {
			if holdsOn(t, q, row, at) {
				return true
			}
		}
		return false
	case InCells:
		cell, ok := p.Column.Domain.Cell(row[at[p.Column]])
		if !ok {
			t.Fatalf("%s: value %v lies in no cell", p.Column.Name, row[at[p.Column]])
		}
		return inSpans(p.Spans, cell)
	case Compare:
		v := row[at[p.Column]]
		if v == nil {
			return false
		}
		d := scalar.Compare(p.Column.Type, v, p.Value)
		return map[string]bool{"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0, "=": d == 0, "<>": d != 0}[p.Op]
	case Between:
		a, b := row[at[p.Left]], row[at[p.Right]]
		if a == nil || b == nil {
			return false
		}
		d := scalar.Compare(p.Left.Type, a, b)
		return map[string]bool{"<": d < 0, "<=": d <= 0, ">": d > 0, ">=": d >= 0, "=": d == 0, "<>": d != 0}[p.Op]
	}
	return false
}

// measureOn is the true vector of a measure: by counter, by cell.
func measureOn(t *testing.T, m *Measure, rows []scalar.Row) [][]int64 {
	at := map[*policy.Column]int{}
	for i, c := range m.Table.Columns {
		at[c] = i
	}
	out := make([][]int64, m.Spec.Counters)
	for c := range out {
		out[c] = make([]int64, m.Spec.Cells)
	}
	cells := make([]int32, len(m.Grain))
	seen := map[[2]int]bool{} // values that a counter of different ones has seen, with their cells
	for _, row := range rows {
		if !holdsOn(t, m.Where, row, at) {
			continue
		}
		for i, g := range m.Grain {
			cell, ok := g.Domain.Cell(row[at[g]])
			if !ok {
				t.Fatalf("%s: no cell", g.Name)
			}
			cells[i] = int32(cell)
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

// trueVectors are those of a plan's measures.
func trueVectors(t *testing.T, p *Plan, rows []scalar.Row) [][][]int64 {
	out := make([][][]int64, len(p.Measures))
	for i, m := range p.Measures {
		out[i] = measureOn(t, m, rows)
	}
	return out
}

// rowsAbove is the number of rows above a run.
func rowsAbove(l *Leaf, column int, run *Run) (rows int) {
	for i := range l.Counts[column].Runs {
		if &l.Counts[column].Runs[i] == run {
			break
		}
		rows += len(l.Counts[column].Runs[i].Spans)
	}
	return rows
}

// mixedTruth is a row read from several measures; without noise it is a whole number.
func mixedTruth(row []Term, truth [][][]int64) int64 {
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
func answer(l *Leaf, truth [][][]int64) map[string][]int64 {
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
		out[keyText(values)] = counts
	}
	return out
}

// conditions and keys that the generator combines.
var (
	someConditions = []string{
		"age > 30", "age BETWEEN 20 AND 39", "age IN (1, 2, 50)", "age IS NULL", "NOT (age < 50)", "age % 3 = 1", "age <> 7", "(age > 90) IS NOT TRUE",
		"sex = 'Male'", "sex LIKE '%male'", "sex IS NULL", "sex <> 'other'", "sex IN ('Female', 'other')", "upper(sex) = 'MALE'", "NOT sex = 'Male'",
		"income >= 50000", "income < 1234.5", "income BETWEEN 1000 AND 2500", "NOT income > 777.25", "income IS NOT NULL", "income = 1000",
		"hired >= '2020-01-01'", "extract(month FROM hired) = 5", "hired BETWEEN '2010-05-05' AND '2015-01-01'", "date_trunc('year', hired) = '2011-01-01'",
		"active", "active IS TRUE", "NOT active", "kids > 3", "kids = 0", "age > kids * 5", "CASE WHEN sex = 'Male' THEN kids > 2 ELSE active END",
		"score < 2.5", "score >= 7.25", "seen::date = '2024-02-03'", "extract(hour FROM seen) < 12", "COALESCE(age, 0) = 0", "true", "age IS DISTINCT FROM 4",
	}
	someKeys = []string{"", "", "sex", "age", "age / 10", "kids", "active", "sex, active", "width_bucket(age, 0, 120, 6)", "extract(year FROM hired)", "income",
		"floor(income / 50000)", "CASE WHEN age < 18 THEN 'young' ELSE sex END", "age > kids, sex", "kids, kids > 3", "seen::date", "ROLLUP (sex, active)", "CUBE (sex, kids)", "GROUPING SETS ((age / 10), (sex), (age / 10, sex))", "sex, ROLLUP (active)", "score", "extract(dow FROM seen)"}
	someCounts = []string{"count(*)", "count(sex)", "count(age)", "count(*) FILTER (WHERE active)", "count(*) FILTER (WHERE age > kids)", "sum(CASE WHEN age > 40 THEN 1 ELSE 0 END)",
		"sum((sex = 'Male')::int)", "count(NULLIF(sex, 'Male'))", "sum(CASE WHEN age < 10 THEN 0 WHEN age < 20 THEN 1 END)", "count(*) FILTER (WHERE income > 999.5)",
		"count(DISTINCT age)", "count(DISTINCT sex) FILTER (WHERE active)", "count(DISTINCT age % 7)", "count(DISTINCT (sex, kids))", "count(DISTINCT kids) FILTER (WHERE age > kids)",
		"count(*) FILTER (WHERE age < 18)", "count(*) FILTER (WHERE age BETWEEN 18 AND 64)", "count(*) FILTER (WHERE age >= 65)", "count(*) FILTER (WHERE NOT active)"}
)

func condition(r *rand.Rand, depth int) string {
	switch n := r.Intn(6); {
	case depth > 0 && n == 0:
		return "(" + condition(r, depth-1) + " AND " + condition(r, depth-1) + ")"
	case depth > 0 && n == 1:
		return "(" + condition(r, depth-1) + " OR " + condition(r, depth-1) + ")"
	case depth > 0 && n == 2:
		return "NOT " + condition(r, depth-1)
	case depth > 0 && n == 3:
		return "(" + condition(r, depth-1) + ") IS NOT FALSE"
	}
	return someConditions[r.Intn(len(someConditions))]
}

func randomSQL(r *rand.Rand) string {
	keys := someKeys[r.Intn(len(someKeys))]
	var items []string
	for range 1 + r.Intn(3) {
		items = append(items, someCounts[r.Intn(len(someCounts))])
	}
	sql := "SELECT " + strings.Join(items, ", ") + " FROM people WHERE " + condition(r, 2)
	if args := map[string]string{"ROLLUP (sex, active)": "sex, active", "CUBE (sex, kids)": "kids, sex", "GROUPING SETS ((age / 10), (sex), (age / 10, sex))": "age / 10, sex", "sex, ROLLUP (active)": "active"}[keys]; args != "" {
		sql = "SELECT grouping(" + args + "), " + strings.TrimPrefix(sql, "SELECT ") // tells NULL from NULL
	}
	if keys != "" {
		sql += " GROUP BY " + keys
	}
	return sql
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

func planOrRefusal(t *testing.T, c Context, sql string) *Plan {
	statements, refusal := Parse(sql)
	if refusal != nil {
		t.Fatalf("%s: %v", sql, refusal)
	}
	p, refusal := Build(statements[0], nil, c)
	if refusal != nil {
		if refusal.ID != offGrid.ID && refusal.ID != tooManyCells.ID {
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
		if limit := (&chooser{c: c}).share(1); !p.Cost.Fits(limit) {
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

// FuzzBuild: any text is refused, or becomes a plan whose counts read from measures within their cells.
func FuzzBuild(f *testing.F) {
	for _, s := range append(someConditions, "SELECT * FROM people", "SELECT sex, count(*) FROM people GROUP BY 1") {
		f.Add("SELECT count(*) FROM people WHERE " + s)
		f.Add(s)
	}
	p := testPolicy(f)
	c := testContext(f, p)
	f.Fuzz(func(t *testing.T, text string) {
		statements, refusal := Parse(text)
		if refusal != nil {
			return
		}
		for _, s := range statements {
			if s.Kind != KindSelect {
				continue
			}
			if plan, refusal := Build(s, nil, c); refusal == nil {
				checkPlan(t, text, plan)
			}
		}
	})
}

func checkPlan(t *testing.T, text string, p *Plan) {
	t.Helper()
	if (p.Outer.Direct == nil) == (p.Outer.Tree == nil) {
		t.Fatalf("%q: not exactly one outer query", text)
	}
	for _, c := range p.Columns {
		if c.Error != nil && (!c.Noisy || c.Type != policy.Int8) {
			t.Fatalf("%q: column %s has an error, and is not a noisy count", text, c.Name)
		}
	}
	for _, l := range p.Leaves {
		for _, n := range l.Counts {
			if run, _ := n.At(l.Rows); run != nil {
				t.Fatalf("%q: more spans than %d rows", text, l.Rows)
			}
			for r := range l.Rows {
				run, spans := n.At(r)
				if run == nil || len(spans) > 0 && run.Measure < 0 {
					t.Fatalf("%q: counts without a measure", text)
				}
				last := 0
				for _, s := range spans {
					if s.From < last || s.To <= s.From || s.To > p.Measures[run.Measure].Spec.Cells {
						t.Fatalf("%q: span %v", text, s)
					}
					last = s.To
				}
			}
		}
	}
	if len(p.Leaves) == 0 && len(p.Measures) > 0 {
		t.Fatalf("%q: measures without leaves", text)
	}
	_ = mechanisms.Span{}
}
