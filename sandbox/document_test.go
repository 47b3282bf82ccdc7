package sandbox_test

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

var update = flag.Bool("update", false, "write docs/sandboxes.md")

const sandboxesFile = "../docs/sandboxes.md"

const sandboxesHead = `# The two sandboxes

What stands above the released numbers of a statement (the final SELECT with its expressions, joins, windows and ORDER BY, and all of a
statement about catalogs and constants) is computed by a sandbox that never sees private data. The *embedded* one is a DuckDB inside the
program, in which expressions mean what they mean in PostgreSQL; nothing needs to be set up for it. The *twin* is an empty database of a
PostgreSQL server (` + "`sandbox.url`" + ` in the policy) and answers all that PostgreSQL does.

The embedded one answers as the twin does, byte by byte, or refuses with DP002 before anything is charged wherever the statement shows
it, and the hint names the twin. It is held against a server by drawn calls of all that the server's own catalog lists, over the edge values of
every type (sandbox TestDrawnAgainstPostgreSQL), and by patterns that are drawn (rewrite/are, ADR 79).

This page is written by a test from what a server of version 15 lists and both answered
(` + "`go test ./sandbox -run TestSandboxesDocument -update`" + `).

Three things hang on values and not on names. A numeric that is infinite or NaN, a date or timestamp that is infinite or beyond the year
294246, and ` + "`initcap`" + ` or a regular expression's class over characters that C libraries see differently are refused when they come up. The
sign of a zero of double precision may get lost in aggregates and windows (0 for −0). The last digit of exp, ln, log and power of double precision
is that of the correctly rounded value, which a C library may miss.
`

// status tells whether the embedded sandbox refuses what a server answers.
func (d *drawing) status(query string) (answers, refuses bool) {
	if strings.HasPrefix(sandboxtest.OnPostgreSQL(d.conn, query), "error") {
		return false, false
	}
	got, refusal := d.embedded(query)
	return refusal == "" && !strings.HasPrefix(got, "error"), refusal != ""
}

// seeded draws what follows by a seed of its own, so that one name more changes no other's line.
func (d *drawing) seeded(name string) {
	h := fnv.New64a()
	h.Write([]byte(name))
	d.rng = rand.New(rand.NewPCG(7, h.Sum64()))
}

// listed is one name with what of it is refused.
type listed struct{ answered, refused []string }

// TestSandboxesDocument holds docs/sandboxes.md against what both sandboxes answer; -update writes it.
func TestSandboxesDocument(t *testing.T) {
	d := newDrawing(t, 7, "UTC")
	var version int
	if err := d.conn.QueryRow(context.Background(), "SELECT current_setting('server_version_num')::int / 10000").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if version != 15 {
		t.Skipf("the page is of PostgreSQL 15, and this is %d", version)
	}
	kinds := map[string]map[string]*listed{"f": {}, "o": {}, "a": {}}
	for _, c := range d.catalog() {
		answered, refused := false, false
		d.seeded(c.Name + strings.Join(c.Args, " "))
		for i := 0; i < 20 && !answered; i++ {
			a, r := d.status(d.call(c))
			answered, refused = answered || a, refused || r
		}
		of := kinds[c.Kind][c.Name]
		if of == nil {
			of = &listed{}
			kinds[c.Kind][c.Name] = of
		}
		types := strings.Join(c.Args, ", ")
		if answered {
			of.answered = append(of.answered, types)
		} else if refused {
			of.refused = append(of.refused, types)
		}
	}
	var out strings.Builder
	out.WriteString(sandboxesHead)
	for _, section := range [][2]string{{"f", "Functions"}, {"a", "Aggregates"}, {"o", "Operators"}} {
		writeSection(&out, section[1], kinds[section[0]])
	}
	d.writeTypes(&out)
	out.WriteString("\n## Forms that only the twin answers\n\nOf the forms of SQL that the tests draw, with types and kinds of arguments in braces:\n\n")
	for _, form := range forms {
		answered, refused := false, false
		d.seeded(form)
		for i := 0; i < 30 && !answered; i++ {
			a, r := d.status("SELECT " + d.filled(form))
			answered, refused = answered || a, refused || r
		}
		if refused && !answered {
			out.WriteString("- `" + form + "`\n")
		}
	}
	for _, form := range rowForms {
		answered, refused := false, false
		d.seeded(form)
		for i := 0; i < 30 && !answered; i++ {
			a, r := d.status(d.filled(form))
			answered, refused = answered || a, refused || r
		}
		if refused && !answered {
			out.WriteString("- `" + form + "`\n")
		}
	}
	if *update {
		if err := os.WriteFile(sandboxesFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(sandboxesFile)
	if err != nil || string(have) != out.String() {
		t.Errorf("%s is not what the sandboxes answer; run with -update and read the difference (%v)", sandboxesFile, err)
	}
}

// writeSection lists the names of one kind.
func writeSection(out *strings.Builder, title string, of map[string]*listed) {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	slices.Sort(names)
	var both, twin, some []string
	for _, name := range names {
		l := of[name]
		switch {
		case len(l.answered) > 0 && len(l.refused) == 0:
			both = append(both, "`"+name+"`")
		case len(l.answered) > 0:
			both = append(both, "`"+name+"`")
			some = append(some, "- `"+name+"` of ("+strings.Join(slices.Compact(l.refused), "), (")+")")
		case len(l.refused) > 0:
			twin = append(twin, "`"+name+"`")
		}
	}
	fmt.Fprintf(out, "\n## %s\n\nBoth answer %d: %s.\n\nOnly the twin answers %d: %s.\n", title, len(both), strings.Join(both, ", "), len(twin), strings.Join(twin, ", "))
	if len(some) > 0 {
		fmt.Fprintf(out, "\nOf these, over some types, only the twin:\n\n%s\n", strings.Join(some, "\n"))
	}
}

// writeTypes lists PostgreSQL's types of values.
func (d *drawing) writeTypes(out *strings.Builder) {
	d.t.Helper()
	rows, err := d.conn.Query(context.Background(), `SELECT format_type(oid, -1) FROM pg_type WHERE typnamespace = 11 AND typtype IN ('b', 'r', 'm') AND typcategory <> 'A'
		AND typname !~ '^(pg_|gtsvector|aclitem|.*vector$)' ORDER BY 1`)
	if err != nil {
		d.t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatal(err)
	}
	var both, twin []string
	for _, name := range names {
		if a, _ := d.status("SELECT NULL::" + name); a {
			both = append(both, "`"+name+"`")
		} else {
			twin = append(twin, "`"+name+"`")
		}
	}
	fmt.Fprintf(out, "\n## Types\n\nBoth have %d: %s.\n\nOnly the twin has %d: %s.\n", len(both), strings.Join(both, ", "), len(twin), strings.Join(twin, ", "))
}
