// Package figures fills docs/benchmarks.md: it runs benchmarks and writes what they print between two marks, with the
// commit that they ran at, and holds the document to that: a figure is in a section that was written here, or in
// words that name a commit.
package figures

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/figures"
)

const (
	root     = "../.."
	document = root + "/docs/benchmarks.md"
	// oldest is how many commits a section may lie behind: by then nobody knows what it says of the program.
	oldest = 1500
)

var measure = flag.String("measure", "", "sections to measure and to write into the document, by name; short: those of a few minutes; all: every one")

func begin(name string) string {
	return "<!-- figures of " + name + ": written by `make bench ONLY=" + name + "` -->\n"
}

func end(name string) string { return "<!-- end of " + name + " -->\n" }

// head is a section's first line: commit, day, whether something was not committed, and what it ran on.
var head = regexp.MustCompile(`^At ([0-9a-f]{7,40}) of (\d{4}-\d{2}-\d{2})(, with changes that are not committed)?, (.+):\n\n`)

// TestMeasure runs what it is asked for and writes it. A section that fails stays as it was.
func TestMeasure(t *testing.T) {
	if *measure == "" {
		t.Skip("measures: make bench")
	}
	asked := strings.Fields(*measure)
	for _, name := range asked {
		if name != "short" && name != "all" && !slices.ContainsFunc(sections, func(s section) bool { return s.name == name }) {
			t.Fatalf("no section is called %q", name)
		}
	}
	commit := git(t, "rev-parse", "--short=8", "HEAD")
	for _, s := range sections {
		if slices.Contains(asked, s.name) || slices.Contains(asked, "all") || slices.Contains(asked, "short") && !s.long {
			t.Run(s.name, func(t *testing.T) { write(t, s, commit) })
		}
	}
}

func write(t *testing.T, s section, commit string) {
	dirty, began, load := dirt(t), time.Now(), loadNow()
	var out bytes.Buffer
	for _, c := range s.commands {
		cmd := exec.Command("sh", "-c", "exec "+quoted(c))
		cmd.Dir, cmd.Env = root, append(os.Environ(), "DPPROXY_BENCH=1")
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stdout), os.Stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
	tables, err := figures.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if len(tables) == 0 {
		t.Fatalf("%s: no figures in what was printed", s.name)
	}
	if now := git(t, "rev-parse", "--short=8", "HEAD"); now != commit {
		t.Fatalf("HEAD was %s and is %s now: what was measured is of neither", commit, now)
	}
	with := ""
	if dirty || dirt(t) {
		with = ", with changes that are not committed"
	}
	first := fmt.Sprintf("At %s of %s%s, on %d processors (%s; load %s before, %s after) in %s:\n\n", commit, began.UTC().Format(time.DateOnly), with, runtime.NumCPU(), model(), load, loadNow(),
		time.Since(began).Round(time.Second))
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin(s.name))
	_, after, ok2 := strings.Cut(rest, end(s.name))
	if !ok || !ok2 {
		t.Fatalf("%s has no place for %s:\n%s%s", document, s.name, begin(s.name), end(s.name))
	}
	if err := os.WriteFile(document, []byte(before+begin(s.name)+first+figures.Markdown(tables)+end(s.name)+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// quoted keeps the shell from reading patterns.
func quoted(command string) string {
	f := strings.Fields(command)
	for i := range f {
		f[i] = "'" + f[i] + "'"
	}
	return strings.Join(f, " ")
}

func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// dirt reports whether something differs from the commit, but for the document itself, which is written section by
// section.
func dirt(t *testing.T) bool {
	return git(t, "status", "--porcelain", "--", ".", ":!docs/benchmarks.md") != ""
}

// loadNow is how busy the machine is.
func loadNow() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// model is the processor's.
func model() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	if m := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return runtime.GOARCH
}

// TestDocument: every section is there once, in order, and parses; its commit is one that HEAD goes back to, it is not
// too old, and nothing uncommitted was measured. It says how old each is.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	known := history(t)
	rest := string(text)
	for _, s := range sections {
		before, after, ok := strings.Cut(rest, begin(s.name))
		body, after, ok2 := strings.Cut(after, end(s.name))
		if !ok || !ok2 {
			t.Errorf("%s: not in its place in the document", s.name)
			continue
		}
		if strings.Contains(before, "<!-- figures of ") {
			t.Errorf("before %s stands a section that nothing writes", s.name)
		}
		rest = after
		m := head.FindStringSubmatch(body)
		if m == nil {
			t.Errorf("%s does not begin with its commit", s.name)
			continue
		}
		if m[3] != "" {
			t.Errorf("%s was measured with changes that are not committed", s.name)
		}
		if err := whole(body[len(m[0]):]); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if known == nil {
			continue
		}
		age := known.age(m[1])
		if age < 0 {
			t.Errorf("%s: HEAD does not go back to %s: measured before a rebase?", s.name, m[1])
		} else if age > oldest {
			t.Errorf("%s is %d commits old, more than %d: make bench ONLY=%s", s.name, age, oldest, s.name)
		}
		t.Logf("%-12s %s of %s, %d commits ago", s.name, m[1], m[2], age)
	}
	if strings.Contains(rest, "<!-- figures of ") {
		t.Error("behind the last stands a section that nothing writes")
	}
}

