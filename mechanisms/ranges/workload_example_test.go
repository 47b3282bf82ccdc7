package ranges_test

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// The strategy with the least error for all ranges of 1000 days, with Gaussian noise. Errors are in multiples of the
// noise that a single count would have.
func ExampleChoose() {
	goal := ranges.Goal{Cells: 1000, Workload: ranges.AllRanges, Norm: ranges.L2, Neighbors: privacy.AddRemove}
	d, mean := ranges.Choose(goal, func(s privacy.Sensitivity) float64 { return float64(s.L2Squared) })
	fmt.Printf("%s: %.2f on the average of all ranges\n", d.Kind, math.Sqrt(mean))

	s, err := ranges.Open(d)
	if err != nil {
		fmt.Println(err)
		return
	}
	month := s.Variance([]ranges.Span{{From: 100, To: 130}}) * float64(s.Sensitivity(privacy.AddRemove).L2Squared)
	fmt.Printf("%.2f for thirty of them\n", math.Sqrt(month))
	// Output:
	// sine: 3.51 on the average of all ranges
	// 2.84 for thirty of them
}

// A strategy for three given queries over six cells: two halves and the whole.
func ExampleOptimise() {
	o, err := ranges.Optimise([][]float64{{1, 1, 1, 0, 0, 0}, {0, 0, 0, 1, 1, 1}, {1, 1, 1, 1, 1, 1}}, ranges.L2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean variance %.3f, no strategy has less than %.3f\n", o.Error, o.Limit)
	// Output:
	// mean variance 1.244, no strategy has less than 1.244
}
