// Package moment waits for moments on the clock. What leaves at a moment tells how late its wait ended, so these waits
// end within some microseconds of it on a machine that has a processor free.
package moment

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// precise is how long before its end a wait stops sleeping: timers wake late by up to a millisecond, by how much
// depends on what else runs, and that is seen. One goroutine looks at the clock for all waits that are as near as that.
const precise = 2 * time.Millisecond

// Next is the first multiple of step after now, counted from begun.
func Next(begun time.Time, step time.Duration) time.Time {
	past := time.Since(begun)
	return begun.Add(past - past%step + step)
}

// Until waits for a moment. It ends before it when stop is closed, unless the moment is nearer than some milliseconds.
func Until(at time.Time, stop <-chan struct{}) {
	if long := time.Until(at) - precise; long > 0 {
		timer := time.NewTimer(long)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-stop:
			return
		}
	}
	<-watched.add(at)
}

var watched watch

// watch are the waits that end within the next milliseconds.
type watch struct {
	mu    sync.Mutex
	waits []wait
	looks bool // a goroutine looks at the clock for them
}

type wait struct {
	at   time.Time
	over chan struct{}
}

func (w *watch) add(at time.Time) <-chan struct{} {
	over := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, wait{at, over})
	if !w.looks {
		w.looks = true
		go w.look()
	}
	return over
}

// look ends each wait at its moment, and returns when there is none.
func (w *watch) look() {
	for w.end(time.Now()) {
		runtime.Gosched()
	}
}

// end ends the waits whose moment has come and reports whether others are left.
func (w *watch) end(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = slices.DeleteFunc(w.waits, func(one wait) bool {
		if now.Before(one.at) {
			return false
		}
		close(one.over)
		return true
	})
	w.looks = len(w.waits) > 0
	return w.looks
}
