package audits

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// is reports whether a cell of an answer is some text.
func is(row, column int, text string) func(rows [][]string) float64 {
	return func(rows [][]string) float64 {
		if row < len(rows) && rows[row][column] == text {
			return 1
		}
		return 0
	}
}

// total adds up the last column of an answer, of the rows that hold a text, less what is so without number 7.
func total(holds string, less float64) func(rows [][]string) float64 {
	return func(rows [][]string) float64 {
		sum := -less
		for _, row := range rows {
			var n float64
			if strings.Contains(strings.Join(row, "|"), holds) {
				fmt.Sscan(row[len(row)-1], &n)
				sum += n
			}
		}
		return sum
	}
}

// mechanismsAsked are questions that reach each mechanism that a statement can draw by itself; aggregates has the plain
// ones. Number 7 moves each as far as she can.
var mechanismsAsked = []kit.Probe{
	{Name: "histogram", SQL: `SELECT age / 10, hiv, count(*) FROM people GROUP BY 1, 2 ORDER BY 1, 2`, Epsilon: 1, Number: total("2|t", 0)},
	{Name: "ROLLUP", SQL: `SELECT hiv, count(*) FROM people GROUP BY ROLLUP (hiv) ORDER BY 1`, Epsilon: 1, Number: total("", 118)},
	{Name: "CUBE", SQL: `SELECT hiv, age < 30, count(*) FROM people GROUP BY CUBE (1, 2)`, Epsilon: 1, Number: total("t", 0)},
	{Name: "two counters", SQL: `SELECT 0, count(*) FILTER (WHERE hiv) + count(*) FILTER (WHERE hiv AND age < 30) FROM people`, Epsilon: 1, Number: total("", 0)},
	{Name: "range", SQL: `SET dp.release = on; SELECT count(*) FROM people WHERE age BETWEEN 25 AND 25`, Epsilon: 1, Number: nil},
	{Name: "prefix sums", SQL: `SELECT age, sum(count(*)) OVER (ORDER BY age) FROM people WHERE hiv GROUP BY age ORDER BY age LIMIT 1 OFFSET 40`, Epsilon: 1, Number: kit.Cell(0, 1)},
	{Name: "variance", SQL: `SELECT variance(income) FROM people WHERE age = 25`, Epsilon: 1, Number: nil},
	{Name: "several sums", SQL: `SELECT 0, count(*) + sum(income) / 100000 + sum(age) / 119.0 FROM people WHERE hiv`, Epsilon: 1, Number: total("", 0)},
	{Name: "sum of signs", SQL: `SELECT sum(CASE WHEN hiv THEN -5 ELSE 3 END) FROM people WHERE age = 25`, Epsilon: 1, Number: nil},
	{Name: "minimum", SQL: `SELECT min(age) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "maximum", SQL: `SELECT max(age) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "mode", SQL: `SELECT mode() WITHIN GROUP (ORDER BY hiv) FROM people WHERE age = 25`, Epsilon: 1, Number: is(0, 0, "t")},
	{Name: "percentile", SQL: `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people WHERE age IN (25, 26)`, Epsilon: 1, Number: nil},
	{Name: "most popular", SQL: `SELECT v.x FROM people, LATERAL (VALUES ('yes', hiv), ('no', age = 118)) v(x, likes) WHERE likes GROUP BY v.x ORDER BY count(*) DESC LIMIT 1`, Epsilon: 1, Number: is(0, 0, "yes")},
	{Name: "alarm", SQL: `SET dp.alarms = 1; SELECT count(*) >= 1 FROM people WHERE hiv`, Epsilon: 1, Number: is(0, 0, "t")},
	{Name: "refined", SQL: `SET dp.epsilon = 0.25; SELECT count(*) FROM people WHERE hiv AND age < 90; SET dp.epsilon = 1; SELECT count(*) FROM people WHERE hiv AND age < 90`, Epsilon: 1, Number: nil},
	{Name: "per unit", SQL: `SELECT count(*) FROM (SELECT uid, count(*) AS n FROM events GROUP BY uid) t WHERE n > 4`, Epsilon: 1, Number: nil},
	{Name: "sum of many rows", SQL: `SELECT sum(amount) FROM events WHERE amount BETWEEN 1 AND 1.24`, Epsilon: 1, Number: nil},
	{Name: "left join", SQL: `SELECT count(*) FROM people p LEFT JOIN events e ON e.uid = p.uid WHERE p.hiv`, Epsilon: 1, Number: nil},
	{Name: "semi-join", SQL: `SELECT count(*) FROM people WHERE hiv AND uid IN (SELECT uid FROM events)`, Epsilon: 1, Number: nil},
	{Name: "grouped distinct units", SQL: `SELECT extract(month FROM day), count(DISTINCT uid) FROM events WHERE amount BETWEEN 1 AND 1.24 GROUP BY 1 ORDER BY 1 LIMIT 1`, Epsilon: 1, Number: kit.Cell(0, 1)},
}

