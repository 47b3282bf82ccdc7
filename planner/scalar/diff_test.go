package scalar

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/policy"
)

const (
	expressionsFile = "testdata/expressions.txt"
	goldenFile      = "testdata/expressions.golden"
)

// TestAgainstServer holds the expressions of testdata against a PostgreSQL server, row by row. With -update it writes
// what the server says to the golden file.
func TestAgainstServer(t *testing.T) {
	s := newServer(t)
	refusals, different := 0, 0
	all := fileExpressions(t)
	var golden strings.Builder
	for _, sql := range all {
		difference, refused := s.difference(sql)
		if refused {
			refusals++
		}
		if difference != "" {
			t.Error(difference)
			different++
		}
		want, typ, typmod := s.expected(sql)
		golden.WriteString(goldenEntry(sql, want, typ, typmod))
	}
	if *update {
		if err := os.WriteFile(goldenFile, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if have, err := os.ReadFile(goldenFile); err != nil || string(have) != golden.String() {
		t.Errorf("%s is not what the server says; run with -update and read the difference (%v)", goldenFile, err)
	}
	threats.Reached(t, "T50", "%d expressions: %d differ from PostgreSQL, %d refused on some row", len(all), different, refusals)
}

// goldenEntry is the text of one expression: its type and what it is on each row, equal neighbours once.
func goldenEntry(sql string, outcomes []outcome, t policy.Type, typmod int32) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", sql)
	if t != 0 {
		fmt.Fprintf(&b, "\t%s %d\n", t.Name(), typmod)
	}
	for i, o := range outcomes {
		if i == 0 || o.String() != outcomes[i-1].String() {
			fmt.Fprintf(&b, "\t%d: %q\n", i, o.String())
		}
	}
	return b.String()
}

// maxRefused is how many expressions of the golden file this package refuses on some row that PostgreSQL does not.
const maxRefused = 29

// TestGolden holds the expressions against what a PostgreSQL 15 server said when the golden file was written.
func TestGolden(t *testing.T) {
	env := testEnv(t)
	rows := rowsOf(t, env)
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	refused := 0
	for _, sql := range fileExpressions(t) {
		outcomes, typ, typmod := evaluated(env, sql, rows)
		if typ == policy.Unknown {
			typ = policy.Text
		}
		entry, plain := goldenEntry(sql, outcomes, typ, typmod), entryOf(string(text), sql)
		if refusal := `"!` + stateUnsupported + `"`; strings.Contains(entry, refusal) && !strings.Contains(plain, refusal) {
			refused++
			entry = plain
		}
		if sameClass(entry, plain) {
			entry = plain
		}
		got.WriteString(entry)
	}
	if refused > maxRefused {
		t.Errorf("%d expressions are refused on some row, %d before", refused, maxRefused)
	}
	want := strings.Split(string(text), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(want) || line != want[i] {
			t.Fatalf("line %d: got %s, want %s", i+1, line, want[min(i, len(want)-1)])
		}
	}
}

// entryOf cuts one expression's entry out of the golden file.
func entryOf(golden, sql string) string {
	at := strings.Index("\n"+golden, "\n"+sql+"\n")
	if at < 0 {
		return ""
	}
	entry := golden[at:]
	end := len(sql) + 1
	for strings.HasPrefix(entry[end:], "\t") {
		end += strings.Index(entry[end:], "\n") + 1
	}
	return entry[:end]
}

// sameClass compares entries, errors by the class of their SQLSTATE. Where all rows fail, there is no type.
func sameClass(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(y) == len(x)-1 && strings.Contains(b, `: "!`) {
		x = append(x[:1:1], x[2:]...)
	}
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if p := strings.Index(x[i], `: "!`); p >= 0 && len(x[i]) == len(y[i]) && x[i][:p+6] == y[i][:p+6] {
			continue
		}
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// fileExpressions reads testdata/expressions.txt, one a line; lines that begin with # are comments.
func fileExpressions(t *testing.T) []string {
	text, err := os.ReadFile(expressionsFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	return all
}

func BenchmarkEval(b *testing.B) {
	env := testEnv(b)
	row := rowsOf(b, env)[0]
	for _, sql := range []string{"i4 + 1", "i4 BETWEEN 30 AND 40 AND t = 'apple'", "width_bucket(n, 0, 100, 10)",
		"CASE WHEN i4 < 10 THEN 'a' WHEN i4 < 20 THEN 'b' ELSE 'c' END", "date_trunc('month', d)", "lower(t) LIKE '%pp%'",
		"t IN ('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'apple')", "round(n / 3, 2)", "tz::date", "to_char(d, 'YYYY-MM')",
		"extract(year from d)", "f8 * 2 > 3", "t ~ '^a.*e$'", "exp(f8)"} {
		e, err := compile(env, sql)
		if err != nil {
			b.Fatal(err)
		}
		if e, err = Fold(e); err != nil {
			b.Fatal(err)
		}
		b.Run(sql, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Eval(row); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
