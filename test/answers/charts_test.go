package answers

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/test/kit"
)

// charts is the lab with the keys of a policy that charts are drawn from: groups of what is outside are hidden, a
// domain of times ends below a date, and min and max are the declared ends. Number 7 is alone in the city Zzyzx, which
// is not declared.
func charts(t *testing.T, without int) kit.Side {
	t.Helper()
	side, path := kit.Lab{Engine: "duckdb", Change: []string{
		"domain: {values: [c0, c1, c2, c3]}}", "domain: {values: [c0, c1, c2, c3]}, nulls: exclude, other: hide}",
		"{name: day, type: date, domain: {min: 2024-01-01, max: 2024-12-31}}",
		"{name: day, type: date, domain: {min: 2024-01-01, below: 2025-01-01}, extremes: declared}\n" +
			"          - {name: at, type: timestamp, domain: {min: 2024-01-01, below: 2025-01-01, step: 1 hour}, nulls: exclude, other: hide, extremes: declared}",
		"max_epsilon: 1,", "max_epsilon: 100000,",
	}}.Lay(t, without)
	kit.ExecDuckDB(t, path, `ALTER TABLE events ADD COLUMN "at" TIMESTAMP`, `UPDATE events SET "at" = day + INTERVAL 30 MINUTE`)
	side.Program = kit.Serve(t, path)
	return side
}

// TestChartsTellTheTruth: a time series has no last bucket of one instant, no bar is of nobody, totals have what the
// bars leave out, and min and max of declared ends are free.
func TestChartsTellTheTruth(t *testing.T) {
	kit.Beside(t)
	w := charts(t, 0).Connect("alice", "lab")
	before := w.Ask(`SELECT * FROM dp.budget`).Rows
	for sql, want := range map[string]string{
		`SELECT min(day), max(day) FROM events`:                  "2024-01-01|2024-12-31",
		`SELECT min(at), max(at) FROM events WHERE amount < 10`:  "2024-01-01 00:00:00|2024-12-31 23:59:59.999999",
		`SELECT DISTINCT city FROM people ORDER BY 1`:            "c0\nc1\nc2\nc3",
		`SELECT domain FROM dp.columns WHERE column_name = 'at'`: "2024-01-01 00:00:00 to below 2025-01-01 00:00:00, step 1 hour",
	} {
		if got := w.Ask(sql); got.Err != nil || want != "" && tableOf(got.Rows) != want {
			t.Errorf("%s: %q, %v; want %q", sql, tableOf(got.Rows), got.Err, want)
		} else if strings.Contains(sql, "min(") && !strings.Contains(strings.Join(got.Notes, "\n"), "are the ends of the domain that the policy declares") {
			t.Errorf("%s: %q", sql, got.Notes)
		}
	}
	if after := w.Ask(`SELECT * FROM dp.budget`).Rows; tableOf(after) != tableOf(before) {
		t.Errorf("the balance was %q, is %q", before, after)
	}
	w.Ask(`SET dp.epsilon = 1000`)
	for sql, want := range map[string]string{
		`SELECT city, count(*) FROM people GROUP BY city`:                                                    "c0|250\nc1|250\nc2|250\nc3|249",
		`SELECT city, count(*) FROM people GROUP BY ROLLUP (city)`:                                           "c0|250\nc1|250\nc2|250\nc3|249\nNULL|1000",
		`SELECT count(*) FROM people`:                                                                        "1000",
		`SELECT city = 'c0', count(*) FROM people GROUP BY 1`:                                                "f|750\nt|250",
		`SELECT p.city, count(*) FROM people p JOIN people q ON p.uid = q.uid GROUP BY 1 ORDER BY 2 LIMIT 1`: "c3|249",
	} {
		got := w.Ask(sql)
		if got.Err != nil || tableOf(got.Rows) != want {
			t.Errorf("%s: %q, %v; want %q", sql, tableOf(got.Rows), got.Err, want)
		}
		if told := strings.Contains(strings.Join(got.Notes, "\n"), "has no group of its own"); told == strings.Contains("1000 f|750\nt|250", want) {
			t.Errorf("%s: told is %t: %q", sql, told, got.Notes)
		}
	}
	months := w.Ask(`SELECT date_trunc('month', at) AS m, count(*) FROM events GROUP BY 1 ORDER BY 1`)
	if len(months.Rows) != 12 || months.Rows[11][0] != "2024-12-01 00:00:00" {
		t.Errorf("months: %q, %v", months.Rows, months.Err)
	}
}

// TestFewDifferentValues: the number of few declared values is that of those with many rows, at an ε at which their
// number itself would be lost; a value of one row is not among them, and nothing reports whether it has that row.
func TestFewDifferentValues(t *testing.T) {
	kit.Beside(t)
	var heard [2][]string
	for i, without := range []int{0, 7} {
		s := charts(t, without)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		conn, err := pgx.Connect(ctx, s.URL("alice", "lab"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		for _, q := range []struct {
			sql  string
			want int64
		}{
			{`SELECT count(DISTINCT city) FROM people WHERE age > $1`, 4},
			{`SELECT count(DISTINCT hiv) FROM people WHERE age > $1`, 1},
			{`SELECT count(DISTINCT CASE WHEN NOT hiv THEN city END) FROM people WHERE age > $1`, 4},
		} {
			for range 5 {
				var n int64
				if err := conn.QueryRow(ctx, q.sql, 17).Scan(&n); err != nil || n != q.want {
					t.Errorf("%s: %d, %v; want %d", q.sql, n, err, q.want)
				}
			}
		}
		p := kit.StartPsql(t, s.Address, "alice", "lab")
		for _, sql := range []string{`SELECT count(DISTINCT city) FROM people;`, `EXPLAIN SELECT count(DISTINCT note) FROM people;`, `SELECT count(DISTINCT hiv) FROM people;`} {
			heard[i] = append(heard[i], p.Run(sql))
		}
		if !strings.Contains(heard[i][0], "(DISTINCT …) is of the declared values that more than 100 rows have") {
			t.Errorf("psql: %s", heard[i][0])
		}
		w := s.Connect("bob", "lab")
		w.Ask(`SET dp.epsilon = 1000`)
		if got := w.Ask(`SELECT count(DISTINCT hiv) FROM people`); tableOf(got.Rows) != map[int]string{0: "2", 7: "1"}[without] {
			t.Errorf("without noise: %q, %v", got.Rows, got.Err)
		}
	}
	// How often redrawn noise lifts a value of one row above the threshold follows the noise that was released: some 1 % of
	// releases are so near to it that ± is 1, on either side.
	bars := regexp.MustCompile(`error about ±[0-9.]+`)
	for i := range heard {
		heard[i] = []string{bars.ReplaceAllString(strings.Join(heard[i], "\n"), "error about ±")}
	}
	if a, b := heard[0][0], heard[1][0]; a != b {
		t.Errorf("neighbours differ:\n%s\n%s", a, b)
	}
}

func tableOf(rows [][]string) string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		lines[i] = strings.Join(row, "|")
	}
	return strings.Join(lines, "\n")
}
