package ledger

import (
	"fmt"
	random "math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/seeds"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// runShared runs a seed, whose witnesses are in a directory of its own below root.
func runShared(t *testing.T, root string, seed uint64) (out seeds.Outcome) {
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		return seeds.Outcome{Broken: err.Error()}
	}
	defer os.RemoveAll(dir)
	var w *simWorld
	defer func() {
		if r := recover(); r != nil { // a bubble that does not end
			out = seeds.Outcome{Broken: fmt.Sprint(r), Schedule: strings.Join(w.trace, "\n")}
		}
	}()
	synctest.Test(t, func(*testing.T) {
		w = &simWorld{seed: seed, rng: random.New(random.NewPCG(seed, 1)), server: newSimServer(seed), dir: dir, started: time.Now(),
			seen: map[paidKey]int64{}, values: map[int64]int64{}, first: map[string]int64{}, acked: map[string]int64{}}
		w.run()
		slices.Sort(w.trace) // by time; what happens at one moment has no order
		out = seeds.Outcome{Broken: w.broken, Schedule: strings.Join(w.trace, "\n"), Answers: w.answers, Cuts: w.server.cuts, Boots: w.boots, Lost: w.server.lost}
	})
	return out
}

// TestSharedSimulated runs three proxies on one ledger under seeds.
func TestSharedSimulated(t *testing.T) {
	root := memory.Dir(t)
	n, sum := seeds.Run(t, "ledger", threats.Length(threats.ByNight(1000, 3000), 20_000), func(s uint64) seeds.Outcome { return runShared(t, root, s) })
	if n == 0 {
		return
	}
	threats.Reached(t, "T31", "simulated: %d seeds of 3 proxies, %d starts, %d commits without an answer, %d that others had seen and a restart took back; of %d answers none without its charge, none drawn twice", n, sum.Boots, sum.Cuts, sum.Lost, sum.Answers)
}

// TestSharedReplays: a seed runs the same way twice.
func TestSharedReplays(t *testing.T) {
	root := memory.Dir(t)
	seeds.Replays(t, 20, func(s uint64) seeds.Outcome { return runShared(t, root, s) })
}
