package service

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestSandboxThatDoesNotStart: the operator's log has the words of programs that do not start, and analysts have not,
// as they name files and users of the machine.
func TestSandboxThatDoesNotStart(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	p := &policy.Policy{}
	p.Sandbox.Bin = t.TempDir()
	for _, name := range []string{"initdb", "postgres"} {
		text := "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'postgres (PostgreSQL) 15.1'\n" +
			"echo could not read $0; exit 1\n"
		if err := os.WriteFile(filepath.Join(p.Sandbox.Bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	e, err := OpenSandbox(p, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Query(context.Background(), sandbox.Session{}, outer.Query{SQL: "SELECT 1"}, nil)
	if err == nil || strings.Contains(err.Error(), p.Sandbox.Bin) || !strings.Contains(err.Error(), "log") {
		t.Errorf("an analyst is told: %v", err)
	}
	if !strings.Contains(log.String(), "initdb") {
		t.Errorf("the log: %s", log.String())
	}
}
