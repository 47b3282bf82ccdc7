package planner

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"regexp"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

// wideContext is a policy of a table with a column of each kind that has so many cells: whole numbers, cents, halves,
// floats, moments and days.
func wideContext(t testing.TB, cells int64) reuse.Context {
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
          - {name: n, type: bigint, domain: {min: 0, max: %[1]d, step: 1}}
          - {name: cents, type: "numeric(15,2)", domain: {min: 0, max: %[2]s, step: 0.01}}
          - {name: half, type: "numeric(15,1)", domain: {min: 0, max: %[3]s, step: 0.5}}
          - {name: real, type: double precision, domain: {min: 0, max: %[4]d, step: 0.5}}
          - {name: at, type: timestamp, domain: {min: "2015-01-01 00:00:00", max: %[5]q, step: 1 second}}
          - {name: day, type: date, domain: {min: 1900-01-01, max: %[6]q}}
          - {name: status, type: text, domain: {values: [new, paid, sent]}}
`, cells-1, big.NewRat(cells-1, 100).FloatString(2), big.NewRat(cells-1, 2).FloatString(1), cells/2,
		time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(min(cells,
			315_360_000))*time.Second).Format("2006-01-02 15:04:05"),
		time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(min(cells, 2_000_000))).Format("2006-01-02"))
	p, err := policy.Parse([]byte(text), "shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice", Now: time.Date(2024, 6, 1, 0, 0, 0, 0,
		time.UTC), Holdings: &shelf{}}
	c.Settings = plans.Settings{Epsilon: epsilon(t, "1"), Confidence: c.Dataset.Defaults.Confidence, Zone: time.UTC}
	return c
}

// twoParts plans a statement, and once more with what its sub-queries are answered with.
func twoParts(t testing.TB, c reuse.Context, sql string, answered policy.Value) (parts []*plans.Plan,
	refusal *refuse.Refusal, taken []reuse.Limits) {
	s := parsedText(t, sql)[0]
	for {
		c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
		p, refusal := Build(s, nil, c)
		taken = append(taken, c.Work.Taken())
		if refusal != nil {
			return parts, refusal, taken
		}
		parts = append(parts, p)
		if len(p.Inner) == 0 {
			return parts, nil, taken
		}
		next := map[string]*plans.Answer{}
		for k, a := range c.Answers {
			next[k] = a
		}
		for _, in := range p.Inmost() {
			next[in.Key] = &plans.Answer{Columns: []plans.AnswerColumn{{Type: policy.NumericType, Typmod: -1}},
				Rows: [][]policy.Value{{answered}}, Private: true}
		}
		c.Answers = next
	}
}

// wideForms are what is asked of a column of many cells: %[1]s is the column, R and S are released values.
var wideForms = []string{
	"SELECT sum(DISTINCT %[1]s) FROM orders",
	"SELECT count(DISTINCT %[1]s) FROM orders",
	"SELECT var_samp(DISTINCT %[1]s) FROM orders",
	"SELECT count(*) FROM orders WHERE %[1]s * %[1]s > R",
	"SELECT avg((%[1]s - R) / S) FROM orders",
	"SELECT avg((%[1]s - R) * (%[1]s - R)) FROM orders",
	"SELECT avg(abs(%[1]s - R)) FROM orders",
	"SELECT count(*) FROM orders WHERE abs(%[1]s - R) > S",
	"SELECT count(*) FROM orders WHERE %[1]s - R > 3 OR %[1]s / R > 0.5",
	"SELECT avg(%[1]s * 1.07) FROM orders",
	"SELECT sum(sqrt(%[1]s)) FROM orders",
	"SELECT avg(greatest(%[1]s, R)) FROM orders",
	"SELECT sum(CASE WHEN %[1]s > R THEN %[1]s - R ELSE 0 END) FROM orders",
	"SELECT avg(coalesce(%[1]s, 0) - R) FROM orders",
	"SELECT variance(%[1]s - R), stddev(%[1]s * R) FROM orders",
	"SELECT floor(%[1]s / (R + 1)), count(*) FROM orders GROUP BY 1",
	"SELECT %[1]s, count(*) FROM orders GROUP BY 1",
	"SELECT status, sum(floor(%[1]s * 1.19)) FROM orders GROUP BY 1",
	"SELECT count(*) FROM orders WHERE %[1]s %% 7 = 3",
	"SELECT width_bucket(%[1]s, 0, R::numeric, 3) AS k, count(*) AS n FROM orders GROUP BY 1",
	"SELECT %[1]s BETWEEN R AND S AS k, sum(%[1]s) AS a FROM orders GROUP BY 1",
}

// wideMoments are what is asked of moments and days.
var wideMoments = []string{
	"SELECT count(DISTINCT %[1]s) FROM orders",
	"SELECT %[1]s, count(*) FROM orders GROUP BY 1",
	"SELECT count(DISTINCT date_trunc('month', %[1]s)) FROM orders",
	"SELECT date_trunc('week', %[1]s), count(*) FROM orders GROUP BY 1",
}

// releasedOf are what R and S become.
var releasedOf = []string{"avg(%s)", "stddev(%s)", "avg(%s) * 1.1", "round(avg(%s), 2)", "sum(%s) / count(*)"}

var wordX = regexp.MustCompile(`\bx\b`)

var forReleased = regexp.MustCompile(`\b[RS]\b`)

// wideStatement draws a statement over a column of a number of cells.
func wideStatement(r *rand.Rand) (sql string, cells int64) {
	forms, columns := wideForms, []string{"n", "cents", "half", "real"}
	if r.Intn(6) == 0 {
		forms, columns = wideMoments, []string{"at", "day"}
	}
	column := columns[r.Intn(len(columns))]
	sql = forReleased.ReplaceAllStringFunc(fmt.Sprintf(forms[r.Intn(len(forms))], column), func(string) string {
		return "(SELECT " + fmt.Sprintf(releasedOf[r.Intn(len(releasedOf))], column) + " FROM orders)"
	})
	return sql, []int64{1_000, 10_000, 100_000, 1_000_000, 10_000_000}[r.Intn(5)]
}

// wideOnes are asked over 10^6 cents each time.
var wideOnes = []string{
	"SELECT avg((cents - R) * (cents - R)) FROM orders", "SELECT avg(abs(cents - R)) FROM orders", "SELECT var_samp(DISTINCT cents) FROM orders",
	"SELECT count(*) FROM orders WHERE abs(cents - R) > R / 7", "SELECT count(*) FROM orders WHERE cents * cents > R",
}

var wideDraws = flag.Int("wide-draws", 25, "how many statements over columns of many cells TestWideColumns draws")

// mostWide are the steps that planning any of them takes at most, a third of what a statement may take.
const mostWide = 33_000_000

// TestWideColumns: over 10^3 to 10^7 cells planning takes a bounded number of steps, which are counted and not
// measured; so are the bytes that the ledger keeps of it, of which too many would be refused as it
// is charged; and what is planned for values that are not released yet is planned for those that are: it is not refused
// after the charge for what it takes.
func TestWideColumns(t *testing.T) {
	const seed = 45
	r := rand.New(rand.NewSource(seed))
	contexts, refused := map[int64]reuse.Context{}, map[string]int{}
	most, described := reuse.Limits{}, 0
	for i := range len(wideOnes) + *wideDraws {
		sql, cells := wideStatement(r)
		if i < len(wideOnes) {
			sql, cells = forReleased.ReplaceAllString(wideOnes[i], "(SELECT avg(cents) FROM orders)"), 1_000_000
		}
		c, made := contexts[cells]
		if !made {
			c = wideContext(t, cells)
			contexts[cells] = c
		}
		answered := policy.Numeric{Coefficient: big.NewInt(r.Int63() >> r.Intn(40)), Scale: int32(r.Intn(17))}
		parts, refusal, taken := twoParts(t, c, sql, answered)
		for _, of := range taken {
			if most.Steps, most.Bytes = max(most.Steps, of.Steps), max(most.Bytes, of.Bytes); of.Steps > mostWide {
				t.Errorf("%d cells: %s takes %d steps", cells, sql, of.Steps)
			}
		}
		for _, part := range parts {
			for _, m := range part.Measures {
				if described = max(described, len(m.Described)); len(m.Described) > plans.MaxDescribed {
					t.Errorf("%d cells: the ledger keeps %d bytes of %s", cells, len(m.Described), sql)
				}
			}
		}
		if refusal != nil {
			if refused[refusal.ID]++; i < len(wideOnes) {
				t.Errorf("%s: %v", sql, refusal)
			}
		}
		if refusal != nil && len(parts) > 0 && refusal.SQLState[:2] != "22" {
			t.Errorf("%d cells: %s is refused for %v, after the charge: %v", cells, sql, answered, refusal)
		}
	}
	t.Logf("at most %d steps and %d bytes, of which the ledger keeps %d; refused: %v",
		most.Steps, most.Bytes, described, refused)
}

// TestWaitingLeavesHalf: a statement that awaits an answer is refused, before anything is charged, if planning it takes
// more than half of the steps that it may; so that none is left over after the charge.
func TestWaitingLeavesHalf(t *testing.T) {
	c := wideContext(t, 10_000)
	sql := "SELECT avg(abs(n - (SELECT avg(n) FROM orders))) FROM orders"
	_, refusal, taken := twoParts(t, c, sql, policy.NewNumeric(33, 1))
	if refusal != nil || len(taken) != 2 {
		t.Fatalf("%v, %v", refusal, taken)
	}
	s := parsedText(t, sql)[0]
	c.Work = reuse.NewWork(context.Background(), reuse.Limits{Steps: taken[0].Steps * 3 / 2, Bytes: 1 << 30})
	if _, refusal := Build(s, nil, c); refusal == nil || refusal.ID != "planning-limit" {
		t.Errorf("%d steps of one and a half times as many: %v", taken[0].Steps, refusal)
	}
	c.Work = reuse.NewWork(context.Background(), reuse.Limits{Steps: taken[0].Steps * 3, Bytes: 1 << 30})
	if _, refusal := Build(s, nil, c); refusal != nil {
		t.Error(refusal)
	}
}

// exactOnes are expressions whose values are arithmetic of whole numbers, or nearly.
var exactOnes = []string{
	"x * x - 3 * x", "(x - 12.3456789012345678) * (x - 12.3456789012345678)", "abs(x - 7.5)", "-x + 0.125",
	"greatest(x, 100.25)", "least(x * 2, 77, 3 - x)", "CASE WHEN x > 3.5 THEN x - 3.25 ELSE 0 END",
	"CASE WHEN x > 900 THEN 1 WHEN x * x < 50 THEN x END", "coalesce(x, 0) % 7", "floor(x * 1.19)", "ceil(x / 3)",
	"(x::numeric + 0.5)::numeric % 1.3", "n / 7 - n % 3", "mod(x::numeric, 0.7)", "n * n * n", "x::smallint * 2", "sqrt(x)", "x * 1e-9", "x / 3.7",
	"round(x * 1.19, 1)", "1000 / (n + 1)", "100 % nullif(n, 3)", "(x > 5)::int", "x * 1000000000000.5",
}

// TestExactIsEvaluation: what is calculated with whole numbers on cells is what evaluation finds there: the same plan,
// to the last weight, or the same refusal.
func TestExactIsEvaluation(t *testing.T) {
	const seed = 3
	r := rand.New(rand.NewSource(seed))
	defer func(from int) { semantics.ExactFrom = from }(semantics.ExactFrom)
	fewer, planned := 0, 0
	for range *wideDraws * 10 {
		c := wideContext(t, []int64{40, 333, 2000}[r.Intn(3)])
		column := []string{"n", "cents", "half", "real"}[r.Intn(4)]
		over := func() string {
			return wordX.ReplaceAllString(exactOnes[r.Intn(len(exactOnes))], column)
		}
		e, other := over(), over()
		condition := fmt.Sprintf("%s %s %s", e, []string{"<", ">=", "=", "<>"}[r.Intn(4)], []string{"5", "17.25",
			"(" + other + ")"}[r.Intn(3)])
		sql := []string{
			"SELECT sum(" + e + ") FROM orders", "SELECT variance(" + e + ") FROM orders", "SELECT sum(DISTINCT " + e + ") FROM orders",
			"SELECT count(*) FROM orders WHERE " + condition, "SELECT count(*) FROM orders WHERE " + e + " IN (3, 4.5, 0)", "SELECT count(*) FROM orders WHERE NOT (" + condition + ") OR " + column + " = 3",
			"SELECT status, avg(" + e + ") FILTER (WHERE " + condition + ") FROM orders GROUP BY 1",
		}[r.Intn(7)]
		described := func(from int) (text string, steps int64) {
			semantics.ExactFrom = from
			c.Work = reuse.NewWork(context.Background(), reuse.DefaultLimits)
			p, refusal := Build(parsedText(t, sql)[0], nil, c)
			if refusal != nil {
				return refusal.ID + " " + refusal.Message, 0
			}
			planned++
			for _, m := range p.Measures {
				text += string(m.Described) + "\n"
			}
			return text + fmt.Sprint(p.Cost, p.Notes), c.Work.Taken().Steps
		}
		got, steps := described(3)
		want, all := described(math.MaxInt)
		if got != want {
			t.Errorf("%s\n is %.300q\n not %.300q", sql, got, want)
		}
		if steps < all {
			fewer++
		}
	}
	if fewer < *wideDraws || planned < 5**wideDraws {
		t.Errorf("%d plans, of which %d take fewer steps", planned, fewer)
	}
}

// BenchmarkWideColumns plans what TestWideColumns always asks, over 10^5 to 10^7 cells.
func BenchmarkWideColumns(b *testing.B) {
	for _, cells := range []int64{100_000, 1_000_000, 10_000_000} {
		c := wideContext(b, cells)
		for _, sql := range wideOnes {
			b.Run(fmt.Sprint(cells, " ", sql), func(b *testing.B) {
				for range b.N {
					twoParts(b, c, forReleased.ReplaceAllString(sql, "(SELECT avg(cents) FROM orders)"),
						policy.NewNumeric(1234567891, 5))
				}
			})
		}
	}
}
