package kit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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

	"github.com/dpproxy/dpproxy/internal/threats"
)

// Program is a dpproxy process under test, or a substitute that runs in this one.
type Program struct {
	T       *testing.T
	As      string // "" for dpproxy, or the name of a substitute
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

// Start starts dpproxy, or a substitute, as something that listens.
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
	p.Cmd.Env = append(append(os.Environ(), temporary...), asStandIn+"="+p.As)
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

// built is the program that this process's tests run: `go build` makes it once for all packages, at bin/test/dpproxy
// below the module, and leaves it as it is where it is up to date. A file lock has packages whose tests run at the same
// time wait for one another.
var built struct {
	once   sync.Once
	path   string
	err    error
	remove string // a directory that is this process's own
}

// Executable is the path of dpproxy, built from the module that the test is in. Under -race it is built so too. What
// -cover measures is what runs in the test's own process.
func Executable() (string, error) {
	built.once.Do(func() {
		if built.path, built.err = build(); built.err != nil {
			built.err = fmt.Errorf("%s: %w", threats.NotBuilt, built.err)
		}
	})
	return built.path, built.err
}

func build() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if err := dependOn(root); err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "test")
	if strings.Contains(os.Getenv("GOFLAGS"), "-overlay") { // a planted fault must not stay where other tests look
		if dir, err = os.MkdirTemp("", "dpproxy-overlaid-"); err != nil {
			return "", err
		}
		built.remove = dir
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	path, args := filepath.Join(dir, "dpproxy"), []string{"build", "-buildvcs=false"}
	if raced {
		path, args = path+"-race", append(args, "-race")
	}
	// What `go build` writes, or touches where it is up to date, is not what runs: a file that is being written cannot
	// be run, and `go test` would not keep the results of tests that run what was touched.
	fresh, copied := path+"-built", path+"-copied"
	cmd := exec.Command("go", append(args, "-o", fresh, "./cmd/dpproxy")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	if id := buildID(path); id != "" && id == buildID(fresh) {
		return path, nil
	}
	// A process of its own copies: here a child could begin while the file is open, and keep it open for a while.
	if out, err := exec.Command("cp", "--", fresh, copied).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, os.Rename(copied, path)
}

// buildID names the content of a program, "" where there is none.
func buildID(path string) string {
	out, err := exec.Command("go", "tool", "buildid", path).Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// moduleRoot is the directory above the test's own that has the module's go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the test")
		}
	}
}

// dependOn reads the sources of the program's own package, which no test can import: `go test` then knows that what it
// keeps of a test depends on them, as it knows of the packages that are imported here.
func dependOn(root string) error {
	sources, err := filepath.Glob(filepath.Join(root, "cmd", "dpproxy", "*.go"))
	if err != nil {
		return err
	}
	for _, source := range append(sources, filepath.Join(root, "go.mod"), filepath.Join(root, "go.sum")) {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		if _, err := os.ReadFile(source); err != nil {
			return err
		}
	}
	return nil
}

// Ran is how a command of dpproxy ended.
type Ran struct {
	Code           int
	Stdout, Stderr string
}

// Run runs one command line of the program in a process of its own, with input on its standard input.
func Run(t *testing.T, input string, args ...string) Ran {
	t.Helper()
	return RunWith(t, nil, input, args...)
}

// RunWith does it with additions to the environment.
func RunWith(t *testing.T, env []string, input string, args ...string) Ran {
	t.Helper()
	executable, err := Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), executable, args...)
	cmd.Env = append(append(os.Environ(), temporary...), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return Ran{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// Head is the commit that is checked out.
func Head(t *testing.T) string {
	t.Helper()
	commit, err := exec.Command("git", "rev-parse", "--short=8", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(commit))
}
