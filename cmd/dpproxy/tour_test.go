package main

import (
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the README's tour with real output from a million people")

const (
	tourBegin  = "<!-- tour: written by `make docs` -->"
	tourEnd    = "<!-- end of tour -->"
	tourPrompt = "demo=> "
)

// TestTour runs the statements of the README's tour through the real psql against a demo, and fails if one of them is no
// longer answered as it is there: with rows, or with the same SQLSTATE-bearing refusal. With -update it writes the tour.
func TestTour(t *testing.T) {
	const readme = "../../README.md"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tourBegin)
	tour, after, ok2 := strings.Cut(rest, tourEnd)
	if !ok || !ok2 {
		t.Fatal("README has no tour")
	}
	rows := "20000"
	if *update {
		rows = "1000000"
	}
	p := demoProcess(t, t.TempDir(), rows)
	session := psql(t, p.address, "analyst", "demo")
	var written strings.Builder
	fenced := false
	for _, line := range strings.Split(tour, "\n") {
		statement, isStatement := strings.CutPrefix(line, tourPrompt)
		if !isStatement {
			fence := strings.HasPrefix(line, "```")
			if fenced = fenced != fence; fence || !fenced {
				written.WriteString(line + "\n")
			}
			continue
		}
		out := session.run(statement)
		refused := strings.Contains(out, "ERROR:")
		if wanted := strings.Contains(between(tour, line), "ERROR:"); refused != wanted && !*update {
			t.Errorf("%s\nnow prints:\n%s", statement, out)
		}
		written.WriteString(line + "\n" + out)
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+tourBegin+strings.TrimRight(written.String(), "\n")+"\n"+tourEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// between is what the tour shows under a statement.
func between(tour, line string) string {
	_, shown, _ := strings.Cut(tour, line+"\n")
	if next := strings.Index(shown, tourPrompt); next >= 0 {
		shown = shown[:next]
	}
	return shown
}

// demoProcess starts `dpproxy demo` on a free port.
func demoProcess(t *testing.T, dir, rows string) *program {
	t.Helper()
	p := &program{t: t}
	p.start([]string{"demo", "--dir", dir, "--rows", rows, "--listen", "127.0.0.1:0"})
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// TestDemoIsForNewcomers: the demo prints the psql line and queries that all run, and the same question again is free and
// the same.
func TestDemoIsForNewcomers(t *testing.T) {
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
