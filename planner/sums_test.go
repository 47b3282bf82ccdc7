package planner

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// moneyPolicy is a shop whose prices are cents up to 10^9.
const moneyPolicy = `version: 1
server: {listen: 127.0.0.1:6432}
backend: {url: "duckdb:", files: {orders: orders.csv}}
ledger: {url: sqlite:test.ledger}
users:
  - {name: alice, password: "SCRAM-SHA-256$4096:8EWKhj2ogpvGvd7KaI/qCQ==$bAANfPPZ9drMzPBuhqgN3dO4gvAJCK6kkd6rmt3mG9A=:4q8DTu8uRc3WMOS/Xkv6HPcWmrMsDUzCViSBvTWG1eg="}
datasets:
  - id: shop
    unit: {name: user, key: orders.user_id}
    accountant: %s
    cap: {epsilon: 1000000, delta: %s}
    budgets: {"*": {epsilon: 1000000, delta: %s}}
    defaults: {epsilon: 0.1, max_epsilon: 1000000, confidence: 0.95}
    tables:
      - name: orders
        source: main.orders
        max_rows_per_unit: %d
        columns:
          - {name: price, type: "numeric(15,2)", domain: {min: 0, max: %s, step: %s}}
          - {name: cost, type: "numeric(15,2)", domain: {min: 0, max: %s, step: %s}}
          - {name: discount, type: "numeric(4,2)", domain: {min: 0, max: 0.1, step: 0.01}}
          - {name: weight, type: double precision, domain: {min: 0, max: 1000, step: 1}}
`

// moneyQuestions are what is asked of prices.
var moneyQuestions = []string{"sum(price)", "avg(price)", "sum(price * (1 - discount))", "sum(price - cost)", "avg(price - cost), sum(price)", "variance(price)", "stddev(price - cost)",
	"corr(price, cost)", "sum(price), sum(cost), sum(discount), count(*), avg(weight)"}

// TestMoneyIsPlanned: sums over domains of cents up to 10^9 are planned at every epsilon and bound of rows, in cents.
func TestMoneyIsPlanned(t *testing.T) {
	for _, accountant := range []string{"pure", "zcdp"} {
		for _, rows := range []int{40, 1000} {
			for most, step := range map[string]string{"10000000": "100000", "1000000000": "10000000"} {
				delta := map[string]string{"pure": "0", "zcdp": "1e-6"}[accountant]
				p, err := policy.Parse(fmt.Appendf(nil, moneyPolicy, accountant, delta, delta, rows, most, step, most, step), "policy.yaml")
				if err != nil {
					t.Fatal(err)
				}
				c := testContext(t, p)
				for _, e := range []string{"0.0001", "1000"} {
					c.Settings.Epsilon = epsilon(t, e)
					for _, q := range moneyQuestions {
						parsed, _ := parse.Parse("SELECT " + q + " FROM orders")
						plan, refusal := Build(parsed[0], nil, c)
						if refusal != nil {
							t.Fatalf("%s, %d rows, up to %s, ε %s: %s: %s", accountant, rows, most, e, q, refusal.Message)
						}
						if q == "sum(price)" && most != "1000000000" {
							cents := plan.Measures[0].Sums[0].Bound.High
							if want, _ := new(big.Rat).SetString(most); want.Cmp(big.NewRat(cents, 100)) != 0 {
								t.Errorf("up to %s: bound %d cents", most, cents)
							}
							checkOff(t, plan)
						}
					}
				}
			}
		}
	}
}

// checkOff holds the error that is shown, in money, against that of the whole numbers.
func checkOff(t *testing.T, plan *plans.Plan) {
	t.Helper()
	off, e := plan.Columns[0].Off, plan.Measures[0].Spec.Error([]mechanisms.Span{{From: 0, To: 1}}, plan.Confidence)
	if off == nil || off.Cmp(big.NewRat(e.HalfWidth, 100)) != 0 {
		t.Errorf("shown to be off by %v, the cents by %d", off, e.HalfWidth)
	}
}

