package planner

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// TestTwinPieces plans random statements as if a plan could look at a few cells only, so that their parts are made of
// pieces, and holds what is counted against the twin. What a release of pieces answers is held against the twin too.
func TestTwinPieces(t *testing.T) {
	const seed = 31
	defer func(most, plain int) { plans.MaxCells, linear.MaxPlain = most, plain }(plans.MaxCells, linear.MaxPlain)
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	keys := []string{"", " GROUP BY date_trunc('month', hired)", " GROUP BY age / 10, extract(dow FROM hired)", " GROUP BY CASE WHEN age < 18 THEN 'child' WHEN income >= 50000 THEN 'rich' END",
		" GROUP BY age IN (1, 2, 50), income = 1000", " GROUP BY width_bucket(age, 0, 100, 7), sex", " GROUP BY extract(hour FROM seen) < 12"}
	each := []string{"age", "hired", "income", "age, sex", "age % 7", "hired, age"} // of cells that a condition leaves
	answered, pieced, held := 0, 0, 0
	for n := range 900 {
		where, by := condition(r, 1), keys[r.Intn(len(keys))]
		if n%3 == 1 {
			lists := []string{"age IN (%d, %d, 50)", "age BETWEEN %d AND %d", "NOT age > %d AND age <> %d"}
			where = fmt.Sprintf(lists[r.Intn(len(lists))], r.Intn(60), r.Intn(90)) + " AND " + where
			by = " GROUP BY " + each[r.Intn(len(each))]
		}
		sql := "SELECT count(*), sum(age), count(*) FILTER (WHERE " + condition(r, 1) + ") FROM people WHERE " +
			where + by
		if n%3 == 0 {
			sql = randomSQL(r)
		}
		plans.MaxCells = 1 << (6 + r.Intn(6))
		linear.MaxPlain = plans.MaxCells / 2
		p := planOrRefusal(t, c, sql)
		if p == nil {
			continue
		}
		answered++
		rows := randomRows(r, people, 60)
		if slices.ContainsFunc(p.Measures, func(m *plans.Measure) bool { return m.Cuts != nil }) {
			pieced++
		}
		got := answer(p.Leaves[0], trueVectors(t, p, rows))
		agree(t, sql, got, naive(t, c, sql, rows))
		own := c
		shelf := &shelf{}
		own.Holdings = shelf
		shelf.buy(p)
		again := planOrRefusal(t, own, sql)
		if again == nil || !again.Cost.IsZero() {
			t.Fatalf("%s: bought, and planned again at %v", sql, again)
		}
		if coarser := planOrRefusal(t, own, "SELECT count(*) FROM people"); coarser != nil && coarser.Cost.IsZero() {
			held++
			agree(t, "after "+sql, answer(coarser.Leaves[0], trueVectors(t, coarser, rows)), naive(t, c, "SELECT count(*) FROM people", rows))
		}
	}
	if answered < 610 || pieced < 215 {
		t.Errorf("seed %d: %d of 900 statements were answered, %d in pieces, %d read from what was held",
			seed, answered, pieced, held)
	}
}

// TestPiecesAreCells: where a part's cells can all be looked at, its classes are the same found piece by piece and cell
// by cell.
func TestPiecesAreCells(t *testing.T) {
	const seed = 8
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	env := scalar.Env{Now: c.Now, Zone: c.Settings.Zone}
	b := aggregate.NewBinder(c, &semantics.Parameters{})
	for range 200 {
		text := condition(r, 2)
		s := parsedText(t, "SELECT count(*) FROM people WHERE "+text)[0]
		b.Text, b.Top = s.Text, s.Select()
		from, _ := b.FromRows(b.Top, nil)
		e, refusal := (&semantics.Translator{Env: b.Env, Params: b.Params, Columns: from.Column}).Expr(b.Top.WhereClause)
		if refusal != nil || len(e.Cols) != 1 {
			continue
		}
		box, column := semantics.NewBox(people, env), e.Cols[0]
		d := people.Columns[column].Domain
		starts, ok := box.Pieces(column, []*semantics.Expr{e}, nil, d.Size())
		if !ok {
			continue
		}
		piece := -1
		for cell := range d.Size() {
			if i := slices.Index(starts, cell); i >= 0 {
				piece = i
			}
			box.Set(column, starts[piece])
			want, wantSteady, _ := box.Value(e)
			box.Set(column, cell)
			got, steady, _ := box.Value(e)
			if steady != wantSteady || steady && !semantics.Same(policy.Bool, got, want) {
				t.Fatalf("%s: cell %d is %v (%t), the first of its piece %d is %v (%t)", text, cell, got, steady, starts[piece], want, wantSteady)
			}
		}
	}
}

