package ranges

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// pIdentitiesFor returns the p-identity strategies that the optimiser finds for the queries with Gram matrix G: from
// hats, which suit sums of neighbouring cells, and from rows without any order.
func pIdentitiesFor(g *mat.SymDense) []*mat.Dense {
	cells := g.SymmetricDim()
	if cells < 4 || cells > maxPIdentityGroups {
		return nil
	}
	diagonal := make([]float64, cells)
	for i := range diagonal {
		diagonal[i] = g.At(i, i)
	}
	apply := func(dst, v []float64) {
		product := mat.NewVecDense(cells, dst)
		product.MulVec(g, mat.NewVecDense(cells, v))
	}
	var starts [][]float64
	all := layouts(AllPrefixes, cells)
	for i := 0; i < len(all); i += max(1, len(all)/6) {
		x, _ := all[i].start(cells, false)
		starts = append(starts, x)
	}
	for _, rows := range []int{2, max(3, cells/16), max(4, cells/6)} {
		x := make([]float64, rows*cells)
		for i := range x {
			_, part := math.Modf(0.6180339887498949 * float64(i+1))
			x[i] = part * part / 2
		}
		starts = append(starts, x)
	}
	best := math.Inf(1)
	var found []float64
	var template *template
	for _, x := range starts {
		t := templateOf(cells, len(x)/cells, newSubspace(len(x)/cells, diagonal, apply))
		if e := t.minimise(x, triedMoves); e < best {
			best, found, template = e, x, t
		}
	}
	template.minimise(found, lastMoves)
	template.theta(found)
	a := mat.NewDense(cells+template.rows, cells, nil)
	for j := range cells {
		a.Set(j, j, 1/template.u[j])
		for i := range template.rows {
			a.Set(cells+i, j, found[i*cells+j]/template.u[j])
		}
	}
	return []*mat.Dense{a}
}

// The effort of pIdentitiesFor, and the largest number of groups of cells for which it is made.
const (
	triedMoves         = 60
	lastMoves          = 500
	maxPIdentityGroups = 600
)
