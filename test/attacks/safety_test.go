package attacks

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/test/kit"
)

// errorForms are expressions that fail in PostgreSQL on person 7 and on nobody else: each would be an exact bit if it
// ever reached the private database. %s is where the form needs a boolean that tells her apart.
var errorForms = []string{
	`CASE WHEN hiv THEN 1/(uid-7) ELSE 1 END > 0`, `CASE WHEN hiv THEN 1/0 ELSE 1 END > 0`, `1/(age-25) > 0`, `10 % (age-25) > 0`,
	`CASE WHEN hiv THEN 2147483647 + age ELSE 1 END > 0`, `(9223372036854775807 * age) > 0`, `income * 1e308 * 1e308 > 0`,
	`DATE '5874897-12-31' + age > DATE '2000-01-01'`, `sqrt(24 - age) > 0`, `ln(age - 25) > 0`, `power(age - 25, -1) > 0`, `exp(age * 1000) > 0`,
	`note::int > 0`, `note::json IS NOT NULL`, `note::timestamptz > now()`, `city::date > now()`, `note::numeric > 0`, `(note || '-')::uuid IS NOT NULL`,
	`note ~ (city || '(')`, `note ~ '('`, `note LIKE (city || '\')`, `note LIKE 'a\'`, `substr(note, 1, 24 - age) = ''`, `chr(age - 25) = ''`,
	`repeat(note, 1000000000) = ''`, `lpad(note, 1000000000) = ''`, `make_date(age - 25, 1, 1) IS NOT NULL`, `to_date(note, 'YYYY') IS NOT NULL`,
	`width_bucket(income, 5, 5, 10) > 0`, `set_bit(B'0', age, 1) IS NOT NULL`, `decode(note, 'hex') IS NOT NULL`,
	`convert_from(note::bytea, 'UTF8') = ''`, `(SELECT age FROM people) > 0`, `age = (SELECT uid FROM people LIMIT 2)`,
	`CASE WHEN hiv THEN (SELECT count(*) FROM generate_series(1, 100000000)) > 0 ELSE true END`, `pg_sleep(CASE WHEN hiv THEN 5 ELSE 0 END) IS NULL`,
	`error(concat('x', note)) IS NULL`, `query_to_xml('select note from people', true, true, '') IS NOT NULL`, `hiv::int / (1 - hiv::int) = 0`,
	`nullif(1/(age-25), 0) IS NULL`, `generate_series(1, 1/(age-25)) > 0`, `ctid IS NOT NULL`, `uid = 7`, `tableoid > 0`,
}

// formPlaces are the places of a query where a form may be.
var formPlaces = map[string]string{
	"WHERE":    `SELECT count(*) FROM people WHERE %s`,
	"GROUP BY": `SELECT (%s), count(*) FROM people GROUP BY 1`,
	"HAVING":   `SELECT count(*) FROM people HAVING bool_or(%s)`,
	"argument": `SELECT count(CASE WHEN %s THEN 1 END) FROM people`,
	"FILTER":   `SELECT count(*) FILTER (WHERE %s) FROM people`,
	"JOIN ON":  `SELECT count(*) FROM people JOIN people other ON %s`,
}

// pair is two proxies over neighbouring databases, with one policy and equal fresh ledgers.
type pair struct{ with, without *kit.Wire }

// sameShape is procedure P1: it asks both and returns the first difference but for noised cells. Nothing else may
// differ: kinds and order of frames, row descriptions, numbers of rows, tags, every field of errors and notices.
func (p pair) sameShape(sql string) string {
	return kit.SameFrames(sql, p.with.Ask(sql), p.without.Ask(sql))
}

// sameExtended is sameShape through the extended protocol, with binary results.
func (p pair) sameExtended(sql string) string {
	return kit.SameFrames("extended: "+sql, p.with.Extended(sql), p.without.Extended(sql))
}

// canaries are cells of person 7, which no answer, error, notice or log may hold; none is made of hexadecimal digits,
// as digests and numbers of spans in a log are.
var canaries = []string{"xyz", "Zzyzx"}

