package execute

import (
	"context"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/moment"
)

// timetable says when queries run on a grid: with a step above the deadline each query has a turn, a public moment,
// from which on it has a slot for a whole step, however soon it ends. So how long the next one waits, and how much of
// its step is left when it begins, tells nothing of the rows that the last one read. A statement is admitted before it
// is charged, and each of its queries has a turn: who waits learns how many others do, and nothing of the rows that
// they read.
type timetable struct {
	admitted chan struct{} // one element for each statement that may have charged and not yet run its last query
	mu       sync.Mutex
	until    []time.Time // of each slot, the end of the last turn in it
}

func newTimetable(slots int) *timetable {
	return &timetable{admitted: make(chan struct{}, slots*backend.AdmittedPerSlot), until: make([]time.Time, slots)}
}

// admit is Backend.Admit. What a statement held that read rows is free again at a multiple of step since its last query
// returned, which is a public moment: most often at the first. What it did afterwards, such as saving a hard answer of
// an online release, is not to be known by the moment at which another statement is admitted.
func (t *timetable) admit(ctx context.Context, step time.Duration) (leave func(last time.Time), err error) {
	select {
	case t.admitted <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // both came at once
		<-t.admitted
		return nil, err
	}
	return func(last time.Time) {
		if last.IsZero() {
			<-t.admitted
			return
		}
		time.AfterFunc(time.Until(moment.Next(last, step)), func() { <-t.admitted })
	}, nil
}

// turn takes the slot that is free first, for a step, and tells from when on. All of n slots are taken for three steps
// only by 3n queries, and there are at most 3n-1 others, since each of 3n that were admitted has one to run at a time
// (a statement is admitted once for each query that it runs beside another): the turn comes within three steps.
func (t *timetable) turn(now time.Time, step time.Duration) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := &t.until[0]
	for i := range t.until {
		if t.until[i].Before(*first) {
			first = &t.until[i]
		}
	}
	at := now
	if first.After(now) {
		at = *first
	}
	*first = at.Add(step)
	return at
}