// vastContext is a session over orders of a shop whose columns have about so many cells each.
func vastContext(t testing.TB, cells int64) reuse.Context {
	t.Helper()
	text := fmt.Sprintf(policytest.Over("postgres://dpproxy@127.0.0.1/shop")+`
  - id: shop
    unit: {name: customer, key: orders.customer}
    accountant: pure
    cap: {epsilon: 1000}
    budgets: {alice: {epsilon: 100}}
    tables:
      - name: orders
        expected_rows: 1000000
        max_rows_per_unit: 10
        columns:
          - {name: id, type: bigint, domain: {min: 1, max: %[1]d, step: 1}}
          - {name: at, type: timestamptz, domain: {min: "2015-01-01 00:00:00+00", max: %[2]q, step: %[3]s}}
          - {name: shipped, type: timestamptz, domain: {min: "2015-01-01 00:00:00+00", max: %[2]q, step: %[3]s}, nulls: exclude}
          - {name: price, type: "numeric(15,2)", domain: {min: 0, max: %[4]s, step: 0.01}}
          - {name: weight, type: double precision, domain: {min: 0, max: %[1]d, step: 1}}
          - {name: status, type: text, domain: {values: [new, paid, sent]}}
`, cells, time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(min(cells, 315_360_000))*time.Second).Format("2006-01-02 15:04:05+00"), "1 second", big.NewRat(cells, 100).FloatString(2))
	p, err := policy.Parse([]byte(text), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Date(2024, 6, 1, 0, 0, 0, 0, time.UTC), Holdings: &shelf{}}
	c.Settings = plans.Settings{Epsilon: epsilon(t, "1"), Confidence: c.Dataset.Defaults.Confidence, Zone: time.UTC}
	return c
}

// large are statements over it that go over no cells one by one.
var large = []string{
	"SELECT count(*) FROM orders",
	"SELECT count(*) FROM orders WHERE at BETWEEN '2015-01-01 00:05:00+00' AND '2015-01-01 00:10:00+00'",
	"SELECT count(*) FROM orders WHERE id = 77 OR id IN (3, 5, 8) OR price < 1.23 OR weight >= 17",
	"SELECT sum(price), avg(price), sum(weight) FROM orders WHERE status = 'paid'",
	"SELECT date_trunc('month', at), count(*) FROM orders GROUP BY 1",
	"SELECT extract(year FROM at), status, count(*), sum(price) FROM orders GROUP BY 1, 2",
	"SELECT width_bucket(price, 0, 100, 10), count(*) FROM orders GROUP BY 1",
	"SELECT CASE WHEN price < 5 THEN 'small' WHEN price < 100 THEN 'middle' ELSE 'large' END, count(*) FROM orders GROUP BY 1",
	"SELECT count(*) FROM orders WHERE shipped > at",
	"SELECT count(*) FROM orders WHERE at - shipped > interval '1 day'",
	"SELECT CASE WHEN at - shipped > interval '1 day' THEN 'late' WHEN shipped < at + interval '1 hour' THEN 'soon' WHEN shipped - at <= '7 days' THEN 'in time' END, count(*) FROM orders GROUP BY 1",
	"SELECT extract(day FROM shipped - at) > 7, count(*) FROM orders GROUP BY 1",
	"SELECT floor(extract(epoch FROM shipped - at) / 864000), count(*) FROM orders GROUP BY 1",
	"SELECT date_trunc('hour', at)::time, count(*) FROM orders GROUP BY 1",
	"SELECT status, sum(CASE WHEN price < 5 THEN 2 WHEN id > 70 THEN 7.5 END), avg(width_bucket(price, 0, 100, 10)) FROM orders GROUP BY 1",
	"SELECT count(*) FILTER (WHERE CASE WHEN status = 'new' THEN price > 3 ELSE id < 9 END) FROM orders",
	"SELECT date_trunc('year', at), count(DISTINCT customer) FROM orders GROUP BY 1",
	"SELECT cheap, y, count(*) FROM (SELECT customer, price < 5 AS cheap, extract(year FROM at) AS y, count(*) AS n FROM orders GROUP BY 1, 2, 3) AS t WHERE n > 2 GROUP BY 1, 2",
	"SELECT id, count(*) FROM orders WHERE id IN (7, 12, 900000) GROUP BY 1",
	"SELECT id % 7, status, count(*) FROM orders WHERE id BETWEEN 5 AND 900 GROUP BY 1, 2",
	"SELECT sum(price * weight + 1) FROM orders",
	"SELECT avg(price - 41.2518394201743001) FROM orders",
	"SELECT sum(price / 1.2), stddev((price - 41.2518394201743001) / 1.7) FROM orders",
}

