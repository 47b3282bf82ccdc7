package planner

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/policy/policytest"
)

var columnsPolicy = policytest.Over("postgres://ro@127.0.0.1/shop") + `
  - id: shop
    unit: row
    accountant: pure
    cap: {epsilon: 20}
    budgets: {alice: {epsilon: 3}}
    tables:
      - name: spans
        source: shop.spans
        columns:
          - {name: a, type: integer, domain: {min: 0, max: 900, step: 1}}
          - {name: b, type: integer, domain: {min: -40, max: 260, step: 1}}
          - {name: big, type: bigint, domain: {min: 0, max: 900000000, step: 1}}
          - {name: p, type: "numeric(9,2)", domain: {min: 0, max: 1000, step: 0.01}}
          - {name: q, type: "numeric(9,1)", domain: {min: 0, max: 100, step: 0.5}}
          - {name: d, type: date, domain: {min: 2019-12-20, max: 2028-03-05, step: 1 day}}
          - {name: e, type: date, domain: {min: 2023-01-01, max: 2024-12-31, step: 1 day}}
          - {name: at, type: timestamptz, domain: {min: 2023-01-01, max: 2024-12-31, step: 1 hour}}
          - {name: wall, type: timestamp, domain: {min: 2023-01-01, max: 2024-12-31, step: 1 second}}
`

// comparisonOf draws a comparison of two columns, or of more.
func comparisonOf(r *rand.Rand) string {
	pick := func(list ...string) string { return list[r.Intn(len(list))] }
	op := pick(" < ", " <= ", " > ", " >= ", " = ", " <> ")
	some := func(unit string) string {
		return fmt.Sprintf("interval '%d %s'", r.Intn(15)-3, unit)
	}
	day := pick("d", "e", "d + 3", "e - 40", "d + "+some("month"), "e - "+some("year"), "e + "+some("day"), "d + "+some("month")+" + "+some("day"), "d - "+some("month")+" - 2 * "+some("day"), "at::date", "wall::date", "at", "wall", "at + "+some("hour"), "wall - "+some("minute"))
	other := pick("d", "e", "e", "d - 1", "at", "wall", "at::date", "e + "+some("hour"))
	number := pick("a", "b", "a + 7", "2 * a", "a - b", "a / 7", "(a + 3) / 5", "a % 10", "-b", "big / 1000", "p", "p - q", "q * 3", "p + 0.25", "big", "abs(b)")
	switch r.Intn(4) {
	case 0:
		return number + op + pick("a", "b", "b + 3", "a - b", "q", "p - 1.5", "3 * b", "big - a", "a / 6")
	case 1:
		return "(" + pick("d - e", "e - d + 1", "a - b", "a - 2 * b + 3", "(d - e) / 7", "d - e - a") + ")" + op + pick("0", "30", "-3", "a", "7.5")
	}
	return day + op + other
}

// TestComparisonsOfColumns: what the database is to make of a comparison of columns, by sums, by shifts and by values,
// holds of each row for which the comparison is true, and fails of each for which it is false: around the ends of
// domains, of months and of days, where clocks are set, of NULL.
func TestComparisonsOfColumns(t *testing.T) {
	p, err := policy.Parse([]byte(columnsPolicy), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(195))
	lowered, sums, refused := 0, 0, 0
	in := append(slices.Clone(zones), "Etc/GMT-3")
	for n := range stattest.Length(500, 20000) {
		c := periodContext(t, in[n%len(in)])
		c.Policy, c.Dataset = p, p.Datasets[0]
		if holdsOnRows(t, r, c, comparisonOf(r), &sums) {
			lowered++
		} else {
			refused++
		}
	}
	t.Logf("%d lowered, %d of them to sums, %d not", lowered, sums, refused)
	if lowered < 300 || sums < 200 {
		t.Errorf("%d lowered, %d of them to sums, %d not", lowered, sums, refused)
	}
}

