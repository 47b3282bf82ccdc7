package keys_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/dpproxy/dpproxy/mechanisms/keys"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The products that customers bought, each customer at most two: names that few bought must not show.
func Example() {
	bought := privacy.Seal([]keys.Count{{Key: "tea", Units: 1200}, {Key: "coffee", Units: 900}, {Key: "a book with a dedication", Units: 1}})
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000), Delta: privacy.AttoDelta(1e11)} // (1, 1e-7)
	rule, err := keys.New(keys.Truncated, privacy.Contribution{Groups: 2, Neighbors: privacy.AddRemove}, cost)
	if err != nil {
		panic(err)
	}
	fmt.Println("shown with probability one half from", rule.Half(), "units on, for certain from", 2*rule.Threshold()-1)
	fixed := rand.NewChaCha8([32]byte{}) // crypto/rand.Reader in production
	shown, err := rule.Release(bought, fixed)
	if err != nil {
		panic(err)
	}
	for _, x := range shown.Value() {
		fmt.Println(x.Key, "about", (x.Units+50)/100*100)
	}
	// Output:
	// shown with probability one half from 32 units on, for certain from 63
	// coffee about 900
	// tea about 1200
}
