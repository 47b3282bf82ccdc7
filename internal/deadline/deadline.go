// Package deadline bounds calls that the operating system may never return from: a read on a network disk that is away,
// an open of a pipe that nobody writes, a flush of a frozen disk. Such a call cannot be ended; who waits for it can go
// on without it.
package deadline

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// ErrExceeded is the error of a call that has not returned in time.
var ErrExceeded = errors.New("does not answer in time")

// Files is how long a read of a file may take.
const Files = 5 * time.Second

// Gate lets one call at a time through, so that of the calls that do not return there is one at most.
type Gate chan struct{}

// NewGate returns an open gate.
func NewGate() Gate { return make(Gate, 1) }

// Call runs do on a goroutine of its own and returns its result, or ErrExceeded once the limit is over, also where an
// earlier call has not returned by then. What do does after that is lost: it must change nothing that its caller reads.
func Call[T any](g Gate, limit time.Duration, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var none T
	select {
	case g <- struct{}{}:
	case <-timer.C:
		return none, ErrExceeded
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-g }()
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-timer.C:
		return none, ErrExceeded
	}
}

// gates are those of ReadFile, by path.
var gates sync.Map

// ReadFile is os.ReadFile of a regular file, within Files.
func ReadFile(path string) ([]byte, error) {
	gate, ok := gates.Load(path)
	if !ok {
		gate, _ = gates.LoadOrStore(path, NewGate())
	}
	data, err := Call(gate.(Gate), Files, func() ([]byte, error) {
		f, err := Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	})
	if errors.Is(err, ErrExceeded) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return data, err
}

// Open opens a regular file for reading. It does not wait for what else may have the name, such as a pipe, and refuses
// it.
func Open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
