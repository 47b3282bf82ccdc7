package admission

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSlots: never more than so many of a user's run, none is lost among those that give up, and others do not wait.
func TestSlots(t *testing.T) {
	const most, all = 3, 200
	slots := NewSlots(time.Second)
	var running, highest, served atomic.Int64
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%4 == 0 {
				time.AfterFunc(time.Duration(i%7)*time.Millisecond, cancel)
			}
			done, err := slots.Wait(ctx, "alice", most)
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
	other, err := slots.Wait(t.Context(), "bob", most)
	if err != nil {
		t.Fatal(err)
	}
	other()
	wait.Wait()
	if highest.Load() > most || served.Load() < all*3/4 {
		t.Errorf("%d ran at a time, %d of %d were served", highest.Load(), served.Load(), all)
	}
	if l := slots.of("alice"); l.held != 0 || len(l.waiting) != 0 {
		t.Errorf("left behind: %d run, %d wait", l.held, len(l.waiting))
	}
}

// TestTokens: a user has a burst, then her rate, whatever others ask.
func TestTokens(t *testing.T) {
	slots, now := NewSlots(10*time.Second), time.Now()
	taken := func(user string, at time.Time) (n int) {
		for slots.TakeToken(user, 5, at) {
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
	if !slots.TakeToken("alice", 0, now) {
		t.Error("no rate is not any number")
	}
}

// TestSpare: a spare slot is had at once, of those that are free, within the user's share, and where nobody waits.
func TestSpare(t *testing.T) {
	slots := sharedSlots(3)
	first, err := slots.Wait(t.Context(), "alice", slots.share(0))
	if err != nil {
		t.Fatal(err)
	}
	second, had := slots.Spare("alice", slots.share(0))
	if !had {
		t.Fatal("no spare slot of two that are free")
	}
	if _, had := slots.Spare("alice", slots.share(0)); had {
		t.Error("one user has every slot")
	}
	third, had := slots.Spare("bob", slots.share(0))
	if !had {
		t.Fatal("another has no spare slot")
	}
	if _, had := slots.Spare("carol", slots.share(0)); had {
		t.Error("a fourth slot of three")
	}
	came := make(chan func(), 1)
	go func() {
		done, err := slots.Wait(context.Background(), "alice", slots.share(0))
		if err != nil {
			t.Error(err)
		}
		came <- done
	}()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		slots.mu.Lock()
		waits = slots.waiting == 1
		slots.mu.Unlock()
	}
	third()
	if _, had := slots.Spare("carol", slots.share(0)); had {
		t.Error("a spare slot was had though a statement waits")
	}
	second()
	(<-came)()
	first()
	if _, had := slots.Spare("carol", slots.share(0)); !had {
		t.Error("no spare slot of three that are free")
	}
}
