package structure

import (
	"flag"
	"os"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var all = flag.Bool("table", false, "print every package's measures")

// maxFiles and maxLines are how large a package may be, and maxCircle how many of its declarations may reach one
// another, so that a stranger can read it.
const maxFiles, maxLines, maxCircle = 45, 9000, 60

// maxCircleFiles is how many files of a package may reach one another. Below backend, whose packages are engines, they
// are fewer (ADR 213).
const maxCircleFiles, maxCircleFilesOfEngines = 42, 10

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

// isNamed reports whether a package has a row, its last word stands in the row of the nearest package above it that has
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
	for _, row := range rows { // internal/memory stands in the row of internal/threats
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
