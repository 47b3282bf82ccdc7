package answers

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestDigits: SET dp.digits = significant takes the digits from numbers that their errors do not leave, costs nothing,
// and changes neither types nor keys nor what is asked above; the notice tells the errors of computed numbers.
func TestDigits(t *testing.T) {
	kit.Beside(t)
	s := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	told := ""
	config, err := pgx.ParseConfig(s.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { told += n.Message }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	ask := func(sql string) (types []uint32, row string) {
		t.Helper()
		told = ""
		rows, err := conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(sql, err)
		}
		defer rows.Close()
		var texts []string
		for rows.Next() {
			for _, v := range rows.RawValues() {
				texts = append(texts, string(v))
			}
		}
		if rows.Err() != nil {
			t.Fatal(sql, rows.Err())
		}
		for _, f := range rows.FieldDescriptions() {
			types = append(types, f.DataTypeOID)
		}
		return types, strings.Join(texts, "|")
	}
	const sql = `SELECT 12345 AS key, count(*) AS n, sum(income) AS s, avg(income) AS mean, avg(income)::float8 AS f,
		avg(income)::numeric(12, 2) AS two, count(*) > 500 AS many FROM people`
	exactTypes, exact := ask(sql)
	if !regexp.MustCompile(`; mean, f, two about ±[0-9,.]+ a value at 95 %`).MatchString(told) {
		t.Errorf("the notice does not tell the errors of what is computed: %s", told)
	}
	ask(`SET dp.digits = significant`)
	types, rounded := ask(sql)
	if fmt.Sprint(types) != fmt.Sprint(exactTypes) {
		t.Errorf("types %v, exact %v", types, exactTypes)
	}
	digits := regexp.MustCompile(`^12345\|\d+\|\d+0000\|\d+00\|\d+00\|\d+00\.00\|t$`) // n ±73 has all of its digits
	if !digits.MatchString(rounded) || digits.MatchString(exact) || !strings.HasPrefix(told, "free: ") {
		t.Errorf("exact %s, significant %s: %s", exact, rounded, told)
	}
	if _, sum := ask(`SELECT sum(n) % 10 FROM (SELECT count(*) AS n FROM people) x`); strings.Contains(sum, "|") {
		t.Error(sum)
	}
	const above = `SELECT city, sum(mean) OVER (ORDER BY city) AS f
		FROM (SELECT city, avg(income)::float8 AS mean FROM people GROUP BY city) t ORDER BY city`
	ask(above)
	short := regexp.MustCompile(`^(c\d\|\d+00\|?)+`)
	kit.Eventually(t, "short numbers above an engine", func() bool { // they are there within two seconds, or not
		_, row := ask(above)
		return short.MatchString(row)
	})
	ask(`SET dp.digits = exact`)
	if _, again := ask(sql); again != exact {
		t.Errorf("exact again: %s, was %s", again, exact)
	}
	if _, err := conn.Exec(ctx, `SET dp.digits = many`); err == nil || !strings.Contains(err.Error(), "dp.digits") {
		t.Errorf("SET dp.digits = many: %v", err)
	}
}

