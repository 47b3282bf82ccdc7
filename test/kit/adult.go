package kit

import (
	"context"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
)

// AdultRows are its header and rows.
func AdultRows(t *testing.T, file string) (header []string, rows [][]string) {
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

// ExamplePolicy copies an example into a directory of its own, listening on a free port.
func ExamplePolicy(t *testing.T, name string, oldNew ...string) string {
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

// AdultInPostgres loads the rows into a throw-away server and returns a URL for a role that may only read them.
func AdultInPostgres(t *testing.T, header []string, rows [][]string) (server *pgtest.Server, url string) {
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
