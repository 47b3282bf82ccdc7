package admission

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestDrawsAreDrawnInTurn: of one user's draws as many run at a time as leave another a processor, none is refused or
// ended, and another's waits for none of hers.
func TestDrawsAreDrawnInTurn(t *testing.T) {
	w := NewWorkers(0, 0)
	most := w.draws.share(max(processors-1, 1))
	stuck, begun := make(chan struct{}), make(chan struct{}, 50)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			w.Draw("mallory", func() {
				begun <- struct{}{}
				<-stuck
			})
		})
	}
	settled := func() bool { // each of hers runs or waits
		w.draws.mu.Lock()
		defer w.draws.mu.Unlock()
		l := w.draws.users["mallory"]
		return l != nil && l.held+len(l.waiting) == 50
	}
	for end := time.Now().Add(30 * time.Second); !settled(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("fifty draws neither run nor wait")
		}
	}
	for range most {
		<-begun
	}
	drawn := make(chan struct{})
	wait.Go(func() { w.Draw("alice", func() { close(drawn) }) })
	select {
	case <-drawn:
	case <-time.After(30 * time.Second):
		t.Error("alice's draw waits for mallory's")
	}
	if more := len(begun); more != 0 {
		t.Errorf("%d more than %d of mallory's run", more, most)
	}
	close(stuck)
	wait.Wait()
	if len(begun) != 50-most {
		t.Errorf("%d of 50 were drawn", len(begun)+most)
	}
}

// TestNobodyHoldsTheDatabase: one user's statements have all slots of the private database but one, and a statement
// that never had its slot leaves none behind. What read rows on a grid gives its slot back on it.
func TestNobodyHoldsTheDatabase(t *testing.T) {
	w := NewWorkers(0, 3)
	take := func(ctx context.Context, user string, step time.Duration, timetabled bool) (func(time.Time), error) {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		return w.Query(ctx, user, step, timetabled)
	}
	var hers []func(time.Time)
	for range 2 {
		leave, err := take(t.Context(), "mallory", 0, false)
		if err != nil {
			t.Fatal(err)
		}
		hers = append(hers, leave)
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := w.Query(short, "mallory", 0, false); err == nil {
		t.Error("one user has all slots of the database")
	}
	leave, err := take(t.Context(), "alice", 0, false)
	if err != nil {
		t.Fatalf("alice waits for mallory's queries: %v", err)
	}
	leave(time.Now())
	for _, leave := range hers {
		leave(time.Time{})
	}
	if w.database.held != 0 {
		t.Errorf("%d slots are left behind", w.database.held)
	}
	const step = 60 * time.Millisecond
	last := time.Now()
	if leave, err = take(t.Context(), "alice", step, true); err != nil {
		t.Fatal(err)
	}
	leave(last)
	for time.Since(last) < 10*time.Second {
		w.timetable.mu.Lock()
		running := w.timetable.held
		w.timetable.mu.Unlock()
		if running == 0 {
			break
		}
	}
	if held := time.Since(last); held < step || held > 5*time.Second {
		t.Errorf("a slot that read rows is free after %v, on a grid of %v", held, step)
	}
}
