package rewrite_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// TestSumsOfTheSmallestNumbers: numbers that a coarse grid's division would underflow add nothing, and fail on no
// engine: a failure would tell that somebody has such a value.
func TestSumsOfTheSmallestNumbers(t *testing.T) {
	for _, kind := range []string{"double precision", "real"} {
		text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}",
			"{name: a, type: "+kind+", domain: {min: -1000000000000, max: 1000000000000, step: 100000000000}, outside: clamp}", 1)
		p, err := policy.Parse([]byte(text), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		least := map[string]string{"double precision": "5e-324", "real": "1e-45"}[kind]
		fill := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, a " + kind + ", b int)",
			"INSERT INTO clinic.people VALUES (1, '" + least + "', 1), (2, '-" + least + "', 2), (3, 274877906944, 1), (4, 'NaN', 1), (5, 'Infinity', 1), (6, '-Infinity', 3), (7, '-0', 1)"}
		for d, run := range map[dialect.Dialect]engine{dialect.DuckDB: duckEngine(t, fill), dialect.PostgreSQL: postgresEngine(t, fill)} {
			for _, text := range []string{"SELECT sum(a) FROM people", "SELECT avg(a), stddev(a) FROM people", "SELECT corr(a, b) FROM people"} {
				for _, m := range alikePlan(t, p, text).Measures {
					q, err := rewrite.Render(m, d)
					if err != nil {
						t.Fatal(err)
					}
					cells := trueCells(m, q, run(t, q.SQL(), q.Args()))
					if strings.Contains(text, "sum") && !slices.Equal(cells, []int64{(274877906944 + power(m.Sums[0])/2) / power(m.Sums[0])}) {
						t.Errorf("%s of %s in dialect %v: %d", text, kind, d, cells)
					}
				}
			}
		}
	}
}

// power is the grid of a sum's only factor.
func power(s *plans.Sum) int64 {
	n := int64(1)
	for range s.Terms[0].Factors[0].Exponent {
		n *= 10
	}
	return n
}

// TestTermsAreAddedUp: a sum of products is added up as it is written, signs and constants and all, on both engines,
// and a row in which one operand is NULL adds nothing.
func TestTermsAreAddedUp(t *testing.T) {
	text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}",
		"{name: a, type: integer, domain: {min: -9, max: 9}}\n          - {name: d, type: date, domain: {min: 2024-01-01, max: 2024-12-31}}\n          - {name: e, type: date, domain: {min: 2024-01-01, max: 2024-12-31}}\n          - {name: m, type: \"numeric(9,2)\", domain: {min: 0, max: 100, step: 1}}", 1)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fill := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, a int, b int, d date, e date, m numeric(9,2))",
		"INSERT INTO clinic.people VALUES (1, 7, 1, DATE '2024-01-03', DATE '2024-01-01', 1.25), (2, -2, 3, DATE '2024-01-01', DATE '2024-03-01', 10), (3, NULL, 2, NULL, DATE '2024-01-01', NULL), (4, 5, 2, DATE '2024-12-31', NULL, 0.01)"}
	for d, run := range map[dialect.Dialect]engine{dialect.DuckDB: duckEngine(t, fill), dialect.PostgreSQL: postgresEngine(t, fill)} {
		for text, want := range map[string]int64{
			"sum(a + b)": 8 + 1 + 7, "sum(a - b)": 6 - 5 + 3, "sum(b - a)": -6 + 5 - 3, "sum(2 * a + 3)": 17 - 1 + 13, "sum(a - 2 * b)": 5 - 8 + 1,
			"sum(d - e)": 2 - 60, "sum(e - d)": -2 + 60, "sum(m - a)": -575 + 1200 - 499, "sum((a - b) * (a + b))": 48 - 5 + 21,
		} {
			m := alikePlan(t, p, "SELECT "+text+" FROM people").Measures[0]
			q, err := rewrite.Render(m, d)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if cells := trueCells(m, q, run(t, q.SQL(), q.Args())); !slices.Equal(cells, []int64{want}) {
				t.Errorf("%s in dialect %v: %d, want %d", text, d, cells, want)
			}
		}
	}
}

// hundredths is a policy over people with two columns of hundredths, m and n, and the statements that make the rows.
func hundredths(t *testing.T, rows string) (*policy.Policy, []string) {
	t.Helper()
	text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}",
		"{name: m, type: \"numeric(9,2)\", domain: {min: 0, max: 1000, step: 0.01}}\n          - {name: n, type: \"numeric(9,2)\", domain: {min: 0, max: 1000, step: 0.01}}", 1)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p, []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, m numeric(9,2), n numeric(9,2), b int)", "INSERT INTO clinic.people VALUES " + rows}
}

