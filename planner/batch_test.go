package planner

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
)

func parsedAll(t testing.TB, c reuse.Context, text string) (items []workload.BatchItem) {
	t.Helper()
	list, refusal := parse.Parse(text)
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, s := range list {
		items = append(items, workload.BatchItem{Statement: s, Settings: c.Settings})
	}
	return items
}

const dashboard = `SELECT count(*) FROM people;
SELECT sex, count(*) FROM people GROUP BY sex;
SELECT sex, kids, count(*) FROM people GROUP BY sex, kids;
SELECT kids, count(*) FROM people WHERE age >= 65 GROUP BY kids;
SELECT age, count(*) FROM people GROUP BY age;
SELECT width_bucket(age, 0, 100, 10), sex, count(*) FROM people GROUP BY 1, 2;
SELECT avg(income) FROM people;
SELECT count(*) FROM people WHERE age BETWEEN 18 AND 30 AND sex = 'Female'`

// TestBatchOfMedians: medians by groups, whose presence a batch counts as it counts anything, are in a batch.
func TestBatchOfMedians(t *testing.T) {
	c := testContext(t, testPolicy(t))
	b, err := workload.PlanBatch(parsedAll(t, c, `SELECT sex, count(*) FROM people GROUP BY sex;
		SELECT sex, percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people GROUP BY sex`), c, epsilon(t, "1"))
	if err != nil || b.Cost.Epsilon.Micro() > epsilon(t, "1").Micro() {
		t.Fatal(b, err)
	}
}

// TestBatchIsFreeAfterwards: what a batch buys answers each of its statements for nothing, and no strategy that was
// looked at for the whole batch has a smaller error than the one that is taken.
func TestBatchIsFreeAfterwards(t *testing.T) {
	c := testContext(t, testPolicy(t))
	list := parsedAll(t, c, dashboard)
	b, err := workload.PlanBatch(list, c, epsilon(t, "1"))
	if err != nil {
		t.Fatal(err)
	}
	taken := math.Inf(1)
	for _, s := range b.Strategies {
		if s.Chosen {
			taken = s.Error
		}
	}
	for _, s := range b.Strategies {
		if s.Error < taken {
			t.Errorf("%s has error %g, what is taken %g", s.Name, s.Error, taken)
		}
	}
	if !b.Cost.Fits(privacy.Cost{Epsilon: epsilon(t, "1")}) {
		t.Errorf("it costs %s", b.Cost)
	}
	c.Holdings.(*shelf).buy(b.Plan())
	for _, item := range list {
		p, refusal := Build(item.Statement, []policy.Value{}, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		if !p.Cost.IsZero() {
			t.Errorf("%s costs %s", item.Statement.Text, p.Cost)
		}
	}
}

// TestBatchTwin: for random reports under both accountants, what is bought answers every statement for nothing with
// what the SQL's own expressions count, from sums that can be read; the error is what the batch says; what is taken is
// no worse than any strategy for the whole, and dearer than asked it never is.
func TestBatchTwin(t *testing.T) {
	const seed = 11
	r := rand.New(rand.NewSource(seed))
	kinds := map[string]int{}
	for n := range 8 {
		c := testContext(t, testPolicy(t))
		if n%2 == 1 {
			c.Dataset.Accountant = privacy.ZCDP
		}
		if n%3 == 2 {
			c.Dataset.Neighbors = privacy.ReplaceOne
		}
		var texts []string
		for range 2 + r.Intn(5) {
			texts = append(texts, randomSQL(r))
		}
		list := parsedAll(t, c, strings.Join(texts, ";\n"))
		b, err := workload.PlanBatch(list, c, epsilon(t, "0.5"))
		if err != nil {
			t.Fatalf("seed %d, report %d: %v", seed, n, err)
		}
		own := reuse.Context{Dataset: c.Dataset, Settings: plans.Settings{Epsilon: epsilon(t, "0.5")}}
		if limit := (&choose.Optimizer{Weigher: choose.Weigher{Context: own}}).Share(1); !b.Cost.Fits(limit) {
			t.Errorf("report %d costs %s", n, b.Cost)
		}
		least, taken := math.Inf(1), math.Inf(1)
		for _, s := range b.Strategies {
			if least = min(least, s.Error); s.Chosen {
				taken = s.Error
			}
		}
		if taken != least && len(b.Strategies) > 0 {
			t.Errorf("report %d: taken has error %g, the least is %g", n, taken, least)
		}
		c.Holdings.(*shelf).buy(b.Plan())
		rows := randomRows(r, c.Dataset.Tables[0], 60)
		for i, item := range list {
			if b.Statements[i].Refusal == nil {
				checkBought(t, c, item.Statement.Text, b.Statements[i], rows, kinds)
			}
		}
	}
	if kinds["marginals"] == 0 || kinds["identity"] == 0 {
		t.Errorf("seed %d: strategies read: %v", seed, kinds)
	}
}

func checkBought(t *testing.T, c reuse.Context, sql string, notes workload.BatchStatement, rows []scalar.Row, kinds map[string]int) {
	t.Helper()
	p := planOrRefusal(t, c, sql)
	if p == nil {
		return
	}
	if !p.Cost.IsZero() {
		t.Errorf("%s costs %s", sql, p.Cost)
		return
	}
	worst := 0.0
	for _, count := range p.Leaves[0].Counts {
		for _, run := range count.Runs {
			for _, spans := range run.Spans {
				if run.Measure >= 0 {
					m := p.Measures[run.Measure]
					kinds[m.Spec.Counts().Strategy.Kind.String()]++
					worst = max(worst, m.Spec.Only(run.Counter).Error(spans, c.Settings.Confidence).Variance)
				}
			}
		}
	}
	if math.IsInf(worst, 1) {
		t.Errorf("%s is read from sums that cannot be read", sql)
	}
	if half := float64(notes.HalfWidth); notes.Values > 0 && worst > 1 && half < .9*math.Sqrt(worst) {
		t.Errorf("%s: at most ±%g was said, and a value has deviation %g", sql, half, math.Sqrt(worst))
	}
	agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), naive(t, c, sql, rows))
}

