package embedded

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestPlanningIsLeft: whoever cancels a statement does not wait until the engine has planned it, other statements are
// planned meanwhile, no more go on than there are places, and what is planned too late is closed.
func TestPlanningIsLeft(t *testing.T) {
	t.Parallel()
	places, slow, closed := make(chan struct{}, 2), make(chan struct{}), make(chan int, 4)
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan struct{}, 4)
	left := make(chan error, 1)
	go func() {
		_, err := leftAt(ctx, places, func() (int, error) { begun <- struct{}{}; <-slow; return 7, nil }, func(n int) { closed <- n })
		left <- err
	}()
	<-begun
	n, err := leftAt(t.Context(), places, func() (int, error) { return 3, nil }, func(int) { t.Error("an answer that was taken is closed") })
	if n != 3 || err != nil {
		t.Fatal("beside a slow plan:", n, err)
	}
	cancel()
	select {
	case err := <-left:
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a cancel waits for the plan")
	}
	places <- struct{}{} // the other place is taken
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := leftAt(short, places, func() (int, error) { t.Error("planned without a place"); return 0, nil }, func(int) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	<-places
	close(slow)
	select {
	case n := <-closed:
		if n != 7 {
			t.Fatal(n)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("what was planned too late is not closed")
	}
}
