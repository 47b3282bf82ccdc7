// Package seeds runs a simulation under many seeds, and one seed twice. Only tests import it.
package seeds

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	count = flag.Int("seeds", 0, "how many seeds to run; 0: as many as fit CI")
	from  = flag.Uint64("from", 1, "the first of the seeds to run")
	alone = flag.Uint64("seed", 0, "run this seed alone and print its schedule")
)

// Outcome is what a seed came to, or many together.
type Outcome struct {
	Broken, Schedule string
	Answers, Cuts    int
	Boots, Lost      int // Lost: commits that a restart has taken back
}

// Run runs the first n seeds, or those that the flags ask for, on all processors, and adds up what they came to. The
// first one that breaks a rule fails the test with its schedule. It returns how many ran: 0 where one seed alone was
// asked for. pkg is where the test is below the module's root.
func Run(t *testing.T, pkg string, n int, run func(seed uint64) Outcome) (ran int, sum Outcome) {
	t.Helper()
	if *alone != 0 {
		out := run(*alone)
		t.Logf("seed %d\n%s", *alone, out.Schedule)
		if out.Broken != "" {
			t.Error(out.Broken)
		}
		return 0, out
	}
	if *count != 0 {
		n = *count
	}
	began := time.Now()
	var next atomic.Int64
	var failed atomic.Bool
	var mu sync.Mutex
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n) && !failed.Load(); i = next.Add(1) {
				s := *from + uint64(i) - 1
				out := run(s)
				mu.Lock()
				sum.Answers, sum.Cuts, sum.Boots, sum.Lost = sum.Answers+out.Answers, sum.Cuts+out.Cuts, sum.Boots+out.Boots, sum.Lost+out.Lost
				mu.Unlock()
				if out.Broken != "" {
					failed.Store(true)
					t.Errorf("seed %d: %s\nreplay: go test ./%s -run '^%s$' -seed %d -v\n%s", s, out.Broken, pkg, t.Name(), s, out.Schedule)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d seeds, %.0f a second", n, float64(n)/time.Since(began).Seconds())
	return n, sum
}

// Replays holds that each of the first n seeds runs the same way twice.
func Replays(t *testing.T, n int, run func(seed uint64) Outcome) {
	t.Helper()
	for s := uint64(1); s <= uint64(n); s++ {
		first, second := run(s), run(s)
		if first.Broken != "" {
			t.Errorf("seed %d: %s", s, first.Broken)
		}
		if once, again, same := FirstDifference(first.Schedule, second.Schedule); !same {
			t.Errorf("seed %d runs another way the second time: %q, then %q", s, once, again)
		}
	}
}

// FirstDifference finds the first line in which two schedules differ: what each has there, "" where it has ended.
func FirstDifference(a, b string) (once, again string, same bool) {
	for a != b {
		once, a, _ = strings.Cut(a, "\n")
		again, b, _ = strings.Cut(b, "\n")
		if once != again {
			return once, again, false
		}
	}
	return "", "", true
}
