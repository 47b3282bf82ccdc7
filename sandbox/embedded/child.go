package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/internal/processor"
	"github.com/dpproxy/dpproxy/sandbox"
)

// The parent's side of one child process: it is started as the same program with a hidden argument and an empty environment,
// asked one thing at a time over its standard input, and killed when its time is over or who asked is gone.

// childArgument is the hidden first argument of a child.
const childArgument = "__sandbox"

// errUnsent says that a child was gone before it had the whole request.
var errUnsent = errors.New("sandbox: the child is gone")

// child is one child process. It is used by one query at a time.
type child struct {
	options sandbox.Options
	holds   map[string]int64 // the version of each dataset that it holds
	mu      sync.Mutex       // guards cmd against kill, which any goroutine may call
	cmd     *exec.Cmd
	in      io.WriteCloser
	writer  *bufio.Writer
	reader  *bufio.Reader
	took    time.Duration // of the processor, by the last request; by the clock where it was short
}

func (c *child) start() error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	cmd := exec.Command(path, childArgument, strconv.FormatUint(c.options.AddressSpace, 10),
		strconv.FormatUint(c.options.Memory, 10), strconv.Itoa(c.options.MaxRows))
	// glibc reserves 64 MiB of address space an arena; two are enough. DuckDB and Go see no other variable.
	cmd.Env = []string{"MALLOC_ARENA_MAX=2", "TZ=UTC"}
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cmd, c.holds = cmd, map[string]int64{}
	c.in, c.writer, c.reader = in, bufio.NewWriter(in), bufio.NewReader(out)
	return nil
}

// kill ends the process; whoever waits for its answer is told.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		_ = c.cmd.Process.Kill()
	}
}

// stop kills the process and waits until it is gone.
func (c *child) stop() {
	c.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		_ = c.in.Close()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// errLate says that a child was killed because it had taken its processor time.
var errLate = errors.New("sandbox: the child took too long")

// ask sends a request and waits for its reply. When ctx ends first, or the child has taken so much processor time, the
// process is killed; the caller starts another.
func (c *child) ask(ctx context.Context, r *request, limit time.Duration) (*reply, error) {
	if c.cmd == nil {
		if err := c.start(); err != nil {
			return nil, err
		}
	}
	type outcome struct {
		body []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		if err := writeFrame(c.writer, r.encode()); err != nil {
			done <- outcome{nil, fmt.Errorf("%w: %w", errUnsent, err)}
			return
		}
		body, err := readFrame(c.reader)
		done <- outcome{body, err}
	}()
	late := make(chan struct{})
	pid, begun := c.cmd.Process.Pid, time.Now()
	before, _ := processor.Time(pid)
	defer func() {
		if c.took = time.Since(begun); c.took > 50*time.Millisecond {
			if now, ok := processor.Time(pid); ok {
				c.took = min(c.took, now-before)
			}
		}
	}()
	stop := processor.Watch(limit, func() (time.Duration, bool) {
		now, ok := processor.Time(pid)
		return now - before, ok
	}, func() { close(late) })
	defer stop()
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		return decodeReply(o.body)
	case <-ctx.Done():
		c.kill()
		<-done
		return nil, ctx.Err()
	case <-late:
		c.kill()
		<-done
		return nil, errLate
	}
}
