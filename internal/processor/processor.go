// Package processor tells how much processor time a process or a thread has taken, so that a limit on it holds alike on
// an idle machine and on a crowded one.
package processor

import (
	"bytes"
	"context"
	"os"
	"runtime"
	"strconv"
	"time"
)

// tick is the unit of /proc/…/stat on every Linux: a hundredth of a second.
const tick = 10 * time.Millisecond

// Patience is how many times its processor time a piece of work may last by the clock.
const Patience = 4

// Time is the processor time of a process by its id, as far as the system tells.
func Time(pid int) (time.Duration, bool) { return read("/proc/" + strconv.Itoa(pid) + "/stat") }

// read finds utime and stime, the 14th and 15th field: the second is a name in parentheses, which may hold anything.
func read(path string) (time.Duration, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick, err1 == nil && err2 == nil
}

// Limit is a context that ends for the cause why once the calling goroutine has taken so much processor time, or, where
// the system does not tell, time; at the latest after Patience times as much. Until stop is called the goroutine stays
// on its thread. stop tells how much it took.
func Limit(ctx context.Context, limit time.Duration, why error) (limited context.Context, stop func() time.Duration) {
	limited, cancel := context.WithCancelCause(ctx)
	runtime.LockOSThread()
	begun, thread, before := time.Now(), threadPath(), threadTime()
	watch := Watch(limit, func() (time.Duration, bool) {
		now, ok := read(thread)
		return now - before, ok
	}, func() { cancel(why) })
	return limited, func() time.Duration {
		watch()
		took := time.Since(begun)
		if thread != "" {
			took = threadTime() - before
		}
		runtime.UnlockOSThread()
		cancel(nil)
		return took
	}
}

// Watch calls over once when what spent tells has come to the limit. The clock is looked at no more often than it could
// have. stop ends the watch.
func Watch(limit time.Duration, spent func() (time.Duration, bool), over func()) (stop func()) {
	begun, done := time.Now(), make(chan struct{})
	first := time.AfterFunc(limit, func() {
		for {
			used, ok := spent()
			left, patience := limit-used, Patience*limit-time.Since(begun)
			if !ok || left <= 0 || patience <= 0 {
				over()
				return
			}
			select {
			case <-time.After(min(max(left, tick), patience)):
			case <-done:
				return
			}
		}
	})
	return func() {
		first.Stop()
		close(done)
	}
}
