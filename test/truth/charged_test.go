package truth

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
)

// wide is the shop with columns of 10^6 cells and more, over which nothing can be listed in a statement's time.
func wide(s *schema) {
	for _, t := range s.tables {
		for i, c := range t.columns {
			switch t.name + "." + c.name {
			case "lineitem.price":
				t.columns[i].rules = "domain: {min: 0, max: 10000, step: 0.01}"
			case "orders.total":
				t.columns[i].rules = "domain: {min: 0, max: 200000, step: 0.01}"
			}
		}
	}
}

// released are values that are answered first, with the table's column in place of %[1]s and the table in place of
// %[2]s.
var released = []string{
	"(SELECT avg(%[1]s) FROM %[2]s)",
	"(SELECT avg(%[1]s) * 1.1 FROM %[2]s)",
	"(SELECT round(avg(%[1]s), 2) FROM %[2]s)",
	"(SELECT sum(%[1]s) / count(*) FROM %[2]s WHERE %[1]s > 5)",
	"(SELECT stddev(%[1]s) FROM %[2]s)",
	"(SELECT avg(%[1]s)::float8 FROM %[2]s)",
	"(SELECT count(*) FROM %[2]s)",
	"(SELECT count(*)::numeric / 7 FROM %[2]s)",
	"(SELECT max(n) / 3.0 FROM (SELECT %[1]s > 20 AS k, count(*) AS n FROM %[2]s GROUP BY 1) q)",
	"(SELECT greatest(avg(%[1]s), 3) FROM %[2]s WHERE %[1]s < (SELECT avg(%[1]s) FROM %[2]s))",
}

// dependent are statements over a table whose rest depends on released values: %[1]s is a column, %[2]s the table, R
// and S are released.
var dependent = []string{
	"SELECT avg(%[1]s - R) AS a FROM %[2]s",
	"SELECT sum(%[1]s - R) AS a, count(*) AS n FROM %[2]s",
	"SELECT sum(%[1]s / R) AS a, avg(%[1]s / R) AS b FROM %[2]s",
	"SELECT avg((%[1]s - R) / S) AS a FROM %[2]s",
	"SELECT sum(2 * %[1]s + R) AS a, avg(-(%[1]s - S)) AS b FROM %[2]s",
	"SELECT variance(%[1]s - R) AS a, stddev(%[1]s * R) AS b FROM %[2]s",
	"SELECT avg(coalesce(%[1]s, 0) - R) AS a FROM %[2]s",
	"SELECT sum(%[1]s * R) AS a FROM %[2]s WHERE %[1]s > S",
	"SELECT avg((%[1]s - R) * (%[1]s - R)) AS a FROM %[2]s",
	"SELECT avg(abs(%[1]s - R)) AS a FROM %[2]s",
	"SELECT sum(CASE WHEN %[1]s > R THEN %[1]s - R ELSE 0 END) AS a FROM %[2]s",
	"SELECT avg(greatest(%[1]s, R)) AS a FROM %[2]s",
	"SELECT avg(t.%[1]s - m.a) AS a FROM %[2]s t, (SELECT avg(%[1]s) AS a FROM %[2]s) m",
	"SELECT count(*) AS n FROM %[2]s WHERE %[1]s > R",
	"SELECT count(*) AS n FROM %[2]s WHERE %[1]s - R > 3 OR %[1]s / R < 0.5",
	"SELECT count(*) AS n FROM %[2]s WHERE %[1]s BETWEEN least(R, S) AND greatest(R, S)",
	"SELECT count(*) AS n FROM %[2]s WHERE 2 * %[1]s + 1 < R + S",
	"SELECT %[1]s > (SELECT avg(%[1]s) FROM %[2]s) AS k, count(*) AS n FROM %[2]s GROUP BY 1",
	"SELECT %[1]s > R AS k, count(*) AS n FROM %[2]s GROUP BY 1",
	"SELECT %[1]s >= R AS k, %[1]s = S AS l, count(*) AS n FROM %[2]s GROUP BY 1, 2",
	"SELECT CASE WHEN %[1]s < R THEN 'low' WHEN %[1]s <= S THEN 'middle' ELSE 'high' END AS k, count(*) AS n " +
		"FROM %[2]s GROUP BY 1",
	"SELECT %[1]s BETWEEN R AND S AS k, sum(%[1]s) AS a FROM %[2]s GROUP BY 1",
	"SELECT t.%[1]s > m.a AS k, count(*) AS n FROM %[2]s t, (SELECT count(*) / 7.0 AS a FROM %[2]s) m GROUP BY 1",
	"SELECT count(*) AS n FROM %[2]s WHERE %[1]s * %[1]s > R",
	"SELECT count(*) AS n FROM %[2]s WHERE floor(%[1]s / 0.7) > R",
	"SELECT count(*) AS n FROM %[2]s WHERE %[1]s < R OR %[1]s::text LIKE '%%.25'",
	"SELECT count(*) AS n FROM %[2]s WHERE %[1]s >= greatest(R - 1000, 20.25)",
	"SELECT floor(%[1]s / 0.7) > R AS k, count(*) AS n FROM %[2]s GROUP BY 1",
	"SELECT %[1]s < R OR %[1]s::text LIKE '%%.25' AS k, count(*) AS n FROM %[2]s GROUP BY 1",
	"SELECT %[1]s >= greatest(R - 1000, 20.25) AS k, count(*) AS n FROM %[2]s GROUP BY 1",
	"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY %[1]s) AS a, count(*) AS n FROM %[2]s WHERE %[1]s > R",
	"SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY %[1]s - R) AS a FROM %[2]s",
	"SELECT %[1]s > R AS k, percentile_cont(0.5) WITHIN GROUP (ORDER BY %[1]s) AS a FROM %[2]s GROUP BY 1",
	"SELECT avg(CASE WHEN %[1]s > R THEN 1.5 ELSE 2 END) AS a FROM %[2]s",
	"SELECT width_bucket(%[1]s, 0, R::numeric, 3) AS k, count(*) AS n FROM %[2]s GROUP BY 1 HAVING count(*) > 0",
	"SELECT floor(%[1]s / (R + 1)) AS k, count(*) AS n FROM %[2]s GROUP BY 1 HAVING count(*) > 0 ORDER BY 1 LIMIT 5",
	"SELECT to_char(sum(%[1]s) / R, 'FM999990.00') AS a, repeat('x', (S)::int %% 5) AS b FROM %[2]s",
	"SELECT format('%%s of %%s', count(*), round((R)::numeric, 1)) AS a, lpad((S)::text, 12, '*') AS b FROM %[2]s WHERE %[1]s > R",
	"SELECT sum(i) AS a, (SELECT count(*) FROM %[2]s WHERE %[1]s > R) AS n FROM generate_series(1, (S)::int) i",
	"SELECT count(*) AS n, (R)::int AS a, (S)::text AS b, date '2023-01-01' + (R)::int AS d FROM %[2]s WHERE %[1]s < R",
}

