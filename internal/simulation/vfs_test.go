package simulation

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// files is a mount as SQLite sees it.
type files struct{ m *mount }

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
	return &file{handle: handle{v.m, f}, shm: shm}, flags, nil
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

func (f *file) Sync(vfs.SyncFlag) error {
	f.m.pause()
	return coded(f.handle.Sync(), sqlite3.IOERR_FSYNC)
}