// TestLargeDomains: a policy of 10^9 cells a column loads, and statements over it are planned in as many steps as over
// 10^6; what enumerates is refused, quickly.
func TestLargeDomains(t *testing.T) {
	small, c := vastContext(t, 2_000_000), vastContext(t, 1_000_000_000)
	steps := func(c reuse.Context, sql string) (*plans.Plan, *refuse.Refusal, int64) {
		c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
		p, refusal := Build(parsedText(t, sql)[0], nil, c)
		return p, refusal, c.Work.Taken().Steps
	}
	for _, sql := range large {
		_, refusal, before := steps(small, sql)
		p, refused, taken := steps(c, sql)
		if refusal != nil || refused != nil {
			t.Errorf("%s: %v, %v", sql, refusal, refused)
			continue
		}
		if taken > 2*before+200_000 || c.Work.Taken().Bytes > 1<<24 {
			t.Errorf("%s: %d steps over 10^9 cells, %d over 10^6", sql, taken, before)
		}
		for _, m := range p.Measures {
			if m.Spec.Cells > 1<<12 {
				t.Errorf("%s: %d cells", sql, m.Spec.Cells)
			}
		}
	}
	for _, sql := range []string{"SELECT id, count(*) FROM orders GROUP BY 1", "SELECT count(*) FROM orders WHERE id % 7 = 3", "SELECT price + 1, count(*) FROM orders GROUP BY 1",
		"SELECT count(DISTINCT id) FROM orders", "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY price) FROM orders"} {
		_, refusal, taken := steps(c, sql)
		if refusal == nil || refusal.ID != "too-many-cells" && refusal.ID != "off-grid-expression" || taken > 200_000 {
			t.Errorf("%s: %v after %d steps", sql, refusal, taken)
		}
	}
}

// TestWorkEnds: a cancel ends planning after at most a few steps more, and what takes too many is refused.
func TestWorkEnds(t *testing.T) {
	c := testContext(t, testPolicy(t))
	s := parsedText(t, "SELECT count(*) FROM people WHERE (hired - date '2000-01-01') % 7 > kids")[0]
	c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
	Build(s, nil, c)
	whole := c.Work.Taken()
	if whole.Steps < 100_000 {
		t.Fatalf("the statement takes %d steps only", whole.Steps)
	}
	cancelled := errors.New("cancelled")
	ctx, cancel := context.WithCancelCause(context.Background())
	counted := &countingContext{Context: ctx, after: 5, cancel: func() { cancel(cancelled) }}
	c.Work = reuse.NewWork(counted, reuse.DefaultLimits)
	if _, refusal := Build(s, nil, c); refusal == nil || refusal.ID != "planning-ended" || refusal.SQLState != "57014" {
		t.Errorf("cancelled planning gives %v", refusal)
	}
	if taken := c.Work.Taken().Steps; taken > 20_000 {
		t.Errorf("%d steps were taken, though it was cancelled after some thousand", taken)
	}
	c.Work = reuse.NewWork(context.Background(), reuse.Limits{Steps: 50_000, Bytes: 1 << 30})
	if _, refusal := Build(s, nil, c); refusal == nil || refusal.ID != "planning-limit" {
		t.Errorf("too many steps give %v", refusal)
	}
	c.Work = reuse.NewWork(context.Background(), reuse.Limits{Steps: 1 << 40, Bytes: 10_000})
	if _, refusal := Build(s, nil, c); refusal == nil || refusal.ID != "planning-memory" {
		t.Errorf("too many bytes give %v", refusal)
	}
	c.Work = nil
	if _, refusal := Build(s, nil, c); refusal != nil {
		t.Errorf("without limits it is refused: %v", refusal)
	}
}

// countingContext is cancelled when it has been looked at so often.
type countingContext struct {
	context.Context
	after  int
	cancel func()
}

