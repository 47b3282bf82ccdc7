package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Disk is where a ledger's files are, so that a test can hold it against a disk that loses what was not flushed, tears
// a write, fails, fills up and dies at any operation (docs/adr/0035). Backup and Restore are the operator's own and
// work on the operating system's files alone.
type Disk interface {
	// VFS names the file system that SQLite opens its files on; empty means its own.
	VFS() string
	// OpenFile, ReadFile, Remove and Chmod are those of package os.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	ReadFile(name string) ([]byte, error)
	Remove(name string) error
	Chmod(name string, mode fs.FileMode) error
	// SyncDir flushes a directory, so that names made in it survive a power cut.
	SyncDir(dir string) error
	// Lock keeps other processes from the file of that name, until it is closed or the process ends. It fails with
	// ErrLocked where one has it.
	Lock(name string) (io.Closer, error)
}

// File is an open file of a Disk.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Sync() error
}

// OSDisk is the operating system's.
type OSDisk struct{}

func (OSDisk) VFS() string { return "" }

func (OSDisk) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err // not f, which would be a File that is not nil
	}
	return f, nil
}

func (OSDisk) ReadFile(name string) ([]byte, error)      { return os.ReadFile(name) }
func (OSDisk) Remove(name string) error                  { return os.Remove(name) }
func (OSDisk) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

func (OSDisk) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock's file stays: removing it would let two processes lock two files of one name. The kernel drops the lock when the
// process ends, however it ends.
func (OSDisk) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", Unavailable(Full(err)), err)
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

// SyncDirs flushes the directories that hold files.
func SyncDirs(d Disk, files ...string) error {
	var err error
	for _, file := range files {
		err = errors.Join(err, d.SyncDir(filepath.Dir(file)))
	}
	return err
}

// Probe writes so many bytes beside a file, flushes and removes them.
func Probe(d Disk, file string, room int) error {
	path := file + "-probe"
	f, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, room), 0)
	return errors.Join(err, f.Sync(), f.Close(), d.Remove(path))
}

// Full reports whether an error of the operating system means that there is no space.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Unavailable is ErrUnavailable, with ErrFull where there is no space.
func Unavailable(full bool) error {
	if full {
		return fmt.Errorf("%w: %w", ErrUnavailable, ErrFull)
	}
	return ErrUnavailable
}
