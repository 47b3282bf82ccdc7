package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
)

// asProgram makes the test binary behave as dpproxy itself, so that tests start, kill and restart a real process.
const asProgram = "DPPROXY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	embedded.ChildMain()
	parserChild()
	switch name := os.Getenv(asProgram); name {
	case "":
		// Tests that run at the same time wait for their processes more than they compute; the flag -parallel says otherwise.
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		os.Exit(pgtest.Main(m))
	case "1":
		os.Exit(process(os.Args[1:], syscall.SIGTERM))
	default:
		os.Exit(standIn(name, os.Args[1:]))
	}
}

// findings is what a procedure of the kit found wrong with a proxy. Of the real program each must find nothing, and of the
// stand-in with its defence switched off something.
type findings []string

func (f *findings) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// none fails the test for each finding.
func (f findings) none(t *testing.T) {
	t.Helper()
	for i, text := range f {
		if i == 20 {
			t.Errorf("and %d more", len(f)-i)
			return
		}
		t.Error(text)
	}
}

// some fails the test where a planted fault was not found.
func (f findings) some(t *testing.T, fault string) {
	t.Helper()
	if len(f) == 0 {
		t.Errorf("not found: %s", fault)
		return
	}
	t.Logf("%s: %d findings, the first: %.300s", fault, len(f), f[0])
}

// program is a dpproxy process under test, or a stand-in that runs in this one.
type program struct {
	t       *testing.T
	as      string // asProgram's value: "1", or the name of a stand-in
	args    []string
	policy  string
	address string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process is gone
	mu      sync.Mutex
	log     strings.Builder
}

var listeningLine = regexp.MustCompile(`msg=listening address=(\S+)`)

// serveProcess starts `dpproxy serve` on a policy and waits until it listens.
func serveProcess(t *testing.T, policyPath string, args ...string) *program {
	t.Helper()
	return startProcess(t, "1", policyPath, append([]string{"serve", "--policy", policyPath}, args...)...)
}

// startProcess starts this binary as something that listens.
func startProcess(t *testing.T, as, policyPath string, args ...string) *program {
	t.Helper()
	p := &program{t: t, as: as, policy: policyPath, args: args}
	p.restart()
	t.Cleanup(func() { p.stop(syscall.SIGKILL) })
	return p
}

// start starts dpproxy with a command line.
func (p *program) start(args []string) {
	p.t.Helper()
	p.as, p.args = "1", args
	p.restart()
}

// restart starts the same again.
func (p *program) restart() {
	p.t.Helper()
	if err := p.tryStart(); err != nil {
		p.t.Fatal(err)
	}
}

// tryStart starts the process and returns when it listens or has ended.
func (p *program) tryStart() error {
	p.cmd = exec.Command(os.Args[0], p.args...)
	p.cmd.Env = append(os.Environ(), asProgram+"="+p.as)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	cmd, exited, listening := p.cmd, make(chan struct{}), make(chan string, 1)
	p.exited = exited
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
	case p.address = <-listening:
		return nil
	case <-exited:
		return fmt.Errorf("dpproxy did not start: %v\n%s", cmd.ProcessState, p.logText())
	case <-time.After(4 * time.Minute):
		return fmt.Errorf("dpproxy does not listen:\n%s", p.logText())
	}
}

func (p *program) logText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// stop ends the process by its own id and waits for it.
func (p *program) stop(signal syscall.Signal) {
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Signal(signal) // it may be gone already
	<-p.exited
}

// alive tells whether the process that was started last still runs.
func (p *program) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// url is the connection string of a user whose password is her name.
func (p *program) url(user, dataset string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&connect_timeout=20", user, user, p.address, dataset)
}

// wire is a logged-in connection of which every frame is seen.
type wire struct {
	t    *testing.T
	conn net.Conn
	*pgproto3.Frontend
}

func (p *program) connect(user, dataset string) *wire {
	p.t.Helper()
	w, err := p.dial(user, dataset)
	if err != nil {
		p.t.Fatalf("connect as %s: %v\n%s", user, err, p.logText())
	}
	return w
}

func (p *program) dial(user, dataset string) (*wire, error) {
	w, _, err := p.dialKeyed(user, dataset)
	return w, err
}

// dialKeyed returns the session's cancel key too.
func (p *program) dialKeyed(user, dataset string) (*wire, pgproto3.BackendKeyData, error) {
	var key pgproto3.BackendKeyData
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgconn.Connect(ctx, p.url(user, dataset))
	if err != nil {
		return nil, key, err
	}
	raw, err := conn.Hijack()
	if err != nil {
		return nil, key, err
	}
	key.ProcessID, key.SecretKey = raw.PID, raw.SecretKey
	w := &wire{t: p.t, conn: raw.Conn, Frontend: raw.Frontend}
	p.t.Cleanup(func() { w.conn.Close() })
	return w, key, nil
}

// answer is what one simple query brought.
type answer struct {
	frames []string   // every frame in order, noised cells masked
	rows   [][]string // text rows
	err    *pgconn.PgError
	notes  []string
}

// ask sends one simple query and reads to ReadyForQuery.
func (w *wire) ask(sql string) answer {
	w.t.Helper()
	a, err := w.tryAsk(sql)
	if err != nil {
		w.t.Fatalf("%.200s: %v", sql, err)
	}
	return a
}

func (w *wire) tryAsk(sql string) (answer, error) {
	w.Send(&pgproto3.Query{String: sql})
	return w.hear()
}

// extended asks by the extended protocol, with binary results.
func (w *wire) extended(sql string) answer {
	w.t.Helper()
	a, err := w.tryExtended(sql)
	if err != nil {
		w.t.Fatalf("%.200s: %v", sql, err)
	}
	return a
}

func (w *wire) tryExtended(sql string) (answer, error) {
	w.Send(&pgproto3.Parse{Query: sql})
	w.Send(&pgproto3.Describe{ObjectType: 'S'})
	w.Send(&pgproto3.Bind{ResultFormatCodes: []int16{1}})
	w.Send(&pgproto3.Describe{ObjectType: 'P'})
	w.Send(&pgproto3.Execute{})
	w.Send(&pgproto3.Sync{})
	return w.hear()
}

// hear sends what is waiting and reads to ReadyForQuery.
func (w *wire) hear() (answer, error) {
	var a answer
	_ = w.conn.SetDeadline(time.Now().Add(60 * time.Second))
	if err := w.Flush(); err != nil {
		return a, err
	}
	for {
		m, err := w.Receive()
		if err != nil {
			return a, err
		}
		a.frames = append(a.frames, frameText(m))
		switch m := m.(type) {
		case *pgproto3.DataRow:
			row := make([]string, len(m.Values))
			for i, v := range m.Values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			a.rows = append(a.rows, row)
		case *pgproto3.ErrorResponse:
			a.err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.NoticeResponse:
			a.notes = append(a.notes, m.Message+"\n"+m.Detail)
		case *pgproto3.ReadyForQuery:
			return a, nil
		}
	}
}

// frameText writes a frame for comparison: all of it, but the cells of data rows.
func frameText(m pgproto3.BackendMessage) string {
	if row, ok := m.(*pgproto3.DataRow); ok {
		return fmt.Sprintf("DataRow of %d", len(row.Values))
	}
	return fmt.Sprintf("%T %+v", m, m)
}
