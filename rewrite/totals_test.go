package rewrite_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// randomSums are measures that add up what columns of numbers hold: values, squares, products, from zero or from the
// middle, with ends that the domain proves and with others, of rows of which a condition leaves NULLs out or not.
func randomSums(t testing.TB, r *rand.Rand, n int) (list []feature) {
	people, visits, rows := tables(t)
	for i := range n {
		list = append(list, feature{fmt.Sprintf("sums_%d", i), sumsBy(r, []*policy.Table{rows, people, rows, visits}[i%4])})
	}
	return list
}

// sumsBy is a measure of drawn sums by drawn groups.
func sumsBy(r *rand.Rand, table *policy.Table) *plans.Measure {
	m := &plans.Measure{Table: table}
	for _, at := range r.Perm(len(table.Columns))[:r.IntN(min(3, len(table.Columns)+1))] {
		m.Grain = append(m.Grain, table.Columns[at])
	}
	m.Cuts = randomCuts(r, m.Grain)
	var where []predicate.Pred
	for range 1 + r.IntN(3) {
		sum := randomSum(r, table)
		var held predicate.Pred
		for _, term := range sum.Terms {
			for _, f := range term.Factors {
				held = predicate.All(held, isValue(f.Column))
				if r.IntN(2) == 0 {
					where = append(where, isValue(f.Column))
				}
			}
		}
		if r.IntN(3) == 0 {
			held = predicate.All(held, randomPred(r, table, 2))
		}
		m.Counters, m.Sums = append(m.Counters, held, held), append(m.Sums, sum, nil)
	}
	if r.IntN(3) == 0 {
		where = append(where, randomPred(r, table, 2))
	}
	if m.Where = predicate.All(where...); m.Where != nil {
		if _, never := m.Where.(predicate.Never); never {
			m.Where = nil
		}
	}
	return m
}

// isValue holds where a column is not NULL.
func isValue(c *policy.Column) predicate.Pred {
	if c.Domain.Null < 0 {
		return nil
	}
	return predicate.InCells{Column: c, Spans: []mechanisms.Span{{From: 0, To: c.Domain.Null}}}
}

// addable reports whether a column's values are numbers of which there are factors of a sum.
func addable(c *policy.Column) bool {
	if !c.Type.Integer() && !c.Type.Floating() && c.Type != policy.NumericType || c.Name == "big" {
		return false
	}
	f, ok := semantics.FactorOf(c, false, semantics.MaxAdded)
	return ok && f.Exponent <= 18
}

func randomSum(r *rand.Rand, table *policy.Table) *plans.Sum {
	factor := func() plans.Factor {
		for {
			c := table.Columns[r.IntN(len(table.Columns))]
			if !addable(c) {
				continue
			}
			f, ok := semantics.FactorOf(c, r.IntN(2) == 0, []int64{semantics.MaxAdded, 1 << 15, 40}[r.IntN(3)])
			if !ok || f.Exponent > 18 {
				continue
			}
			if r.IntN(4) == 0 { // ends that the domain does not prove
				f.Low, f.High = f.Low+(f.High-f.Low)/10, f.High-(f.High-f.Low)/10
			}
			return f
		}
	}
	sum := &plans.Sum{}
	for range 1 + r.IntN(4)/3 {
		f := factor()
		term := plans.SumTerm{Times: []int64{1, 1, -1, 7}[r.IntN(4)], Factors: []plans.Factor{f}}
		if size := max(-f.Low, f.High); r.IntN(3) == 0 && size < 1<<20 {
			term.Factors = append(term.Factors, f)
		}
		sum.Terms = append(sum.Terms, term)
	}
	sum.Bound, _ = plans.BoundOfTerms(sum.Terms)
	return sum
}

// added is what a row adds to a sum, in the twin's own arithmetic; false means one of its values is NULL.
func added(sum *plans.Sum, table *policy.Table, row []policy.Value) (total int64, ok bool) {
	for _, term := range sum.Terms {
		product := term.Times
		for _, f := range term.Factors {
			v := row[slices.Index(table.Columns, f.Column)]
			if v == nil {
				return 0, false
			}
			product *= valueOf(f, v)
		}
		total += product
	}
	return total, true
}

// valueOf is a factor of a normalised value: exactly, or as floating numbers are multiplied and rounded.
func valueOf(f plans.Factor, v policy.Value) int64 {
	x, floating := v.(float64)
	if n, whole := v.(int64); whole && f.Exponent > 0 {
		return max(min(semantics.NearestOf(n, int64(math.Pow10(f.Exponent)))-f.Centre, f.High), f.Low)
	}
	if !floating {
		return factorOf(f, scalarOf(v))
	}
	if f.Exponent > 0 {
		x /= math.Pow10(f.Exponent)
	} else {
		x *= math.Pow10(-f.Exponent)
	}
	return max(min(int64(math.RoundToEven(x))-f.Centre, f.High), f.Low)
}

