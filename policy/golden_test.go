package policy

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestMain fixes the seed of the property tests, so that a failure can be seen again; -rapid.seed gives another.
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.seed": "20260101", "rapid.nofailfile": "true"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// golden compares got with a file, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./policy -update rewrites it)\n%s", path, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			return "got:  " + g[i] + "\nwant: " + strings.Join(w[min(i, len(w)):min(i+1, len(w))], "")
		}
	}
	return "got is shorter"
}

func base(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("testdata/base.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// badCase is one case of testdata/errors.txt: a title, an edit of the base policy (or a whole file), the messages.
type badCase struct{ title, edit, messages string }

// TestBadPolicies holds every message that a DBA can get. A case edits testdata/base.yaml: "- text" names the line that
// is that text but for indentation, and the "+ text" lines after it take its place at its indentation; a case that
// begins with "file:" is a whole file instead.
func TestBadPolicies(t *testing.T) {
	data, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DPPROXY_TEST_EMPTY", "")
	var out strings.Builder
	for _, c := range badCases(t, string(data)) {
		text, whole := strings.CutPrefix(c.edit, "file:\n")
		if !whole {
			text = edited(t, c)
		}
		_, err := Parse([]byte(text), "policy.yaml")
		got := "no error"
		var problems Problems
		if err != nil {
			got = err.Error()
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Errorf("%s: error is %T, not Problems", c.title, err)
			}
		}
		if !strings.HasPrefix(c.title, "accepted") == (err == nil) {
			t.Errorf("%s: error is %v", c.title, err)
		}
		out.WriteString("=== " + c.title + "\n" + c.edit + "----\n" + got + "\n\n")
	}
	golden(t, "testdata/errors.txt", out.String())
}

func badCases(t *testing.T, text string) []badCase {
	var cases []badCase
	for _, block := range strings.Split(text, "=== ")[1:] {
		title, rest, _ := strings.Cut(block, "\n")
		edit, messages, ok := strings.Cut(rest, "----\n")
		if !ok {
			t.Fatalf("case %q has no ----", title)
		}
		cases = append(cases, badCase{title, edit, messages})
	}
	return cases
}

// edited applies a case's edit to the base policy.
func edited(t *testing.T, c badCase) string {
	lines := strings.SplitAfter(base(t), "\n")
	at, indent := -1, ""
	for _, line := range strings.Split(strings.TrimSuffix(c.edit, "\n"), "\n") {
		text := strings.TrimPrefix(line[min(1, len(line)):], " ")
		switch {
		case strings.HasPrefix(line, "-"):
			at = -1
			for i := range lines {
				if strings.TrimSpace(lines[i]) == text {
					at = i
				}
			}
			if at < 0 {
				t.Fatalf("%s: the base policy has no line %q", c.title, text)
			}
			indent = lines[at][:len(lines[at])-len(strings.TrimLeft(lines[at], " "))]
			lines[at] = ""
		case strings.HasPrefix(line, "+") && at >= 0:
			lines[at] += indent + text + "\n"
		default:
			t.Fatalf("%s: line %q", c.title, line)
		}
	}
	return strings.Join(lines, "")
}

// TestBasePasses makes sure that each bad case is bad because of its edit.
func TestBasePasses(t *testing.T) {
	if _, err := Parse([]byte(base(t)), "policy.yaml"); err != nil {
		t.Fatal(err)
	}
}

// TestSchemaGolden keeps the schema that is checked in equal to the one that the code checks with.
func TestSchemaGolden(t *testing.T) {
	golden(t, "../docs/policy.schema.json", string(Schema()))
}

// TestWarningsGolden shows what `dpproxy check` says of the base policy and of one with more to say.
func TestWarningsGolden(t *testing.T) {
	odd := strings.NewReplacer(
		"neighbors: add-remove", "neighbors: replace-one\n    units: 400000",
		"accountant: pure", "accountant: zcdp",
		"name: age", "name: Age", "[age]", "[Age]", "age], epsilon: 0.5", "Age], epsilon: 5",
		"[Female, Male]", "[Female, Male, other]",
		"max_rows_per_unit: 10", "max_rows_per_unit: 5000",
		"cap: {epsilon: 20", "cap: {epsilon: 0.5",
		"max_epsilon: 1,", "max_epsilon: 2,",
		"listen: 127.0.0.1:6432", "listen: localhost:0\n  admin: 0.0.0.0:9090",
		"admin: true", "admin: true\n    settings: {epsilon: 9, error_columns: true}",
	).Replace(base(t))
	var out strings.Builder
	for _, c := range [][2]string{{"base", base(t)}, {"odd", odd}} {
		p, err := Parse([]byte(c[1]), "policy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(c[0] + "\n")
		for _, w := range p.Warnings() {
			out.WriteString("  warning: " + w + "\n")
		}
		for _, n := range p.Notes() {
			out.WriteString("  note: " + n + "\n")
		}
	}
	golden(t, "testdata/warnings.txt", out.String())
}
