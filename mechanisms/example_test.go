package mechanisms_test

import (
	"crypto/rand"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Ages of one million people, one row each: what a range release at ε = 1 will be off by is known before any data.
func ExampleRanges() {
	one := mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}
	ranges, err := mechanisms.Ranges(256, one, cost)
	if err != nil {
		panic(err)
	}
	histogram, err := mechanisms.Plain(1, 256, one, cost)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s: %.1f rows; a histogram's sums: %.1f\n", ranges.Counts().Strategy.Kind, ranges.RMSE(mechanisms.AllRanges), histogram.RMSE(mechanisms.AllRanges))
	// Output: p-identity: 8.1 rows; a histogram's sums: 12.6
}

// A count and a sum of amounts from −50 to 100 share a cost, each with noise for its size; a person has at most two
// rows.
func ExampleSums() {
	two := mechanisms.Contribution{Rows: 2, Neighbors: privacy.AddRemove}
	spec, err := mechanisms.Sums([]mechanisms.Counter{
		{Bound: mechanisms.Bound{Low: 0, High: 1}},
		{Bound: mechanisms.Bound{Low: -50, High: 100}},
	}, 1, two, privacy.Cost{Epsilon: privacy.MicroEpsilon(500_000)})
	if err != nil {
		panic(err)
	}
	sure, err := mechanisms.NewConfidence(.95)
	if err != nil {
		panic(err)
	}
	all := []mechanisms.Span{{From: 0, To: 1}}
	fmt.Println("count: ±", spec.Only(0).Error(all, sure).HalfWidth)
	fmt.Println("sum: ±", spec.Only(1).Error(all, sure).HalfWidth)
	// Output:
	// count: ± 24
	// sum: ± 2397
}

func ExampleRelease() {
	one := mechanisms.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
	spec, err := mechanisms.Plain(1, 3, one, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	if err != nil {
		panic(err)
	}
	// The true counts are sealed where the database's rows end; only Release opens them.
	truth := privacy.Seal([]privacy.Group{
		{Cells: []int32{0}, Counts: []int64{1200}},
		{Cells: []int32{2}, Counts: []int64{800}},
	})
	place := func(cells []int32, _ int) int { return int(cells[0]) }
	released, err := mechanisms.Release(spec, place, truth, rand.Reader)
	if err != nil {
		panic(err)
	}
	estimate, err := mechanisms.NewEstimate(spec, released)
	if err != nil {
		panic(err)
	}
	sum := estimate.Sum(0, []mechanisms.Span{{From: 0, To: 2}}).Value()
	fmt.Println(sum > 1100 && sum < 1300)
	// Output: true
}
