package simulation

import (
	"crypto/sha256"
	"flag"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
)

var (
	seeds = flag.Int("seeds", 0, "how many seeds to run; 0: as many as fit CI")
	seed  = flag.Uint64("seed", 0, "run this seed alone and print its schedule")
)

const steps = 40

// shmDir is where SQLite's shared index is mapped from: memory, where there is such a file system.
func shmDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "simulation")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// outcome is what a seed came to.
type outcome struct {
	broken, schedule string
	answers, cuts    int
	boots            int
}

func runSeed(t *testing.T, seed uint64, shm string) (out outcome) {
	var w *world
	defer func() {
		if r := recover(); r != nil { // a bubble that does not end
			t.Fatalf("seed %d: %v\n%s", seed, r, w.schedule())
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, shm)
		w.run(steps)
		out = outcome{w.broken, w.schedule(), w.book.answers, w.disk.Cuts(), w.boots}
	})
	return out
}

// TestLedger runs the ledger under seeds.
func TestLedger(t *testing.T) {
	shm := shmDir(t)
	if *seed != 0 {
		out := runSeed(t, *seed, shm)
		t.Logf("seed %d\n%s", *seed, out.schedule)
		if out.broken != "" {
			t.Error(out.broken)
		}
		return
	}
	n := *seeds
	if n == 0 {
		n = threats.Length(1500, 100_000)
	}
	began := time.Now()
	var next, answers, cuts, boots atomic.Int64
	var failed atomic.Bool
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !failed.Load() {
				s := uint64(next.Add(1))
				if s > uint64(n) {
					return
				}
				out := runSeed(t, s, shm)
				answers.Add(int64(out.answers))
				cuts.Add(int64(out.cuts))
				boots.Add(int64(out.boots))
				if out.broken != "" {
					failed.Store(true)
					t.Errorf("seed %d: %s\nreplay: go test ./internal/simulation -run '^TestLedger$' -seed %d -v\n%s", s, out.broken, s, out.schedule)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d seeds, %.0f a second", n, float64(n)/time.Since(began).Seconds())
	for _, threat := range []string{"T25", "T26"} {
		threats.Reached(t, threat, "simulated: %d seeds with %d starts of a process and %d power cuts; of %d answers none without its charge, none drawn twice", n, boots.Load(), cuts.Load(), answers.Load())
	}
}

// TestReplays: a seed runs the same way twice.
func TestReplays(t *testing.T) {
	shm := shmDir(t)
	differ, n := 0, threats.Length(25, 500)
	for s := uint64(1); s <= uint64(n); s++ {
		a, b := runSeed(t, s, shm), runSeed(t, s, shm)
		if sha256.Sum256([]byte(a.schedule)) != sha256.Sum256([]byte(b.schedule)) {
			differ++
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d seeds run another way the second time", differ, n)
	}
}
