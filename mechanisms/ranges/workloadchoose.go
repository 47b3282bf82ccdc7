package ranges

import (
	"math"
	"slices"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// EachCell is the workload of the cells themselves. Only Choose knows it: no strategy is better than the identity, for
// which both bounds of Optimise are attained.
const EachCell = AllPrefixes + 1

// Goal is what a strategy is chosen for.
type Goal struct {
	Cells     int
	Workload  Workload
	Norm      Norm // what the noise is calibrated to
	Neighbors privacy.Neighbors
}

// Choose returns the description of the strategy with the least expected error of a goal, and that error, the mean
// variance over the workload. Variance tells the variance of an observation's noise when it is calibrated to the
// sensitivity of one row, or 0 if it cannot be. All candidates are compared by exact algebra:
//
//	the identity; the best tree without weights and the best with;
//	L1: the shipped p-identity strategy, if there is one for so many cells;
//	L2: sine for all ranges or cosine for prefixes, up to MaxConvolved cells, with as many bits as the noise allows.
//
// The square-root strategy is never the best; it is there for streams, in which observation j needs cells up to j
// alone. It returns the zero Description where no noise can be calibrated, and for a goal that is none.
func Choose(g Goal, variance func(privacy.Sensitivity) float64) (Description, float64) {
	if g.Workload < AllRanges || g.Workload > EachCell || g.Norm != L1 && g.Norm != L2 {
		return Description{}, 0
	}
	c := choice{goal: g, variance: variance}
	c.consider(Description{Kind: KindIdentity, Cells: g.Cells})
	if g.Workload == EachCell || g.Cells < 2 {
		return c.best, c.error
	}
	c.trees()
	if g.Norm == L1 {
		for _, d := range shipped(g.Cells, g.Workload) {
			c.consider(d)
		}
		return c.best, c.error
	}
	kind := KindSine
	if g.Workload == AllPrefixes {
		kind = KindCosine
	}
	for bits := maxBits; bits >= 16; bits -= 4 {
		if c.consider(Description{Kind: kind, Cells: g.Cells, Bits: bits, Version: 1}) {
			break
		}
	}
	return c.best, c.error
}

type choice struct {
	goal     Goal
	variance func(privacy.Sensitivity) float64
	best     Description
	error    float64
}

// consider compares a strategy with the best so far and reports whether its noise can be calibrated.
func (c *choice) consider(d Description) bool {
	s, err := Open(d)
	if err != nil {
		return false
	}
	v := c.variance(s.Sensitivity(c.goal.Neighbors))
	if !(v > 0) || math.IsInf(v, 1) {
		return false
	}
	mean := 1.0
	if c.goal.Workload != EachCell {
		mean = s.MeanVariance(c.goal.Workload)
	}
	if e := v * mean; c.best.Kind == 0 || e < c.error {
		c.best, c.error = d, e
	}
	return true
}

// trees considers the best tree for the noise as it is, and the best weights for continuous noise.
func (c *choice) trees() {
	s := search{cells: c.goal.Cells, workload: c.goal.Workload, seen: map[string]bool{}}
	s.run(func(levels int) float64 {
		each := privacy.Sensitivity{L1: int64(levels), L2Squared: int64(levels)}
		if c.goal.Neighbors == privacy.ReplaceOne {
			each.L1, each.L2Squared = 2*each.L1, 2*each.L2Squared
		}
		return max(0, c.variance(each))
	})
	if s.best.cells != 0 {
		c.consider(Description{Kind: KindTree, Cells: c.goal.Cells, Radices: s.best.radices()})
	}
	radices, weights := heavy.get(heavyKey{c.goal.Cells, c.goal.Workload, c.goal.Norm})
	radices, weights = slices.Clone(radices), slices.Clone(weights)
	c.consider(Description{Kind: KindTree, Cells: c.goal.Cells, Radices: radices, Weights: weights})
}

// heavy remembers the best weighted trees, which depend on little.
var heavy weightedTrees

type heavyKey struct {
	cells    int
	workload Workload
	norm     Norm
}

type heavyTree struct {
	radices []int
	weights []int64
}

type weightedTrees struct {
	mu    sync.Mutex
	known map[heavyKey]heavyTree
}

// maxHeavy bounds the number of remembered trees; beyond it they are forgotten, all at once.
const maxHeavy = 1 << 10

func (w *weightedTrees) get(key heavyKey) ([]int, []int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, ok := w.known[key]
	if !ok {
		t.radices, t.weights = BestWeighted(key.cells, key.workload, key.norm)
		if w.known == nil || len(w.known) >= maxHeavy {
			w.known = map[heavyKey]heavyTree{}
		}
		w.known[key] = t
	}
	return t.radices, t.weights
}

// shipped returns the strategy for pure accounting that is made of data of this package, if there is one.
func shipped(cells int, workload Workload) []Description {
	if cells < leastPIdentity || cells > MaxPIdentity {
		return nil
	}
	return []Description{{Kind: KindPIdentity, Cells: cells, Version: PIdentityVersion(workload)}}
}
