package service

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/ledger"
)

// TestStatementsAreKept: a text is kept once and found again after a restart, half a line that a crash left is written
// over, and nobody but the file's owner reads it.
func TestStatementsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "statements")
	open := func() *statements {
		t.Helper()
		s, err := openStatements(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s, err := openStatements("", nil); s != nil || err != nil || s.text(ledger.Digest{}) != "" {
		t.Error("without a name there is a file")
	}
	first := open()
	if _, err := openStatements(path, nil); err == nil || !strings.Contains(err.Error(), "another proxy") {
		t.Errorf("a second proxy on the file: %v", err)
	}
	first.close()
	s, long := open(), strings.Repeat("é\n\"'", 100_000)
	s.Keep(ledger.Digest{1}, "SELECT 1")
	s.Keep(ledger.Digest{2}, long)
	s.Keep(ledger.Digest{1}, "SELECT another")
	s.close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"statement": "0102`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	s.Keep(ledger.Digest{3}, "SELECT 3")
	s.close()
	s = open()
	defer s.close()
	for digest, want := range map[ledger.Digest]string{{1}: "SELECT 1", {2}: long, {3}: "SELECT 3", {4}: ""} {
		if got := s.text(digest); got != want {
			t.Errorf("%x: %.40q, not %.40q", digest[:1], got, want)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}