// holdsOnRows compares a condition with what it is lowered to; false means it is not.
func holdsOnRows(t *testing.T, r *rand.Rand, c reuse.Context, text string, sums *int) bool {
	table := c.Dataset.Tables[0]
	env := scalar.Env{Now: c.Now, Zone: c.Settings.Zone}
	var of [2]predicate.Pred
	var e *semantics.Expr
	for i, text := range []string{"NOT (" + text + ")", text} {
		b := aggregate.NewBinder(c, &semantics.Parameters{})
		s := parsedText(t, "SELECT count(*) FROM spans WHERE "+text)[0]
		b.Text, b.Top = s.Text, s.Select()
		from, _ := b.FromRows(b.Top, nil)
		var refusal *refuse.Refusal
		if e, refusal = (&semantics.Translator{Env: b.Env, Params: b.Params, Columns: from.Column}).Expr(b.Top.WhereClause); refusal != nil {
			return false // of types that do not compare
		}
		l := semantics.Lowerer{Table: table, Env: env, Box: semantics.NewBox(table, env), Notes: &semantics.Notes{}}
		l.Box.Below = true
		truth, ok, refusal := l.Lower(e)
		if refusal != nil || !ok {
			return false
		}
		of[i] = truth.Holds
	}
	if strings.Contains(fmt.Sprintf("%T %+v", of[1], of[1]), "Terms:") {
		*sums++
	}
	at := positions(table)
	row := make(scalar.Row, len(table.Columns))
	for range 60 {
		near := r.Int63n(1 << 40)
		for i, column := range table.Columns {
			row[i] = valueNear(r, column.Domain, near)
		}
		want, err := e.Eval(row)
		if err != nil {
			t.Fatalf("%s fails of %v: %v", text, row, err)
		}
		if got, fails := holdsOn(t, of[1], row, at), holdsOn(t, of[0], row, at); got != (want == true) || fails != (want == false) {
			t.Fatalf("%s in %s of %v is %v; lowered it holds %v, and fails %v", text, c.Settings.Zone, row, want, got, fails)
		}
	}
	return true
}

func positions(table *policy.Table) map[*policy.Column]int {
	at := map[*policy.Column]int{}
	for i, c := range table.Columns {
		at[c] = i
	}
	return at
}

// valueNear draws a value of a domain: NULL, an end, or one of those that lie about as far into it as near says, so
// that columns are often close to one another.
func valueNear(r *rand.Rand, d *policy.Domain, near int64) policy.Value {
	cell := int(near % int64(d.Regular))
	switch r.Intn(8) {
	case 0:
		return nil
	case 1:
		cell = []int{0, d.Regular - 1}[r.Intn(2)]
	case 2:
		cell = r.Intn(d.Regular)
	case 3, 4:
		cell = min(max(cell+r.Intn(65)-32, 0), d.Regular-1)
	}
	if day, ok := d.Min.(policy.Date); ok && r.Intn(2) == 0 { // a day of 2024, about as late as the others'
		cell = min(max(int(int64(policy.Date(19723)-day)+near%366+int64(r.Intn(5))-2), 0), d.Regular-1)
	}
	low := d.Low(cell)
	switch v := low.(type) {
	case policy.Timestamp:
		return policy.Timestamp(withinHour(r, d, int64(v), near))
	case policy.Timestamptz:
		return policy.Timestamptz(withinHour(r, d, int64(v), near))
	}
	return low
}

// withinHour is a moment of the year 2024 or near another one, often on midnight of some zone.
func withinHour(r *rand.Rand, d *policy.Domain, at, near int64) int64 {
	const day, hour = 86_400_000_000, 3_600_000_000
	least, most := microsIn(d.Min), microsIn(d.Max)
	if r.Intn(2) == 0 {
		at = (19723 + near%366) * day
	}
	at += []int64{0, 0, hour, -hour, 2 * hour, -11 * hour, 210 * 60_000_000, 1, -1, r.Int63n(day)}[r.Intn(10)]
	return min(max(at, least), most)
}
