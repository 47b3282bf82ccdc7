package daemon

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLog: a start that fails tells what the server said then, and not what it said before; a link in the log's place,
// which a server can put into its own directory, is not followed.
func TestLog(t *testing.T) {
	p := Process{Dir: t.TempDir()}
	fails := func() error {
		return p.Again(nil, func() *exec.Cmd { return exec.Command("/bin/sh", "-c", "echo $$ says no; exit 1") },
			func() error { return os.ErrNotExist })
	}
	for range 2 {
		if err := fails(); err == nil || strings.Count(err.Error(), "says no") != 1 {
			t.Errorf("a start that fails: %v", err)
		}
	}
	if err := os.WriteFile(p.Log(), make([]byte, most+1), 0o600); err != nil {
		t.Fatal(err)
	}
	p.ShortenLog()
	if info, err := os.Stat(p.Log()); err != nil || info.Size() != 0 {
		t.Errorf("a long log: %v %v", info, err)
	}
	other := filepath.Join(t.TempDir(), "other")
	kept := make([]byte, most+1)
	if err := os.WriteFile(other, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p.Log()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, p.Log()); err != nil {
		t.Fatal(err)
	}
	err := fails()
	p.ShortenLog()
	if text, read := os.ReadFile(other); err == nil || read != nil || len(text) != len(kept) {
		t.Errorf("a link in the log's place: %v; its target has %d bytes, %v", err, len(text), read)
	}
}
