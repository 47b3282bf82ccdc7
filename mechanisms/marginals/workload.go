package marginals

import (
	"math/bits"
	"sort"
)

// Marginal is a GROUP BY table that is wanted, with its importance.
type Marginal struct {
	Set    Set
	Weight float64 // of the variance of each of its cells in the sum that is minimised
}

// Workload is a list of marginals over a domain. It is immutable; the zero value is invalid.
type Workload struct {
	domain    Domain
	marginals []Marginal
	closure   []Set           // all subsets of the marginals, small ones first
	loss      map[Set]float64 // of each residual: what one unit of its variance adds to the weighted sum of variances
}

// trace returns Π (1 − 1/d_i) over a: the diagonal of the projection onto the residual.
func (d Domain) trace(a Set) float64 {
	return d.product(a, func(n float64) float64 { return 1 - 1/n })
}

func square(x float64) float64 { return x * x }

// union returns all attributes of the workload.
func (w Workload) union() Set {
	all := Set(0)
	for _, m := range w.marginals {
		all |= m.Set
	}
	return all
}

// below yields the sets of the closure that are in s, without listing all subsets of a large one.
func (w Workload) below(s Set) func(yield func(Set) bool) {
	return func(yield func(Set) bool) {
		if n := bits.OnesCount64(uint64(s)); n < 17 && 1<<n < len(w.closure) {
			for a := range s.subsets {
				if _, known := w.loss[a]; known && !yield(a) {
					return
				}
			}
			return
		}
		for _, a := range w.closure {
			if a.within(s) && !yield(a) {
				return
			}
		}
	}
}

// maximal returns the sets that are in no other, in a fixed order.
func maximal(sets []Set) []Set {
	list := append([]Set(nil), sets...)
	sort.Slice(list, func(i, j int) bool {
		m, n := bits.OnesCount64(uint64(list[i])), bits.OnesCount64(uint64(list[j]))
		return m > n || m == n && list[i] < list[j]
	})
	top := []Set{}
	for _, s := range list {
		covered := false
		for _, t := range top {
			covered = covered || s.within(t)
		}
		if !covered {
			top = append(top, s)
		}
	}
	return top
}
