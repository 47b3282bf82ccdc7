package sandbox_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.ChildMain()
	code := pgtest.Main(m)
	if shared.engine != nil {
		_ = shared.engine.Close()
	}
	if sharedTwin.engine != nil {
		_ = sharedTwin.engine.Close()
	}
	os.Exit(code)
}

// shared is the engine of the tests that leave it as it is.
var shared struct {
	sync.Once
	engine sandbox.Engine
	err    error
}

func engine(t testing.TB) sandbox.Engine {
	t.Helper()
	shared.Do(func() {
		if shared.engine, shared.err = sandbox.Start(context.Background(), sandbox.Options{Children: 1, Log: slog.Default()}); shared.err == nil {
			shared.err = shared.engine.Catalog(context.Background(), census())
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.engine
}

var session = sandbox.Session{User: "alice", Database: "census", PID: 4711, Settings: map[string]string{
	"server_version": "15.0 (dpproxy 0.1)", "server_version_num": "150000", "search_path": `"$user", public`, "timezone": "UTC",
	"application_name": "psql", "jit": "on"}}

// census is a policy of two datasets; alice has a budget in one of them.
func census() *policy.Policy {
	d := &policy.Dataset{ID: "census", Unit: policy.Unit{Name: "person", Table: "people", Column: "person_id"},
		Neighbors: privacy.AddRemove, Accountant: privacy.Pure, Budgets: map[string]policy.Budget{"alice": {}}}
	people := &policy.Table{Dataset: d, Name: "people", Schema: "public", ExpectedRows: 1000, MaxRowsPerUnit: 1}
	people.Columns = []*policy.Column{
		{Table: people, Name: "age", Type: policy.Int4, Typmod: -1, Nulls: policy.NullCell, Outside: policy.OutsideClamp,
			Domain: &policy.Domain{Type: policy.Int4, Min: int64(0), Max: int64(119), Step: policy.Step{Whole: 1}, Regular: 120, Other: -1, Null: 120}},
		{Table: people, Name: "sex", Type: policy.Text, Typmod: -1, Nulls: policy.NullExclude, Outside: policy.OutsideOther,
			Domain: &policy.Domain{Type: policy.Text, Values: []string{"Female", "Male"}, Regular: 2, Other: 2, Null: -1}},
	}
	visits := &policy.Table{Dataset: d, Name: "visits", Schema: "clinic", ExpectedRows: 5000, MaxRowsPerUnit: 5}
	visits.Columns = []*policy.Column{{Table: visits, Name: "kind", Type: policy.Varchar, Typmod: 14, Nulls: policy.NullCell,
		Outside: policy.OutsideOther, Domain: &policy.Domain{Type: policy.Varchar, Values: []string{"a"}, Regular: 1, Other: 1, Null: 2}}}
	d.Tables = []*policy.Table{people, visits}
	other := &policy.Dataset{ID: "payroll", Unit: policy.Unit{Row: true}, Budgets: map[string]policy.Budget{"bob": {}}}
	secret := &policy.Table{Dataset: other, Name: "salaries", Schema: "public", MaxRowsPerUnit: 1}
	secret.Columns = []*policy.Column{{Table: secret, Name: "amount", Type: policy.NumericType, Typmod: -1,
		Domain: &policy.Domain{Type: policy.NumericType, Min: policy.NewNumeric(0, 0), Max: policy.NewNumeric(9, 0),
			Step: policy.Step{Decimal: policy.NewNumeric(1, 0)}, Regular: 10, Other: -1, Null: -1}}}
	other.Tables = []*policy.Table{secret}
	return &policy.Policy{Datasets: []*policy.Dataset{d, other}}
}

// parse makes a plan of a text that reads no leaf but those given.
func parse(t testing.TB, text string, leaves ...*planner.Leaf) *planner.Plan {
	t.Helper()
	tree, err := pg.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &planner.Plan{Outer: planner.Outer{Tree: tree.Stmts[0].Stmt}, Leaves: leaves}
}

// ask rewrites and runs a catalog query.
func ask(t testing.TB, e sandbox.Engine, text string) (sandbox.Rows, error) {
	t.Helper()
	q, refusal := outer.Render(parse(t, text), dialect.DuckDB)
	if refusal != nil {
		return sandbox.Rows{}, refusal
	}
	rows, err := e.Query(context.Background(), session, q, nil)
	if err != nil {
		return sandbox.Rows{}, err
	}
	return rows.Value(), nil
}

// blocks splits a file of recorded statements.
func blocks(t testing.TB, name string) []string {
	t.Helper()
	dir := os.Getenv("DPPROXY_SHARED")
	if dir == "" {
		dir = "../../shared"
	}
	text, err := os.ReadFile(dir + "/clients/" + name + ".sql")
	if err != nil {
		t.Skipf("recorded statements are absent: %v", err)
	}
	var out []string
	for block := range strings.SplitSeq(string(text), "\n;;\n") {
		var lines []string
		for line := range strings.Lines(block) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		if s := strings.TrimSpace(strings.Join(lines, "")); s != "" {
			out = append(out, s)
		}
	}
	return out
}