// TestSquaresAreRounded: a square of hundredths is computed of these and then rounded to what the noise has room for,
// which is nearer than the square of a rounded number is: there it would be off by the distance from the middle times
// half a step.
func TestSquaresAreRounded(t *testing.T) {
	p, fill := hundredths(t, "(1, 1.25, 0, 1), (2, 999.99, 7, 1), (3, 500.08, 1000, 2), (4, NULL, 3, 1), (5, 0, 0.03, 2)")
	for d, run := range map[dialect.Dialect]engine{dialect.DuckDB: duckEngine(t, fill), dialect.PostgreSQL: postgresEngine(t, fill)} {
		for text, rows := range map[string][]int64{"m": {125, 99999, 50008, 0}, "m + n": {125, 100699, 150008, 3}} {
			m := alikePlan(t, p, "SELECT variance("+text+") FROM people").Measures[0]
			at := slices.IndexFunc(m.Sums, func(s *plans.Sum) bool { return s != nil && s.Over > 1 })
			if at < 0 {
				t.Fatalf("no square of %s is divided", text)
			}
			centre, sum := int64(50000), int64(0)
			if text != "m" {
				centre = 100000
			}
			for _, x := range rows {
				square := ((x-centre)*(x-centre) + m.Sums[at].Over/2) / m.Sums[at].Over
				if sum += square; square > m.Sums[at].Bound.High {
					t.Errorf("%s: a square of %d is above its bound %d", text, square, m.Sums[at].Bound.High)
				}
			}
			q, err := rewrite.Render(m, d)
			if err != nil {
				t.Fatal(err)
			}
			if cells := trueCells(m, q, run(t, q.SQL(), q.Args())); cells[at] != sum {
				t.Errorf("squares of %s in dialect %v: %d, want %d", text, d, cells, sum)
			}
		}
	}
}

// TestProductsAreRounded: a product of hundredths is computed of these and then rounded, up at the half below 0 as
// well, on both engines.
func TestProductsAreRounded(t *testing.T) {
	p, fill := hundredths(t, "(1, 1.27, 0.03, 1), (2, 999.99, 7, 1), (3, 500.08, 1000, 2), (4, NULL, 3, 1), (5, 499.99, 0.15, 2)")
	m := alikePlan(t, p, "SELECT sum((m - 500) * n) FROM people").Measures[0]
	want, over := int64(0), m.Sums[0].Over
	for _, row := range [][2]int64{{127, 3}, {99999, 700}, {50008, 100000}, {49999, 15}} {
		product := (row[0]-50000)*row[1] + over/2
		want += (product - ((product%over)+over)%over) / over // the floor
	}
	if over != 10 || m.Sums[0].Bound.Low >= 0 {
		t.Fatalf("products are divided by %d within %v", over, m.Sums[0].Bound)
	}
	for d, run := range map[dialect.Dialect]engine{dialect.DuckDB: duckEngine(t, fill), dialect.PostgreSQL: postgresEngine(t, fill)} {
		q, err := rewrite.Render(m, d)
		if err != nil {
			t.Fatal(err)
		}
		if cells := trueCells(m, q, run(t, q.SQL(), q.Args())); !slices.Equal(cells, []int64{want}) {
			t.Errorf("products in dialect %v: %d, want %d", d, cells, want)
		}
	}
}