// TestMediansOfNobody: a median, and the like, is NULL where the count of its rows does not show: one beside it, one
// that is asked for only for this, or the counts that it is read from. The fixture's people are 18 to 77 years old. The
// confidence is such that noise alone shows once in a million counts.
func TestMediansOfNobody(t *testing.T) {
	kit.Beside(t)
	path := kit.DuckDB(t, kit.Budgets{User: "100", Cap: "200"}, 0)
	kit.ExecDuckDB(t, path, `INSERT INTO people SELECT uid + 1000, * EXCLUDE (uid) FROM people`,
		`INSERT INTO people SELECT uid + 2000, * EXCLUDE (uid) FROM people`)
	w := kit.Serve(t, path).Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 1`)
	w.Ask(`SET dp.confidence = 0.999998`)
	for _, c := range []struct{ set, sql, note string }{
		{"", `SELECT age / 10 AS decade, median(income), count(*) FROM people GROUP BY 1`, "cost ε 1;"},
		{"", `SELECT age / 10 AS decade, mode() WITHIN GROUP (ORDER BY city), count(*) FROM people GROUP BY 1`,
			"cost ε 1;"},
		{"", `SELECT age / 10 AS decade, percentile_disc(0.4) WITHIN GROUP (ORDER BY income) FROM people GROUP BY 1`,
			"cost ε 1;"},
		{"", `SELECT age / 10, percentile_disc(0.4) WITHIN GROUP (ORDER BY income) AS again FROM people GROUP BY 1`,
			"free: "},
		{"", `SELECT age / 10 AS decade, percentile_disc(ARRAY[0.4, 0.6]) WITHIN GROUP (ORDER BY income), ` +
			`mode() WITHIN GROUP (ORDER BY hiv) FROM people GROUP BY 1`, "cost ε "},
		{"", `SELECT age / 10 AS decade, median(income) FROM people GROUP BY GROUPING SETS ((age / 10), (age / 20))`,
			"cost ε "},
		{`SET dp.release = on`, `SELECT age, count(*) FROM people GROUP BY age`, "free: "},
		{"", `SELECT age / 10 AS decade, median(age) FROM people GROUP BY 1`, "free: "},
	} {
		if c.set != "" {
			w.Ask(c.set)
		}
		a := w.Ask(c.sql)
		if a.Err != nil || !strings.HasPrefix(a.Notes[0], c.note) {
			t.Errorf("%s: %v, %v", c.sql, a.Err, a.Notes)
		}
		for _, row := range a.Rows {
			decade, err := strconv.Atoi(row[0])
			if err != nil || decade == 1 || c.set != "" {
				continue
			}
			empty, null := decade < 1 || decade > 7, strings.Trim(row[1], "{},NUL") == ""
			sure := c.note != "cost ε " // of less, the counts of some are within their errors
			if empty && !null || !empty && null && sure {
				t.Errorf("%s: %v", c.sql, row)
			}
		}
	}
	mediansUnderConditions(t, w)
}

// mediansUnderConditions asks without GROUP BY.
func mediansUnderConditions(t *testing.T, w *kit.Wire) {
	t.Helper()
	for sql, null := range map[string]bool{
		`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people WHERE age > 90`:              true,
		`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FILTER (WHERE age > 95) FROM people`:     true,
		`SELECT mode() WITHIN GROUP (ORDER BY city) FROM people WHERE age < 10`:                              true,
		`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people WHERE age BETWEEN 30 AND 40`: false,
		`SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income) FROM people`:                             false,
	} {
		if a := w.Ask(sql); a.Err != nil || (a.Rows[0][0] == "NULL") != null {
			t.Errorf("%s: %v, %v, %v", sql, a.Err, a.Rows, a.Notes)
		}
	}
}

// TestErrorsOfNotices: what the notice tells of errors never takes the answer: redraws that fail though the released
// values do not, and those that would take long or much memory.
func TestErrorsOfNotices(t *testing.T) {
	kit.Beside(t)
	w := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "100", Cap: "200"}, 0)).Connect("alice", "lab")
	w.Ask(`SET dp.epsilon = 0.01`)
	fails, roots := 0, 0
	for age := 20; age < 70; age++ {
		a := w.Ask(fmt.Sprintf(`SELECT count(*) FROM people WHERE age = %d`, age))
		if n, err := strconv.Atoi(a.Rows[0][0]); err != nil || n < 0 {
			continue
		}
		roots++
		if a = w.Ask(fmt.Sprintf(`SELECT sqrt(count(*)) FROM people WHERE age = %d`, age)); a.Err != nil {
			fails++
		}
	}
	if roots == 0 || fails > 0 {
		t.Errorf("%d of %d roots of numbers that are not below 0 fail", fails, roots)
	}
	items := strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(&items, ", avg(income) + %d", i)
	}
	for _, sql := range []string{
		`SELECT age` + items.String() + ` FROM people GROUP BY age`,
		`SELECT city, repeat('x', 1000000), avg(income) FROM people GROUP BY city`,
	} {
		if a := w.Ask(sql); a.Err != nil {
			t.Errorf("%.60s: %v", sql, a.Err)
		}
	}
}
