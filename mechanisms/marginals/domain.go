// Package marginals observes many overlapping GROUP BY tables of one set of rows together: marginals of a cube that
// need never be written out. Every marginal is a sum of residuals, one for each subset of its attributes; a cube
// observes each residual once (zCDP, the best unbiased Gaussian strategy) or whole histograms (pure), as integers of
// one sensitivity, and any marginal, sub-cube or weighted sum is read from them together, so that whatever is read adds
// up; its exact variance is known before any data. A product does so with ranges over ordered columns. The package
// knows neither SQL nor users.
package marginals

import (
	"fmt"
	"math/bits"
)

// The largest plans.
const (
	MaxAttributes = 64
	MaxCells      = 1 << 24 // of one source, its residuals' rows included, and of all observations together
)

// Domain is the number of cells of each attribute. The zero value is invalid.
type Domain struct{ sizes []int }

// NewDomain checks the sizes: a column with a single cell has nothing to group by and is left out by the caller.
func NewDomain(sizes ...int) (Domain, error) {
	if len(sizes) < 1 || len(sizes) > MaxAttributes {
		return Domain{}, fmt.Errorf("number of attributes is %d, must be from 1 to %d", len(sizes), MaxAttributes)
	}
	for i, n := range sizes {
		if n < 2 || n > MaxCells {
			return Domain{}, fmt.Errorf("size of attribute %d is %d, must be from 2 to %d", i, n, MaxCells)
		}
	}
	return Domain{append([]int(nil), sizes...)}, nil
}

// Set is a set of attributes of a Domain: bit i is attribute i. The empty set is the total.
type Set uint64

// Has reports whether the attribute is in the set.
func (s Set) Has(attribute int) bool { return s>>attribute&1 == 1 }

// Attributes returns the attributes in ascending order, in which the cells of a marginal are laid out, the last
// fastest.
func (s Set) Attributes() []int {
	list := make([]int, 0, bits.OnesCount64(uint64(s)))
	for rest := s; rest != 0; rest &= rest - 1 {
		list = append(list, bits.TrailingZeros64(uint64(rest)))
	}
	return list
}

// within reports whether all of s is in t.
func (s Set) within(t Set) bool { return s&^t == 0 }

// subsets yields every subset of s, s and the empty set included.
func (s Set) subsets(yield func(Set) bool) {
	for t := s; ; t = (t - 1) & s {
		if !yield(t) || t == 0 {
			return
		}
	}
}

// shape returns the sizes of the attributes of s.
func (d Domain) shape(s Set) []int {
	shape := s.Attributes()
	for i, a := range shape {
		shape[i] = d.sizes[a]
	}
	return shape
}

// Cells returns the number of cells of the marginal on s, or MaxCells+1 if it is more than MaxCells.
func (d Domain) Cells(s Set) int {
	cells := 1
	for _, n := range d.shape(s) {
		if cells *= n; cells > MaxCells {
			return MaxCells + 1
		}
	}
	return cells
}

// product returns Π f(size) over the attributes of s.
func (d Domain) product(s Set, f func(size float64) float64) float64 {
	p := 1.0
	for rest := s; rest != 0; rest &= rest - 1 {
		p *= f(float64(d.sizes[bits.TrailingZeros64(uint64(rest))]))
	}
	return p
}
