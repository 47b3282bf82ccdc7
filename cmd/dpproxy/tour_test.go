package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tour (README.md, docs/tour.md) and docs/mechanisms.md with real output from a million people")

const (
	tourBegin  = "<!-- tour: written by `make docs` -->"
	tourEnd    = "<!-- end of tour -->"
	tourPrompt = "demo=> "
	shellMark  = "$ "
)

// TestTour runs the statements of the tour, and of README's first minute, through the real psql against a demo, and fails if
// one of them is no longer answered as it is there: with rows, or with the same SQLSTATE-bearing refusal. With -update it
// writes what is answered.
func TestTour(t *testing.T) {
	beside(t)
	rows := "20000"
	if *update {
		rows = "1000000"
	}
	for _, path := range []string{"../../README.md", "../../docs/tour.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(text), tourBegin)
		tour, after, ok2 := strings.Cut(rest, tourEnd)
		if !ok || !ok2 {
			t.Fatalf("%s has no tour", path)
		}
		p := demoProcess(t, t.TempDir(), rows)
		session := psql(t, p.address, "analyst", "demo")
		written := answeredAnew(tour, session.run, func(statement, wanted, out string) {
			if strings.Contains(out, "ERROR:") != strings.Contains(wanted, "ERROR:") && !*update {
				t.Errorf("%s\nnow prints:\n%s", statement, out)
			}
		})
		if *update {
			if err := os.WriteFile(path, []byte(before+tourBegin+strings.TrimRight(written, "\n")+"\n"+tourEnd+after), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// answeredAnew answers the prompts of a text's fenced parts anew, and compares each answer with the one that stands there.
func answeredAnew(text string, answer func(statement string) string, compare func(statement, wanted, out string)) string {
	var written strings.Builder
	fenced := false
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		prompt := ""
		for _, p := range []string{tourPrompt, shellMark} {
			if fenced && strings.HasPrefix(line, p) {
				prompt = p
			}
		}
		if prompt == "" {
			fence := strings.HasPrefix(line, "```")
			if fenced = fenced != fence; fence || !fenced {
				written.WriteString(line)
			}
			continue
		}
		statement := strings.TrimSpace(line)
		if prompt == tourPrompt {
			statement = strings.TrimSpace(strings.TrimPrefix(line, prompt))
		}
		out := answer(statement)
		compare(statement, shown(lines[i+1:]), out)
		written.WriteString(line + out)
	}
	return written.String()
}

// shown is what stands under a prompt.
func shown(lines []string) string {
	for i, line := range lines {
		if strings.HasPrefix(line, tourPrompt) || strings.HasPrefix(line, shellMark) || strings.HasPrefix(line, "```") {
			return strings.Join(lines[:i], "")
		}
	}
	return strings.Join(lines, "")
}

// demoProcess starts `dpproxy demo` on a free port.
func demoProcess(t *testing.T, dir, rows string) *program {
	t.Helper()
	p := &program{t: t}
	p.start([]string{"demo", "--dir", dir, "--rows", rows, "--listen", "127.0.0.1:0"})
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// smallDemo serves a demo of few rows under the policy of a million, so that plans, costs and expected errors, which are
// functions of the policy, are those of a million. With -update it has the million.
func smallDemo(t *testing.T) *program {
	t.Helper()
	dir, rows := t.TempDir(), "20000"
	if *update {
		rows = "1000000"
	}
	demoProcess(t, dir, rows).stop(syscall.SIGTERM)
	path := filepath.Join(dir, "policy.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	million := strings.NewReplacer("expected_rows: 20000\n", "expected_rows: 1000000\n", "expected_rows: 40000\n", "expected_rows: 2000000\n").Replace(string(text))
	if err := os.WriteFile(path, []byte(million), 0o600); err != nil {
		t.Fatal(err)
	}
	return serveProcess(t, path)
}

// TestDemoIsForNewcomers: the demo prints the psql line and queries that all run, and the same question again is free and
// the same.
func TestDemoIsForNewcomers(t *testing.T) {
	beside(t)
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("no psql on this machine")
	}
	p := demoProcess(t, t.TempDir(), "20000")
	s := psql(t, p.address, "analyst", "demo")
	for _, q := range demoQueries {
		if out := s.run(q); strings.Contains(out, "ERROR") {
			t.Errorf("%s\n%s", q, out)
		}
	}
	first, again := s.run(demoQueries[0]), s.run(demoQueries[0])
	if first != again || !strings.Contains(again, "free") {
		t.Errorf("asked again:\n%s\nand again:\n%s", first, again)
	}
}
