// Package daemontest is what the throw-away servers of tests have in common.
package daemontest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/internal/memory"
)

// Directory makes a directory for a server: in memory where there is room, but for benchmarks.
func Directory(prefix string) (dir string, remove func() error, err error) {
	if dir, remove, err = memory.New(); err == nil {
		return dir, remove, nil
	}
	if dir, err = os.MkdirTemp("", prefix); err != nil {
		return "", nil, err
	}
	return dir, func() error { return os.RemoveAll(dir) }, nil
}

// Own gives a directory to the user that the server runs as.
func Own(dir string, owner *syscall.Credential) error {
	if owner == nil {
		return nil
	}
	return os.Chown(dir, int(owner.Uid), int(owner.Gid))
}

// A Server can be stopped.
type Server interface{ Stop() error }

// Wanted skips a test that is about to start a server in `make quick`, which starts none.
func Wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("DPPROXY_QUICK") != "" {
		t.Skip("make quick starts no server")
	}
}

// UntilTheEnd has a server that was started with err stop at the test's end. Where none is installed (err is none) the
// test is skipped.
func UntilTheEnd[S Server](t testing.TB, s S, err, none error) S {
	t.Helper()
	orSkip(t, err, none)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func orSkip(t testing.TB, err, none error) {
	t.Helper()
	if errors.Is(err, none) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Shared is the one server of a test binary, started by the first test that asks, and names that nothing else on it
// has.
type Shared[S Server] struct {
	mu      sync.Mutex
	server  S
	err     error
	started bool
	names   int
}

// Get is the server. Where none is installed (launch fails by none) the test is skipped.
func (s *Shared[S]) Get(t testing.TB, launch func() (S, error), none error) S {
	t.Helper()
	Wanted(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.server, s.err = launch()
		s.started = true
	}
	orSkip(t, s.err, none)
	return s.server
}

// Name is a name of a kind that was not used before.
func (s *Shared[S]) Name(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names++
	return fmt.Sprintf("%s_%d", kind, s.names)
}

// Stop stops the server, if there is one, and returns the exit code of a test binary whose tests ended with code.
func (s *Shared[S]) Stop(code int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started || s.err != nil {
		return code
	}
	if err := s.server.Stop(); err != nil {
		fmt.Println(err)
		return max(code, 1)
	}
	return code
}