// TestBatchIsSteady: the same report makes the same plan.
func TestBatchIsSteady(t *testing.T) {
	plans := map[string]bool{}
	for range 3 {
		c := testContext(t, testPolicy(t))
		c.Dataset.Accountant = privacy.ZCDP
		b, err := workload.PlanBatch(parsedAll(t, c, dashboard), c, epsilon(t, "1"))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, m := range b.Measures {
			text += fmt.Sprint(m.Name, m.Digest, m.Cost, m.Spec)
		}
		plans[text+fmt.Sprint(b.Statements)] = true
	}
	if len(plans) != 1 {
		t.Errorf("%d plans of one report", len(plans))
	}
}

// TestBatchOfManyRanges: a report of 1,000 ranges is planned within the bounds of the search, which once looked at
// every two of them and all that was left, again and again. What is counted is cells and comparisons.
func TestBatchOfManyRanges(t *testing.T) {
	c, items := testContext(t, testPolicy(t)), []workload.BatchItem(nil)
	r := rand.New(rand.NewSource(15))
	for range 1000 {
		from := r.Intn(110)
		items = append(items, parsedAll(t, c, fmt.Sprintf("SELECT count(*) FROM people WHERE age >= %d AND age < %d", from, from+1+r.Intn(119-from)))...)
	}
	b, err := workload.PlanBatch(items, c, privacy.MicroEpsilon(1_000_000))
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Measures) == 0 || len(b.Measures) > 10 {
		t.Errorf("%d releases", len(b.Measures))
	}
	for _, s := range b.Statements {
		if s.Refusal != nil || s.Values != 1 || s.HalfWidth == 0 {
			t.Fatalf("a statement is not answered: %+v", s)
		}
	}
}

// TestBatchAnswersNothingFirst: what a statement asks before it is planned to the end is not there when a batch is,
// which says so.
func TestBatchAnswersNothingFirst(t *testing.T) {
	c := testContext(t, testPolicy(t))
	list := parsedAll(t, c, "SELECT count(*) FROM people WHERE income > (SELECT avg(income) FROM people);\nSELECT count(*) FROM visits WHERE ward < (SELECT max(code) FROM regions);\nSELECT count(*) FROM people")
	b, err := workload.PlanBatch(list, c, epsilon(t, "0.5"))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"a sub-query that is answered before its statement is not answered here", "a sub-query that is answered before its statement is not answered here", ""} {
		if r := b.Statements[i].Refusal; (r == nil) != (want == "") || r != nil && r.Message != want {
			t.Errorf("%s: %v, want %q", list[i].Statement.Text, r, want)
		}
	}
}

// TestBatchOfTotals: how far values of units' totals are off is said for each 1 of their clamp, and not in the parts
// that are released.
func TestBatchOfTotals(t *testing.T) {
	p := testPolicy(t)
	visits := p.Datasets[0].Table("public", "visits")
	visits.AnyRows, visits.MaxRowsPerUnit, visits.Releases = true, 1_000_000, nil
	c := testContext(t, p)
	for _, text := range []string{`SELECT count(*) FROM visits`, `SELECT ward, count(*) FROM visits GROUP BY 1`} {
		b, err := workload.PlanBatch(parsedAll(t, c, text), c, epsilon(t, "1"))
		if err != nil {
			t.Fatal(err)
		}
		s := b.Statements[0]
		one := math.Sqrt(2 * 9. / 8) // Laplace noise of scale 1 in each step
		if s.Values != 0 || s.RMSE != 0 || s.HalfWidth != 0 || math.Abs(s.ByClamp/one-1) > .05 {
			t.Errorf("%s: %d values, RMSE %g, ±%d, and %g by clamp, want %g",
				text, s.Values, s.RMSE, s.HalfWidth, s.ByClamp, one)
		}
	}
}
