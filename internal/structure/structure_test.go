package structure

import (
	"flag"
	"testing"
)

var all = flag.Bool("table", false, "print every package's measures")

// maxFiles and maxLines are how large a package may be, so that a stranger can read it.
const maxFiles, maxLines = 45, 9000

func TestSizes(t *testing.T) {
	packages, err := Measure("../..")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, p := range packages {
		if p.Files > maxFiles || p.Lines > maxLines {
			t.Errorf("%s has %d files and %d lines, may have %d and %d", p.Path, p.Files, p.Lines, maxFiles, maxLines)
		}
		lines += p.Lines
	}
	if *all {
		t.Logf("%d lines\n%s", lines, Table(packages))
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
