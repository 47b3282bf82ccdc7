package sparse_test

import (
	"crypto/rand"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/sparse"
)

// Which days had more than 1000 visits? The quiet days are free.
func Example() {
	m, err := sparse.New(sparse.Spec{
		Positives:   2,
		Sensitivity: 1,
		Monotone:    true, // counts, of which a person can only raise each
		Cost:        privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)},
	})
	if err != nil {
		panic(err)
	}
	days, err := m.Open(rand.Reader, func(sparse.State) error { return nil })
	if err != nil {
		panic(err)
	}
	for day, visits := range []int64{120, 400, 4000, 90, 250, 5200, 100} {
		answer, err := days.Ask(privacy.Seal(visits), 1000)
		if err != nil {
			fmt.Println(err)
			break
		}
		if answer.Value() {
			fmt.Println("day", day)
		}
	}
	// Output:
	// day 2
	// day 5
	// sparse vector is at its end: all declared positives are used
}