// TestConstantSums: a sum of a constant asks for a count, has a count's sensitivity and cost, and is shown with the
// constant's error; its column is the count times the constant.
func TestConstantSums(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for sql, want := range map[string]struct {
		times string
		off   *big.Rat
	}{
		"SELECT sum(2) FROM people":                                               {"2", big.NewRat(2, 1)},
		"SELECT sum(-3) FROM people":                                              {"-3", big.NewRat(3, 1)},
		"SELECT sum(2.50) FROM people":                                            {"2.50", big.NewRat(5, 2)},
		"SELECT sum(CASE WHEN sex = 'Male' THEN 5 END) FROM people":               {"5", big.NewRat(5, 1)},
		"SELECT sum(CASE WHEN sex = 'Male' THEN 5 ELSE 0 END) FROM people":        {"5", big.NewRat(5, 1)},
		"SELECT sum(7) FILTER (WHERE sex = 'Male') FROM people":                   {"7", big.NewRat(7, 1)},
		"SELECT sum(CASE sex WHEN 'Male' THEN 4 ELSE 4 END) FROM people":          {"4", big.NewRat(4, 1)},
		"SELECT avg(2) FROM people":                                               {"2", nil},
		"SELECT sum(age / 10000) FROM people":                                     {"0", nil},
		"SELECT sum(2 * 3 + 1) FROM people WHERE age > 20":                        {"7", big.NewRat(7, 1)},
		"SELECT sum(2) FROM (SELECT age FROM people) t WHERE age BETWEEN 1 AND 9": {"2", big.NewRat(2, 1)},
	} {
		parsed, _ := parse.Parse(sql)
		plan, refusal := Build(parsed[0], nil, c)
		if refusal != nil {
			t.Errorf("%s: %s", sql, refusal.Message)
			continue
		}
		m := plan.Measures[0]
		if len(plan.Measures) != 1 || m.Spec.Counts().Sums != nil || m.Weigh != nil || m.Spec.Counters != 1 || m.Spec.Sensitivity(m.Table.ContributionTo(1)) != (privacy.Sensitivity{L1: 1, L2Squared: 1}) {
			t.Errorf("%s: measures %+v, want one count", sql, m.Spec)
			continue
		}
		value := fmt.Sprint(evaluated(t, plan, 10))
		ten, _ := new(big.Rat).SetString(want.times)
		decimals := len(want.times) - 1 - strings.IndexByte(want.times+".", '.')
		if ten.Mul(ten, big.NewRat(10, 1)); strings.Contains(sql, "avg") {
			ten, decimals = big.NewRat(2, 1), 16
		}
		if value != ten.FloatString(max(decimals, 0)) {
			t.Errorf("%s over ten rows: %s, want %s", sql, value, ten.FloatString(max(decimals, 0)))
		}
		e := m.Spec.Error([]mechanisms.Span{{From: 0, To: 1}}, plan.Confidence)
		if off := plan.Columns[0].Off; (off == nil) != (want.off == nil) || off != nil && off.Cmp(new(big.Rat).Mul(want.off, big.NewRat(e.HalfWidth, 1))) != 0 {
			t.Errorf("%s: off by %v, the count by %d", sql, off, e.HalfWidth)
		}
	}
}

// TestRoundedWidths: a linear function that is rounded is off by what it is off unrounded and by one step of the
// rounding more, and no function of two counts has a half-width.
func TestRoundedWidths(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for sql, want := range map[string]struct{ times, step *big.Rat }{
		"SELECT round(count(*) * 0.25, 1) FROM people":               {big.NewRat(1, 4), big.NewRat(1, 10)},
		"SELECT round(count(*) * 0.25, 2) FROM people":               {big.NewRat(1, 4), new(big.Rat)},
		"SELECT round(count(*) * 2.5) FROM people":                   {big.NewRat(5, 2), big.NewRat(1, 1)},
		"SELECT count(*) / 7 FROM people":                            {big.NewRat(1, 7), big.NewRat(1, 1)},
		"SELECT 3 * (count(*) / -7) FROM people":                     {big.NewRat(3, 7), big.NewRat(3, 1)},
		"SELECT (count(*) * 0.3)::int FROM people":                   {big.NewRat(3, 10), big.NewRat(1, 1)},
		"SELECT floor(count(*) * 0.3) FROM people":                   {big.NewRat(3, 10), big.NewRat(1, 1)},
		"SELECT (count(*) * 0.125)::numeric(20,2) FROM people":       {big.NewRat(1, 8), big.NewRat(1, 100)},
		"SELECT count(*)::numeric(20,2) FROM people":                 {big.NewRat(1, 1), new(big.Rat)},
		"SELECT n / 2 - 1 FROM (SELECT count(*) AS n FROM people) q": {big.NewRat(1, 2), big.NewRat(1, 1)},
		"SELECT count(*) / 7.0 FROM people":                          {},
		"SELECT count(*) * count(*) FROM people":                     {},
		"SELECT count(*)::numeric(20,-2) FROM people":                {big.NewRat(1, 1), big.NewRat(100, 1)},
		"SELECT count(*)::real::numeric FROM people":                 {},
		"SELECT count(*)::real::int FROM people":                     {},
		"SELECT count(*)::float8::numeric FROM people":               {},
		"SELECT greatest(count(*), 3) FROM people":                   {},
	} {
		parsed, _ := parse.Parse(sql)
		plan, refusal := Build(parsed[0], nil, c)
		if refusal != nil {
			t.Errorf("%s: %s", sql, refusal.Message)
			continue
		}
		off, e := plan.Columns[0].Off, plan.Measures[0].Spec.Error([]mechanisms.Span{{From: 0, To: 1}}, plan.Confidence)
		if want.times == nil && off == nil {
			continue
		}
		if want.times == nil || off == nil {
			t.Errorf("%s: off by %v, want the count's %d times %v and %v", sql, off, e.HalfWidth, want.times, want.step)
			continue
		}
		if own := new(big.Rat).Mul(want.times, big.NewRat(e.HalfWidth, 1)); off.Cmp(own.Add(own, want.step)) != 0 {
			t.Errorf("%s: off by %v, want the count's %d times %v and %v", sql, off, e.HalfWidth, want.times, want.step)
		}
	}
}

