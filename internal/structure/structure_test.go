package structure

import (
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

var all = flag.Bool("table", false, "print every package's measures")

// maxFiles and maxLines are how large a package may be, and maxCircle how many of its declarations may reach one
// another, so that a stranger can read it.
const maxFiles, maxLines, maxCircle = 24, 8800, 60

// maxCircleFiles is how many files of a package may reach one another. Below backend, whose packages are engines, they
// are fewer (ADR 213).
const maxCircleFiles, maxCircleFilesOfEngines = 22, 10

// maxMethods is how many methods a receiver may have. maxBranches is how many branches a function may have (if, for,
// case, && and ||) that is none of the few; which these are is not said, but how many there may be, and the number
// falls.
const maxMethods, maxBranches, maxBranching = 80, 15, 1.2

// TestMethodsAndBranches holds both.
func TestMethodsAndBranches(t *testing.T) {
	names, err := exec.Command("git", "-C", "../..", "ls-files", "-z", "*.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	methods, functions, branching := map[string]int{}, 0, 0
	for _, name := range strings.Split(strings.Trim(string(names), "\x00"), "\x00") {
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, parser.SkipObjectResolution)
		if errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if f.Recv != nil {
				methods[path.Dir(name)+"."+receiver(f.Recv.List[0].Type)]++
			}
			if functions++; branches(f) > maxBranches {
				branching++
			}
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, may have %d", name, n, maxMethods)
		}
	}
	share := 100 * float64(branching) / float64(functions)
	if share > maxBranching {
		t.Errorf("%d of %d functions have more than %d branches, %.2f %%, may be %.2f %%", branching, functions,
			maxBranches, share, maxBranching)
	}
	if *all {
		for _, name := range slices.SortedFunc(maps.Keys(methods), func(a,
			b string) int {
			return methods[b] - methods[a]
		})[:12] {
			t.Logf("%s has %d methods", name, methods[name])
		}
		t.Logf("%d of %d functions have more than %d branches, %.2f %%", branching, functions, maxBranches, share)
	}
}

// receiver returns the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}

// branches returns how many a function has.
func branches(f *ast.FuncDecl) (n int) {
	ast.Inspect(f, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(len(x.List), 1)
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

func TestBranchesAreCounted(t *testing.T) {
	text := "package p\n\nfunc (a *b[c]) d() {\n\tif e && f {\n\t}\n\tfor {\n\t\tswitch {\n\t\tcase g, h:\n\t\tdefault:\n\t\t}\n\t}\n}\n"
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := file.Decls[0].(*ast.FuncDecl)
	if name, n := receiver(f.Recv.List[0].Type), branches(f); name != "b" || n != 4 {
		t.Errorf("a method of %s has %d branches, want b and 4", name, n)
	}
}

// measured are the packages of the module, measured once.
var measured = sync.OnceValues(func() ([]Package, error) { return Measure("../..") })

func TestSizes(t *testing.T) {
	packages, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, p := range packages {
		if p.Files > maxFiles || p.Lines > maxLines || p.Circle > maxCircle {
			t.Errorf("%s has %d files, %d lines and a circle of %d declarations, may have %d, %d and %d", p.Path, p.Files, p.Lines, p.Circle, maxFiles, maxLines, maxCircle)
		}
		most := maxCircleFiles
		if strings.HasPrefix(p.Path, "backend") {
			most = maxCircleFilesOfEngines
		}
		if p.CircleFiles > most {
			t.Errorf("%s has %d files that reach one another, may have %d", p.Path, p.CircleFiles, most)
		}
		lines += p.Lines
	}
	if *all {
		t.Logf("%d lines\n%s", lines, Table(packages))
	}
}

// TestMapIsWhole: ARCHITECTURE.md's map of the code names every package, in a row of its own or, by its last word, in
// that of the package above it; and what has a row is there.
func TestMapIsWhole(t *testing.T) {
	packages, err := measured()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := mapOfTheCode(string(text))
	if len(rows) == 0 {
		t.Fatal("ARCHITECTURE.md has no map of the code")
	}
	for _, p := range packages {
		if !isNamed(rows, p.Path) {
			t.Errorf("ARCHITECTURE.md's map of the code does not name %s", p.Path)
		}
	}
	for path := range rows {
		if _, err := os.Stat("../../" + path); err != nil {
			t.Errorf("ARCHITECTURE.md's map of the code has a row for %s, which is not there", path)
		}
	}
}

// mapOfTheCode reads the rows of the map by the packages in their first cell.
func mapOfTheCode(text string) map[string]string {
	_, text, _ = strings.Cut(text, "\n## Map of the code\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string]string{}
	for _, line := range strings.Split(text, "\n") {
		cells := strings.SplitN(line, "|", 3)
		if len(cells) < 3 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "package" {
			continue
		}
		for _, path := range strings.Split(cells[1], ",") {
			rows[strings.TrimSpace(path)] = line
		}
	}
	return rows
}

// isNamed reports whether a package has a row, its last word is in the row of the nearest package above it that has
// one, or all of its path in any.
func isNamed(rows map[string]string, of string) bool {
	if rows[of] != "" {
		return true
	}
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(path.Base(of)) + `\b`)
	for above := path.Dir(of); above != "."; above = path.Dir(above) {
		if row := rows[above]; row != "" {
			return word.MatchString(row)
		}
	}
	whole := regexp.MustCompile(`(^|[^\w/])` + regexp.QuoteMeta(of) + `($|[^\w/])`)
	for _, row := range rows { // internal/memory is in the row of internal/threats
		if whole.MatchString(row) {
			return true
		}
	}
	return false
}

func TestMapOfTheCode(t *testing.T) {
	rows := mapOfTheCode("# A\n\n## Map of the code\n\n| package | holds |\n| --- | --- |\n| a, b/c | what. Below it: d (x) |\n\n## More\n\n| e | f |\n")
	for path, want := range map[string]bool{"a": true, "b/c": true, "a/d": true, "a/x/d": true, "a/e": false, "b": false, "b/d": false, "e": false} {
		if got := isNamed(rows, path); got != want {
			t.Errorf("%s is named: %t, want %t", path, got, want)
		}
	}
}

func TestLargestCircle(t *testing.T) {
	to := map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
	if n := largest([]string{"a", "b", "c", "d", "e", "f"}, func(n string) []string { return to[n] }); n != 3 {
		t.Errorf("the largest circle has %d, want 3", n)
	}
	if n := largest([]string{"f"}, func(string) []string { return nil }); n != 1 {
		t.Errorf("one alone is a circle of %d, want 1", n)
	}
}
