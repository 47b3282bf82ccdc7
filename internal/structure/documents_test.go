package structure

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	linked = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	named  = regexp.MustCompile(`\b((?:backend|cmd|internal|ledger|mechanisms|planner|policy|proxy|rewrite|sandbox|test)/[a-z0-9_/]+(?:\.(?:go|txt)|/))`)
	cited  = regexp.MustCompile(`privacy rules? (\d+)(?:(?:,| and) (\d+))?`)
	fenced = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
)

// read calls do with each file of the project whose name ends so.
func read(t *testing.T, suffix string, do func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "../.." && (strings.HasPrefix(name, ".") || name == "bin" || name == "demo") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(path, string(text))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDocumentsLink: what a document links to is there.
func TestDocumentsLink(t *testing.T) {
	read(t, ".md", func(path, text string) {
		for _, m := range linked.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	})
}

// superseded is a decision's status, its third line; a decision without one holds.
var superseded = regexp.MustCompile(`^(S|In part s)(uperseded by) ADRs? (\d+( and \d+)*)`)

// TestDecisionsAreListed: docs/README.md ends in the list of all decisions by number, each once, with its status.
func TestDecisionsAreListed(t *testing.T) {
	decisions, err := filepath.Glob("../../docs/adr/*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	var want strings.Builder
	for _, path := range decisions {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitN(string(text), "\n", 4)
		title := strings.TrimPrefix(lines[0], "# ")
		if m := superseded.FindStringSubmatch(lines[2]); m != nil {
			title += " (" + strings.ToLower(m[1]) + m[2] + " " + m[3] + ")"
		}
		fmt.Fprintf(&want, "- [%s](adr/%s)\n", title, filepath.Base(path))
	}
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, got, _ := strings.Cut(string(index), "## Decisions\n"); !strings.HasSuffix(got, "\n\n"+want.String()) {
		t.Errorf("docs/README.md lists the decisions otherwise than as\n%s", want.String())
	}
}

// TestPathsAreThere: where the guides name a file or a folder of the code, it is there.
func TestPathsAreThere(t *testing.T) {
	for _, guide := range []string{"CONTRIBUTING.md", "ARCHITECTURE.md", "docs/README.md"} {
		text, err := os.ReadFile("../../" + guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat("../../" + m[1]); err != nil {
				t.Errorf("%s names %s, which is not there", guide, m[1])
			}
		}
	}
}

// TestRulesAreThere: a comment that cites a privacy rule cites one of docs/privacy.md.
func TestRulesAreThere(t *testing.T) {
	rules, err := os.ReadFile("../../docs/privacy.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	read(t, ".go", func(path, text string) {
		for _, m := range cited.FindAllStringSubmatch(text, -1) {
			for _, n := range m[1:] {
				if found++; n != "" && !strings.Contains(string(rules), "\n"+n+". **") {
					t.Errorf("%s cites privacy rule %s, which docs/privacy.md does not have", path, n)
				}
			}
		}
	})
	if found < 40 {
		t.Errorf("%d rules are cited: the search is broken", found)
	}
}
