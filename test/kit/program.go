package kit

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// Program is a dpproxy process under test, or a stand-in that runs in this one.
type Program struct {
	T       *testing.T
	As      string // "" for dpproxy, or the name of a stand-in
	Args    []string
	Policy  string
	Address string
	Cmd     *exec.Cmd
	Exited  chan struct{} // closed when the process is gone
	mu      sync.Mutex
	log     strings.Builder
}

var listeningLine = regexp.MustCompile(`msg=listening address=(\S+)`)

// Serve starts `dpproxy serve` on a policy and waits until it listens.
func Serve(t *testing.T, policyPath string, args ...string) *Program {
	t.Helper()
	return Start(t, "", policyPath, append([]string{"serve", "--policy", policyPath}, args...)...)
}

// Start starts dpproxy, or a stand-in, as something that listens.
func Start(t *testing.T, as, policyPath string, args ...string) *Program {
	t.Helper()
	p := &Program{T: t, As: as, Policy: policyPath, Args: args}
	p.Restart()
	t.Cleanup(func() { p.Stop(syscall.SIGKILL) })
	return p
}

// Start starts dpproxy with a command line.
func (p *Program) Start(args []string) {
	p.T.Helper()
	p.As, p.Args = "", args
	p.Restart()
}

// Restart starts the same again.
func (p *Program) Restart() {
	p.T.Helper()
	if err := p.TryStart(); err != nil {
		p.T.Fatal(err)
	}
}

// TryStart starts the process and returns when it listens or has ended.
func (p *Program) TryStart() error {
	executable, err := os.Executable()
	if p.As == "" {
		executable, err = Executable()
	}
	if err != nil {
		return err
	}
	p.Cmd = exec.Command(executable, p.Args...)
	p.Cmd.Env = append(os.Environ(), asStandIn+"="+p.As)
	stderr, err := p.Cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.Cmd.Start(); err != nil {
		return err
	}
	cmd, exited, listening := p.Cmd, make(chan struct{}), make(chan string, 1)
	p.Exited = exited
	go func() {
		defer close(exited)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			p.mu.Lock()
			p.log.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if m := listeningLine.FindStringSubmatch(lines.Text()); m != nil {
				listening <- m[1]
			}
		}
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	select {
	case p.Address = <-listening:
		return nil
	case <-exited:
		return fmt.Errorf("dpproxy did not start: %v\n%s", cmd.ProcessState, p.LogText())
	case <-time.After(4 * time.Minute):
		return fmt.Errorf("dpproxy does not listen:\n%s", p.LogText())
	}
}

// LogText is what the process has logged.
func (p *Program) LogText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Stop ends the process by its own id and waits for it.
func (p *Program) Stop(signal syscall.Signal) {
	if p.Cmd == nil || p.Cmd.Process == nil {
		return
	}
	_ = p.Cmd.Process.Signal(signal) // it may be gone already
	<-p.Exited
}

// Alive reports whether the process that was started last still runs.
func (p *Program) Alive() bool {
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Children are the processes that the process has started, as far as the system tells at once.
func (p *Program) Children() (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.Cmd.Process.Pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path) // nothing where the thread has ended
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// URL is the connection string of a user whose password is her name.
func (p *Program) URL(user, dataset string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&connect_timeout=20", user, user, p.Address, dataset)
}

// Connect logs in a user whose password is her name.
func (p *Program) Connect(user, dataset string) *Wire {
	p.T.Helper()
	w, err := p.Dial(user, dataset)
	if err != nil {
		p.T.Fatalf("connect as %s: %v\n%s", user, err, p.LogText())
	}
	return w
}

// Dial does it where the login may be refused.
func (p *Program) Dial(user, dataset string) (*Wire, error) {
	w, _, err := p.DialKeyed(user, dataset)
	return w, err
}

// DialKeyed returns the session's cancel key too.
func (p *Program) DialKeyed(user, dataset string) (*Wire, pgproto3.BackendKeyData, error) {
	var key pgproto3.BackendKeyData
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.URL(user, dataset))
	if err != nil {
		return nil, key, err
	}
	raw, err := conn.Hijack()
	if err != nil {
		return nil, key, err
	}
	key.ProcessID, key.SecretKey = raw.PID, raw.SecretKey
	w := &Wire{T: p.T, Conn: raw.Conn, Frontend: raw.Frontend}
	p.T.Cleanup(func() { w.Conn.Close() })
	return w, key, nil
}

// ProbeURL is the connection string of a probe user.
func (p *Program) ProbeURL(i int) string {
	return fmt.Sprintf("postgres://u%d:probe@%s/lab?sslmode=disable&connect_timeout=20", i, p.Address)
}