// TestTotalsAreOfSums plants faults in what is added up, each of which the comparison with the twin must see.
func TestTotalsAreOfSums(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(136, 2))
	_, _, table := tables(t)
	rows := generate(r, table, 400, 300)
	db := duckQueries(duckDB(t, append([]string{"CREATE SCHEMA clinic"}, schemaSQL(table, "person_id", peopleSpecs, rows, true)...)))
	income := table.Column("income")
	f, _ := semantics.FactorOf(income, true, semantics.MaxAdded)
	sum := &plans.Sum{Terms: plans.One([]plans.Factor{f})}
	sum.Bound, _ = plans.BoundOfTerms(sum.Terms)
	m := &plans.Measure{Table: table, Counters: []predicate.Pred{nil}, Sums: []*plans.Sum{sum}, Where: isValue(income)}
	q, err := rewrite.Render(m, dialect.DuckDB)
	if err != nil {
		t.Fatal(err)
	}
	want := twin(t, m, rows)[""][0]
	for _, c := range []struct{ fault, old, new string }{
		{"none", "", ""},
		{"values beyond the domain are added up", " <= ", " >= CAST('-99999999.00' AS DECIMAL(12,2)) OR NULL <= "},
		{"the middle is taken once for all", " * CAST(count(", " * CAST(1 + 0 * count("},
		{"in another unit", "CAST('100' AS DECIMAL(3,0))", "CAST('10' AS DECIMAL(3,0))"},
	} {
		text := q.SQL()
		if c.old != "" {
			text = strings.Replace(text, c.old, c.new, 1)
			if text == q.SQL() {
				t.Fatalf("%s: cannot be planted in\n%s", c.fault, text)
			}
		}
		if got := db(t, text, q.Args())[0][0]; (got == want) != (c.old == "") {
			t.Errorf("fault %q: %d, the twin adds up %d\n%s", c.fault, got, want, text)
		}
	}
	if strings.Contains(q.SQL(), "CASE") || strings.Contains(q.SQL(), "GREATEST(LEAST(CAST") {
		t.Errorf("stored values are brought into a domain that the condition keeps them in:\n%s", q.SQL())
	}
}

// TestWhichValuesAreAddedUpAsStored: those of a clamped column, of one that a product is made of, of the grain, or that
// a condition does not keep in its domain are normalised first.
func TestWhichValuesAreAddedUpAsStored(t *testing.T) {
	_, _, table := tables(t)
	sumOf := func(name string, power int) *plans.Sum {
		f, _ := semantics.FactorOf(table.Column(name), false, semantics.MaxAdded)
		s := &plans.Sum{Terms: plans.One(slices.Repeat([]plans.Factor{f}, power))}
		s.Bound, _ = plans.BoundOfTerms(s.Terms)
		return s
	}
	income, age, small := table.Column("income"), table.Column("age"), table.Column("small")
	for name, c := range map[string]struct {
		m      plans.Measure
		stored bool
	}{
		"a decimal":           {plans.Measure{Sums: []*plans.Sum{sumOf("income", 1)}, Where: isValue(income)}, true},
		"a whole number":      {plans.Measure{Sums: []*plans.Sum{sumOf("small", 1)}, Where: isValue(small)}, true},
		"clamped":             {plans.Measure{Sums: []*plans.Sum{sumOf("age", 1)}, Where: isValue(age)}, false},
		"no condition":        {plans.Measure{Sums: []*plans.Sum{sumOf("income", 1)}}, false},
		"another's condition": {plans.Measure{Sums: []*plans.Sum{sumOf("income", 1)}, Where: isValue(small)}, false},
		"a square":            {plans.Measure{Sums: []*plans.Sum{sumOf("small", 2)}, Where: isValue(small)}, false},
		"a square beside it":  {plans.Measure{Sums: []*plans.Sum{sumOf("small", 1), sumOf("small", 2)}, Where: isValue(small)}, false},
		"of the grain":        {plans.Measure{Sums: []*plans.Sum{sumOf("small", 1)}, Where: isValue(small), Grain: []*policy.Column{small}}, false},
		"a floating number":   {plans.Measure{Sums: []*plans.Sum{sumOf("ratio", 1)}, Where: isValue(table.Column("ratio"))}, false},
	} {
		m := c.m
		m.Table, m.Counters = table, make([]predicate.Pred, len(m.Sums))
		for _, d := range []dialect.Dialect{dialect.PostgreSQL, dialect.DuckDB} {
			q, err := rewrite.Render(&m, d)
			if err != nil {
				t.Fatal(err)
			}
			if stored := !strings.Contains(q.SQL(), "CASE WHEN"); stored != c.stored {
				t.Errorf("%s, %s: values are added up as they are stored: %t\n%s", name, d, stored, q.SQL())
			}
		}
	}
}

// TestTotalsHaveRoom: decimals whose sum could have more digits than the engine holds are brought to whole numbers
// first.
func TestTotalsHaveRoom(t *testing.T) {
	for digits, room := range map[int]bool{9: true, 16: true, 18: false, 30: false} {
		whole := strings.Repeat("9", min(digits, 18)-2)
		p := sumsPolicy(t, fmt.Sprintf("{name: x, type: \"numeric(%d,2)\", domain: {min: 0, max: %s, step: %s}}", digits, whole, "1"+strings.Repeat("0", max(0, len(whole)-6))))
		x := p.Datasets[0].Tables[0].Column("x")
		high := int64(math.Pow10(len(whole)))*100 - 100
		sum := &plans.Sum{Terms: plans.One([]plans.Factor{{Column: x, Exponent: -2, High: high}}), Bound: mechanisms.Bound{High: high}}
		m := &plans.Measure{Table: x.Table, Counters: []predicate.Pred{nil}, Sums: []*plans.Sum{sum}}
		q, err := rewrite.Render(m, dialect.Snapshot)
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(q.SQL(), "sum(s."); has != room {
			t.Errorf("numeric(%d,2) is added up as it is: %t\n%s", digits, has, q.SQL())
		}
	}
}
