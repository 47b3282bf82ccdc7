// Package memory gives tests directories in memory, where flushing a file takes no time. They are for files that need
// not outlive a power cut: tests of durability use t.TempDir, and benchmarks are given nothing here, as what they
// measure is a disk. Only tests and backend/pgtest import this package.
package memory

import (
	"errors"
	"flag"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/internal/scratch"
)

const (
	filesystem = "/dev/shm"
	prefix     = "dpproxy-test-"
	room       = 4 << 30 // bytes that must be free: containers are often given a few megabytes only
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

// Temporary makes a directory in memory for what goes where os.TempDir says, in the processes whose TMPDIR it is:
// a sandbox's cluster is a thousand files, which took most of a sandbox's start on a disk. Other users may pass through
// it, as the sandbox's own does. It is empty where there is no room in memory, or no program runs from there.
func Temporary() (dir string, remove func() error) {
	const noPrograms = 8 // ST_NOEXEC
	none := func() error { return nil }
	var s syscall.Statfs_t
	if err := syscall.Statfs(filesystem, &s); err != nil || s.Flags&noPrograms != 0 {
		return "", none
	}
	dir, remove, err := New()
	if err != nil {
		return "", none
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		_ = remove()
		return "", none
	}
	return dir, remove
}

// New makes a directory in memory, and fails where there is no such file system or too little room in it. What a killed
// process left is removed by the next one that asks for a directory.
func New() (dir string, remove func() error, err error) {
	if b := flag.Lookup("test.bench"); b != nil && b.Value.String() != "" || os.Getenv("DPPROXY_BENCH") != "" {
		return "", nil, errDisk
	}
	sweeping.Do(func() { scratch.Sweep(filesystem, prefix) })
	var s syscall.Statfs_t
	if err := syscall.Statfs(filesystem, &s); err != nil {
		return "", nil, err
	}
	if uint64(s.Bavail)*uint64(s.Bsize) < room {
		return "", nil, syscall.ENOSPC
	}
	return scratch.New(filesystem, prefix)
}
