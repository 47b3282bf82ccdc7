package main

import (
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/structure"
)

func TestRewrap(t *testing.T) {
	words := strings.TrimSpace(strings.Repeat("word - list # heading go:embed 1. nolint:all ", 12))
	source := "package p\n\n// A paragraph that is short\n// stays.\n//\n//\tcode " + words + "\n//\n// " + words + "\n// and its end.\n//\n//   - a list item " + words +
		"\n//\n// | a table | " + words + " |\n//\n//go:generate " + words + "\nfunc f() {\n\tx := \"// " + words + "\" // " + words + "\n\n\t_ = x // short\n}\n\n" +
		"func ExampleF() {\n\tf()\n\t// Output:\n\t// " + words + "\n}\n"
	for _, trailing := range []bool{false, true} {
		once, err := rewrap([]byte(source), trailing)
		if err != nil {
			t.Fatal(err)
		}
		twice, err := rewrap(once, trailing)
		if err != nil || string(twice) != string(once) {
			t.Errorf("a second time it changes again (%v):\n%s", err, twice)
		}
		for _, kept := range []string{"// A paragraph that is short\n// stays.\n", "//   - a list item " + words + "\n", "//\tcode " + words + "\n",
			"// | a table | " + words + " |\n", "//go:generate " + words + "\n", "\t_ = x // short\n", "\t// Output:\n\t// " + words + "\n"} {
			if !strings.Contains(string(once), kept) {
				t.Errorf("changed: %q", kept)
			}
		}
		long, begun := 0, false
		for _, line := range strings.Split(string(once), "\n") {
			if structure.Columns(line) > structure.MaxColumns {
				long++
			}
			first, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "// "), " ")
			begun = begun || strings.HasPrefix(strings.TrimSpace(line), "// ") && begins.MatchString(first) && first != "|" && first != "Output:"
		}
		// A list item, code, a table, a directive, an output, and the line of code, once with its comment.
		if long != 6 || begun {
			t.Errorf("%d lines are too long, want 6; a line begins with what means something else: %t\n%s", long, begun, once)
		}
		if trailing == strings.Contains(string(once), "\" // word") {
			t.Errorf("trailing comments are moved: %t\n%s", !trailing, once)
		}
	}
}
