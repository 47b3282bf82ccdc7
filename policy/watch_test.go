package policy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// watched runs Watch over a file and hands on what it reports.
type watched struct {
	t        *testing.T
	path     string
	signals  chan os.Signal
	policies chan *Policy
	failures chan error
}

func watch(t *testing.T, path string) *watched {
	t.Helper()
	w := &watched{t: t, path: path, signals: make(chan os.Signal), policies: make(chan *Policy, 10), failures: make(chan error, 10)}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, path, w.signals, func(_ context.Context, p *Policy) error {
			w.policies <- p
			return nil
		}, func(err error) { w.failures <- err })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("watch ended with %v", err)
		}
		goleak.VerifyNone(t)
	})
	return w
}

// limit is how long a test waits for what must come.
const limit = 20 * time.Second

func (w *watched) policy() *Policy {
	w.t.Helper()
	select {
	case p := <-w.policies:
		return p
	case err := <-w.failures:
		w.t.Fatalf("a failure came: %v", err)
	case <-time.After(limit):
		w.t.Fatal("no policy came")
	}
	return nil
}

func (w *watched) failure() error {
	w.t.Helper()
	select {
	case err := <-w.failures:
		return err
	case <-w.policies:
		w.t.Fatal("a policy came")
	case <-time.After(limit):
		w.t.Fatal("no failure came")
	}
	return nil
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// swap replaces the file, so that who reads meanwhile reads the one or the other.
func swap(t *testing.T, path, text string) {
	t.Helper()
	put(t, path+".next", text)
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

// withCap is the base policy with another cap.
func withCap(t *testing.T, epsilon string) string {
	return strings.Replace(base(t), "cap: {epsilon: 20", "cap: {epsilon: "+epsilon, 1)
}

func (w *watched) wantCap(micro int64) {
	w.t.Helper()
	if got := w.policy().Dataset("census").Cap.Epsilon.Micro(); got != micro {
		w.t.Errorf("cap is %d, want %d", got, micro)
	}
}

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	put(t, path, withCap(t, "20"))
	w := watch(t, path)
	w.wantCap(20e6)

	put(t, path, withCap(t, "21"))
	w.wantCap(21e6)

	next := filepath.Join(filepath.Dir(path), ".policy.yaml.swp") // as editors save: write beside, rename over
	put(t, next, withCap(t, "22"))
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	w.wantCap(22e6)

	put(t, path, withCap(t, "-1"))
	var problems Problems
	if err := w.failure(); !errors.As(err, &problems) {
		t.Errorf("a bad file gives %v", err)
	}

	put(t, path, withCap(t, "23"))
	w.wantCap(23e6)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := w.failure(); !os.IsNotExist(err) {
		t.Errorf("no file gives %v", err)
	}
	put(t, path, withCap(t, "23"))
	w.wantCap(23e6)

	w.signals <- syscall.SIGHUP // reads again even where nothing changed
	w.wantCap(23e6)
}

func TestWatchSymbolicLink(t *testing.T) {
	dir := t.TempDir()
	for name, epsilon := range map[string]string{"old": "20", "new": "21"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(dir, name, "policy.yaml"), withCap(t, epsilon))
	}
	data := filepath.Join(dir, "data")
	path := filepath.Join(dir, "policy.yaml")
	for from, to := range map[string]string{"old": data, "data/policy.yaml": path, "new": data + ".next"} {
		if err := os.Symlink(from, to); err != nil {
			t.Fatal(err)
		}
	}
	w := watch(t, path)
	w.wantCap(20e6)
	if err := os.Rename(data+".next", data); err != nil { // as a mounted configuration is swapped
		t.Fatal(err)
	}
	w.wantCap(21e6)
}

// TestWatchRefusedPolicy: a policy that the caller refuses is reported, and judged again at the next signal.
func TestWatchRefusedPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	put(t, path, base(t))
	refused := errors.New("refused")
	signals, failures := make(chan os.Signal), make(chan error, 10)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, path, signals, func(context.Context, *Policy) error { return refused }, func(err error) { failures <- err })
	}()
	for range 2 {
		if err := <-failures; !errors.Is(err, refused) {
			t.Errorf("failure is %v", err)
		}
		select {
		case signals <- syscall.SIGHUP:
		case <-time.After(limit):
			t.Fatal("watch does not listen")
		}
	}
	stop()
	<-done
}

// TestWatchWaits: what waits for a policy ends when the file holds another, is left alone when it holds the same or
// nothing that passes, and never runs beside another.
func TestWatchWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	swap(t, path, withCap(t, "20"))
	signals, begun, failures := make(chan os.Signal), make(chan int64, 10), make(chan error, 10)
	var running atomic.Int32
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Watch(ctx, path, signals, func(waits context.Context, p *Policy) error {
			if running.Add(1) > 1 {
				t.Error("two at a time")
			}
			defer running.Add(-1)
			begun <- p.Dataset("census").Cap.Epsilon.Micro()
			<-waits.Done()
			return fmt.Errorf("given up: %w", waits.Err())
		}, func(err error) { failures <- err })
	}()
	want := func(micro int64) {
		t.Helper()
		select {
		case got := <-begun:
			if got != micro {
				t.Errorf("cap is %d, want %d", got, micro)
			}
		case <-time.After(limit):
			t.Fatal("no policy came")
		}
	}
	want(20e6)
	signals <- syscall.SIGHUP
	swap(t, path, withCap(t, "-1"))
	if err := <-failures; errors.Is(err, context.Canceled) {
		t.Error("a policy that does not pass ends what waits")
	}
	swap(t, path, withCap(t, "20"))
	signals <- syscall.SIGHUP // by the second one the first has been read
	signals <- syscall.SIGHUP
	if len(begun) != 0 {
		t.Error("begun again for the same policy")
	}
	swap(t, path, withCap(t, "21"))
	want(21e6)
	stop()
	<-done
	if len(failures) != 0 {
		t.Errorf("what was given up for another policy is told as a failure: %v", <-failures)
	}
}

func TestWatchNeedsADirectory(t *testing.T) {
	err := Watch(context.Background(), "/nonexistent/policy.yaml", nil, nil, nil)
	if err == nil {
		t.Error("a directory that is not there is watched")
	}
}
