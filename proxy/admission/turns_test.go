package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTurns: never more than so many of a user's run, none is lost among those that give up, and others do not wait.
func TestTurns(t *testing.T) {
	const most, all = 3, 200
	turns := NewTurns(time.Second)
	var running, highest, served atomic.Int64
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%4 == 0 {
				time.AfterFunc(time.Duration(i%7)*time.Millisecond, cancel)
			}
			done, err := turns.Wait(ctx, "alice", most)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			defer done()
			for n := running.Add(1); ; {
				if old := highest.Load(); n <= old || highest.CompareAndSwap(old, n) {
					break
				}
			}
			time.Sleep(time.Millisecond)
			running.Add(-1)
			served.Add(1)
		})
	}
	other, err := turns.Wait(t.Context(), "bob", most)
	if err != nil {
		t.Fatal(err)
	}
	other()
	wait.Wait()
	if highest.Load() > most || served.Load() < all*3/4 {
		t.Errorf("%d ran at a time, %d of %d were served", highest.Load(), served.Load(), all)
	}
	if l := turns.of("alice"); l.running != 0 || len(l.waiting) != 0 {
		t.Errorf("left behind: %d run, %d wait", l.running, len(l.waiting))
	}
}

// TestTickets: a user has a burst, then her rate, whatever others ask.
func TestTickets(t *testing.T) {
	turns, now := NewTurns(10*time.Second), time.Now()
	taken := func(user string, at time.Time) (n int) {
		for turns.Ticket(user, 5, at) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		user string
		at   time.Duration
		want int
	}{{"alice", 0, 50}, {"bob", 0, 50}, {"alice", time.Second, 5}, {"alice", time.Second + 100*time.Millisecond, 0}, {"alice", 2 * time.Second, 5}, {"alice", time.Hour, 50}} {
		if got := taken(c.user, now.Add(c.at)); got != c.want {
			t.Errorf("%s after %v: %d, want %d", c.user, c.at, got, c.want)
		}
	}
	if !turns.Ticket("alice", 0, now) {
		t.Error("no rate is not any number")
	}
}
