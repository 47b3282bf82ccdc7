package ladders_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/dpproxy/dpproxy/mechanisms/ladders"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// A count asked at ε = 0.1 and then, by the same analyst, at ε = 1: the second time costs 0.9.
func Example() {
	levels := []privacy.Epsilon{privacy.MicroEpsilon(100_000), privacy.MicroEpsilon(1_000_000)}
	ladder, err := ladders.New(levels, privacy.Sensitivity{L1: 1})
	if err != nil {
		panic(err)
	}
	fixed := rand.NewChaCha8([32]byte{}) // crypto/rand.Reader in production
	rungs, err := ladder.Draw(privacy.Seal([]int64{1000}), fixed)
	if err != nil {
		panic(err)
	}
	for paid, level := range []int{0, 1} {
		cost, err := ladder.Cost(paid-1, level, privacy.Pure)
		if err != nil {
			panic(err)
		}
		answer, err := rungs.Reveal(level)
		if err != nil {
			panic(err)
		}
		off := answer.Value()[0] - 1000
		fmt.Println(cost, "within 150:", off > -150 && off < 150)
	}
	// Output:
	// ε 0.1 within 150: true
	// ε 0.9 within 150: true
}