func (c *countingContext) Err() error {
	if c.after--; c.after == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

func parsedText(t testing.TB, sql string) []parse.Statement {
	t.Helper()
	list, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatalf("%s: %v", sql, refusal)
	}
	return list
}

// TestWeightsOfPieces: where a part is made of pieces, what an expression adds is still that of each row's own cell.
func TestWeightsOfPieces(t *testing.T) {
	const seed = 12
	defer func(most, plain int) { plans.MaxCells, linear.MaxPlain = most, plain }(plans.MaxCells, linear.MaxPlain)
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	people := c.Dataset.Tables[0]
	age, kids := slices.IndexFunc(people.Columns, func(c *policy.Column) bool { return c.Name == "age" }), slices.IndexFunc(people.Columns, func(c *policy.Column) bool { return c.Name == "kids" })
	pieced := 0
	for _, k := range []struct {
		sum string
		of  func(age, kids policy.Value) int64
	}{
		{"CASE WHEN age < 20 THEN 3 WHEN kids > 2 THEN 10 ELSE 1 END", func(age, kids policy.Value) int64 {
			if a, ok := age.(int64); ok && a < 20 {
				return 3
			}
			if k, ok := kids.(int64); ok && k > 2 {
				return 10
			}
			return 1
		}},
		{"kids % 4 + 1", func(_, kids policy.Value) int64 {
			if k, ok := kids.(int64); ok {
				return k%4 + 1
			}
			return 0
		}},
		{"age / 10", func(age, _ policy.Value) int64 {
			if a, ok := age.(int64); ok {
				return a / 10
			}
			return 0
		}},
	} {
		for _, where := range []string{"", " WHERE age > 30 OR kids > 3", " WHERE CASE WHEN kids > 3 THEN age > 50 ELSE hired > '2010-01-01' END"} {
			sql := "SELECT sum(" + k.sum + ") FROM people" + where
			for plans.MaxCells = 1 << 5; plans.MaxCells <= 1<<20; plans.MaxCells *= 4 {
				linear.MaxPlain = plans.MaxCells / 2
				p := planOrRefusal(t, c, sql)
				if p == nil || where != "" && plans.MaxCells > 1<<12 {
					continue
				}
				m := p.Measures[0]
				if m.Weigh == nil {
					continue
				}
				if m.Cuts != nil {
					pieced++
				}
				for _, row := range randomRows(r, people, 50) {
					cells := make([]int32, len(m.Grain))
					for i, g := range m.Grain {
						cell, _ := g.Domain.Cell(row[plans.ColumnIndex(people, g)])
						cells[i] = int32(m.Piece(i, cell))
					}
					grid, counter := m.Sums, slices.IndexFunc(m.Sums, func(s *plans.Sum) bool { return s != nil })
					if got, want := m.Weigh(cells, counter), k.of(row[age], row[kids]); got != want && len(grid) == 1 {
						t.Fatalf("%s with %d cells: a row with age %v and kids %v adds %d, want %d", sql, plans.MaxCells, row[age], row[kids], got, want)
					}
				}
			}
		}
	}
	if pieced < 3 {
		t.Errorf("%d plans in pieces", pieced)
	}
}

// TestClassesOfUnitsTakeMemory: classes of a unit's rows follow pieces; what the first cells of classes take that read
// each cell is counted before it is allocated.
func TestClassesOfUnitsTakeMemory(t *testing.T) {
	c := vastContext(t, 1_000_000_000)
	for _, sql := range []string{"SELECT count(*) FROM (SELECT customer, id % 7 AS seventh FROM orders GROUP BY 1, 2) q", "SELECT id % 7, count(DISTINCT customer) FROM orders GROUP BY 1"} {
		c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
		_, refusal := Build(parsedText(t, sql)[0], nil, c)
		if taken := c.Work.Taken(); refusal == nil || refusal.ID != "planning-memory" || taken.Steps > 1_000_000 {
			t.Errorf("%s: %v after %+v", sql, refusal, taken)
		}
	}
	for _, sql := range []string{"SELECT count(*) FROM (SELECT customer, id > 7 AS late FROM orders GROUP BY 1, 2) q", "SELECT id > 7, count(DISTINCT customer) FROM orders GROUP BY 1"} {
		c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
		_, refusal := Build(parsedText(t, sql)[0], nil, c)
		if taken := c.Work.Taken(); refusal != nil || taken.Steps > 10_000 || taken.Bytes > 10_000 { // columns, not cells
			t.Errorf("%s: %v after %+v", sql, refusal, taken)
		}
	}
}

