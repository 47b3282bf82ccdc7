package login

import (
	"sync"
	"time"
)

// Brake slows the guessing of passwords: each failure of a user from an address, and of an address, doubles the time
// before the next exchange.
type Brake struct {
	mu       sync.Mutex
	failures map[string]*failures
}

type failures struct {
	count int
	last  time.Time
}

const (
	freeFailures  = 3 // before the first delay
	firstDelay    = 100 * time.Millisecond
	longestDelay  = 4 * time.Second // below the time that a login may take
	forgetAfter   = 10 * time.Minute
	mostBrakeKeys = 20_000
	longestName   = 64 // of a name that is told apart: a start-up packet holds some of ten thousand bytes
)

// of is the key of a user at an address.
func of(user, ip string) string { return ip + "\x00" + user[:min(len(user), longestName)] }

// NewBrake has no failures.
func NewBrake() *Brake { return &Brake{failures: map[string]*failures{}} }

// Delay is how long an exchange must wait now.
func (b *Brake) Delay(user, ip string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var longest time.Duration
	// An address may belong to many people, so it is slowed later than one name on it.
	for key, free := range map[string]int{of(user, ip): freeFailures, ip: 10 * freeFailures} {
		f := b.failures[key]
		if f == nil || now.Sub(f.last) > forgetAfter || f.count <= free {
			continue
		}
		d := longestDelay
		if over := f.count - free - 1; over < 6 {
			d = min(longestDelay, firstDelay<<over)
		}
		longest = max(longest, d)
	}
	return longest
}

// Failed remembers a failed login.
func (b *Brake) Failed(user, ip string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failures) >= mostBrakeKeys {
		for key, f := range b.failures {
			if now.Sub(f.last) > forgetAfter {
				delete(b.failures, key)
			}
		}
		if len(b.failures) >= mostBrakeKeys {
			clear(b.failures) // memory stays bounded, whatever is tried
		}
	}
	for _, key := range []string{of(user, ip), ip} {
		f := b.failures[key]
		if f == nil || now.Sub(f.last) > forgetAfter {
			f = &failures{}
			b.failures[key] = f
		}
		f.count++
		f.last = now
	}
}

// Succeeded forgets those of the user from there.
func (b *Brake) Succeeded(user, ip string) {
	b.mu.Lock()
	delete(b.failures, of(user, ip))
	b.mu.Unlock()
}
