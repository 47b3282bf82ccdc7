package ledger

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps other processes from writing the same ledger. Its file stays: removing it would let two processes lock two
// files of one name. The kernel drops the lock when the process ends, however it ends.
type lock struct{ file *os.File }

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", unavailable(err), err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s is locked", ErrLocked, path)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return &lock{f}, nil
}

func (l *lock) release() error { return l.file.Close() }
