package durability

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// flushFault makes every fsync and fdatasync of a process fail with EIO until it is ended.
type flushFault struct {
	cmd *exec.Cmd
	log string
}

// failFlushes attaches strace; where that cannot be done the test is skipped.
func failFlushes(t *testing.T, pid int) *flushFault {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed: the kernel's errors cannot be made")
	}
	f := &flushFault{log: filepath.Join(t.TempDir(), "strace")}
	f.cmd = exec.Command("strace", "-f", "-ttt", "-o", f.log, "-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO", "-p", strconv.Itoa(pid))
	stderr, err := f.cmd.StderrPipe()
	if err == nil {
		err = f.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "attached") {
			go func() {
				for lines.Scan() { // the threads that follow
				}
			}()
			return f
		}
	}
	t.Skipf("strace does not attach here: %v", f.cmd.Wait())
	return nil
}

// first is when the first flush has failed; zero: none has.
func (f *flushFault) first() time.Time {
	text, err := os.ReadFile(f.log)
	if err != nil {
		return time.Time{}
	}
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.Contains(line, "EIO") {
			if seconds, err := strconv.ParseFloat(fields[1], 64); err == nil {
				return time.UnixMicro(int64(seconds * 1e6))
			}
		}
	}
	return time.Time{}
}

// end detaches.
func (f *flushFault) end() {
	_ = f.cmd.Process.Signal(syscall.SIGINT)
	_ = f.cmd.Wait() // it ends by the signal
}

// TestT27FailingFlushes: for a while every flush of the proxy fails. From the first failure to the end of the window no
// question asked is answered; afterwards the proxy serves again by itself, and the ledger has a charge for every
// answer.
func TestT27FailingFlushes(t *testing.T) {
	path := kit.DuckDBIn(t, t.TempDir(), kit.Budgets{User: "10000", Cap: "10000"}, 0)
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	windows, failed, during, answers := threats.Length(3, 50), 0, 0, 0
	slowest := time.Duration(0)
	for n := range windows {
		k := keepAsking(w, 200*n)
		time.Sleep(50 * time.Millisecond)
		f := failFlushes(t, p.Cmd.Process.Pid)
		for end := time.Now().Add(3 * time.Second); f.first().IsZero() && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Second)
		over := time.Now()
		f.end()
		first := f.first()
		if first.IsZero() {
			t.Fatal("no flush has failed: the test tests nothing")
		}
		failed++
		since := time.Now()
		kit.Eventually(t, "it serves again after flushes succeed", func() bool {
			h := k.heard()
			return len(h) > 0 && h[len(h)-1].asked.After(over)
		})
		slowest = max(slowest, time.Since(since))
		all := k.end(t)
		answers += len(all)
		for _, h := range all {
			if h.asked.After(first) && h.came.Before(over) {
				during++
			}
		}
	}
	if during > 0 {
		t.Errorf("%d answers while flushes failed", during)
	}
	rows := kit.Count(t, w.Ask(`SELECT count(*) FROM dp.charges`))
	if rows < answers {
		t.Errorf("%d answers, %d charges", answers, rows)
	}
	p.Stop(syscall.SIGTERM)
	if out := kit.Run(t, "", "ledger", "verify", "--policy", path); out.Code != 0 {
		t.Errorf("verify: %s", out.Stderr)
	}
	threats.Reached(t, "T27", "%d windows of EIO: %d answers from the first failure to the window's end; %d answers in all, %d charges; serving again after at most %s",
		failed, during, answers, rows, fmt.Sprint(slowest.Round(10*time.Millisecond)))
}
