package synthetic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/synthetic"
)

// Rows that answer all intervals of eight cells nearly as the true ones do, for ρ = 0.1 altogether.
func Example() {
	ranges := [][]int32{}
	for from := range int32(8) {
		var cells []int32
		for to := from; to < 8; to++ {
			cells = append(cells, to)
			ranges = append(ranges, slices.Clone(cells))
		}
	}
	queries, err := synthetic.NewQueries(8, ranges)
	if err != nil {
		panic(err)
	}
	cost := privacy.Cost{Rho: privacy.PicoRho(100_000_000_000)}
	person := privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	const guess = 1000 // of the number of rows
	mwem, err := synthetic.NewWeights(queries, guess, synthetic.Rounds(guess, cost), person, cost)
	if err != nil {
		panic(err)
	}
	truth := privacy.Seal([]int64{10, 40, 90, 200, 310, 250, 80, 20})
	fixed := rand.NewChaCha8([32]byte{}) // crypto/rand.Reader in production
	fitted, err := mwem.Release(truth, fixed)
	if err != nil {
		panic(err)
	}
	fmt.Println("about", fitted.Value().Total, "rows")
	rows, err := synthetic.Rows(fitted, 12, fixed)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(rows.Value()), "made-up rows")
	// Output:
	// about 1000 rows
	// 12 made-up rows
}

// The small database: 12 rows that represent a thousand.
func ExampleSmall() {
	queries, err := synthetic.NewQueries(4, [][]int32{{0}, {1, 2}, {2, 3}, {0, 3}})
	if err != nil {
		panic(err)
	}
	person := privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne} // so the number of rows, 1000, is public
	small, err := synthetic.NewSmall(queries, 12, 1000, person, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	if err != nil {
		panic(err)
	}
	database, err := small.Release(privacy.Seal([]int64{500, 250, 160, 90}), rand.NewChaCha8([32]byte{}))
	if err != nil {
		panic(err)
	}
	fmt.Printf("the chosen one stands for %.0f rows\n", database.Value().Total)
	// Output:
	// the chosen one stands for 1000 rows
}
