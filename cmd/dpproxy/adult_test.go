package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
)

// adultFile is the UCI Adult extract, or the test is skipped.
func adultFile(t *testing.T) string {
	t.Helper()
	shared := os.Getenv("DPPROXY_SHARED")
	if shared == "" {
		shared = "../../../shared"
	}
	file, err := filepath.Abs(filepath.Join(shared, "data", "adult.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Skip("the Adult extract is not there: ", err)
	}
	return file
}

// adultRows are its header and rows.
func adultRows(t *testing.T, file string) (header []string, rows [][]string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all[0], all[1:]
}

// examplePolicy copies an example into a directory of its own, listening on a free port.
func examplePolicy(t *testing.T, name string, oldNew ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples/adult", name))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memory.Dir(t), "policy.yaml")
	oldNew = append(oldNew, "127.0.0.1:6432", "127.0.0.1:0")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(oldNew...).Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// adultInPostgres loads the rows into a throw-away server and returns a URL for a role that may only read them.
func adultInPostgres(t *testing.T, header []string, rows [][]string) (server *pgtest.Server, url string) {
	t.Helper()
	server = pgtest.Start(t, "log_statement=all")
	role, database := server.Role(t, ""), server.Database(t)
	columns := make([]string, len(header))
	for i, name := range header {
		columns[i] = name + " text"
		if _, err := strconv.Atoi(rows[0][i]); err == nil {
			columns[i] = name + " integer"
		}
	}
	server.Exec(t, database, "CREATE TABLE public.adult ("+strings.Join(columns, ", ")+")", "GRANT SELECT ON public.adult TO "+role)
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.CopyFrom(t.Context(), pgx.Identifier{"public", "adult"}, header, pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		values := make([]any, len(header))
		for c, v := range rows[i] {
			values[c] = v
			if strings.HasSuffix(columns[c], "integer") {
				n, err := strconv.Atoi(v)
				if err != nil {
					return nil, err
				}
				values[c] = int32(n)
			}
		}
		return values, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return server, server.URLFor(role, database)
}

// adultQuestion is a count and its truth.
type adultQuestion struct {
	where string
	holds func(row map[string]string) bool
}

func atLeast(text string, n int) bool {
	v, err := strconv.Atoi(text)
	return err == nil && v >= n
}

var adultQuestions = []adultQuestion{
	{`age BETWEEN 30 AND 40`, func(r map[string]string) bool { return atLeast(r["age"], 30) && !atLeast(r["age"], 41) }},
	{`sex = 'Female' AND education IN ('Masters', 'Doctorate')`, func(r map[string]string) bool {
		return r["sex"] == "Female" && (r["education"] == "Masters" || r["education"] == "Doctorate")
	}},
	{`income LIKE '>%' AND hours_per_week > 40`, func(r map[string]string) bool { return r["income"] == ">50K" && atLeast(r["hours_per_week"], 41) }},
	{`capital_gain >= 5050`, func(r map[string]string) bool { return atLeast(r["capital_gain"], 5050) }},
	{`NOT (race = 'White' OR native_country = 'United-States')`, func(r map[string]string) bool {
		return r["race"] != "White" && r["native_country"] != "United-States"
	}},
	{`workclass <> '?' AND education_num * 5 > age`, func(r map[string]string) bool {
		e, _ := strconv.Atoi(r["education_num"])
		a, _ := strconv.Atoi(r["age"])
		return r["workclass"] != "?" && 5*e > a
	}},
}

// scale is the noise's scale as EXPLAIN shows it.
var scale = regexp.MustCompile(`discrete Laplace noise of scale ([0-9.]+)`)

// withoutSQL drops the lines of an EXPLAIN that may differ between engines.
func withoutSQL(rows [][]string) string {
	var kept []string
	for _, r := range rows {
		if !strings.Contains(r[0], "Query: ") && !strings.Contains(r[0], "Arguments: ") && !strings.HasPrefix(r[0], strings.Repeat(" ", 10)) {
			kept = append(kept, r[0])
		}
	}
	return strings.Join(kept, "\n")
}

// TestAdultOnBothEngines serves the example policies over the same rows in DuckDB and in PostgreSQL: the same plans, the
// same costs and notices, and answers within the 1 − 10⁻⁹ bound of their noise around the truth.
func TestAdultOnBothEngines(t *testing.T) {
	beside(t)
	file := adultFile(t)
	header, rows := adultRows(t, file)
	_, url := adultInPostgres(t, header, rows)
	duck := serveProcess(t, examplePolicy(t, "policy.yaml", "../../../shared/data/adult.csv", file))
	postgres := serveProcess(t, examplePolicy(t, "policy-postgres.yaml", "${DPPROXY_PG}", url))
	a, b := duck.connect("analyst", "census"), postgres.connect("analyst", "census")
	for _, q := range adultQuestions {
		sql := `SELECT count(*) FROM adult WHERE ` + q.where
		x, y := a.ask("EXPLAIN "+sql), b.ask("EXPLAIN "+sql)
		if x.err != nil || withoutSQL(x.rows) != withoutSQL(y.rows) {
			t.Errorf("plans differ: %v\n%s\n%s", x.err, withoutSQL(x.rows), withoutSQL(y.rows))
			continue
		}
		m := scale.FindStringSubmatch(withoutSQL(x.rows))
		if m == nil {
			t.Fatalf("no scale in\n%s", withoutSQL(x.rows))
		}
		s, _ := strconv.ParseFloat(m[1], 64)
		truth := 0
		for _, row := range rows {
			named := map[string]string{}
			for i, v := range row {
				named[header[i]] = v
			}
			if q.holds(named) {
				truth++
			}
		}
		ax, by := a.ask(sql), b.ask(sql)
		if strings.Join(ax.notes, "") != strings.Join(by.notes, "") {
			t.Errorf("notices differ: %q, %q", ax.notes, by.notes)
		}
		// P(|noise| > k) ≤ exp(−k/s) for the discrete Laplace of scale s.
		bound := int(math.Ceil(s * math.Log(1e9)))
		for engine, got := range map[string]int{"DuckDB": count(t, ax), "PostgreSQL": count(t, by)} {
			if d := got - truth; d > bound || d < -bound {
				t.Errorf("%s: %s: %d, the truth is %d, the bound ±%d", engine, q.where, got, truth, bound)
			}
		}
	}
	const budget = `SELECT spent, remaining FROM dp.budget`
	if x, y := a.ask(budget), b.ask(budget); fmt.Sprint(x.rows) != fmt.Sprint(y.rows) || len(x.rows) != 1 {
		t.Errorf("costs differ: %v, %v", x.rows, y.rows)
	}
}
