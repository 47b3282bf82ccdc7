// Package scratch makes directories for files that need not outlive their process. The process holds a lock on its
// directory, so that what a killed one left behind is known, and removed by the next that asks.
package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// New makes a directory below root, whose name begins with prefix, readable by this user alone. remove removes it. It
// has another name until it is locked.
func New(root, prefix string) (dir string, remove func() error, err error) {
	made, err := os.MkdirTemp(root, "."+prefix)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(root, filepath.Base(made)[1:])
	remove = func() error { return os.RemoveAll(dir) }
	if held, err := lock(made); err == nil {
		remove = func() error { return errors.Join(os.RemoveAll(dir), held.Close()) }
	}
	if err := os.Rename(made, dir); err != nil {
		return "", nil, errors.Join(err, os.Remove(made), remove())
	}
	return dir, remove, nil
}

// Sweep removes such directories that no process holds any more.
func Sweep(root, prefix string) {
	left, _ := filepath.Glob(filepath.Join(root, prefix+"*"))
	for _, dir := range left {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		if held, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir) // another user's cannot be removed, and need not be
			held.Close()
		}
	}
}

// lock locks a directory for as long as its file is open in this process: children do not inherit it. What others have
// put in its place is neither followed nor waited for. A file system that cannot lock a directory (NFS) gives no lock:
// it is kept, and left behind by a process that is killed.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
