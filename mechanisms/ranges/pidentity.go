package ranges

import (
	"fmt"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// pIdentity is the strategy B = [diag(b); T] of McKenna, Miklau, Hay and Machanavajjhala (HDMM, 2018): each cell by
// itself, b times, and p weighted sums of cells with weights T ≥ 0, chosen so that every column of B adds up to
// pIdentityScale.
//
// Claim: one row moves the observations by exactly pIdentityScale in L1 and by at most the greatest column in L2
// (add-remove); by at most twice that in L1 and in L2² (replace-one); a unit of R rows by R and R² times as much.
// Neighbours: add-remove, replace-one. Sensitivity: computed by newPIdentity from the integers of B, in integers.
// Theorem: the matrix mechanism; the mechanism is the root package's Release, this file only makes what it adds noise
// to. Proof: a row adds a column of B to B·x. All entries are ≥ 0, so a column's L1 norm is its sum, which b was chosen
// to complete, and for two columns a, c: |a−c|₁ ≤ |a|₁+|c|₁ and |a−c|₂² = |a|₂²+|c|₂²−2a·c ≤ |a|₂²+|c|₂². For a unit of
// R rows see Strategy. The real-valued optimum that T was rounded from plays no part. Limits: b ≥ 1, so that B has full
// column rank and every sum can be read. Weights are sparse: a row of T is kept from its first to its last positive
// entry.
type pIdentity struct {
	cells int
	own   []int64 // b
	rows  []band  // of T
	norms privacy.Sensitivity
	// For reading, with u = 1/b and Θ = T·diag(u): the Cholesky factor of I + ΘΘ'.
	inverse []float64 // u
	factor  mat.Cholesky
	// For the errors of ranges: prefixes of u², and what is known of the prefixes that were asked (pidentityprefix.go).
	squares  []float64
	prefixes []atomic.Pointer[prefix]
	tabling  sync.Once
	table    []float64 // the weights of the sums of every prefix; nil means each is solved for
	columns  *columns  // beside it: T by its columns
}

// band is a row of weights that are 0 outside of from to from+len(weights).
type band struct {
	from    int
	weights []int64
	// prefixes of weights·u², for sums over spans.
	sums []float64
}

// pIdentityScale is what every column adds up to.
const pIdentityScale = 1 << 16

// maxPIdentityRows bounds p: Reading takes O(p³) once and O(p²) a query.
const maxPIdentityRows = 1 << 11

// newPIdentity checks the weights and completes the columns.
func newPIdentity(cells int, rows []band) (*pIdentity, error) {
	if cells < 1 || cells > MaxPIdentity {
		return nil, fmt.Errorf("cells of a p-identity strategy is %d, must be from 1 to %d", cells, MaxPIdentity)
	}
	if len(rows) > maxPIdentityRows {
		return nil, fmt.Errorf("rows of a p-identity strategy is %d, must be at most %d", len(rows), maxPIdentityRows)
	}
	s := &pIdentity{cells: cells, own: make([]int64, cells), inverse: make([]float64, cells)}
	squares := make([]int64, cells)
	for i := range s.own {
		s.own[i] = pIdentityScale
	}
	for k, r := range rows {
		if r.from < 0 || r.from+len(r.weights) > cells {
			return nil, fmt.Errorf("row %d covers cells %d to %d, must be within the %d", k+1, r.from, r.from+len(r.weights), cells)
		}
		for i, w := range r.weights {
			if w < 0 || w >= pIdentityScale {
				return nil, fmt.Errorf("row %d has a weight of %d, must be from 0 to %d", k+1, w, pIdentityScale-1)
			}
			s.own[r.from+i] -= w
			squares[r.from+i] += w * w
		}
		s.rows = append(s.rows, band{from: r.from, weights: r.weights})
	}
	sums := make([]int64, cells)
	for i, b := range s.own {
		if b < 1 {
			return nil, fmt.Errorf("weights of cell %d add up to %d, must be below %d", i+1, pIdentityScale-b, pIdentityScale)
		}
		sums[i], squares[i] = b, squares[i]+b*b
	}
	for _, r := range rows {
		for i, w := range r.weights {
			sums[r.from+i] += w
		}
	}
	s.norms = greatest(sums, squares)
	s.prefixes = make([]atomic.Pointer[prefix], cells+1)
	return s, s.prepare()
}

// Cells returns the number of cells.
func (s *pIdentity) Cells() int { return s.cells }

// Observations returns the number of cells and weighted sums.
func (s *pIdentity) Observations() int { return s.cells + len(s.rows) }

// Sensitivity returns the norms of the change of the observations by one row.
func (s *pIdentity) Sensitivity(neighbors privacy.Neighbors) privacy.Sensitivity {
	if neighbors == privacy.ReplaceOne {
		return privacy.Sensitivity{L1: 2 * s.norms.L1, L2Squared: 2 * s.norms.L2Squared}
	}
	return s.norms
}

// Observe returns first every cell, b times, then the weighted sums, each summed in 128 bits before it is cut: at most
// MaxPIdentity products below 2^16·2^61.
func (s *pIdentity) Observe(cells []int64) []int64 {
	observed := make([]int64, 0, s.Observations())
	for i, b := range s.own {
		var sum wide
		sum.add(uint64(b), counted(cells[i]))
		observed = append(observed, sum.above(wide{}))
	}
	for _, r := range s.rows {
		var sum wide
		for i, w := range r.weights {
			sum.add(uint64(w), counted(cells[r.from+i]))
		}
		observed = append(observed, sum.above(wide{}))
	}
	return observed
}

// counted returns a cell as Strategy.Observe takes it.
func counted(cell int64) uint64 { return uint64(min(max(cell, 0), MaxObserved)) }