// errorOracle asks every form in each place on both sides (T1), and looks for cells in what comes back (T2).
func errorOracle(p pair, forms []string) (found kit.Findings, refused, answered int) {
	for place, query := range formPlaces {
		for _, form := range forms {
			sql := fmt.Sprintf(query, form)
			if d := p.sameShape(sql); d != "" {
				found.Add("%s: %s", place, d)
			}
			again := p.with.Ask(sql)
			if again.Err != nil {
				refused++
			} else {
				answered++
			}
			for _, canary := range canaries {
				if strings.Contains(fmt.Sprint(again.Frames), canary) {
					found.Add("%s: %s: a cell of person 7 in %v", place, sql, again.Frames)
				}
			}
		}
	}
	return found, refused, answered
}

// TestT1ErrorOracle: on both engines, and on a snapshot, each form in each place is refused, or answered alike on
// neighbours; no text holds a cell (T2); charges are equal, and so is what the database sees, in which nothing fails.
func TestT1ErrorOracle(t *testing.T) {
	kit.Beside(t)
	forms, refused, answered, errors := 0, 0, 0, 0
	for _, engine := range []string{"duckdb", "postgres", "snapshot"} {
		budgets := kit.Budgets{User: "1000", Cap: "1000"}
		with, without := kit.Lab{Engine: engine, Budgets: budgets, Change: kit.OneByOne}.Pair(t)
		p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
		found, no, yes := errorOracle(p, errorForms)
		found.None(t)
		forms, refused, answered = forms+len(errorForms)*len(formPlaces), refused+no, answered+yes
		for _, table := range []string{`SELECT * FROM dp.budget`, `SELECT charge, kind, name, cost FROM dp.charges`, `SELECT name, kind FROM dp.releases`} {
			a, b := p.with.Ask(table), p.without.Ask(table)
			if fmt.Sprint(a.Rows) != fmt.Sprint(b.Rows) || len(a.Rows) == 0 {
				t.Errorf("%s: %v with, %v without", table, a.Rows, b.Rows)
			}
		}
		for _, canary := range canaries {
			if strings.Contains(with.LogText(), canary) {
				t.Errorf("the log holds %q, a cell of person 7", canary)
			}
		}
		errors += kit.SameHeard(t, with, without)
	}
	if refused == 0 {
		t.Error("no form was refused")
	}
	threats.Reached(t, "T1", "%d forms × places × engines: %d refused, %d answered, 0 differences, %d errors of the database", forms, refused, answered, errors)
}

// TestT1CatchesForwarding: a proxy that hands the text to the database, and its error text to the client, is found.
func TestT1CatchesForwarding(t *testing.T) {
	b := kit.Budgets{User: "10", Cap: "10"}
	with, without := forwarder(t, kit.DuckDB(t, b, 0)), forwarder(t, kit.DuckDB(t, b, 7))
	p := pair{with.Connect("alice", "lab"), without.Connect("alice", "lab")}
	found, _, _ := errorOracle(p, []string{`CASE WHEN hiv THEN note::int ELSE 1 END > 0`})
	found.Some(t, "an error on one side, with a cell in its text")
	cells := 0
	for _, f := range found {
		if strings.Contains(f, "a cell of person 7") {
			cells++
		}
	}
	if cells == 0 || cells == len(found) {
		t.Errorf("of %d findings %d are cells in texts: must be some, and some others", len(found), cells)
	}
}

// forwarding hands the client's text to the database, and the database's text to the client.
type forwarding struct {
	kit.Undescribed
	db *sql.DB
}

// forwarder serves a fixture so.
func forwarder(t *testing.T, path string) *kit.Program {
	t.Helper()
	db, err := sql.Open("duckdb", filepath.Join(filepath.Dir(path), "lab.duckdb"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return kit.InProcess(t, path, &forwarding{db: db}, proxy.Limits{})
}

func (f *forwarding) Answer(ctx context.Context, _ *pipeline.Session, s parse.Statement, _ []policy.Value) (pipeline.Result, error) {
	rows, err := f.db.QueryContext(ctx, s.Text)
	if err != nil {
		return pipeline.Result{}, &pgerror.Failure{SQLState: "58000", Message: err.Error()}
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return pipeline.Result{}, err
	}
	var all [][]string
	for rows.Next() {
		cells, row := make([]any, len(names)), make([]string, len(names))
		for i := range cells {
			cells[i] = new(any)
		}
		if err := rows.Scan(cells...); err != nil {
			return pipeline.Result{}, err
		}
		for i := range cells {
			row[i] = fmt.Sprint(*cells[i].(*any))
		}
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		return pipeline.Result{}, &pgerror.Failure{SQLState: "58000", Message: err.Error()}
	}
	return kit.TextResult(all...), nil
}
