package deadline

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestCall: of calls that do not return there is one, whoever waits goes on in time, and once it returns the next one
// runs.
func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, frozen, running := NewGate(), make(chan struct{}), 0
		hang := func() (int, error) { running++; <-frozen; return 1, nil }
		for range 3 {
			began := time.Now()
			if _, err := Call(g, time.Second, hang); !errors.Is(err, ErrExceeded) || time.Since(began) != time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		close(frozen)
		synctest.Wait()
		if n, err := Call(g, time.Second, func() (int, error) { return 2, nil }); n != 2 || err != nil || running != 1 {
			t.Errorf("%d, %v, after %d calls that did not return", n, err, running)
		}
	})
}

// TestReadFile: what is not a file is refused at once, whoever has it open.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file, pipe, written := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "written")
	if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), syscall.Mkfifo(pipe, 0o600), syscall.Mkfifo(written, 0o600)); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(written, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if data, err := ReadFile(file); string(data) != "x" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	for _, path := range []string{pipe, written, dir, filepath.Join(dir, "none")} {
		began := time.Now()
		if data, err := ReadFile(path); err == nil || errors.Is(err, ErrExceeded) || time.Since(began) > Files/2 {
			t.Errorf("%s: %q, %v after %v", path, data, err, time.Since(began))
		}
	}
}
