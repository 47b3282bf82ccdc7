package scratch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const childOf, prefix = "DPPROXY_SCRATCH_CHILD", "dpproxy-scratch-"

// TestKilledProcessLeavesNothing: what a killed process leaves is removed by the next one, what a living one has is
// not.
func TestKilledProcessLeavesNothing(t *testing.T) {
	if root := os.Getenv(childOf); root != "" {
		dir, _, err := New(root, prefix)
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString(dir + "\n")
		select {} // until it is killed
	}
	root := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run", "^TestKilledProcessLeavesNothing$")
	child.Env = append(os.Environ(), childOf+"="+root)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(line[:n]))
	if err := os.WriteFile(filepath.Join(dir, "ledger.db"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	there := func() bool { _, err := os.Stat(dir); return err == nil }
	if Sweep(root, prefix); !there() {
		t.Error("removed while its owner lives")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	if Sweep(root, prefix); there() {
		t.Error("not removed after its owner was killed")
	}
}

// TestOthersInItsPlace: what bears such a name and is no directory is neither waited for nor removed.
func TestOthersInItsPlace(t *testing.T) {
	root := t.TempDir()
	pipe, link, kept := filepath.Join(root, prefix+"pipe"), filepath.Join(root, prefix+"link"), t.TempDir()
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink(kept, link)); err != nil {
		t.Fatal(err)
	}
	Sweep(root, prefix)
	for _, path := range []string{pipe, link, kept} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestRemoved: a directory is this user's alone, and gone when its owner says so.
func TestRemoved(t *testing.T) {
	dir, remove, err := New(t.TempDir(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
