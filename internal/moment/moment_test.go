package moment

import (
	"sync"
	"testing"
	"time"
)

// TestUntil: no wait ends before its moment, however many there are, in whatever order they come, and a moment that has
// passed is not waited for.
func TestUntil(t *testing.T) {
	begun := time.Now()
	var all sync.WaitGroup
	for i := range 200 {
		at := begun.Add(time.Duration(i*37%200) * 100 * time.Microsecond)
		all.Go(func() {
			Until(at, nil)
			if early := time.Until(at); early > 0 {
				t.Errorf("a wait ended %s before its moment", early)
			}
		})
	}
	all.Wait()
	Until(begun, nil)
	watched.mu.Lock()
	defer watched.mu.Unlock()
	if watched.looks || len(watched.waits) > 0 {
		t.Error("somebody still looks at the clock")
	}
}

// TestUntilStop: the end of the server ends a long wait.
func TestUntilStop(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	Until(time.Now().Add(time.Hour), stop)
}

// TestNext: the next point of a grid lies after now, by a step at most.
func TestNext(t *testing.T) {
	const step = 20 * time.Millisecond
	for _, past := range []time.Duration{0, step / 2, step, 7*step + 1} {
		begun := time.Now().Add(-past)
		next := Next(begun, step)
		if left := time.Until(next); left > step || next.Sub(begun)%step != 0 {
			t.Errorf("%s after its begin the next point is %s later", past, next.Sub(begun))
		}
	}
}
