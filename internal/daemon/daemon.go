// Package daemon is what the throw-away servers of tests have in common (backend/pgtest, backend/mariadbtest): a user that is not
// root, a directory, a free port of the loopback address, and a process that does not outlive the test binary. Only they import it.
package daemon

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/dpproxy/dpproxy/internal/memory"
)

// Executable tells whether a file can be run.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Owner is whom a server runs as: database servers refuse to run as root, so then as the first of the users that there is.
func Owner(names ...string) (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil && uid != 0 {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("running as root, and no user %s exists to run the server", strings.Join(names, " or "))
}

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

// FreePort is a port that nobody listens at. Another process may take it before the server does.
func FreePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// StartTied starts cmd from a thread of its own that lives as long as the process, because the kernel ties the signal at
// the parent's death to the thread that forked.
func StartTied(cmd *exec.Cmd, exited chan<- struct{}) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	return <-started
}
