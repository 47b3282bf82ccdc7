package proxy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns bounds what each user does at a time, and how often. Who may not go on yet waits behind her own statements and
// nobody else's. Who comes too often is refused at once: that is a function of when her statements came to be run, which
// is as much as their times tell her.
type turns struct {
	burst time.Duration // a user may take so much of her rate at once
	mu    sync.Mutex
	users map[string]*line
}

// line is one user's: what runs, and what waits, the oldest first.
type line struct {
	running int
	waiting []chan struct{} // closed when its turn has come
	tokens  float64
	filled  time.Time
}

func newTurns(burst time.Duration) *turns { return &turns{burst: burst, users: map[string]*line{}} }

func (t *turns) of(user string) *line {
	l := t.users[user]
	if l == nil {
		l = &line{}
		t.users[user] = l
	}
	return l
}

// ticket takes one of a user's tokens, of which so many come a second; rate 0: any number. It tells whether there was one.
func (t *turns) ticket(user string, rate int, now time.Time) bool {
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

// wait returns when fewer than most (0: any number) of the user's run, or when ctx ends. The place is held until done is called.
func (t *turns) wait(ctx context.Context, user string, most int) (done func(), err error) {
	leave := func() { t.leave(user, most) }
	t.mu.Lock()
	l := t.of(user)
	if most <= 0 || l.running < most && len(l.waiting) == 0 {
		l.running++
		t.mu.Unlock()
		return leave, nil
	}
	turn := make(chan struct{})
	l.waiting = append(l.waiting, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	at := slices.Index(l.waiting, turn)
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 { // its turn came at the same moment
		leave()
	}
	return nil, context.Cause(ctx)
}

// leave frees a place, which goes to who waits longest.
func (t *turns) leave(user string, most int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.of(user)
	l.running--
	for (most <= 0 || l.running < most) && len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.running++
	}
}
