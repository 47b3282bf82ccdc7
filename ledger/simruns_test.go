package ledger

import (
	"flag"
	random "math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/threats"
)

var (
	simSeeds = flag.Int("seeds", 0, "how many seeds of the simulation to run; 0: as many as fit CI")
	simFrom  = flag.Uint64("from", 1, "the first of the seeds to run")
	simSeed  = flag.Uint64("seed", 0, "run this seed of the simulation alone and print its schedule")
)

// runShared runs a seed, whose witnesses are in a directory of its own below root.
func runShared(t *testing.T, root string, seed uint64) *simWorld {
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var w *simWorld
	defer func() {
		if r := recover(); r != nil { // a bubble that does not end
			t.Fatalf("seed %d: %v\n%s", seed, r, strings.Join(w.trace, "\n"))
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = &simWorld{seed: seed, rng: random.New(random.NewPCG(seed, 1)), server: newSimServer(seed), dir: dir, started: time.Now(),
			seen: map[paidKey]int64{}, values: map[int64]int64{}, first: map[string]int64{}, acked: map[string]int64{}}
		w.run()
	})
	slices.Sort(w.trace) // by time; what happens at one moment has no order
	return w
}

// TestSharedSimulated runs three proxies on one ledger under seeds.
func TestSharedSimulated(t *testing.T) {
	root, from, n := memory.Dir(t), *simFrom, *simSeeds
	if n == 0 {
		n = threats.Length(400, 20_000)
	}
	if *simSeed != 0 {
		from, n = *simSeed, 1
	}
	began, answers, cuts, boots := time.Now(), 0, 0, 0
	for s := from; s < from+uint64(n); s++ {
		w := runShared(t, root, s)
		answers, cuts, boots = answers+w.answers, cuts+w.server.cuts, boots+w.boots
		if *simSeed != 0 {
			t.Logf("seed %d\n%s", s, strings.Join(w.trace, "\n"))
		}
		if w.broken != "" {
			t.Fatalf("seed %d: %s\nreplay: go test ./ledger -run '^TestSharedSimulated$' -seed %d -v\n%s", s, w.broken, s, strings.Join(w.trace, "\n"))
		}
	}
	t.Logf("%d seeds, %.0f a second", n, float64(n)/time.Since(began).Seconds())
	threats.Reached(t, "T31", "simulated: %d seeds of 3 proxies, %d starts, %d commits without an answer; of %d answers none without its charge, none drawn twice", n, boots, cuts, answers)
}

// TestSharedReplays: a seed runs the same way twice.
func TestSharedReplays(t *testing.T) {
	root := memory.Dir(t)
	for s := uint64(1); s <= 20; s++ {
		once, again := runShared(t, root, s).trace, runShared(t, root, s).trace
		for i := range max(len(once), len(again)) {
			if a, b := line(once, i), line(again, i); a != b {
				t.Errorf("seed %d runs another way the second time: %q, then %q", s, a, b)
				break
			}
		}
	}
}

// line is "" where a schedule has ended.
func line(schedule []string, i int) string {
	if i < len(schedule) {
		return schedule[i]
	}
	return ""
}
