package backend

import (
	"context"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/internal/moment"
)

// The line before the private database, which statements leave in turn at public times: who waits in it learns how many others do, and nothing of the rows that they read.
// A statement is admitted before it is charged, and each of its queries has a turn.

// Lined is how many statements for each place are in the line.
const Lined = 3

// places are the slots as far as they are public: with a step above the deadline each query has one from its turn on for a
// whole step, however soon it ends. So how long the next one waits, and how much of its step is left when it begins, tells
// nothing of the rows that the last one read.
type places struct {
	admitted chan struct{} // one element for each statement that may have charged and not yet run its last query
	mu       sync.Mutex
	until    []time.Time // each one's end
}

func newPlaces(n int) *places {
	return &places{admitted: make(chan struct{}, n*Lined), until: make([]time.Time, n)}
}

// admit is Backend.Admit. What a statement held that read rows is free again at a multiple of step since its last query
// returned, which is a public moment: most often at the first. What it did afterwards, such as saving a hard answer of an online
// release, is not to be told by the moment at which another statement is admitted.
func (p *places) admit(ctx context.Context, step time.Duration) (leave func(last time.Time), err error) {
	select {
	case p.admitted <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // both came at once
		<-p.admitted
		return nil, err
	}
	return func(last time.Time) {
		if last.IsZero() {
			<-p.admitted
			return
		}
		time.AfterFunc(time.Until(moment.Next(last, step)), func() { <-p.admitted })
	}, nil
}

// turn takes the place that is free first, for a step, and tells from when on. All of n places are taken for three steps only by
// 3n queries, and there are at most 3n-1 others, since each of 3n that were admitted has one in the line at a time (a statement is admitted once for each
// query that it runs beside another): the turn comes within three steps.
func (p *places) turn(now time.Time, step time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := &p.until[0]
	for i := range p.until {
		if p.until[i].Before(*first) {
			first = &p.until[i]
		}
	}
	at := now
	if first.After(now) {
		at = *first
	}
	*first = at.Add(step)
	return at
}
