package admission

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// memory keeps the process below what it may have, before the system's killer would. While what is reachable is close
// to the limit new work waits, and is refused where that does not pass; where it comes closer still, the work that has
// run longest, of the user with the most of it, is ended. The collector has the same limit.
type memory struct {
	limit   atomic.Int64 // 0: none
	own     int64        // the operator's, by GOMEMLIMIT
	percent int          // as the collector was set last: how much may be new, of what is in use
	mu      sync.Mutex
	running map[*work]bool
	short   chan struct{} // closed when memory is no longer short; nil means it is not
	results int64         // bytes that are reserved for what the private database returns
	given   chan struct{} // closed when some of them are given back; nil means nobody waits
}

// work is one part of a statement that is being planned or post-processed.
type work struct {
	user  string
	begun time.Time
	end   context.CancelCauseFunc
}

const (
	memoryTick     = 100 * time.Millisecond
	memoryPatience = 10 * time.Second // of a statement that waits for memory
	collectEvery   = 10               // ticks, while memory is short
)

// ErrMemory is the same for who waited in vain and for who was ended.
var ErrMemory = &pgerror.Failure{SQLState: "53200", Message: "out of memory: the proxy has no memory left for this statement (server.limits.memory)",
	Hint: "Ask again later, or ask for less at once. What was paid for stays free."}

// Bound is how many bytes of memory the process may take from now on. The collector keeps to it too, or to GOMEMLIMIT
// where that is lower. It reports whether that is another bound than before.
func (w *Workers) Bound(bytes int64) bool {
	before := w.memory.limit.Swap(bytes)
	if before == 0 {
		w.memory.own = debug.SetMemoryLimit(-1)
	}
	debug.SetMemoryLimit(min(bytes, w.memory.own))
	return bytes != before
}

// Watch keeps the process to its bound until ctx ends.
func (w *Workers) Watch(ctx context.Context) { w.memory.watch(ctx, reachable) }

// reachable is how much the last collection found in use.
func reachable() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// watch looks at what is in use, again and again.
func (m *memory) watch(ctx context.Context, used func() int64) {
	tick := time.NewTicker(memoryTick)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			m.set(false)
			return
		case <-tick.C:
		}
		now, limit := used(), m.limit.Load()
		if limit == 0 {
			continue
		}
		short := now > limit/4*3
		m.set(short)
		m.collect(now, limit)
		if now > limit/10*9 {
			m.endOne()
		}
		if short && n%collectEvery == 0 {
			runtime.GC() // who waits allocates nothing, and what is free would not be found
		}
	}
}

// What the collector may let lie before it looks through all that is in use, however little that is: a proxy of some
// ten megabytes that answers thousands of questions a second would else look through them ten times a second, a fifth
// of its processor time (ADR 106).
const (
	letLie      = 256 << 20
	letLieShare = 16  // of the memory, at most
	maxPercent  = 800 // so that a heap that grows at once is seen to
)

// collect tells the collector when to work: when as much is new as is in use, which is Go's own way, or as much as may
// lie. An operator's GOGC stays as it is.
func (m *memory) collect(used, limit int64) {
	if os.Getenv("GOGC") != "" {
		return
	}
	percent := percentOf(used, limit)
	if before := max(m.percent, 100); percent < before*3/4 || percent > before*5/4 { // each change stops the process for a moment
		m.percent = percent
		debug.SetGCPercent(percent)
	}
}

func percentOf(used, limit int64) int {
	return int(min(max(100*min(letLie, limit/letLieShare)/max(used, 1), 100), maxPercent))
}

func (m *memory) set(short bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case short && m.short == nil:
		m.short = make(chan struct{})
	case !short && m.short != nil:
		close(m.short)
		m.short = nil
	}
}

// wait returns when memory is not short.
func (m *memory) wait(ctx context.Context) error {
	m.mu.Lock()
	short := m.short
	m.mu.Unlock()
	if short == nil {
		return nil
	}
	patience := time.NewTimer(memoryPatience)
	defer patience.Stop()
	select {
	case <-short:
		return nil
	case <-patience.C:
		return ErrMemory
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resultShare is the part of the memory that results of the private database may take together.
const resultShare = 4

// reserve takes memory for results of the private database, before anything is charged for them: as much as any rows
// would take, so that who waits, and who is refused, is a function of what was asked. One statement's results it grants
// whatever they take.
func (m *memory) reserve(ctx context.Context, bytes int64) (giveBack func(), err error) {
	patience := time.NewTimer(memoryPatience)
	defer patience.Stop()
	for {
		m.mu.Lock()
		if limit := m.limit.Load(); limit == 0 || m.results == 0 || m.results+bytes <= limit/resultShare {
			m.results += bytes
			m.mu.Unlock()
			return func() { m.giveBack(bytes) }, nil
		}
		if m.given == nil {
			m.given = make(chan struct{})
		}
		given := m.given
		m.mu.Unlock()
		select {
		case <-given:
		case <-patience.C:
			return nil, ErrMemory
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// spare is reserve for what can be done without, and is had at once or not at all.
func (m *memory) spare(bytes int64) (giveBack func(), had bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if limit := m.limit.Load(); limit > 0 && m.results+bytes > limit/resultShare {
		return nil, false
	}
	m.results += bytes
	return func() { m.giveBack(bytes) }, true
}

func (m *memory) giveBack(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.results -= bytes; m.given != nil {
		close(m.given)
		m.given = nil
	}
}

func (m *memory) begin(w *work) {
	m.mu.Lock()
	m.running[w] = true
	m.mu.Unlock()
}

func (m *memory) over(w *work) {
	m.mu.Lock()
	delete(m.running, w)
	m.mu.Unlock()
}

// endOne ends the longest running work of the user who has the most of it.
func (m *memory) endOne() {
	m.mu.Lock()
	defer m.mu.Unlock()
	each := map[string]int{}
	for w := range m.running {
		each[w.user]++
	}
	var worst *work
	for w := range m.running {
		if worst == nil || each[w.user] > each[worst.user] || each[w.user] == each[worst.user] && w.begun.Before(worst.begun) {
			worst = w
		}
	}
	if worst != nil {
		worst.end(ErrMemory)
		delete(m.running, worst)
	}
}
