package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/test/kit"
)

// TestDemoIsForNewcomers: the demo prints the psql line and queries that all run, and the same question again is free
// and the same.
func TestDemoIsForNewcomers(t *testing.T) {
	kit.Beside(t)
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skip("no psql on this machine")
	}
	p := kit.Demo(t, t.TempDir(), "20000")
	s := kit.StartPsql(t, p.Address, "analyst", "demo")
	for _, q := range demoQueries {
		if out := s.Run(q); strings.Contains(out, "ERROR") {
			t.Errorf("%s\n%s", q, out)
		}
	}
	first, again := s.Run(demoQueries[0]), s.Run(demoQueries[0])
	if first != again || !strings.Contains(again, "free") {
		t.Errorf("asked again:\n%s\nand again:\n%s", first, again)
	}
}