// evaluated is the first column of a direct answer whose leaf has that count everywhere.
func evaluated(t *testing.T, plan *plans.Plan, count int64) policy.Value {
	t.Helper()
	leaf := plan.Leaves[plan.Outer.Direct.Leaf]
	row := make([]policy.Value, len(leaf.Keys)+len(leaf.Counts))
	for i := range leaf.Counts {
		if row[len(leaf.Keys)+i] = count; i > 0 {
			row[len(leaf.Keys)+i] = int64(1) // its half-width
		}
	}
	v, err := plan.Outer.Direct.Items[0].Eval(row)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestAccuracyOfConstantSums: dp.max_error is of the answer: ten times a count takes a tenth of the error of a count.
func TestAccuracyOfConstantSums(t *testing.T) {
	c := testContext(t, testPolicy(t))
	c.Settings.MaxError, c.Settings.Epsilon = 100, epsilon(t, "10")
	widths := map[string]int64{}
	for _, sql := range []string{"SELECT count(*) FROM people", "SELECT sum(10) FROM people", "SELECT sum(0.1), count(*) FROM people"} {
		parsed, _ := parse.Parse(sql)
		plan, refusal := Build(parsed[0], nil, c)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		widths[sql] = plan.Measures[0].Spec.Error([]mechanisms.Span{{From: 0, To: 1}}, plan.Confidence).HalfWidth
	}
	if widths["SELECT count(*) FROM people"] != 100 || widths["SELECT sum(10) FROM people"] != 10 || widths["SELECT sum(0.1), count(*) FROM people"] != 100 {
		t.Error(widths)
	}
}

// TestGridsOfNarrowDomainsFarFromZero: a centred grid holds the domain's ends apart however far from zero they are.
// Beyond what fits in int8 its whole numbers would all be one, and the database's cast to them would fail for any row.
func TestGridsOfNarrowDomainsFarFromZero(t *testing.T) {
	for _, d := range []struct {
		least, most string
		exponent    int
	}{
		{"10000000000", "10000000001", -18}, {"-10000000001", "-10000000000", -18}, {"1700000000000", "1700000000100", -18},
		{"9000000000000000000", "9000000000000000100", 0}, {"-9223372036854775808", "-9223372036854775000", 0},
	} {
		least, _ := new(big.Rat).SetString(d.least)
		most, _ := new(big.Rat).SetString(d.most)
		g, low, high := semantics.GridOf(least, most, d.exponent, true, semantics.MaxAdded)
		if low >= high || max(-low, high) > semantics.MaxAdded {
			t.Errorf("%s to %s: %+v from %d to %d", d.least, d.most, g, low, high)
		}
		for x, k := range map[*big.Rat]int64{least: low, most: high} {
			if off := new(big.Rat).Sub(semantics.Power10(g.Exponent, g.Centre+k), x); off.Abs(off).Cmp(semantics.Power10(g.Exponent, 1)) > 0 {
				t.Errorf("%s to %s: %s is off by %s", d.least, d.most, x.FloatString(0), off.FloatString(9))
			}
		}
	}
}

// TestNotesOnce: two sums under one condition tell once that it lies inside a step, and not once for each of them.
func TestNotesOnce(t *testing.T) {
	p, err := policy.Parse(fmt.Appendf(nil, moneyPolicy, "pure", "0", "0", 40, "1000", "1", "1000", "1"), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	parsed, _ := parse.Parse("SELECT sum(price), sum(price * 2) FROM orders WHERE price > 3.555")
	plan, refusal := Build(parsed[0], nil, c)
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	for i, note := range plan.Notes {
		if slices.Contains(plan.Notes[:i], note) {
			t.Errorf("said twice: %s", note)
		}
	}
	if len(plan.Notes) == 0 {
		t.Error("nothing is said")
	}
}

// TestSumsSayTheirUnit: what is added up is distinguished from what is counted, in notices and in EXPLAIN, products
// among it.
func TestSumsSayTheirUnit(t *testing.T) {
	c := testContext(t, testPolicy(t))
	for _, call := range []string{"avg(income)", "stddev(age)", "corr(age, income)", "covar_pop(age, kids)", "regr_slope(income, age)", "avg(2 * age + kids)"} {
		p := planOrRefusal(t, c, "SELECT "+call+" FROM people")
		if p == nil {
			continue
		}
		counted := 0
		for _, column := range p.Leaves[0].Counts {
			if column.Unit == nil {
				counted++
			}
		}
		if counted != 2 { // that of the rows, and its own width
			t.Errorf("%s: %d of %d counters are told as counts", call, counted, len(p.Leaves[0].Counts))
		}
	}
}
