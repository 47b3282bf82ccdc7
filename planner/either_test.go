package planner

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// ofBudget is a policy of the fixtures under an accountant, with a budget of (1, 1e-6) for everybody.
func ofBudget(t testing.TB, file, accountant string) reuse.Context {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("accountant: pure", "accountant: "+accountant, `{"*": {epsilon: 10, delta: 0}}`, `{"*": {epsilon: 1, delta: 1e-6}}`,
		`{"*": {epsilon: 100, delta: 0}}`, `{"*": {epsilon: 1, delta: 1e-6}}`, "delta: 0}", "delta: 1e-5}").Replace(string(data))
	p, err := policy.Parse([]byte(text), file)
	if err != nil {
		t.Fatal(err)
	}
	c := testContext(t, p)
	c.Settings.Epsilon = privacy.MicroEpsilon(1e6)
	c.Dataset.Buying.Cells = 0 // each question is paid by itself
	return c
}

// answers asks one statement after the other, none of which says anything of another, until the budget holds no more,
// and tells how many were answered. What they cost is charged as the ledger does it.
func answers(t testing.TB, c reuse.Context, statement func(i int) string, most int) (n int, last *plans.Plan) {
	t.Helper()
	budget, ok := c.Dataset.Budget(c.User)
	if !ok {
		t.Fatal("no budget")
	}
	f := accounting.Filter{Limit: budget.Cost}
	c.Holdings = nil
	for n = 0; n < most; n++ {
		list, refusal := parse.Parse(statement(n))
		if refusal != nil {
			t.Fatal(refusal)
		}
		left := f.Left()
		c.Unspent = &left
		p, refusal := Build(list[0], nil, c)
		if refusal != nil && refusal.ID == "error-too-dear" {
			return n, last
		}
		if refusal != nil {
			t.Fatal(statement(n), refusal)
		}
		next, held := f.Charge(p.Charge())
		if !held {
			return n, last
		}
		f, last = next, p
	}
	return n, last
}

// eitherWorkloads are questions as one analyst asks many of.
var eitherWorkloads = []struct {
	name, file string
	scale      float64 // of the errors that are asked for
	statement  func(i int) string
}{
	{"single counts", "testdata/policy.yaml", 1, func(i int) string {
		return fmt.Sprintf("SELECT count(*) FROM people WHERE income >= %d AND kids <> %d", 1000*(i%200), i/200%10)
	}},
	{"charts of counts by month, a person in 5 rows at most", "testdata/dashboard.yaml", 5, func(i int) string {
		return fmt.Sprintf("SELECT date_trunc('month', placed_at), count(*) FROM orders WHERE qty <> %d AND amount < %d GROUP BY 1", i%21, 10*(1+i/21%999))
	}},
	{"charts of counts and sums by status, the same", "testdata/dashboard.yaml", 20, func(i int) string {
		return fmt.Sprintf("SELECT status, count(*), sum(qty) FROM orders WHERE amount < %d GROUP BY 1", 10*(1+i%999))
	}},
}

// TestBenchEither: of one budget of (1, 1e-6), how many questions are answered at equal error by each accountant.
// Either answers as many as the better of the two.
func TestBenchEither(t *testing.T) {
	bench := os.Getenv("DPPROXY_BENCH") != ""
	for _, w := range eitherWorkloads {
		for _, off := range []float64{5, 10, 20, 30, 40, 80, 160, 320} {
			if !bench && off > 100 {
				continue
			}
			off *= w.scale
			n, unit := map[string]int{}, ""
			for _, accountant := range []string{"pure", "zcdp", "either"} {
				c := ofBudget(t, w.file, accountant)
				c.Settings.MaxError = off
				var last *plans.Plan
				n[accountant], last = answers(t, c, w.statement, 5000)
				if accountant == "either" && last != nil {
					unit = map[bool]string{true: "ρ", false: "ε"}[last.Cost.Rho.Pico() > 0]
				}
			}
			t.Logf("%s within ±%g: %v in %s", w.name, off, n, unit)
			if bench {
				figures.Row("answers of a budget of (1, 1e-6), each within the error", w.name+", ±"+figures.Number(off), "`pure`", fmt.Sprint(n["pure"]), "`zcdp`", fmt.Sprint(n["zcdp"]), "`either`", fmt.Sprint(n["either"]), "priced in", unit)
			}
			if n["either"] < max(n["pure"], n["zcdp"]) {
				t.Errorf("%s within ±%g: either answers %d, pure %d, zcdp %d", w.name, off, n["either"], n["pure"], n["zcdp"])
			}
		}
	}
}

