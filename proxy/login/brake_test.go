package login

import (
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

func wrong() bool { return false }
func right() bool { return true }

// waited is how long a guess waits for its turn, but for its lot.
func waited(t *testing.T, b *Brake, user, origin string, proof func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := b.Guess(t.Context(), user, origin, proof); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

func near(d, want time.Duration) bool {
	return d >= want && d <= want+drawTurnsWithin && (want > 0 || d == 0)
}

func TestBrake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBrake()
		for i := range nameSteps.free + 1 {
			if d := waited(t, b, "alice", "10.0.0.1", wrong); d != 0 {
				t.Errorf("guess %d waits %v", i, d)
			}
		}
		for i := range 10 {
			if d, want := waited(t, b, "alice", "10.0.0.1", wrong), min(4*time.Second, 100*time.Millisecond<<i); !near(d, want) {
				t.Errorf("guess %d waits %v, not %v", i, d, want)
			}
		}
		if d := waited(t, b, "alice", "10.0.0.2", right) + waited(t, b, "bob", "10.0.0.1", right); d != 0 {
			t.Errorf("others wait %v", d)
		}
		time.Sleep(5 * time.Second) // a person's slow typing is a wait too
		if d := waited(t, b, "alice", "10.0.0.1", right); d != 0 {
			t.Errorf("after five seconds alice waits %v", d)
		}
		for range 50 { // a pool of connections, once one has come in
			if d := waited(t, b, "alice", "10.0.0.1", right); d != 0 {
				t.Errorf("behind a right password the next waits %v", d)
			}
		}
		if n := len(b.names.kept); n != 0 {
			t.Errorf("%d names are kept that nothing counts against", n)
		}
		for range 6 {
			_ = waited(t, b, "alice", "10.0.0.1", wrong)
		}
		time.Sleep(forgetAfter + time.Second)
		for range nameSteps.free + 1 {
			if d := waited(t, b, "alice", "10.0.0.1", wrong); d != 0 {
				t.Errorf("not forgotten: %v", d)
			}
		}
	})
}

// TestGuessesAtOnce: however many connections guess at once, no more guesses are compared than one connection would
// have had compared.
func TestGuessesAtOnce(t *testing.T) {
	const connections, within = 400, time.Minute
	compared := func(connections int, name func(i int) string) int64 {
		var n atomic.Int64
		synctest.Test(t, func(t *testing.T) {
			b := NewBrake()
			ctx, end := context.WithTimeout(t.Context(), within)
			defer end()
			var all sync.WaitGroup
			for i := range connections {
				all.Go(func() {
					for ctx.Err() == nil {
						_, _ = b.Guess(ctx, name(i), "10.0.0.1", func() bool { n.Add(1); return false })
						time.Sleep(time.Millisecond)
					}
				})
			}
			all.Wait()
		})
		return n.Load()
	}
	alice := func(int) string { return "alice" }
	one, many := compared(1, alice), compared(connections, alice)
	if many > one+1 || one > 30 {
		t.Errorf("in %v one connection has %d guesses compared, %d connections %d", within, one, connections, many)
	}
	// One guess at each of many names, from one origin.
	names := compared(connections, func(i int) string { return fmt.Sprint("user", i) })
	if most := int64(originSteps.free + 8 + int(within/originSteps.longest)); names > most {
		t.Errorf("%d guesses at %d names in %v, more than %d", names, connections, within, most)
	}
	threats.Reached(t, "T59", "in %v one connection has %d guesses at a name compared, %d connections at once %d, and %d at %[3]d names", within, one, connections, many, names)
}

