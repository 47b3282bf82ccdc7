// Package way finds by which files a statement goes through dpproxy: it builds the program with a call at the beginning
// of each function, runs five statements, and writes into CONTRIBUTING.md what it passed, in order.
package way

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/test/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m, nil)) }

const (
	root     = "../.."
	document = root + "/CONTRIBUTING.md"
	begin    = "<!-- ways: written by `make docs` -->\n"
	end      = "<!-- end of ways -->\n"
	recorder = "internal/way" // where the package is that recorder.go.txt is built as
	first    = "proxy/query.go"
)

// statements are the five, each with one of its kind that is asked before, so that what is made once a process is made
// by then.
var statements = []struct{ name, sql, before string }{
	{"A count", "SELECT hiv, count(*) FROM people WHERE age >= 30 GROUP BY hiv ORDER BY 2 DESC",
		"SELECT note, count(*) FROM people WHERE income >= 30000 GROUP BY note ORDER BY 2 DESC"},
	{"A join", "SELECT p.city, count(*) FROM people p JOIN events e ON e.uid = p.uid GROUP BY p.city",
		"SELECT p.note, count(*) FROM people p JOIN events e ON e.uid = p.uid GROUP BY p.note"},
	{"A dashboard's panel, from a declared release", "SELECT age / 10 * 10 AS decade, count(*) FROM people GROUP BY 1 ORDER BY 1",
		"SELECT city, count(*) FROM people GROUP BY 1 ORDER BY 1"},
	{"A top-k", "SELECT income, count(*) FROM people GROUP BY income ORDER BY count(*) DESC LIMIT 3",
		"SELECT age, count(*) FROM people WHERE NOT hiv GROUP BY age ORDER BY count(*) DESC LIMIT 3"},
	{"A cursor over a CTE", "BEGIN; DECLARE c CURSOR FOR WITH young AS (SELECT note, income FROM people WHERE age < 40) SELECT note, avg(income) FROM young GROUP BY note; FETCH ALL FROM c; COMMIT",
		"BEGIN; DECLARE c CURSOR FOR WITH rich AS (SELECT city, age FROM people WHERE income > 40000) SELECT city, avg(age) FROM rich GROUP BY city; FETCH ALL FROM c; COMMIT"},
}

// words are packages that every other one speaks in, and those that wait: a statement does not pass them.
var words = []string{"policy", "service", "mechanisms/privacy", "mechanisms/noise", "mechanisms/internal/sealed", "planner/refuse", "planner/ast", "planner/plans",
	"proxy/pgerror", "proxy/admission", "proxy/spans", "internal/request", "internal/processor", "internal/moment", "internal/scratch"}

// returns are the packages that the pipeline comes back to after it has left them, and why.
var returns = map[string]string{
	"ledger":     "it charges before the rows are read, saves before anything is sent, and gives back what is saved (privacy rule 4)",
	"mechanisms": "it draws, and once that is saved, reads the rows of a leaf from what is saved",
}

// source is dpproxy's functions by file and line: their lengths, and those of their files together.
type source struct {
	lines map[string]int
	of    map[string]int
}

// passed is a file that a statement passes: one of which a third, by its functions, has run. It is passed when the
// third is full.
type passed struct{ stage, pkg, file string }

// TestFiveStatements: each statement goes from package to package as CONTRIBUTING.md says, and comes back to none but
// where it says why.
func TestFiveStatements(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program: left out by -short")
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the ways", document)
	}
	src, overlay := instrumented(t)
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	log := filepath.Join(t.TempDir(), "way")
	t.Setenv("DPPROXY_WAY", log)
	c := kit.Bare(t, kit.Lab{Engine: "duckdb"}.Serve(t, 0).Program)
	ask(t, c, log, "SET dp.epsilon = 0.5")
	for _, s := range statements {
		ask(t, c, log, s.before)
	}
	var b strings.Builder
	for _, s := range statements {
		list := src.passed(t, ask(t, c, log, s.sql))
		for pkg, times := range visits(list) {
			if times > 1 && returns[pkg] == "" {
				t.Errorf("%s: comes back to %s, which it had left", s.name, pkg)
			}
		}
		fmt.Fprintf(&b, "**%s**: `%s`\n%s\n", s.name, s.sql, written(list))
	}
	now := strings.TrimSuffix(b.String(), "\n")
	if *kit.Update {
		if err := os.WriteFile(document, []byte(before+begin+now+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != was {
		t.Errorf("the ways are others now (go test ./test/way -update writes them):\n%s", now)
	}
}

// ask sends a message and returns what the program wrote down of it.
func ask(t *testing.T, c *pgconn.PgConn, log, sql string) string {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text[bytes.LastIndex(text, []byte("message\n")):])
}

// passed are the files that a trace passes, in order.
func (s source) passed(t *testing.T, trace string) (list []passed) {
	t.Helper()
	ran := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(trace), "\n")[1:] {
		var stage, file, at string
		if _, err := fmt.Sscan(line, &stage, &file, &at); err != nil {
			t.Fatal(line, err)
		}
		length, pkg := s.lines[file+":"+at], filepath.Dir(file)
		if length == 0 {
			t.Fatalf("no function begins at %s:%s", file, at)
		}
		was := ran[file]
		if ran[file] += length; 3*was < s.of[file] && 3*ran[file] >= s.of[file] && !slices.Contains(words, pkg) && !slices.Contains(words, stage) {
			list = append(list, passed{stage, pkg, filepath.Base(file)})
		}
	}
	return list
}

