package login

import (
	"context"
	"time"
)

// Guesses that somebody else judges, as a directory does, take a network's time, and no lock may be held meanwhile. So
// one of a name, and a few of an origin, are made at a time: as with verifiers of ours, any number of connections at
// once learn no more than these would one after another.

const (
	elsewherePerOrigin = 4
	elsewhereAgain     = 20 * time.Millisecond
)

// GuessElsewhere waits for the turn of a guess and has it judged: ok where it was right, known where somebody judged it
// at all. What nobody judged is no failure of hers.
func (b *Brake) GuessElsewhere(ctx context.Context, user, origin string, judge func(context.Context) (ok, known bool)) (ok, known bool, err error) {
	name := of(user, origin)
	for {
		wait := b.begin(name, origin)
		if wait <= 0 {
			break
		}
		if end, bound := ctx.Deadline(); bound && time.Until(end) < wait {
			return false, false, ErrBraked
		}
		select {
		case <-time.After(wait + lot()):
		case <-ctx.Done():
			return false, false, ErrBraked
		}
	}
	defer func() { b.end(name, origin, ok, known) }()
	ok, known = judge(ctx)
	return ok, known, nil
}

// begin takes a place for a guess, or says how long until there may be one.
func (b *Brake) begin(name, origin string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if wait := max(b.names.held(name, now).next.Sub(now), b.origins.held(origin, now).next.Sub(now)); wait > 0 {
		return wait
	}
	if b.running[name] > 0 || b.running[origin] >= elsewherePerOrigin {
		return elsewhereAgain
	}
	if b.running == nil {
		b.running = map[string]int{}
	}
	b.running[name]++
	b.running[origin]++
	return 0
}

func (b *Brake) end(name, origin string, ok, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, key := range []string{name, origin} {
		if b.running[key]--; b.running[key] <= 0 {
			delete(b.running, key)
		}
	}
	switch {
	case ok:
		b.names.forgive(name, now)
	case known:
		b.names.failed(name, now)
		b.origins.failed(origin, now)
	}
}
