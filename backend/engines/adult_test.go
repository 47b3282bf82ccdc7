package engines

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/csv"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/policy"
)

// TestAdultIsCountedAlike: the example policies over the same rows, read from the CSV file by DB and stored in
// PostgreSQL, give the same counts by every column and by a pair.
func TestAdultIsCountedAlike(t *testing.T) {
	file := material.Path(t, "data", "adult.csv")
	server := pgtest.Shared(t)
	role := server.Role(t, "")
	database := server.Database(t)
	t.Setenv("DPPROXY_PG", server.URLFor(role, database))
	stored, err := policy.Read("../../examples/adult/policy-postgres.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read, err := policy.Read("../../examples/adult/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read.Datasets[0].Tables[0].File = file
	rows := copyIn(t, server, database, role, file, stored.Datasets[0].Tables[0])
	duck, postgres := backendtest.Open(t, read), backendtest.Open(t, stored)
	for _, h := range []*backendtest.House{duck, postgres} {
		if got := backendtest.Inspect(t, h); strings.Contains(got, "fatal=true") {
			t.Fatalf("got\n%s", got)
		}
		if got, want := backendtest.Counts(t, h, backendtest.Render(t, backendtest.Measure(t, h.Policy, "adult"), h)), fmt.Sprintf("[]: [%d]", rows); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: got %v, want %s", h.Dialect(), got, want)
		}
	}
	grains := [][]string{{"sex", "education"}}
	for _, c := range stored.Datasets[0].Tables[0].Columns {
		grains = append(grains, []string{c.Name})
	}
	for _, grain := range grains {
		a := backendtest.Counts(t, duck, backendtest.Render(t, backendtest.Measure(t, duck.Policy, "adult", grain...), duck))
		b := backendtest.Counts(t, postgres, backendtest.Render(t, backendtest.Measure(t, postgres.Policy, "adult", grain...), postgres))
		if len(a) < 2 || !slices.Equal(a, b) {
			t.Errorf("by %v: DuckDB has %d groups, PostgreSQL %d, or their counts differ", grain, len(a), len(b))
		}
	}
}

// copyIn stores the file in a table of the policy's columns, and returns its number of rows.
func copyIn(t *testing.T, server *pgtest.Server, database, role, file string, table *policy.Table) int64 {
	t.Helper()
	var columns []string
	for _, c := range table.Columns {
		columns = append(columns, pgx.Identifier{c.Source}.Sanitize()+" "+c.Type.Format(c.Typmod))
	}
	server.Exec(t, database, "CREATE TABLE public.adult ("+strings.Join(columns, ", ")+")", "GRANT SELECT ON public.adult TO "+role)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header, err := csv.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer header.Close()
	names := header.Names
	for i, n := range names {
		names[i] = pgx.Identifier{n}.Sanitize()
	}
	tag, err := conn.PgConn().CopyFrom(ctx, f, "COPY public.adult ("+strings.Join(names, ", ")+") FROM STDIN (FORMAT csv, HEADER)")
	if err != nil {
		t.Fatal(err)
	}
	return tag.RowsAffected()
}
