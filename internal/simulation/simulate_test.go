package simulation

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/seeds"
	"github.com/dpproxy/dpproxy/internal/threats"
)

const steps = 40

func runSeed(t *testing.T, seed uint64, shm string) (out seeds.Outcome) {
	var w *world
	defer func() {
		if r := recover(); r != nil { // a bubble that does not end
			out = seeds.Outcome{Broken: fmt.Sprint(r), Schedule: w.schedule()}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, shm)
		w.run(steps)
		out = seeds.Outcome{Broken: w.broken, Schedule: w.schedule(), Answers: w.book.answers, Cuts: w.disk.Cuts(), Boots: w.boots}
	})
	return out
}

// TestLedger runs the ledger under seeds.
func TestLedger(t *testing.T) {
	shm := memory.Dir(t) // SQLite's shared index is mapped from there
	n, sum := seeds.Run(t, "internal/simulation", threats.Length(1500, 100_000), func(s uint64) seeds.Outcome { return runSeed(t, s, shm) })
	if n == 0 {
		return
	}
	for _, threat := range []string{"T25", "T26"} {
		threats.Reached(t, threat, "simulated: %d seeds with %d starts of a process and %d power cuts; of %d answers none without its charge, none drawn twice", n, sum.Boots, sum.Cuts, sum.Answers)
	}
}

// TestReplays: a seed runs the same way twice.
func TestReplays(t *testing.T) {
	shm := memory.Dir(t) // SQLite's shared index is mapped from there
	seeds.Replays(t, threats.Length(25, 500), func(s uint64) seeds.Outcome { return runSeed(t, s, shm) })
}
