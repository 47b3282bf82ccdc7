package ranges

import (
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Claim: one row moves a Tree's observations by at most Σ weights (L1) and Σ weights² (L2²) under add-remove, and by
// twice as much under replace-one; a unit of R rows by at most R and R² times that. Neighbours: add-remove,
// replace-one. Sensitivity: Sensitivity below, exact: attained by any row, and by two rows in cells of different nodes
// of level 0. Theorem: the mechanism is the root package's Release; this file only counts what it adds noise to. Proof:
// a row is in one cell, hence in one node of each level, whose observation is weight·sum: column i of B has the level's
// weight once for each level. Two columns differ where their nodes do; all levels are a bound, and level 0 has at least
// two nodes, below which no node is shared. Limits: at most one weight a level, so that a ragged tree's short last node
// is observed as well as the others.

// Observations returns the number of nodes.
func (t Tree) Observations() int { return t.Nodes() }

// Sensitivity returns the norms of the change of the observations by one row.
func (t Tree) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	var s privacy.Sensitivity
	for _, l := range t.levels {
		s.L1 += l.weight
		s.L2Squared += l.weight * l.weight
	}
	if neighbors == privacy.ReplaceOne {
		s.L1, s.L2Squared = 2*s.L1, 2*s.L2Squared
	}
	return s
}

// Observe returns the weighted sums of the nodes, level by level from the top, each left to right. All terms are ≥ 0,
// so that cutting at MaxObserved on the way is cutting at the end.
func (t Tree) Observe(cells []int64) []int64 {
	nodes := make([]int64, t.Nodes())
	for _, l := range t.levels {
		for i := range l.count {
			sum := int64(0)
			for _, c := range cells[i*l.block : min((i+1)*l.block, t.cells)] {
				sum = min(sum+min(max(c, 0), MaxObserved), MaxObserved)
			}
			high, low := bits.Mul64(uint64(sum), uint64(l.weight))
			if high != 0 {
				low = MaxObserved
			}
			nodes[l.offset+i] = int64(min(low, MaxObserved))
		}
	}
	return nodes
}
