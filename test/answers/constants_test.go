package answers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestConstantsFailForFree: what fails by its text alone is refused before anything is charged, in PostgreSQL's words;
// and what only looks as if it failed is answered. testdata/constants.txt has a statement, and below it what PostgreSQL
// says of it, then what dpproxy does where that is something else.
func TestConstantsFailForFree(t *testing.T) {
	server := pgtest.Start(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "100000", Cap: "900000"}, 0)
	plain, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close(context.Background())
	analyst := kit.Serve(t, path).Connect("alice", "lab")

	file := filepath.Join("testdata", "constants.txt")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	asked := 0
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		sql, _, _ := strings.Cut(block, "\n----")
		if strings.HasPrefix(sql, "#") {
			out.WriteString(block + "\n\n")
			continue
		}
		asked++
		unasked := strings.Replace(sql, "FROM people", fmt.Sprintf("FROM (SELECT * FROM people WHERE income <> %d.25) people", asked), 1) // so that nothing of it is held
		_, err := plain.Exec(t.Context(), unasked, pgx.QueryExecModeSimpleProtocol)
		var fault *pgconn.PgError
		errors.As(err, &fault)
		want := outcome(fault)
		out.WriteString(sql + "\n----\nPostgreSQL: " + want + "\n")
		a := analyst.Ask(unasked)
		got := outcome(a.Err)
		if a.Err != nil && slices.ContainsFunc(a.Notes, func(note string) bool { return strings.HasPrefix(note, "cost ") }) {
			got += " (charged)"
			t.Errorf("this is charged, and fails: %s\n%s", sql, got)
		}
		if got != want {
			out.WriteString("dpproxy: " + got + "\n")
		}
		out.WriteString("\n")
	}
	now := strings.TrimSpace(out.String()) + "\n"
	if *kit.Update {
		if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if now != string(text) {
		t.Errorf("%s is not what is said; -update writes\n%s", file, now)
	}
}

// outcome is an error as one line, or that there is none.
func outcome(err *pgconn.PgError) string {
	if err == nil {
		return "answered"
	}
	return err.Code + " " + err.Message
}
