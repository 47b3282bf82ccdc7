package simulation

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// files is a mount as SQLite sees it.
type files struct{ m *Mount }

func (v files) FullPathname(name string) (string, error) { return name, nil }

func (v files) Access(name string, _ vfs.AccessFlag) (bool, error) {
	v.m.disk.mu.Lock()
	defer v.m.disk.mu.Unlock()
	return v.m.disk.names[name] != nil, nil
}

func (v files) Delete(name string, syncDir bool) error {
	err := v.m.Remove(name)
	if err == nil && syncDir {
		err = v.m.SyncDir(name)
	}
	return coded(err, sqlite3.IOERR_DELETE)
}

func (v files) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, err := v.m.open(name, flags&vfs.OPEN_CREATE != 0)
	if err != nil {
		return nil, flags, sqlite3.CANTOPEN
	}
	shm := vfs.NewSharedMemory(filepath.Join(v.m.shm, v.m.vfs+"-shm"), flags)
	return &file{handle: handle{v.m, f}, name: name, shm: shm}, flags, nil
}

// coded gives SQLite its own code for an error of the disk.
func coded(err error, code sqlite3.ExtendedErrorCode) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case errors.Is(err, syscall.ENOSPC):
		return sqlite3.FULL
	case errors.Is(err, fs.ErrNotExist):
		return sqlite3.IOERR_DELETE_NOENT
	}
	return code
}

// file is a file that SQLite has open. One process has a ledger open at a time, and its connections lock by the shared
// index, so that locks of the file itself need no telling apart.
type file struct {
	handle
	name string
	shm  vfs.SharedMemory
	lock vfs.LockLevel
}

func (f *file) SharedMemory() vfs.SharedMemory { return f.shm }
func (f *file) LockState() vfs.LockLevel       { return f.lock }
func (f *file) SectorSize() int                { return sector }

func (f *file) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE
}

func (f *file) CheckReservedLock() (bool, error) { return f.lock >= vfs.LOCK_RESERVED, nil }

func (f *file) Lock(level vfs.LockLevel) error {
	f.lock = max(f.lock, level)
	return nil
}

func (f *file) Unlock(level vfs.LockLevel) error {
	f.lock = min(f.lock, level)
	return nil
}

func (f *file) Size() (int64, error) {
	f.m.disk.mu.Lock()
	defer f.m.disk.mu.Unlock()
	return int64(len(f.f.cache)), nil
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.handle.ReadAt(p, off)
	return n, coded(err, sqlite3.IOERR_READ)
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.handle.WriteAt(p, off)
	return n, coded(err, sqlite3.IOERR_WRITE)
}

func (f *file) Truncate(size int64) error {
	return coded(f.handle.Truncate(size), sqlite3.IOERR_TRUNCATE)
}

// Sync of a rollback journal, which SQLite has while it makes a ledger's first tables, also makes its name durable.
// This build of SQLite leaves that to the file system (its flush of the directory flushes the journal again), and ext4,
// XFS and Btrfs do so. On one that does not, a power cut while a ledger is made may leave a file that Open refuses as
// damaged, in which nothing was ever charged.
func (f *file) Sync(vfs.SyncFlag) error {
	f.m.pause()
	err := f.handle.Sync()
	if err == nil && strings.HasSuffix(f.name, "-journal") {
		f.m.disk.mu.Lock()
		defer f.m.disk.mu.Unlock()
		if !f.m.dead {
			f.m.disk.stored[f.name] = f.f
		}
	}
	return coded(err, sqlite3.IOERR_FSYNC)
}