// TestBatchesOfLargeDomains: a batch puts no column into its cubes that has more cells than are looked at one by one.
func TestBatchesOfLargeDomains(t *testing.T) {
	c := vastContext(t, 1_000_000_000)
	b, err := workload.PlanBatch(parsedAll(t, c, "SELECT count(*) FROM orders WHERE id < 5; SELECT status, count(*) FROM orders WHERE id > 70 GROUP BY 1"), c, epsilon(t, "1"))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range b.Statements {
		if s.Refusal != nil || s.Values == 0 {
			t.Errorf("statement %d: %d values, %v", i+1, s.Values, s.Refusal)
		}
	}
}

// TestTwinEachCell plans statements as they are planned, by pieces, and again as if no column had pieces, by a walk
// over its cells: what the database is asked, its digest, the cost, and what is read from what is held, are the same.
// Measures that have room around them differ in one way: a walk finds no room where it would look at more than maxCells
// combinations.
func TestTwinEachCell(t *testing.T) {
	const seed = 53
	defer func(few int) { semantics.FewRegular = few }(semantics.FewRegular)
	r := rand.New(rand.NewSource(seed))
	c := testContext(t, testPolicy(t))
	c.Dataset.Buying.Cells = 0
	people := c.Dataset.Tables[0]
	aggregates := []string{"count(*)", "count(*)", "sum(CASE WHEN age < 30 THEN kids * 2 ELSE 7 END)", "sum(width_bucket(age, 0, 100, 7)), count(*)", "avg(CASE WHEN age < 20 THEN 3 WHEN age < 50 THEN 7.5 END)",
		"count(DISTINCT extract(month FROM hired))", "count(*) FILTER (WHERE age % 7 = 1), count(*)", "count(DISTINCT person_id)", "variance(width_bucket(income, 0, 100000, 9))"}
	keys := []string{"", " GROUP BY date_trunc('month', hired)", " GROUP BY age / 10, extract(dow FROM hired)", " GROUP BY CASE WHEN age < 18 THEN 'child' WHEN income >= 50000 THEN 'rich' END",
		" GROUP BY age IN (1, 2, 50), income = 1000", " GROUP BY width_bucket(age, 0, 100, 7), sex", " GROUP BY kids, date_trunc('year', hired)", " GROUP BY age"}
	planned, held, mixed, roomy, pool := 0, 0, 0, 0, []string(nil)
	shelf := &shelf{}
	for n := range 360 {
		if n%30 == 0 {
			shelf.list, shelf.inventory, shelf.read = nil, nil, 0
			a, b := condition(r, 1), condition(r, 1)
			pool = []string{"true", "age < 40", "NOT age < 40", a, b, "(" + a + ") AND (" + b + ")", "NOT (" + a + ")"}
			if n >= 240 { // conditions that matter in few cells
				pool = []string{"age IN (3, 50) AND age % 7 = 1", "age < 110 AND age % 7 = 1", "(age < 110 AND age % 7 = 1) OR kids = 3", "(age >= 110 OR age % 7 = 1) AND kids < 4", "NOT (age < 9 AND age % 3 = 1 AND (age % 2 = 0) IS NOT TRUE) AND kids < 3", "(age >= 9 OR age % 2 = 1) AND (age % 3 = 2 OR sex = 'Male')",
					"(age = 50 OR age = 51) AND (age % 2 = 1 AND nullif(age, 50) > 2) IS UNKNOWN"}
			}
		}
		people.Static = n/30%2 == 0
		c.Holdings, c.Settings.Epsilon = shelf, epsilon(t, []string{"0.5", "0.01"}[n%2])
		sql := "SELECT " + aggregates[max(r.Intn(3*len(aggregates))-2*len(aggregates), 0)] + " FROM people WHERE " + pool[r.Intn(len(pool))] + keys[r.Intn(2)*(1+n/30%(len(keys)-1))]
		semantics.FewRegular = 16
		p := planOrRefusal(t, c, sql)
		semantics.FewRegular = 1 << 30
		cells, refusal := Build(parsedText(t, sql)[0], nil, c)
		switch {
		case p == nil && refusal != nil, refusal != nil && refusal.ID == "too-many-cells":
			continue
		case p == nil || refusal != nil:
			t.Fatalf("%s is planned by pieces: %t, by cells: %v", sql, p != nil, refusal)
		}
		planned++
		if got, want := planText(p), planText(cells); got != want {
			if slices.ContainsFunc(p.Measures, func(m *plans.Measure) bool { return m.Held && vast(m) }) {
				roomy++
				continue // it is held with room around it, which the walk does not find
			}
			t.Fatalf("%s\nby pieces:\n%s\nby cells:\n%s", sql, got, want)
		}
		rows := randomRows(r, people, 40)
		for i, m := range p.Measures {
			other := cells.Measures[i]
			if m.Digest != other.Digest {
				t.Fatalf("%s: measure %d has another digest by pieces", sql, i)
			}
			if m.Held {
				held++
			}
			for _, cell := range randomCells(r, m, 40) {
				for counter := range max(len(m.Counters), 1) {
					if got, want := m.Place(cell, counter), other.Place(cell, counter); got != want {
						t.Fatalf("%s: cells %d are placed at %d by pieces, at %d by cells", sql, cell, got, want)
					}
					if m.Weigh != nil && m.Weigh(cell, counter) != other.Weigh(cell, counter) {
						t.Fatalf("%s: cells %d add %d by pieces, %d by cells", sql, cell, m.Weigh(cell, counter), other.Weigh(cell, counter))
					}
				}
			}
		}
		for _, l := range p.Leaves {
			for _, counted := range l.Counts {
				if len(counted.Runs) > 0 && counted.Runs[0].Mix != nil {
					mixed++
				}
			}
		}
		agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), answer(cells.Leaves[0], trueVectors(t, cells, rows)))
		if n%2 == 0 {
			shelf.buy(p)
		}
	}
	t.Logf("%d planned, %d measures held, %d counts from several, %d held with room", planned, held, mixed, roomy)
	if planned < 130 || held < 20 || mixed < 1 || roomy > 10 {
		t.Errorf("seed %d: %d of 360 statements were planned, %d measures read from what was held, %d from several", seed, planned, held, mixed)
	}
}