// whole reports whether a section's body is tables, each with as many cells in every row, and blocks of text.
func whole(body string) error {
	for i, block := range strings.Split(strings.TrimRight(body, "\n"), "\n\n") {
		lines := strings.Split(block, "\n")
		if strings.HasPrefix(block, "|") {
			if len(lines) < 3 {
				return fmt.Errorf("table %d has no row", i+1)
			}
			for _, l := range lines {
				if n := len(cell.FindAllString(l, -1)); n != len(cell.FindAllString(lines[0], -1)) {
					return fmt.Errorf("%q has %d cells, the first line of its table another number", l, n)
				}
			}
		} else if i == 0 && !strings.HasPrefix(block, "```\n") {
			return fmt.Errorf("%q is neither a table nor text", lines[0])
		}
	}
	if strings.Count(body, "```")%2 != 0 {
		return fmt.Errorf("a block of text does not end")
	}
	return nil
}

var cell = regexp.MustCompile(`(^|[^\\])\|`)

// commits are those that HEAD goes back to, newest first.
type commits []string

// history is nil where not all of it is here, as in a copy without it.
func history(t *testing.T) commits {
	cmd := exec.Command("git", "rev-parse", "--is-shallow-repository")
	cmd.Dir = root
	if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != "false" {
		t.Log("the history is not here: commits are not looked up")
		return nil
	}
	return strings.Fields(git(t, "rev-list", "HEAD"))
}

// age is how many commits ago one was; -1: it is none of them.
func (c commits) age(id string) int {
	return slices.IndexFunc(c, func(full string) bool { return strings.HasPrefix(full, id) })
}

// What is no figure that was measured: code, links, aims and limits.
var (
	aside  = regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\]\\([^)]*\\)|\\baims?\\s.*?([.;:)](\\s|$)|$)")
	figure = regexp.MustCompile(`[0-9][0-9.,]*( to [0-9.,]+)?[  ]?(ns|µs|ms|s|MB|GB|KiB|MiB|GiB|×|/s|times)\b?([^\pL]|$)`)
	named  = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	digit  = regexp.MustCompile(`[0-9]`)
)

// bare are the paragraphs of a document that state a figure and name no commit, outside of sections.
func bare(text string) (list []string, ids []string) {
	for _, s := range sections {
		before, after, ok := strings.Cut(text, begin(s.name))
		if _, after, ok2 := strings.Cut(after, end(s.name)); ok && ok2 {
			text = before + after
		}
	}
	commit := ""
	for _, p := range regexp.MustCompile(`\n\s*\n`).Split(aside.ReplaceAllString(text, "…"), -1) {
		if !strings.HasPrefix(p, "|") { // a table goes with what precedes it
			commit = ""
		}
		for _, id := range named.FindAllString(p, -1) {
			if digit.MatchString(id) && regexp.MustCompile(`[a-f]|^\d{7,8}$`).MatchString(id) {
				commit = id
				ids = append(ids, id)
			}
		}
		if figure.MatchString(p) && commit == "" {
			list = append(list, p)
		}
	}
	return list, ids
}

// TestProse: what is written by hand states no figure without its commit.
func TestProse(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	list, ids := bare(string(text))
	for _, p := range list {
		t.Errorf("states %q and names no commit:\n%s", figure.FindString(p), p)
	}
	known := history(t)
	for _, id := range ids {
		if known != nil && known.age(id) < 0 {
			t.Errorf("HEAD does not go back to %s", id)
		}
	}
}

// TestBare: what TestProse and TestDocument must not let pass.
func TestBare(t *testing.T) {
	for text, want := range map[string]int{
		"A leaf takes 12 ms.":                            1,
		"At 12ab34cd a leaf takes 12 ms.":                0,
		"A leaf takes 12 ms.\n\nAt 12ab34cd it took 13.": 1,
		"Over 10,000,000 rows; aim 0.25 ×.":              0,
		"Set `grid: 20ms`.":                              0,
		"1.4 × of her own":                               1,
		begin("fresh") + "takes 3 ms\n" + end("fresh"):   0,
	} {
		if list, _ := bare(text); len(list) != want {
			t.Errorf("%q: %d bare figures, must be %d", text, len(list), want)
		}
	}
	for body, want := range map[string]bool{
		"| a | b |\n| --- | --- |\n| x | 1 |\n":       true,
		"| a | b |\n| --- | --- |\n| x `\\|` | 1 |\n": true,
		"| a | b |\n| --- | --- |\n| x |\n":           false,
		"| a | b |\n| --- | --- |\n":                  false,
		"```\n 1 2\n\n 3\n```\n":                      true,
		"```\n 1 2\n":                                 false,
		"some words":                                  false,
	} {
		if err := whole(body); (err == nil) != want {
			t.Errorf("%q: %v", body, err)
		}
	}
	for line, want := range map[string]bool{
		"At 5224cc88 of 2026-11-25, on 2 processors:\n\n": true,
		"At 5224cc88, on 2 processors:\n\n":               false,
		"Of 2026-11-25, on 2 processors:\n\n":             false,
	} {
		if head.MatchString(line) != want {
			t.Errorf("%q is read as the beginning of a section: %v", line, !want)
		}
	}
	if age := (commits{"5224cc88aa", "30f90fa9ae"}).age("30f90fa9"); age != 1 {
		t.Errorf("the commit before the last is %d commits old", age)
	}
}
