package login

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Brake slows the guessing of passwords. A guess is a client's proof, and it is compared with the verifier when its
// turn has come: after each wrong one the next of the same name from the same origin must wait twice as long, and so,
// later and less, must the next of any name from there.
//
// What is slowed is the comparison, one at a time, and not the exchange before it: any number of connections at once
// learn no more than one would, and neither do clients that leave before their answer. Of those that wait for one turn
// a random one has it, so that whoever keeps more guesses waiting, from the address of somebody else and by her name,
// delays her and does not shut her out; from other origins nobody is delayed. A right password takes no turn from those
// behind it.
//
// Memory is bounded (leastly, below), and a name is never thought to have failed less often than it has: failures by
// other names cannot clear it.
type Brake struct {
	mu      sync.Mutex
	running map[string]int // guesses that are being made elsewhere (GuessElsewhere), by name and by origin
	names   failureTable   // of a name at an origin
	origins failureTable   // an origin may be many people's, so it is slowed later and less
}

const (
	forgetAfter     = 10 * time.Minute
	maxBrakeKeys    = 20_000
	longestName     = 64                    // of a name that is kept: a start-up packet holds some of ten thousand bytes
	drawTurnsWithin = 16 * time.Millisecond // who wakes first within this has the turn
)

var (
	nameSteps   = steps{free: 3, first: 100 * time.Millisecond, doublings: 6, longest: 4 * time.Second}
	originSteps = steps{free: 30, first: 50 * time.Millisecond, doublings: 3, longest: 400 * time.Millisecond}
)

// ErrBraked is the error of a guess whose turn does not come in time. Nothing was compared.
var ErrBraked = errors.New("too many wrong passwords")

// NewBrake has no failures.
func NewBrake() *Brake {
	return &Brake{names: newFailureTable(nameSteps, maxBrakeKeys), origins: newFailureTable(originSteps, maxBrakeKeys)}
}

// LocalName reports whether a host, with its port or without, is a name of this machine that no name server gives: who
// leads a browser here by another one would read this machine's pages from it.
func LocalName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.IsLoopback()
}

// Origin is what counts as one place that clients come from: an address, and with IPv6 the network that one customer is
// given.
func Origin(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	ip = ip.WithZone("").Unmap()
	if !ip.Is6() || ip.IsLoopback() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return address
	}
	return network.String()
}

// of is the key of a name at an origin.
func of(user, origin string) string { return origin + "\x00" + user[:min(len(user), longestName)] }

// Guess waits for the turn of a guess and makes it: right compares the client's proof, in microseconds.
func (b *Brake) Guess(ctx context.Context, user, origin string, right func() bool) (bool, error) {
	for {
		wait, done := b.guess(user, origin, right)
		if wait <= 0 {
			return done, nil
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return false, ErrBraked
		}
		select {
		case <-time.After(wait + lot()):
		case <-ctx.Done():
			return false, ErrBraked
		}
	}
}

// guess makes the guess, or says how long until its turn may come.
func (b *Brake) guess(user, origin string, right func() bool) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, name := time.Now(), of(user, origin)
	if wait := max(b.names.held(name, now).next.Sub(now), b.origins.held(origin, now).next.Sub(now)); wait > 0 {
		return wait, false
	}
	if right() {
		b.names.forgive(name, now)
		return 0, true
	}
	b.names.failed(name, now)
	b.origins.failed(origin, now)
	return 0, false
}

// lot is a random part of drawTurnsWithin.
func lot() time.Duration {
	var b [1]byte
	_, _ = rand.Read(b[:]) // never fails
	return drawTurnsWithin * time.Duration(b[0]) / 256
}

// steps are the waits after failures: none after the free ones, then first, doubled so many times.
type steps struct {
	free      int
	first     time.Duration
	doublings int
	longest   time.Duration
}

func (s steps) after(count int) time.Duration {
	if count <= s.free {
		return 0
	}
	return min(s.longest, s.first<<min(count-s.free-1, s.doublings))
}

// most is the count above which waits are no longer.
func (s steps) most() int { return s.free + 1 + s.doublings }

type failures struct {
	count int
	last  time.Time // when the last one was
	next  time.Time // before it nobody guesses
}

// failureTable counts failures by key in bounded memory, by lossy counting (Manku and Motwani, VLDB 2002): who is
// dropped for want of room had at most as many failures as floor says, and whoever is not in the table is taken to have
// that many. So a count is never below the true one, whatever else is counted. It is above it only for keys that come
// after a table full of others, within forgetAfter: their next wrong password is slowed sooner, a right one is not.
type failureTable struct {
	steps steps
	most  int
	kept  map[string]failures
	floor failures
}

func newFailureTable(s steps, most int) failureTable {
	return failureTable{steps: s, most: most, kept: map[string]failures{}}
}

// held is what counts against a key.
func (t *failureTable) held(key string, now time.Time) failures {
	f, ok := t.kept[key]
	if !ok {
		f = t.floor
	}
	if now.Sub(f.last) > forgetAfter {
		return failures{}
	}
	return f
}

func (t *failureTable) failed(key string, now time.Time) {
	f := t.held(key, now)
	f.count = min(f.count+1, t.steps.most())
	f.last, f.next = now, now.Add(t.steps.after(f.count))
	if _, ok := t.kept[key]; !ok && len(t.kept) >= t.most {
		t.drop(now)
	}
	t.kept[key] = f
}

// forgive takes one failure back: all of them would make each log-in of hers a fresh start for who guesses beside her.
func (t *failureTable) forgive(key string, now time.Time) {
	f := t.held(key, now)
	if f.count > 0 {
		f.count--
	}
	if _, ok := t.kept[key]; !ok {
		return // what all have in common is nobody's to take back
	}
	if f.count == 0 && t.held("", now).count == 0 {
		delete(t.kept, key)
		return
	}
	t.kept[key] = f
}

// drop makes room for an eighth of the table: the keys with the fewest failures go.
func (t *failureTable) drop(now time.Time) {
	with := make([]int, t.steps.most()+1) // how many keys have so many failures
	for key, f := range t.kept {
		if now.Sub(f.last) > forgetAfter {
			delete(t.kept, key)
			continue
		}
		with[f.count]++
	}
	room := t.most/8 + 1 - (t.most - len(t.kept))
	count := 0
	for below := with[0]; below < room; below += with[count] {
		count++
	}
	floor := t.held("", now)
	for key, f := range t.kept {
		if room <= 0 {
			break
		}
		if f.count > count {
			continue
		}
		delete(t.kept, key)
		room--
		floor.count = max(floor.count, f.count)
		if f.next.After(floor.next) {
			floor.next = f.next
		}
		floor.last = now
	}
	t.floor = floor
}