// vast reports whether a walk would look at more than maxCells combinations of cells of a measure's columns.
func vast(m *plans.Measure) bool {
	combinations := int64(1)
	for _, g := range m.Grain {
		if combinations *= int64(g.Domain.Size()); combinations > int64(plans.MaxCells) {
			return true
		}
	}
	return false
}

// randomCells are cells that the SQL of a measure may answer with, and a few that it never does.
func randomCells(r *rand.Rand, m *plans.Measure, n int) (list [][]int32) {
	for range n {
		cells := make([]int32, len(m.Grain))
		for i := range cells {
			cells[i] = int32(r.Intn(m.Size(i)+1) - r.Intn(2))
		}
		list = append(list, cells)
	}
	return list
}

// TestPiecesCombine: what is held by pieces of domains of any size is used in sums and differences, as what is held by
// cells.
func TestPiecesCombine(t *testing.T) {
	r := rand.New(rand.NewSource(52))
	const groups = "SELECT CASE WHEN price < 5 THEN 'small' WHEN price < 100 THEN 'middle' ELSE 'large' END AS size, count(*) FROM orders"
	for _, cells := range []int64{100_000, 2_000_000, 1_000_000_000} {
		c := vastContext(t, cells)
		orders := c.Dataset.Tables[0]
		orders.Static = true
		shelf := &shelf{}
		c.Holdings = shelf
		for _, sql := range []string{groups + " WHERE status = 'paid' GROUP BY 1", groups + " WHERE status <> 'paid' GROUP BY 1", groups + " WHERE status IS NULL GROUP BY 1"} {
			shelf.buy(planOrRefusal(t, c, sql))
		}
		c.Settings.Epsilon = epsilon(t, "0.01")
		for _, sql := range []string{groups + " GROUP BY 1", groups + " WHERE status <> 'paid' OR status IS NULL GROUP BY 1", "SELECT count(*) FROM orders WHERE price < 100"} {
			p := planOrRefusal(t, c, sql)
			if p == nil || !p.Cost.IsZero() || p.Leaves[0].Counts[0].Runs[0].Mix == nil {
				t.Errorf("%d cells: %s is not read from several:\n%s", cells, sql, planText(p))
				continue
			}
			rows := randomRows(r, orders, 50)
			agree(t, sql, answer(p.Leaves[0], trueVectors(t, p, rows)), naive(t, c, sql, rows))
		}
	}
}
