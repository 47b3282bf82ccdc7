package ledger

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is where a ledger's files are, so that a test can hold it against a disk that loses what was not flushed, tears a
// write, fails, fills up and dies at any operation (docs/adr/0035). Backup and Restore are the operator's own and work on
// the operating system's files alone.
type Disk interface {
	// VFS names the file system that SQLite opens its files on; empty: its own.
	VFS() string
	// OpenFile, ReadFile, Remove and Chmod are those of package os.
	OpenFile(name string, flag int, perm fs.FileMode) (DiskFile, error)
	ReadFile(name string) ([]byte, error)
	Remove(name string) error
	Chmod(name string, mode fs.FileMode) error
	// SyncDir flushes a directory, so that names made in it survive a power cut.
	SyncDir(dir string) error
	// Lock keeps other processes from the file of that name, until it is closed or the process ends. It fails with
	// ErrLocked where one has it.
	Lock(name string) (io.Closer, error)
}

// DiskFile is an open file of a Disk.
type DiskFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

// osDisk is the operating system's.
type osDisk struct{}

func (osDisk) VFS() string { return "" }

func (osDisk) OpenFile(name string, flag int, perm fs.FileMode) (DiskFile, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not f, which would be a DiskFile that is not nil
	}
	return f, nil
}

func (osDisk) ReadFile(name string) ([]byte, error)      { return os.ReadFile(name) }
func (osDisk) Remove(name string) error                  { return os.Remove(name) }
func (osDisk) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

func (osDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock's file stays: removing it would let two processes lock two files of one name. The kernel drops the lock when the
// process ends, however it ends.
func (osDisk) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", unavailable(err), err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is locked", ErrLocked, name)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return f, nil
}

// syncDirs flushes the directories that hold files.
func syncDirs(d Disk, files ...string) error {
	var err error
	for _, file := range files {
		err = errors.Join(err, d.SyncDir(filepath.Dir(file)))
	}
	return err
}
