package quantiles_test

import (
	"crypto/rand"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/quantiles"
)

// The quartiles of ages, from the number of people of each age.
func Example() {
	ages := make([]int64, 100)
	for age := range ages {
		ages[age] = 1000
	}
	asked := []quantiles.Quantile{}
	for _, n := range []int64{1, 2, 3} {
		q, err := quantiles.NewQuantile(n, 4)
		if err != nil {
			panic(err)
		}
		asked = append(asked, q)
	}
	person := privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	m, err := quantiles.New(len(ages), asked, person, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	if err != nil {
		panic(err)
	}
	r, err := m.Release(privacy.Seal(ages), rand.Reader)
	if err != nil {
		panic(err)
	}
	for i, age := range r.Value() {
		if want := 25 * (i + 1); age < want-1 || age > want {
			fmt.Println("far off:", age)
		}
	}
	// Output:
}

// Any number of quantiles from the prefix sums of a range release that is paid for already.
func ExampleCDF() {
	cdf := quantiles.NewCDF([]float64{0, 98.5, 303.2, 301.9, 400.4}) // released, so not quite in order
	median, err := quantiles.NewQuantile(1, 2)
	if err != nil {
		panic(err)
	}
	fmt.Println(cdf.Disc(median), cdf.Cont(median, func(cell int) float64 { return 10 * float64(cell) }))
	// Output: 1 10
}
