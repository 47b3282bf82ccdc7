package duckdb

import (
	"encoding/binary"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
)

// TestFileOfANewerDuckDB: a file that a newer DB wrote is refused, for a live database and for a snapshot's source,
// with both versions by name; one that is none, and one of this version, are not blamed on versions.
func TestFileOfANewerDuckDB(t *testing.T) {
	file := backendtest.DuckFileWith(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	own, err := EngineVersion()
	if w, ok := writerOf(file); err != nil || !ok || w.library != own || !strings.HasPrefix(own, "v1.") {
		t.Fatalf("a file of this version is read as %+v, %v; DuckDB says %s, %v", w, ok, own, err)
	}
	said := func(change func(head []byte)) string {
		t.Helper()
		changed := append([]byte{}, text...)
		change(changed)
		if err := os.WriteFile(file, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		p := backendtest.TestPolicy(t, "duckdb:"+file)
		b, err := backendtest.Opener(t.Context(), p, slog.New(slog.DiscardHandler))
		if err == nil {
			b.Close()
			t.Fatal("it was opened")
		}
		p.Backend.Snapshot = backendtest.TestSnapshot(t)
		source := &Source{policy: p, log: slog.New(slog.DiscardHandler)}
		if _, of := source.Inspect(t.Context(), p, p.Datasets[0]); of == nil || of.Error() != err.Error() {
			t.Errorf("a snapshot's source says %v, a live database %v", of, err)
		}
		return err.Error()
	}
	newer := said(func(head []byte) {
		binary.LittleEndian.PutUint64(head[formatAt:], 999)
		copy(head[libraryAt:], "v9.8.7\x00")
	})
	for _, want := range []string{"written by DuckDB v9.8.7 (storage format 999)", "this dpproxy has DuckDB " + own, file} {
		if !strings.Contains(newer, want) {
			t.Errorf("%s: nothing of %q", newer, want)
		}
	}
	if odd := said(func(head []byte) {
		binary.LittleEndian.PutUint64(head[formatAt:], 999)
		copy(head[libraryAt:], "v9\x1b[31m\n")
	}); !strings.Contains(odd, "an unnamed version") || strings.ContainsAny(odd, "\x1b\n") {
		t.Errorf("a version that is none: %q", odd)
	}
	if other := said(func(head []byte) { copy(head[magicAt:], "FAKE") }); !strings.Contains(other, "is not a DuckDB file") {
		t.Errorf("a file of something else: %s", other)
	}
}
