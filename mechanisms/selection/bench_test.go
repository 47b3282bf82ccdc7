package selection

import (
	"fmt"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// steep are counts of which few are near the best: the hard case for rejection.
func steep(n int) privacy.Sensitive[[]int64] {
	cells := make([]int64, n)
	for i := range cells {
		cells[i] = int64(1_000_000_000 / (i + 1))
	}
	return privacy.Seal(cells)
}

func BenchmarkSelect(b *testing.B) {
	const n = 1 << 20
	truth, random := steep(n), seeded(1)
	for rule := Exponential; rule <= PermuteAndFlip; rule++ {
		m := mustOf(New(rule, mustOf(Counts(n))(b), one, epsilon(1_000_000)))(b)
		b.Run(rule.String(), func(b *testing.B) {
			for b.Loop() {
				mustOf(m.Select(truth, random))(b)
			}
		})
	}
}

func BenchmarkTop(b *testing.B) {
	for _, n := range []int{1 << 12, 1 << 20} {
		truth, random := steep(n), seeded(1)
		for method := Gumbel; method <= Bins; method++ {
			for _, k := range []int{10, 100} {
				top := mustOf(NewTop(method, k, mustOf(Counts(n))(b), one, epsilon(1_000_000)))(b)
				b.Run(fmt.Sprintf("%v/%d-of-%d", method, k, n), func(b *testing.B) {
					for b.Loop() {
						mustOf(top.Select(truth, random))(b)
					}
				})
			}
		}
	}
}