// TestEitherByEpsilon: at one dp.epsilon either answers as many as each of the two, and no question less exactly than
// pure does.
func TestEitherByEpsilon(t *testing.T) {
	for _, e := range []string{"0.005", "0.03", "0.0487", "0.06", "0.0974", "0.1", "0.3"} {
		for _, w := range eitherWorkloads {
			n, errors := map[string]int{}, map[string]float64{}
			for _, accountant := range []string{"pure", "zcdp", "either"} {
				c := ofBudget(t, w.file, accountant)
				c.Settings.Epsilon = epsilon(t, e)
				var last *plans.Plan
				if n[accountant], last = answers(t, c, w.statement, 60); last != nil {
					errors[accountant] = squaredError(last, &last.Leaves[0].Counts[0].Runs[0])
				}
			}
			t.Logf("ε %s, %s: %v, squared errors %v", e, w.name, n, errors)
			if n["either"] < max(n["pure"], n["zcdp"]) {
				t.Errorf("ε %s, %s: either answers %d, pure %d, zcdp %d", e, w.name, n["either"], n["pure"], n["zcdp"])
			}
			if n["pure"] > 0 && errors["either"] > 1.01*errors["pure"] {
				t.Errorf("ε %s, %s: squared error %g, pure's is %g", e, w.name, errors["either"], errors["pure"])
			}
		}
	}
}

// TestEitherFollowsTheBudget: what is left decides, and nothing else: of ε alone, of ρ alone, of nothing.
func TestEitherFollowsTheBudget(t *testing.T) {
	c := ofBudget(t, "testdata/policy.yaml", "either")
	c.Settings.Epsilon = epsilon(t, "0.02")
	list, _ := parse.Parse("SELECT count(*) FROM people WHERE kids = 3")
	plan := func(left privacy.Cost) *plans.Plan {
		c.Unspent = &left
		p, refusal := Build(list[0], nil, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return p
	}
	whole, _ := c.Dataset.Budget("alice")
	if p := plan(whole.Cost); p.Cost.Rho.Pico() == 0 || p.Cost.Epsilon.Micro() != 0 || p.Priced == "" {
		t.Errorf("of all of it a cheap count costs %s: %s", p.Cost, p.Priced)
	}
	if p := plan(privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6)}); p.Cost.Epsilon.Micro() != 20_000 {
		t.Errorf("where no ρ is left it costs %s", p.Cost)
	}
	if p := plan(privacy.Cost{Rho: whole.Cost.Rho}); p.Cost.Rho.Pico() == 0 {
		t.Errorf("where no ε is left it costs %s", p.Cost)
	}
	if p := plan(privacy.Cost{}); p.Cost.IsZero() {
		t.Errorf("where nothing is left it is free")
	}
	// Paid for once it is free, in whatever unit it would be bought now.
	left := whole.Cost
	c.Unspent = &left
	p := plan(left)
	c.Holdings.(*shelf).buy(p)
	for _, left := range []privacy.Cost{whole.Cost, {Epsilon: privacy.MicroEpsilon(1e6)}, {}} {
		if p := plan(left); !p.Cost.IsZero() {
			t.Errorf("asked again with %s left it costs %s", left, p.Cost)
		}
	}
}