// TestOtherNamesClearNothing: failures by more names, from more origins, than are kept do not clear what is kept of one
// name, nor let a wait end sooner.
func TestOtherNamesClearNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBrake()
		for range 20 {
			_ = waited(t, b, "alice", "10.0.0.1", wrong)
		}
		for i := range 3 * maxBrakeKeys {
			b.guess(fmt.Sprint("u", i), fmt.Sprint("o", i), wrong)
		}
		if n, m := len(b.names.kept), len(b.origins.kept); n > maxBrakeKeys || m > maxBrakeKeys {
			t.Errorf("%d and %d kept", n, m)
		}
		if d := waited(t, b, "alice", "10.0.0.1", wrong); !near(d, 4*time.Second) {
			t.Errorf("alice waits %v", d)
		}
		if d := waited(t, b, "carol", "10.0.0.9", right); d != 0 {
			t.Errorf("a right password from elsewhere waits %v", d)
		}
		// Clearing one's own wait: as many failures again, each key as often as it takes to be dropped last.
		for range 12 {
			for i := range maxBrakeKeys + maxBrakeKeys/4 {
				b.guess(fmt.Sprint("u", i), fmt.Sprint("o", i), wrong)
			}
		}
		wait, done := b.guess("alice", "10.0.0.1", right)
		if wait < 3*time.Second || done {
			t.Errorf("alice waits %v behind others' failures", wait)
		}
	})
}

// TestCountsAreNeverBelow compares the table with one that drops nothing.
func TestCountsAreNeverBelow(t *testing.T) {
	const seed = 20261123
	random := rand.New(rand.NewSource(seed))
	now := time.Unix(0, 0)
	table := newFailureTable(nameSteps, 64)
	count, next := map[string]int{}, map[string]time.Time{}
	for i := range 200_000 {
		key := fmt.Sprint(int(random.ExpFloat64() * 40))
		now = now.Add(time.Duration(random.Intn(40)) * time.Millisecond)
		held := table.held(key, now)
		if held.count < min(count[key], nameSteps.most()) || held.next.Before(next[key]) && next[key].After(now) {
			t.Fatalf("seed %d, step %d: key %s has %+v, in truth %d failures and a wait to %v", seed, i, key, held, count[key], next[key])
		}
		table.failed(key, now)
		count[key]++
		next[key] = now.Add(nameSteps.after(count[key]))
		if len(table.kept) > 64 {
			t.Fatalf("%d keys", len(table.kept))
		}
	}
}

// TestNobodyIsShutOut: who keeps guesses waiting at her name, from her own address, delays her; she has her turn within
// few tries.
func TestNobodyIsShutOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBrake()
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				for ctx.Err() == nil {
					_, _ = b.Guess(ctx, "alice", "10.0.0.1", wrong)
				}
			})
		}
		time.Sleep(time.Minute)
		const logins = 100
		tries := 0
		for range logins {
			for {
				tries++
				patience, done := context.WithTimeout(t.Context(), 9*time.Second)
				in, err := b.Guess(patience, "alice", "10.0.0.1", right)
				done()
				if err == nil && in {
					break
				}
			}
		}
		if tries > 14*logins {
			t.Errorf("%d tries for %d log-ins", tries, logins)
		}
		if d := waited(t, b, "alice", "10.0.0.2", right); d != 0 {
			t.Errorf("from elsewhere she waits %v", d)
		}
		end()
		all.Wait()
	})
}

// TestBrakeKeepsShortNames: failures are kept by names that anybody may send before a password, as long as a start-up
// packet.
func TestBrakeKeepsShortNames(t *testing.T) {
	b := NewBrake()
	long := strings.Repeat("x", maxStartupPacket)
	for range nameSteps.free + 1 {
		b.guess(long, "10.0.0.1", wrong)
	}
	for key := range b.names.kept {
		if len(key) > 128 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
	if wait, _ := b.guess(long, "10.0.0.1", wrong); wait == 0 {
		t.Error("guesses at a long name are not slowed")
	}
}

// TestOrigin: the addresses that one customer has are one origin.
func TestOrigin(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "::1",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::9": "2001:db8:1:2::/64", "2001:db8:1:3::9": "2001:db8:1:3::/64",
		"fe80::1%eth0": "fe80::/64", "pipe": "pipe",
	} {
		if got := Origin(address); got != want {
			t.Errorf("%s is of %s, not %s", address, got, want)
		}
	}
}
