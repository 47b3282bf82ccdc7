// Package daemon runs a database server as a child: the user that it runs as where this process is root's, a free port
// of the loopback address, and a process that does not outlive this one. sandbox/cluster starts PostgreSQL by it, and
// the tests their throw-away servers (daemontest).
package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Executable reports whether a file can be run.
func Executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Owner is whom a server runs as: database servers refuse to run as root, so then as the first of the users that there
// is.
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

// freePort is a port that nobody listens at. Another process may take it before the server does.
func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

const (
	startWait = 60 * time.Second
	stopWait  = 30 * time.Second
	most      = 1 << 20 // bytes of a log
)

// Process is a server's process, with its directory and its port of the loopback address.
type Process struct {
	Dir    string
	Remove func() error // removes Dir
	Port   int
	Exited chan struct{} // closed when the process has ended
	Wait   time.Duration // for its first answer; 0 means startWait
	mu     sync.Mutex
	cmd    *exec.Cmd // the last that was started; guarded by mu
}

// Log is the path of the server's log.
func (p *Process) Log() string { return filepath.Join(p.Dir, "server.log") }

// openLog opens the log. The directory is the server's: were a link that it put there followed, it would write what
// this process may write.
func (p *Process) openLog() (*os.File, error) {
	return os.OpenFile(p.Log(), os.O_CREATE|os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
}

// ShortenLog empties a log that is longer than it should become.
func (p *Process) ShortenLog() {
	log, err := p.openLog()
	if err != nil {
		return
	}
	defer log.Close()
	if info, err := log.Stat(); err == nil && info.Size() > most {
		_ = log.Truncate(0)
	}
}

// Gone reports whether the process has ended.
func (p *Process) Gone() bool {
	select {
	case <-p.Exited:
		return true
	default:
		return false
	}
}

// Run starts the process of a server at a free port, of which command makes its command, and waits until it answers.
// Another process may take that port between the look and the server's: then it is tried again.
func (p *Process) Run(attr *syscall.SysProcAttr, command func() *exec.Cmd, answers func() error) (err error) {
	for range 3 {
		if p.Port, err = freePort(); err != nil {
			return err
		}
		if err = p.run(attr, command(), answers); err == nil {
			return nil
		}
	}
	return err
}

// Again starts the process of a server that has ended once more, in its directory and at its port.
func (p *Process) Again(attr *syscall.SysProcAttr, command func() *exec.Cmd, answers func() error) error {
	return p.run(attr, command(), answers)
}

func (p *Process) run(attr *syscall.SysProcAttr, cmd *exec.Cmd, answers func() error) error {
	log, err := p.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.Dir, log, log, attr
	if err := p.start(cmd); err != nil {
		return err
	}
	if err = p.await(answers); err != nil {
		_ = p.End(syscall.SIGQUIT)
		text, _ := io.ReadAll(io.NewSectionReader(log, before, most)) // of this start alone
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

func (p *Process) await(answers func() error) error {
	for deadline := time.Now().Add(cmp.Or(p.Wait, startWait)); time.Now().Before(deadline); {
		select {
		case <-p.Exited:
			return errors.New("the server ended at its start")
		case <-time.After(20 * time.Millisecond):
		}
		if answers() == nil {
			return nil
		}
	}
	return errors.New("the server did not answer")
}

// start starts the process from a thread that lives as long as it does, because the kernel ties the signal at the
// parent's death to the thread that forked.
func (p *Process) start(cmd *exec.Cmd) error {
	started, exited := make(chan error, 1), make(chan struct{})
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
	if err := <-started; err != nil {
		return err // the one before has ended, and stays the last
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.Exited = cmd, exited
	return nil
}

// Pid is the process's id.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Signal sends the process a signal.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Signal(s)
}

// Kill ends the process as a fault would. The server stays down.
func (p *Process) Kill() error { return p.End(syscall.SIGKILL) }

// End sends a process that is there a signal, and returns when it has ended: killed, where that takes too long.
func (p *Process) End(s syscall.Signal) error {
	if p.Gone() {
		return nil
	}
	if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.Exited:
	case <-time.After(stopWait):
		_ = p.Signal(syscall.SIGKILL)
		<-p.Exited
	}
	return nil
}
