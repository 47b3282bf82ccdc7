package selection_test

import (
	"crypto/rand"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
)

// The most popular fruit: a child may like several.
func Example() {
	truth := privacy.Seal([]int64{100, 400, 300}) // apple, orange, banana
	scores, err := selection.Columns(3)
	if err != nil {
		panic(err)
	}
	child := privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	m, err := selection.New(selection.PermuteAndFlip, scores, child, privacy.Cost{Epsilon: privacy.MicroEpsilon(500_000)})
	if err != nil {
		panic(err)
	}
	chosen, err := m.Select(truth, rand.Reader)
	if err != nil {
		panic(err)
	}
	fmt.Println([]string{"apple", "orange", "banana"}[chosen.Value()])
	// Output: orange
}

// The price with the largest revenue, from bids of 1, 2, … dollars.
func ExampleTails() {
	truth := privacy.Seal([]int64{5000, 3000, 2500, 100})
	scores, err := selection.Tails(4, []int64{1, 2, 3, 4}, []int{0, 1, 2, 3})
	if err != nil {
		panic(err)
	}
	bidder := privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
	spread, err := scores.Spread(bidder)
	if err != nil {
		panic(err)
	}
	m, err := selection.New(selection.PermuteAndFlip, scores, bidder, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	if err != nil {
		panic(err)
	}
	chosen, err := m.Select(truth, rand.Reader)
	if err != nil {
		panic(err)
	}
	fmt.Printf("spread $%d, price $%d\n", spread, chosen.Value()+1)
	// Output: spread $4, price $2
}
