package sandbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// queriesOf reads a file of queries, one a line.
func queriesOf(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if query := strings.TrimSpace(line); query != "" && !strings.HasPrefix(query, "--") {
			list = append(list, query)
		}
	}
	return list
}

// split makes queries of one column of those that list several, so that one that is refused does not hide the others.
func split(t testing.TB, queries []string) []string {
	t.Helper()
	var list []string
	for _, query := range queries {
		list = append(list, query)
		tree, err := pg.Parse(query)
		if err != nil {
			t.Fatalf("%v\n%s", err, query)
		}
		s := tree.Stmts[0].Stmt.GetSelectStmt()
		if len(s.TargetList) < 2 || len(s.GroupClause) > 0 || s.WithClause != nil || len(s.DistinctClause) > 0 || byPosition(s.SortClause) {
			continue
		}
		targets := s.TargetList
		for _, one := range targets {
			s.TargetList = []*pg.Node{one}
			text, err := pg.Deparse(tree)
			if err != nil {
				t.Fatalf("%v\n%s", err, query)
			}
			list = append(list, text)
		}
	}
	return list
}

func byPosition(sort []*pg.Node) bool {
	for _, n := range sort {
		if n.GetSortBy().GetNode().GetAConst() != nil {
			return true
		}
	}
	return false
}

// TestTwinAgainstEmbedded runs each query in both sandboxes over the same released tables, and on a plain server over
// tables of the same rows. The twin equals the server; the embedded engine equals the twin, or refuses.
func TestTwinAgainstEmbedded(t *testing.T) {
	leaves, tables, sql := released()
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, sql)
	conn, err := pgx.Connect(context.Background(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	twin, embedded := twinEngine(t), engine(t)
	equal, refused := 0, 0
	for _, query := range split(t, append(queriesOf(t, "testdata/twin.sql"), queriesOf(t, "testdata/outer.sql")...)) {
		want := onPostgreSQL(conn, query)
		got, refusal := answered(t, twin, query, leaves, tables)
		if refusal != "" && want != "error 0A000" || refusal == "" && got != want {
			t.Errorf("twin: %.300s\n    got  %s%s\n    want %s", query, got, refusal, want)
		}
		switch small, refusal := answered(t, embedded, query, leaves, tables); {
		case refusal != "" || strings.HasPrefix(small, "error") && small != want: // nothing is answered that PostgreSQL answers otherwise
			refused++
			if os.Getenv("DPPROXY_VERBOSE") != "" {
				t.Logf("embedded refuses: %.200s\n    %s%s", query, refusal, small)
			}
		case small != want:
			t.Errorf("embedded: %.300s\n    got  %s\n    want %s", query, small, want)
		default:
			equal++
		}
	}
	t.Logf("embedded: %d equal, %d refused, of %d", equal, refused, equal+refused)
}
