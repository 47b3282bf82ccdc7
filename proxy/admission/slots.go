package admission

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Slots bounds what each user does at a time, and how often. Who has no slot yet waits in her own queue. Where all
// users together are bounded too, the next slot goes to the waiting user who has the fewest, and of these to who waits
// longest, so that a user with fifty statements in her queue keeps another waiting for no more of them than one with
// two. Who comes too often is refused at once: that is a function of when her statements came to be run, which is as
// much as their times tell her.
type Slots struct {
	burst   time.Duration // a user may have the tokens of so much time at once
	all     int           // slots of all users; 0 means any number
	mu      sync.Mutex
	users   map[string]*userQueue
	held    int
	waiting int    // statements of all users
	came    uint64 // how many have waited
}

// userQueue is one user's: how many slots she holds, and what waits for one, the oldest first.
type userQueue struct {
	held    int
	most    int // slots that she may hold, as last said; 0 means any number
	waiting []waiter
	tokens  float64
	counted time.Time // when her tokens were
}

type waiter struct {
	granted chan struct{} // closed when it has its slot
	came    uint64
}

// NewSlots bounds each user by herself.
func NewSlots(burst time.Duration) *Slots {
	return &Slots{burst: burst, users: map[string]*userQueue{}}
}

// sharedSlots bounds all users together as well.
func sharedSlots(all int) *Slots { return &Slots{all: all, users: map[string]*userQueue{}} }

func (s *Slots) of(user string) *userQueue {
	q := s.users[user]
	if q == nil {
		q = &userQueue{}
		s.users[user] = q
	}
	return q
}

// TakeToken takes one of a user's tokens, of which so many come a second; rate 0: any number. It reports whether there
// was one.
func (s *Slots) TakeToken(user string, rate int, now time.Time) bool {
	if rate <= 0 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	q, most := s.of(user), max(float64(rate)*s.burst.Seconds(), 1)
	if q.tokens += now.Sub(q.counted).Seconds() * float64(rate); q.counted.IsZero() || q.tokens > most {
		q.tokens = most
	}
	q.counted = now
	if q.tokens < 1 {
		return false
	}
	q.tokens--
	return true
}

// share is what one user may have of slots that all users share: all but one, so that there is always one for another.
func (s *Slots) share(most int) int {
	if s.all <= 1 {
		return most
	}
	if most <= 0 {
		return s.all - 1
	}
	return min(most, s.all-1)
}

// Wait waits until there is a slot for the user, who may hold so many (0 means any number), or until ctx ends. She
// holds it until done is called.
func (s *Slots) Wait(ctx context.Context, user string, most int) (done func(), err error) {
	done = func() { s.free(user) }
	s.mu.Lock()
	q := s.of(user)
	q.most = most
	if q.mayHold() && len(q.waiting) == 0 && s.room() {
		q.held++
		s.held++
		s.mu.Unlock()
		return done, nil
	}
	s.came++
	w := waiter{make(chan struct{}), s.came}
	q.waiting = append(q.waiting, w)
	s.waiting++
	s.mu.Unlock()
	select {
	case <-w.granted:
		return done, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	at := slices.Index(q.waiting, w)
	if at >= 0 {
		q.waiting = slices.Delete(q.waiting, at, at+1)
		s.waiting--
	}
	s.mu.Unlock()
	if at < 0 { // it was granted its slot at the same moment
		done()
	}
	return nil, context.Cause(ctx)
}

// Spare is a slot that nobody waits for, had at once or not at all.
func (s *Slots) Spare(user string, most int) (done func(), had bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.of(user)
	q.most = most
	if !q.mayHold() || s.waiting > 0 || !s.room() {
		return nil, false
	}
	q.held++
	s.held++
	return func() { s.free(user) }, true
}

func (q *userQueue) mayHold() bool { return q.most <= 0 || q.held < q.most }

func (s *Slots) room() bool { return s.all <= 0 || s.held < s.all }

// free gives a slot back, and on to who waits.
func (s *Slots) free(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.of(user)
	q.held--
	s.held--
	for s.room() {
		next := q
		if s.all > 0 {
			next = s.next()
		}
		if next == nil || len(next.waiting) == 0 || !next.mayHold() {
			return
		}
		close(next.waiting[0].granted)
		next.waiting = next.waiting[1:]
		s.waiting--
		next.held++
		s.held++
	}
}

// next is the queue whose first is served next, nil where nobody waits who may have a slot.
func (s *Slots) next() (next *userQueue) {
	if s.waiting == 0 { // as mostly: not every user that ever came is looked at
		return nil
	}
	for _, q := range s.users {
		if len(q.waiting) == 0 || !q.mayHold() {
			continue
		}
		if next == nil || q.held < next.held || q.held == next.held && q.waiting[0].came < next.waiting[0].came {
			next = q
		}
	}
	return next
}
