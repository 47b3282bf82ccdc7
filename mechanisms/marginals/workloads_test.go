package marginals

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

var (
	oneRow     = privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	oneReplace = privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
)

func rho(x float64) privacy.Cost { return privacy.Cost{Rho: privacy.PicoRho(int64(x * 1e12))} }
func eps(x float64) privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(int64(math.Round(x * 1e6)))}
}

// workloads are small enough to be written out densely.
func workloads(t testing.TB) map[string]Workload {
	t.Helper()
	all := map[string]Workload{}
	for name, c := range map[string]struct {
		sizes []int
		sets  [][]int
	}{
		"one binary":        {[]int{2}, [][]int{{0}}},
		"total and two":     {[]int{3, 2}, [][]int{{}, {0}, {1}}},
		"all two-way":       {[]int{2, 3, 4}, [][]int{{0, 1}, {0, 2}, {1, 2}}},
		"nested":            {[]int{2, 5, 2}, [][]int{{0}, {0, 1}, {0, 1, 2}, {2}}},
		"far apart":         {[]int{4, 2, 2, 3}, [][]int{{0, 3}, {1}, {1, 2}}},
		"three-way, binary": {[]int{2, 2, 2, 2}, [][]int{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}}},
	} {
		d, err := NewDomain(c.sizes...)
		if err != nil {
			t.Fatal(err)
		}
		list := []Marginal{}
		for i, s := range c.sets {
			set, err := d.Set(s...)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, Marginal{set, 1 + float64(i)/2})
		}
		if all[name], err = NewWorkload(d, list...); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

type maker func(Workload, privacy.Contribution, privacy.Cost) (Plan, error)

// counting is the 0-1 matrix that sums the full cube down to the marginal on s.
func counting(d Domain, s Set) *mat.Dense {
	all := Set(1)<<len(d.sizes) - 1
	m := mat.NewDense(d.Cells(s), d.Cells(all), nil)
	for cell := range d.Cells(all) {
		rest, index, stride := cell, 0, 1
		for a := len(d.sizes) - 1; a >= 0; a-- {
			if s.Has(a) {
				index += rest % d.sizes[a] * stride
				stride *= d.sizes[a]
			}
			rest /= d.sizes[a]
		}
		m.Set(index, cell, 1)
	}
	return m
}

// Set checks the attributes and returns their set.
func (d Domain) Set(attributes ...int) (Set, error) {
	s := Set(0)
	for _, a := range attributes {
		if a < 0 || a >= len(d.sizes) {
			return 0, fmt.Errorf("attribute is %d, must be from 0 to %d", a, len(d.sizes)-1)
		}
		if s.Has(a) {
			return 0, fmt.Errorf("attribute %d is named twice, must be named once", a)
		}
		s |= 1 << a
	}
	return s, nil
}
