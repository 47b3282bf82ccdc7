package admission

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestResultsAreReserved: results of the private database take a quarter of the memory together, each as much as any
// rows would, and one takes what it needs; who waits goes on when one is given back.
func TestResultsAreReserved(t *testing.T) {
	m := &memory{running: map[*work]bool{}}
	m.limit.Store(400)
	large, err := m.reserve(t.Context(), 1000)
	if err != nil {
		t.Fatalf("one result alone: %v", err)
	}
	short, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errPatience)
	defer cancel()
	if _, err := m.reserve(short, 1); !errors.Is(err, errPatience) {
		t.Errorf("beside one that takes everything: %v", err)
	}
	went := make(chan error, 1)
	go func() {
		_, err := m.reserve(t.Context(), 60)
		went <- err
	}()
	select {
	case err := <-went:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	large()
	if err := <-went; err != nil {
		t.Error(err)
	}
	if _, err := m.reserve(t.Context(), 40); err != nil {
		t.Errorf("a quarter in all: %v", err)
	}
	if m.results != 100 {
		t.Errorf("%d bytes are reserved", m.results)
	}
}

// TestCollectorsPace: what is new may be as much as what is in use, and where that is little as much as may lie; of
// little memory a part.
func TestCollectorsPace(t *testing.T) {
	for _, c := range []struct {
		used, limit int64
		percent     int
	}{
		{32 << 20, 16 << 30, 800}, {64 << 20, 16 << 30, 400}, {128 << 20, 16 << 30, 200}, {256 << 20, 16 << 30, 100}, {4 << 30, 16 << 30, 100},
		{32 << 20, 1 << 30, 200}, {32 << 20, 256 << 20, 100}, {0, 16 << 30, 800},
	} {
		if percent := percentOf(c.used, c.limit); percent != c.percent {
			t.Errorf("%d MiB of %d in use: %d %%, not %d", c.used>>20, c.limit>>20, percent, c.percent)
		}
	}
}
