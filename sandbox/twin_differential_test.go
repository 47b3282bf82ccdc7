package sandbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

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
	for _, query := range append(queriesOf(t, "testdata/twin.sql"), queriesOf(t, "testdata/outer.sql")...) {
		want := onPostgreSQL(conn, query)
		got, refusal := answered(t, twin, query, leaves, tables)
		if refusal != "" && want != "error 0A000" || refusal == "" && got != want {
			t.Errorf("twin: %.300s\n    got  %s%s\n    want %s", query, got, refusal, want)
		}
		switch small, refusal := answered(t, embedded, query, leaves, tables); {
		case refusal != "":
			refused++
			t.Logf("embedded refuses: %.200s\n    %s", query, refusal)
		case small != want:
			t.Errorf("embedded: %.300s\n    got  %s\n    want %s", query, small, want)
		default:
			equal++
		}
	}
	t.Logf("embedded: %d equal, %d refused, of %d", equal, refused, equal+refused)
}
