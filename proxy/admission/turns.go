package admission

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Turns bounds what each user does at a time, and how often. Who may not go on yet waits behind her own statements. Where
// all users together are bounded too, the next place goes to the waiting user who has the fewest, and of these to who waits
// longest, so that a user with fifty statements in line keeps another waiting for no more of them than one with two. Who
// comes too often is refused at once: that is a function of when her statements came to be run, which is as much as their
// times tell her.
type Turns struct {
	burst   time.Duration // a user may take so much of her rate at once
	all     int           // of all users at a time; 0: any number
	mu      sync.Mutex
	users   map[string]*line
	running int
	waiting int    // statements of all users
	came    uint64 // how many have waited
}

// line is one user's: what runs, and what waits, the oldest first.
type line struct {
	running int
	most    int // of the user at a time, as last said; 0: any number
	waiting []waiter
	tokens  float64
	filled  time.Time
}

type waiter struct {
	turn chan struct{} // closed when its turn has come
	came uint64
}

// NewTurns bounds each user by herself.
func NewTurns(burst time.Duration) *Turns { return &Turns{burst: burst, users: map[string]*line{}} }

// fairTurns bounds all users together as well.
func fairTurns(all int) *Turns { return &Turns{all: all, users: map[string]*line{}} }

func (t *Turns) of(user string) *line {
	l := t.users[user]
	if l == nil {
		l = &line{}
		t.users[user] = l
	}
	return l
}

// Ticket takes one of a user's tokens, of which so many come a second; rate 0: any number. It tells whether there was one.
func (t *Turns) Ticket(user string, rate int, now time.Time) bool {
	if rate <= 0 {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l, most := t.of(user), max(float64(rate)*t.burst.Seconds(), 1)
	if l.tokens += now.Sub(l.filled).Seconds() * float64(rate); l.filled.IsZero() || l.tokens > most {
		l.tokens = most
	}
	l.filled = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}

// share is what one user may have of places that all users share: all but one, so that there is always one for another.
func (t *Turns) share(most int) int {
	if t.all <= 1 {
		return most
	}
	if most <= 0 {
		return t.all - 1
	}
	return min(most, t.all-1)
}

// Wait returns when fewer than most (0: any number) of the user's run, and fewer than all, or when ctx ends. The place is
// held until done is called.
func (t *Turns) Wait(ctx context.Context, user string, most int) (done func(), err error) {
	leave := func() { t.leave(user) }
	t.mu.Lock()
	l := t.of(user)
	l.most = most
	if l.mayRun() && len(l.waiting) == 0 && t.room() {
		l.running++
		t.running++
		t.mu.Unlock()
		return leave, nil
	}
	t.came++
	w := waiter{make(chan struct{}), t.came}
	l.waiting = append(l.waiting, w)
	t.waiting++
	t.mu.Unlock()
	select {
	case <-w.turn:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	at := slices.Index(l.waiting, w)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		t.waiting--
	}
	t.mu.Unlock()
	if at < 0 { // its turn came at the same moment
		leave()
	}
	return nil, context.Cause(ctx)
}

// Spare is a place that nobody waits for, had at once or not at all.
func (t *Turns) Spare(user string, most int) (done func(), had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of(user)
	l.most = most
	if !l.mayRun() || t.waiting > 0 || !t.room() {
		return nil, false
	}
	l.running++
	t.running++
	return func() { t.leave(user) }, true
}

func (l *line) mayRun() bool { return l.most <= 0 || l.running < l.most }

func (t *Turns) room() bool { return t.all <= 0 || t.running < t.all }

// leave frees a place, and gives it on.
func (t *Turns) leave(user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of(user)
	l.running--
	t.running--
	for t.room() {
		next := l
		if t.all > 0 {
			next = t.next()
		}
		if next == nil || len(next.waiting) == 0 || !next.mayRun() {
			return
		}
		close(next.waiting[0].turn)
		next.waiting = next.waiting[1:]
		t.waiting--
		next.running++
		t.running++
	}
}

// next is the line whose turn it is, nil where nobody waits who may go on.
func (t *Turns) next() (next *line) {
	if t.waiting == 0 { // as mostly: not every user that ever came is looked at
		return nil
	}
	for _, l := range t.users {
		if len(l.waiting) == 0 || !l.mayRun() {
			continue
		}
		if next == nil || l.running < next.running || l.running == next.running && l.waiting[0].came < next.waiting[0].came {
			next = l
		}
	}
	return next
}
