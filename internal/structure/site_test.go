package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dpproxy/dpproxy/policy"
)

// What `make site` would find, without it: docs/README.md is the site's navigation, docs/site/conf.py reads it (ADR
// 140).

var (
	entry    = regexp.MustCompile(`(?m)^(?:\| |- )\[[^\]]*\]\(([^)#]+\.md)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,4} +(.+?) *$`)
	leading  = regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)
	fences   = regexp.MustCompile("(?ms)^```.*?^```$")
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	commit   = regexp.MustCompile(`\b[0-9a-f]{7,8}\b`)
	yamlPart = regexp.MustCompile("(?ms)^```yaml\n(version:.*?)^```$")
)

// TestSiteIsComplete: each document is in one of the start page's lists, and only once, so that it is in the site's
// side bar.
func TestSiteIsComplete(t *testing.T) {
	start, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	lists, _, found := strings.Cut(string(start), "\n## Decisions\n")
	if !found {
		t.Fatal("docs/README.md has no Decisions, which docs/site/conf.py leaves out of the side bar")
	}
	listed := map[string]int{}
	for _, m := range entry.FindAllStringSubmatch(lists, -1) {
		listed[filepath.Join("docs", m[1])]++
	}
	read(t, ".md", func(path, _ string) {
		path = strings.TrimPrefix(filepath.Clean(path), "../../")
		root := !strings.Contains(path, "/")
		if path == "docs/README.md" || strings.HasPrefix(path, "docs/adr/") || !root && !strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "examples/") {
			return
		}
		if listed[path] != 1 {
			t.Errorf("docs/README.md lists %s %d times: a page is in one list, or the site has no way to it", path, listed[path])
		}
		delete(listed, path)
	})
	for path := range listed {
		t.Errorf("docs/README.md lists %s, which is no document", path)
	}
}

// anchor is the fragment that a Git host and the site give a heading.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(link.ReplaceAllString(heading, "$1")) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// TestFragmentsLead: a link to a part of a document leads to a heading that is there.
func TestFragmentsLead(t *testing.T) {
	anchors := map[string][]string{}
	read(t, ".md", func(path, text string) {
		for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
			name := anchor(m[1])
			anchors[filepath.Clean(path)] = append(anchors[filepath.Clean(path)], name)
		}
	})
	links := 0
	read(t, ".md", func(path, text string) {
		for _, m := range leading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			to := filepath.Clean(path)
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(path), m[1])
			}
			if strings.Contains(m[1], "://") || filepath.Ext(to) != ".md" {
				continue
			}
			if links++; !slices.Contains(anchors[to], m[2]) {
				t.Errorf("%s links to %s#%s, and no heading there is called so", path, m[1], m[2])
			}
		}
	})
	if links < 40 {
		t.Errorf("%d links to parts of documents were looked at, which is too few to be all", links)
	}
	for heading, want := range map[string]string{"A SELECT as source": "a-select-as-source", "Speed (`make bench`)": "speed-make-bench", "See [x](y.md), ±1": "see-x-1"} {
		if got := anchor(heading); got != want {
			t.Errorf("the anchor of %q: %q, want %q", heading, got, want)
		}
	}
}

// TestFitCitesWhatWasMeasured: a commit that fit.md names for a figure is named by a page that holds measurements, so
// that a figure measured anew is noticed here.
func TestFitCitesWhatWasMeasured(t *testing.T) {
	measured := ""
	for _, page := range []string{"benchmarks.md", "peers.md", "tpch.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		measured += string(text)
	}
	text, err := os.ReadFile("../../docs/fit.md")
	if err != nil {
		t.Fatal(err)
	}
	named := commit.FindAllString(string(text), -1)
	for _, c := range named {
		if !strings.Contains(measured, c) {
			t.Errorf("docs/fit.md names a figure of %s, and no page of measurements does any more", c)
		}
	}
	if len(named) < 5 {
		t.Errorf("%d commits are named, which is too few for its figures", len(named))
	}
}

// TestPoliciesOfMigratingLoad: the policies that migrating.md shows are policies.
func TestPoliciesOfMigratingLoad(t *testing.T) {
	text, err := os.ReadFile("../../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := yamlPart.FindAllStringSubmatch(string(text), -1)
	if len(parts) != 2 {
		t.Fatalf("%d policies were found", len(parts))
	}
	for _, m := range parts {
		if _, err := policy.Parse([]byte(m[1]), filepath.Join(t.TempDir(), "policy.yaml")); err != nil {
			t.Errorf("%v\n%s", err, m[1])
		}
	}
}
