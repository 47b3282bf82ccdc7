// Package memory gives tests directories in memory, where flushing a file takes no time. They are for files that need not
// outlive a power cut: tests of durability use t.TempDir. Only tests import this package.
package memory

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	filesystem = "/dev/shm"
	prefix     = "dpproxy-test-"
	room       = 1 << 30 // bytes that must be free: containers are often given a few megabytes only
	settled    = time.Minute
)

var sweeping sync.Once

// Dir is a directory that is removed when the test ends: in memory, or t.TempDir where there is no such file system or too
// little room in it. Its owner holds a lock on it, so that what a process left behind that was killed is known, and
// removed by the next one that asks for a directory.
func Dir(t testing.TB) string {
	t.Helper()
	sweeping.Do(func() { sweep(filesystem, time.Now().Add(-settled)) })
	dir, err := within(filesystem)
	if err != nil {
		return t.TempDir()
	}
	held, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		held.Close()
	})
	return dir
}

// within makes a directory, if there is room.
func within(root string) (string, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(root, &s); err != nil {
		return "", err
	}
	if uint64(s.Bavail)*uint64(s.Bsize) < room {
		return "", syscall.ENOSPC
	}
	return os.MkdirTemp(root, prefix)
}

// lock locks a directory for as long as its file is open in this process: children do not inherit it.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes directories that nobody holds. One that has changed since may have been made and not be locked yet.
func sweep(root string, since time.Time) {
	left, _ := filepath.Glob(filepath.Join(root, prefix+"*"))
	for _, dir := range left {
		if info, err := os.Stat(dir); err != nil || info.ModTime().After(since) {
			continue
		}
		if held, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir) // another user's cannot be removed, and need not be
			held.Close()
		}
	}
}