// sumsPolicy is alikePolicy's people with other columns.
func sumsPolicy(t *testing.T, columns ...string) *policy.Policy {
	t.Helper()
	text := strings.Replace(alikePolicy, "{name: a, type: integer, domain: {min: 0, max: 3, step: 1}, nulls: exclude, outside: exclude}", strings.Join(columns, "\n          - "), 1)
	p, err := policy.Parse([]byte(text), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSumsOfSnapshots: what a snapshot adds up is what exact arithmetic on the factors is, also where the ends of a
// factor are nearer than the domain's, and no decimal becomes a floating number where the domain is within them.
func TestSumsOfSnapshots(t *testing.T) {
	const seed = 8917
	r := rand.New(rand.NewPCG(seed, 0))
	t.Log("seed", seed)
	for _, c := range []struct{ kind, domain string }{
		{"numeric(9,2)", "{min: 0, max: 1000, step: 0.01}"}, {"numeric(9,2)", "{min: -1000, max: 1000, step: 10}"}, {"numeric(12,4)", "{min: -3.5, max: 20.25, step: 0.0005}"},
		{"numeric(30,2)", "{min: 0, max: 100000000000000, step: 1000000}"}, {"numeric(5,0)", "{min: -7, max: 99, step: 1}"}, {"numeric(38,9)", "{min: 0, max: 100, step: 0.25}"},
		{"integer", "{min: -9, max: 100, step: 1}"}, {"bigint", "{min: -4000000000, max: 4000000000, step: 1000000}"}, {"date", "{min: 2024-01-01, max: 2024-12-31}"},
	} {
		p := sumsPolicy(t, "{name: x, type: \""+c.kind+"\", domain: "+c.domain+", outside: clamp}")
		x := p.Datasets[0].Tables[0].Column("x")
		rows := []string{"CREATE SCHEMA clinic", "CREATE TABLE clinic.people (person_id int, x " + c.kind + ", b int)", "CREATE TABLE clinic.visits (who int, c int, d int, k int, l int)"}
		values := []*big.Rat{}
		for i := range 60 {
			var text string
			if c.kind == "date" {
				n := r.IntN(366)
				text = "DATE '2024-01-01' + " + strconv.Itoa(n)
				values = append(values, new(big.Rat).SetInt64(19723+int64(n)))
			} else {
				low, high := valueRat(x.Domain.Min), valueRat(x.Domain.Max)
				_, digits := policy.NumericTypmod(x.Typmod)
				if c.kind[0] != 'n' {
					digits = 0
				}
				v := new(big.Rat).Sub(high, low)
				v.Add(low, v.Mul(v, big.NewRat(int64(r.IntN(1_000_001)), 1_000_000)))
				text = v.FloatString(int(min(digits, 9)))
				if i%7 == 0 && digits > 0 { // a half, which is rounded away from zero
					text = text[:strings.IndexByte(text, '.')] + ".5" + strings.Repeat("0", int(min(digits, 9))-1)
				}
				v.SetString(text)
				if v.Cmp(low) < 0 {
					v.Set(low)
				} else if v.Cmp(high) > 0 {
					v.Set(high)
				}
				values = append(values, v)
			}
			rows = append(rows, fmt.Sprintf("INSERT INTO clinic.people VALUES (%d, %s, 1)", i, text))
		}
		rows = append(rows, "INSERT INTO clinic.people VALUES (1000, NULL, 2)")
		db := snapshotOf(t, dialect.DuckDB, duckRows(duckDB(t, rows)), p.Datasets[0].Tables[0])
		for _, text := range []string{"SELECT sum(x) FROM people", "SELECT avg(x) FROM people"} {
			if c.kind == "date" {
				text = strings.ReplaceAll(text, "x)", "x - DATE '2024-01-01')")
			}
			m := alikePlan(t, p, text).Measures[0]
			for _, narrow := range []int64{0, 1, 40} { // ends that the domain does not prove
				for i, s := range m.Sums {
					if s == nil || len(s.Terms) != 1 || len(s.Terms[0].Factors) != 1 || s.Over > 1 {
						continue
					}
					f := &s.Terms[0].Factors[0]
					was := *f
					f.High, f.Low = f.High-narrow*(f.High-f.Low)/100, f.Low+narrow*(f.High-f.Low)/200
					q, err := rewrite.Render(m, dialect.Snapshot)
					if err != nil {
						t.Fatal(err)
					}
					want := int64(0)
					for _, v := range values {
						want += s.Terms[0].Times * factorOf(*f, v)
					}
					if got := trueCells(m, q, duckQueries(db)(t, q.SQL(), q.Args())); got[i] != want {
						t.Errorf("%s %s, %s, exponent %d, within [%d, %d]: %d, want %d\n%s", c.kind, c.domain, text, f.Exponent, f.Low, f.High, got[i], want, q.SQL())
					}
					_, digits := policy.NumericTypmod(x.Typmod)
					proved := narrow == 0 && (f.Exponent == 0 || x.Type.Integer() || f.Exponent < 0 && -f.Exponent >= int(digits))
					if cut := strings.Contains(q.SQL(), strconv.FormatInt(f.High, 10)+"' AS BIGINT)), CAST"); cut == proved {
						t.Errorf("%s %s, narrowed by %d %%: ends are written: %t\n%s", c.kind, c.domain, narrow, cut, q.SQL())
					}
					*f = was
				}
			}
		}
	}
}

// factorOf is a factor of a value, exactly.
func factorOf(f plans.Factor, v *big.Rat) int64 {
	x := new(big.Rat).Mul(v, semantics.Power10(-f.Exponent, 1))
	half := big.NewRat(int64(x.Sign()), 2)
	x.Add(x, half)
	k := new(big.Int).Quo(x.Num(), x.Denom()).Int64() - f.Centre
	return max(min(k, f.High), f.Low)
}

func valueRat(v policy.Value) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case policy.Date:
		return new(big.Rat).SetInt64(int64(v))
	}
	r, _ := new(big.Rat).SetString(v.(policy.Numeric).String())
	return r
}
