package ledger

import (
	"testing"
	"time"
)

// TestWriterDrawsNoLots: of an end, a rest and a job that all wait the writer takes the end, then the rest, then the
// job, each time; and after the end no job is queued. A replay of a simulated seed depends on that.
func TestWriterDrawsNoLots(t *testing.T) {
	f := &keeper{queue: make(chan *job, 1), closing: make(chan struct{}), stopped: make(chan struct{})}
	for range 64 {
		tick := make(chan time.Time, 1)
		tick <- time.Time{}
		waits := &job{}
		f.queue <- waits
		if j, ended := f.next(tick); j != nil || ended {
			t.Fatalf("took %v, %v before the rest", j, ended)
		}
		if j, ended := f.next(tick); j != waits || ended {
			t.Fatalf("took %v, %v in place of the job", j, ended)
		}
	}
	close(f.closing)
	close(f.stopped)
	for range 64 {
		tick := make(chan time.Time, 1)
		tick <- time.Time{}
		f.queue <- &job{}
		if _, ended := f.next(tick); !ended {
			t.Fatal("went on after the end")
		}
		<-f.queue
		if err := f.do(ctx, &job{}); err != ErrClosed || len(f.queue) != 0 {
			t.Fatalf("%v, and %d jobs are queued that nobody comes for", err, len(f.queue))
		}
	}
}
