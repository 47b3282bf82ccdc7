package outer_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// described is a list of statements, a policy and tables of the policy's types in PostgreSQL.
type described struct {
	file, policy, database, schema string
	tables                         []string
	statements                     func(text string) []string
}

var describedLists = []described{
	{"clients/bi-shapes.sql", "shop.yaml", "shop", "public", []string{
		`CREATE TABLE public.orders (id bigint, user_id integer, amount numeric(10,2), placed_at timestamptz, status text, qty integer)`,
		`CREATE TABLE public.users (id integer, age integer, active boolean)`},
		func(text string) []string {
			var list []string
			for _, block := range strings.Split(text, "\n;;\n")[1:] {
				_, statement, _ := strings.Cut(strings.TrimSpace(block), "\n")
				list = append(list, statement)
			}
			return list
		}},
	{"data/smartnoise_pums_statements.sql", "pums.yaml", "pums", "pums", []string{`CREATE SCHEMA pums`,
		`CREATE TABLE pums.pums (pid integer, age integer, sex text, educ integer, race text, income double precision, married boolean)`,
		`CREATE TABLE pums.pums_null (LIKE pums.pums)`},
		func(text string) []string {
			var list []string
			for _, line := range strings.Split(text, "\n") {
				if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
					list = append(list, line)
				}
			}
			return list
		}},
}

// TestColumnsAreAsPostgreSQLDescribes: what is answered has the names and types of columns that PostgreSQL describes
// for the same statement over tables of the declared types.
func TestColumnsAreAsPostgreSQLDescribes(t *testing.T) {
	for _, d := range describedLists {
		t.Run(d.database, func(t *testing.T) {
			text, err := os.ReadFile(material.Path(t, d.file))
			if err != nil {
				t.Fatal(err)
			}
			server := pgtest.Shared(t)
			server.Exec(t, "postgres", "CREATE DATABASE "+d.database)
			server.Exec(t, d.database, d.tables...)
			conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", d.database))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close(context.Background()) })
			if _, err := conn.Exec(t.Context(), "SET search_path = "+d.schema); err != nil {
				t.Fatal(err)
			}
			p, err := policy.Parse(readFile(t, "../../planner/testdata/"+d.policy), d.policy)
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, statement := range d.statements(string(text)) {
				own, answered := ownColumns(t, p, d.schema, statement)
				if !answered {
					continue
				}
				prepared, err := conn.Prepare(t.Context(), "", statement)
				if err != nil {
					t.Errorf("PostgreSQL refuses what is answered: %v\n%s", err, statement)
					continue
				}
				var want []string
				for _, f := range prepared.Fields {
					want = append(want, fmt.Sprint(f.Name, " ", policy.Type(f.DataTypeOID)))
				}
				if compared++; strings.Join(own, ", ") != strings.Join(want, ", ") {
					t.Errorf("%s\ngot  %v\nwant %v", statement, own, want)
				}
			}
			t.Logf("%d statements compared", compared)
			if compared < 40 {
				t.Error("too few statements to show anything")
			}
		})
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// ownColumns are the names and types of an answer's columns, where the plan knows them.
func ownColumns(t *testing.T, p *policy.Policy, schema, statement string) (columns []string, answered bool) {
	t.Helper()
	parsed, refusal := parse.Parse(statement)
	if refusal != nil {
		return nil, false
	}
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	plan, refusal := planner.Build(parsed[0], []policy.Value{"paid"}, reuse.Context{Policy: p, Dataset: p.Datasets[0], User: "alice",
		Now: time.Date(2024, 3, 15, 10, 30, 0, 0, time.UTC), Settings: plans.Settings{Epsilon: p.Datasets[0].Defaults.Epsilon, Confidence: confidence, Zone: time.UTC, SearchPath: []string{schema}}})
	if refusal != nil {
		return nil, false
	}
	for _, c := range plan.Columns {
		columns = append(columns, fmt.Sprint(c.Name, " ", c.Type))
	}
	return columns, plan.Outer.Direct != nil // else PostgreSQL says it
}
