package stattest

import (
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// LeastEpsilon returns the smallest ε, in whole micro-units and at most 1000, for which accounting proves every ρ-zCDP
// mechanism (ε, δ)-DP: what an audit at δ may find of a release that costs ρ.
func LeastEpsilon(r privacy.Rho, d privacy.Delta) privacy.Epsilon {
	proved := func(micro int) bool {
		most, err := accounting.LargestRho(privacy.MicroEpsilon(int64(micro)), d)
		return err == nil && most.Pico() >= r.Pico()
	}
	return privacy.MicroEpsilon(int64(sort.Search(1_000_000_000, proved)))
}