// charged draws such a statement.
func charged(d dice) string {
	of := [][2]string{{"price", "lineitem"}, {"quantity", "lineitem"}, {"total", "orders"}, {"balance", "customer"},
		{"referred_by", "customer"}}[d.IntN(5)]
	text := fmt.Sprintf(d.one(dependent...), of[0], of[1])
	return standsFor.ReplaceAllStringFunc(text, func(string) string { return "(" + fmt.Sprintf(d.one(released...), of[0], of[1]) + ")" })
}

// standsFor is where a statement has a released value.
var standsFor = regexp.MustCompile(`\b[RS]\b`)

// TestChargedIsAnswered asks drawn statements in two parts, of which the second depends on what is released of the
// first: where anything is charged, there is an answer. A value that was released may make an operator fail, as it does
// in plain SQL; the notice says so, and what she has bought. Planning is bounded by its steps, whatever the machine
// does beside: the time limit ends what hangs.
func TestChargedIsAnswered(t *testing.T) {
	for i, of := range []struct {
		engine, name string
		change       func(*schema)
	}{{"postgres", "wide", wide}, {"duckdb", "wide", wide}, {"postgres", "steps", func(*schema) {}}, {"duckdb", "steps", func(*schema) {}}} {
		if !chosen("shop", of.engine) {
			continue
		}
		t.Run(of.engine+" "+of.name, func(t *testing.T) {
			p := pairOver(t, shop(*seed), of.engine, of.change)
			d, answered, free := newDice(*seed, uint64(40+i)), 0, map[string]int{}
			for range max(1, *statements/threats.ByNight(24, 8)) {
				sql := charged(d)
				p.fresh()
				p.proxy.ask("SET statement_timeout = '2min'")
				got := p.ask(sql)
				paid := p.proxy.ask("SELECT spent FROM dp.budget").rows[0][0] != "0"
				said := strings.Join(got.said, "\n")
				switch {
				case got.err == nil:
					answered++
				case !paid:
					free[got.err.Code+" "+brief(got.err.Message)]++
				case !strings.HasPrefix(got.err.Code, "22") || !strings.Contains(said, "is yours, and free from now on"):
					t.Errorf("charged, and no answer: %s\n  %s %s\n  notes: %q", sql, got.err.Code, got.err.Message, got.said)
				}
			}
			t.Logf("%d answered; for nothing: %v", answered, free)
			if answered == 0 {
				t.Error("none was answered")
			}
		})
	}
}
