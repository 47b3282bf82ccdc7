package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// is tells whether a cell of an answer is some text.
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

// mechanismsAsked are questions that reach each mechanism that a statement can draw by itself; aggregates has the plain ones. Number 7
// moves each as far as she can.
var mechanismsAsked = []probe{
	{"histogram", `SELECT age / 10, hiv, count(*) FROM people GROUP BY 1, 2 ORDER BY 1, 2`, 1, total("2|t", 0)},
	{"ROLLUP", `SELECT hiv, count(*) FROM people GROUP BY ROLLUP (hiv) ORDER BY 1`, 1, total("", 118)},
	{"CUBE", `SELECT hiv, age < 30, count(*) FROM people GROUP BY CUBE (1, 2)`, 1, total("t", 0)},
	{"two counters", `SELECT 0, count(*) FILTER (WHERE hiv) + count(*) FILTER (WHERE hiv AND age < 30) FROM people`, 1, total("", 0)},
	{"range", `SET dp.release = on; SELECT count(*) FROM people WHERE age BETWEEN 25 AND 25`, 1, nil},
	{"prefix sums", `SELECT age, sum(count(*)) OVER (ORDER BY age) FROM people WHERE hiv GROUP BY age ORDER BY age LIMIT 1 OFFSET 40`, 1, cell(0, 1)},
	{"variance", `SELECT variance(income) FROM people WHERE age = 25`, 1, nil},
	{"several sums", `SELECT 0, count(*) + sum(income) / 100000 + sum(age) / 119.0 FROM people WHERE hiv`, 1, total("", 0)},
	{"sum of signs", `SELECT sum(CASE WHEN hiv THEN -5 ELSE 3 END) FROM people WHERE age = 25`, 1, nil},
	{"minimum", `SELECT min(age) FROM people WHERE hiv`, 1, nil},
	{"maximum", `SELECT max(age) FROM people WHERE hiv`, 1, nil},
	{"mode", `SELECT mode() WITHIN GROUP (ORDER BY hiv) FROM people WHERE age = 25`, 1, is(0, 0, "t")},
	{"percentile", `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people WHERE age IN (25, 26)`, 1, nil},
	{"most popular", `SELECT v.x FROM people, LATERAL (VALUES ('yes', hiv), ('no', age = 118)) v(x, likes) WHERE likes GROUP BY v.x ORDER BY count(*) DESC LIMIT 1`, 1, is(0, 0, "yes")},
	{"alarm", `SET dp.alarms = 1; SELECT count(*) >= 1 FROM people WHERE hiv`, 1, is(0, 0, "t")},
	{"refined", `SET dp.epsilon = 0.25; SELECT count(*) FROM people WHERE hiv AND age < 90; SET dp.epsilon = 1; SELECT count(*) FROM people WHERE hiv AND age < 90`, 1, nil},
	{"per unit", `SELECT count(*) FROM (SELECT uid, count(*) AS n FROM events GROUP BY uid) t WHERE n > 4`, 1, nil},
	{"sum of many rows", `SELECT sum(amount) FROM events WHERE amount BETWEEN 1 AND 1.24`, 1, nil},
	{"left join", `SELECT count(*) FROM people p LEFT JOIN events e ON e.uid = p.uid WHERE p.hiv`, 1, nil},
	{"semi-join", `SELECT count(*) FROM people WHERE hiv AND uid IN (SELECT uid FROM events)`, 1, nil},
	{"grouped distinct units", `SELECT extract(month FROM day), count(DISTINCT uid) FROM events WHERE amount BETWEEN 1 AND 1.24 GROUP BY 1 ORDER BY 1 LIMIT 1`, 1, cell(0, 1)},
}

// TestAuditThroughSQL is P2 for each mechanism and aggregate that a statement reaches, over the wire: every answer drawn for a
// user who has asked nothing else that says the same. False alarm: 21 in 100,000.
func TestAuditThroughSQL(t *testing.T) {
	n := length(0, 2000, 40_000)
	if n == 0 {
		t.Skip("tens of thousands of answers: a part of make safety")
	}
	l := lab{users: n, engine: "postgres", people: 60, budgets: budgets{"100", "1000000"},
		change: append([]string{"        max_rows_per_unit: 1\n", "        max_rows_per_unit: 1\n        extremes: true\n"}, undeclared...)}
	with, without := l.pair(t)
	sides, err := drawnByBoth(with.program, without.program, n, mechanismsAsked)
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := lowerBounds(sides, mechanismsAsked, boundsAlarm)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	felt := 0
	for i, q := range mechanismsAsked {
		figures = append(figures, fmt.Sprintf("%s %.2f", q.name, bounds[i]))
		if bounds[i] > q.epsilon {
			t.Errorf("%s: ε is at least %.3f, claimed %g (of %d answers a side)", q.name, bounds[i], q.epsilon, n)
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
var gaussianAsked = []probe{
	{"COUNT", `SELECT count(*) FROM people WHERE hiv`, 1, nil},
	{"SUM", `SELECT sum(income) FROM people WHERE hiv`, 1, nil},
	{"GROUP BY", `SELECT age / 10, hiv, count(*) FROM people GROUP BY 1, 2 ORDER BY 1, 2`, 1, total("2|t", 0)},
	{"CUBE", `SELECT hiv, age < 30, count(*) FROM people GROUP BY CUBE (1, 2)`, 1, total("t", 0)},
	{"JOIN", `SELECT count(*) FROM people JOIN events USING (uid) WHERE hiv`, 1, nil},
	{"percentile", `SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people WHERE age IN (25, 26)`, 1, nil},
	{"refined", `SET dp.epsilon = 0.25; SELECT count(*) FROM people WHERE hiv AND age < 90; SET dp.epsilon = 1; SELECT count(*) FROM people WHERE hiv AND age < 90`, 1, nil},
}

// TestAuditThroughSQLGaussian is the same under zCDP, where dp.epsilon = 1 buys ρ = 0.5, which is (ε, δ)-DP with the ε that the
// accountant has for δ = 0.01. False alarm: 7 in 100,000.
func TestAuditThroughSQLGaussian(t *testing.T) {
	const delta = 0.01
	claimed := stattest.LeastEpsilon(privacy.MicroEpsilon(1_000_000).Rho(), privacy.AttoDelta(delta*1e18))
	n := length(0, 2000, 40_000)
	if n == 0 {
		t.Skip("tens of thousands of answers: a part of make safety")
	}
	l := lab{users: n, engine: "duckdb", people: 60, budgets: budgets{"100", "1000000"}, change: append([]string{"accountant: pure", "accountant: zcdp", "delta: 0}", "delta: 0.1}"}, undeclared...)}
	with, without := l.pair(t)
	sides, err := drawnByBoth(with.program, without.program, n, gaussianAsked)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for i, q := range gaussianAsked {
		bound, err := stattest.Audit{One: sides[0][i], Other: sides[1][i], Delta: delta}.Epsilon(boundsAlarm)
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, fmt.Sprintf("%s %.2f", q.name, bound))
		if math.IsNaN(bound) || bound > claimed.Float() {
			t.Errorf("%s: ε is at least %.3f at δ = %g, claimed %s", q.name, bound, delta, claimed)
		}
	}
	threats.Reached(t, "T21", "ρ 0.5, ε of %s at least at δ %g, by %d answers a side: %s", claimed, delta, n, strings.Join(figures, ", "))
}