// TestAuditThroughSQL is P2 for each mechanism and aggregate that a statement reaches, over the wire: every answer
// drawn for a user who has asked nothing else that says the same. False alarm: 21 in 100,000.
func TestAuditThroughSQL(t *testing.T) {
	n := kit.Length(0, 2000, 40_000)
	if n == 0 {
		t.Skip("tens of thousands of answers: a part of make safety")
	}
	l := kit.Lab{Users: n, Engine: "postgres", People: 60, Budgets: kit.Budgets{User: "100", Cap: "1000000"},
		Change: append([]string{"        max_rows_per_unit: 1\n", "        max_rows_per_unit: 1\n        extremes: true\n"}, kit.Undeclared...)}
	with, without := l.Pair(t)
	sides, err := kit.DrawnByBoth(with.Program, without.Program, n, mechanismsAsked)
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := kit.LowerBounds(sides, mechanismsAsked, kit.BoundsAlarm)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	felt := 0
	for i, q := range mechanismsAsked {
		figures = append(figures, fmt.Sprintf("%s %.2f", q.Name, bounds[i]))
		if bounds[i] > q.Epsilon {
			t.Errorf("%s: ε is at least %.3f, claimed %g (of %d answers a side)", q.Name, bounds[i], q.Epsilon, n)
		}
		if bounds[i] > 0.3 {
			felt++
		}
	}
	if felt < len(mechanismsAsked)/4 {
		t.Errorf("%d of %d bounds are above 0.3 of 1: the questions are too tame", felt, len(mechanismsAsked))
	}
	threats.Reached(t, "T21", "ε of 1 at least, by %d answers a side: %s", n, strings.Join(figures, ", "))
}

// gaussianAsked are asked where the budget is ρ.
var gaussianAsked = []kit.Probe{
	{Name: "COUNT", SQL: `SELECT count(*) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "SUM", SQL: `SELECT sum(income) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "GROUP BY", SQL: `SELECT age / 10, hiv, count(*) FROM people GROUP BY 1, 2 ORDER BY 1, 2`, Epsilon: 1, Number: total("2|t", 0)},
	{Name: "CUBE", SQL: `SELECT hiv, age < 30, count(*) FROM people GROUP BY CUBE (1, 2)`, Epsilon: 1, Number: total("t", 0)},
	{Name: "JOIN", SQL: `SELECT count(*) FROM people JOIN events USING (uid) WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "percentile", SQL: `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people WHERE age IN (25, 26)`, Epsilon: 1, Number: nil},
	{Name: "refined", SQL: `SET dp.epsilon = 0.25; SELECT count(*) FROM people WHERE hiv AND age < 90; SET dp.epsilon = 1; SELECT count(*) FROM people WHERE hiv AND age < 90`, Epsilon: 1, Number: nil},
}

// TestAuditThroughSQLGaussian is the same under zCDP, where dp.epsilon = 1 buys ρ = 0.5, which is (ε, δ)-DP with the ε
// that the accountant has for δ = 0.01. False alarm: 7 in 100,000.
func TestAuditThroughSQLGaussian(t *testing.T) {
	const delta = 0.01
	claimed := stattest.LeastEpsilon(privacy.MicroEpsilon(1_000_000).Rho(), privacy.AttoDelta(delta*1e18))
	n := kit.Length(0, 2000, 40_000)
	if n == 0 {
		t.Skip("tens of thousands of answers: a part of make safety")
	}
	l := kit.Lab{Users: n, Engine: "duckdb", People: 60, Budgets: kit.Budgets{User: "100", Cap: "1000000"}, Change: append([]string{"accountant: pure", "accountant: zcdp", "delta: 0}", "delta: 0.1}"}, kit.Undeclared...)}
	with, without := l.Pair(t)
	sides, err := kit.DrawnByBoth(with.Program, without.Program, n, gaussianAsked)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for i, q := range gaussianAsked {
		bound, err := stattest.Audit{One: sides[0][i], Other: sides[1][i], Delta: delta}.Epsilon(kit.BoundsAlarm)
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, fmt.Sprintf("%s %.2f", q.Name, bound))
		if math.IsNaN(bound) || bound > claimed.Float() {
			t.Errorf("%s: ε is at least %.3f at δ = %g, claimed %s", q.Name, bound, delta, claimed)
		}
	}
	threats.Reached(t, "T21", "ρ 0.5, ε of %s at least at δ %g, by %d answers a side: %s", claimed, delta, n, strings.Join(figures, ", "))
}
