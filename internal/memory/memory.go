// Package memory gives tests directories in memory, where flushing a file takes no time. They are for files that need not
// outlive a power cut: tests of durability use t.TempDir, and benchmarks are given nothing here, as what they measure is a
// disk. Only tests and backend/pgtest import this package.
package memory

import (
	"errors"
	"flag"
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
	room       = 4 << 30 // bytes that must be free: containers are often given a few megabytes only
	settled    = time.Minute
)

var sweeping sync.Once

var errDisk = errors.New("memory: a benchmark measures a disk")

// Dir is a directory that is removed when the test ends: in memory, or t.TempDir where there is no room in memory.
func Dir(t testing.TB) string {
	t.Helper()
	dir, remove, err := New()
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// New makes a directory in memory, and fails where there is no such file system or too little room in it. This process
// holds a lock on the directory until it removes it, so that what a process left behind that was killed is known, and
// removed by the next one that asks for a directory.
func New() (dir string, remove func() error, err error) {
	if b := flag.Lookup("test.bench"); b != nil && b.Value.String() != "" || os.Getenv("DPPROXY_BENCH") != "" {
		return "", nil, errDisk
	}
	sweeping.Do(func() { sweep(filesystem, time.Now().Add(-settled)) })
	if dir, err = within(filesystem); err != nil {
		return "", nil, err
	}
	held, err := lock(dir)
	if err != nil {
		return "", nil, err
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), held.Close()) }, nil
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