// drives tells the packages that hand a statement on, and so are there from its beginning to its end.
func drives(stage string) bool {
	return stage == "proxy" || stage == "proxy/pipeline" || stage == "proxy/settings"
}

// visits is how often the way comes to each package that the pipeline calls.
func visits(list []passed) map[string]int {
	times, last := map[string]int{}, ""
	for _, p := range list {
		if !drives(p.stage) && p.stage != last {
			last = p.stage
			times[last]++
		}
	}
	return times
}

// written is a way as CONTRIBUTING.md has it: what drives, and then each package that it calls, with those that this
// one calls.
func written(list []passed) string {
	var b strings.Builder
	line := func(of []passed) {
		pkgs, files := []string{of[0].stage}, map[string][]string{}
		for _, p := range of {
			if !slices.Contains(pkgs, p.pkg) {
				pkgs = append(pkgs, p.pkg)
			}
			files[p.pkg] = append(files[p.pkg], strings.TrimSuffix(p.file, ".go"))
		}
		var parts []string
		for _, pkg := range pkgs {
			if files[pkg] != nil {
				parts = append(parts, fmt.Sprintf("`%s`: %s", pkg, strings.Join(files[pkg], ", ")))
			}
		}
		fmt.Fprintf(&b, "- %s\n", strings.Join(parts, "; "))
	}
	var driving, stage []passed
	for _, p := range list {
		if drives(p.stage) {
			driving = append(driving, p)
		}
	}
	line(driving)
	for _, p := range list {
		if drives(p.stage) {
			continue
		}
		if len(stage) > 0 && stage[0].stage != p.stage {
			line(stage)
			stage = nil
		}
		stage = append(stage, p)
	}
	line(stage)
	return b.String()
}

// instrumented writes dpproxy's source with a call at the beginning of each function, and the list of what it replaces.
func instrumented(t *testing.T) (src source, overlay string) {
	t.Helper()
	src = source{map[string]int{}, map[string]int{}}
	module, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir, begins := t.TempDir(), false
	replaced := map[string]string{filepath.Join(module, recorder, "way.go"): filepath.Join(module, "test/way/recorder.go.txt")}
	err = filepath.WalkDir(module, func(path string, d fs.DirEntry, err error) error {
		below, _ := filepath.Rel(module, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && below != "." && (d.Name()[0] == '.' || slices.Contains([]string{"testdata", "bin", "demo", "test", "examples"}, d.Name())):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed, at, err := src.instrument(below, text)
		begins = begins || at
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		replaced[path] = to
		if err == nil {
			err = os.WriteFile(to, changed, 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !begins {
		t.Fatalf("%s has no function query: where does a message begin?", first)
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return src, overlay
}

// instrument adds the calls to a file, and reports whether messages begin in it.
func (s source) instrument(path string, text []byte) (changed []byte, begins bool, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, 0)
	if err != nil {
		return nil, false, err
	}
	var b bytes.Buffer
	at := 0
	insert := func(pos token.Pos, what string) {
		b.Write(text[at:fset.Position(pos).Offset])
		b.WriteString(what)
		at = fset.Position(pos).Offset
	}
	insert(file.Name.End(), `; import entered "github.com/dpproxy/dpproxy/`+recorder+`"`)
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		line := fset.Position(f.Pos()).Line
		length := fset.Position(f.End()).Line - line + 1
		s.lines[fmt.Sprintf("%s:%d", path, line)] = length
		s.of[path] += length
		call := fmt.Sprintf(`entered.In(%q, "%d");`, path, line)
		if path == first && f.Name.Name == "query" {
			begins, call = true, "entered.Begin();"+call
		}
		insert(f.Body.Lbrace+1, call)
	}
	b.Write(text[at:])
	b.WriteString("\nvar _ = entered.In\n") // also where there is no function
	return b.Bytes(), begins, nil
}
