package marginals_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/marginals"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// person is a row of the example's table: the cells of sex, race, married and age.
type person [4]int

// people makes a town of 7000.
func people() []person {
	random := rand.New(rand.NewPCG(2020, 4))
	town := make([]person, 7000)
	for i := range town {
		age := int(math.Abs(38 + 22*random.NormFloat64()))
		married := 0
		if age >= 15 && random.IntN(100) < 55 {
			married = 1
		}
		town[i] = person{random.IntN(2), random.IntN(5) / 3, married, min(age, 115)}
	}
	return town
}

const sex, race, married, age = 0, 1, 2, 3

var sizes = []int{2, 2, 2, 116}

// tally is what GROUP BY over the attributes counts.
func tally(town []person, attributes []int) privacy.Sensitive[[]int64] {
	n := 1
	for _, a := range attributes {
		n *= sizes[a]
	}
	cells := make([]int64, n)
	for _, p := range town {
		at := 0
		for _, a := range attributes {
			at = at*sizes[a] + p[a]
		}
		cells[at]++
	}
	return privacy.Seal(cells)
}

// The table of the lecture notes (Garfinkel, Abowd, Martindale 2019): overlapping groups with count, median and mean age,
// all from one release of ρ = 0.1, with the error of each. The plan is for the ages of every group, and for the groups'
// counts, of which a cell is as important as 50 cells of ages.
func Example_censusTable() {
	domain, err := marginals.NewDomain(sizes...)
	if err != nil {
		fmt.Println(err)
		return
	}
	wanted := []marginals.Marginal{}
	for _, group := range [][]int{{}, {sex}, {race}, {married}, {sex, race}} {
		counts, err := domain.Set(group...)
		if err != nil {
			fmt.Println(err)
			return
		}
		wanted = append(wanted, marginals.Marginal{Set: counts, Weight: 50}, marginals.Marginal{Set: counts | 1<<age, Weight: 1})
	}
	workload, err := marginals.NewWorkload(domain, wanted...)
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := marginals.Best(workload, privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Rho: privacy.PicoRho(1e11)})
	if err != nil {
		fmt.Println(err)
		return
	}
	town, tallies := people(), []privacy.Sensitive[[]int64]{}
	for _, set := range plan.Sources() {
		tallies = append(tallies, tally(town, set.Attributes()))
	}
	released, err := marginals.Release(plan, tallies, rand.NewChaCha8([32]byte([]byte("an example needs a seed, one day"))))
	if err != nil {
		fmt.Println(err)
		return
	}
	estimate, err := marginals.NewEstimate(plan, released)
	if err != nil {
		fmt.Println(err)
		return
	}
	printTable(estimate, town)
	// Output:
	// statistic  group                     count            mean             median     true
	// 1A         total population       6985 ±   6      38.55 ± 0.25      38 ± 24 rows  7000, 38.54, 38
	// 2A         female                 3443 ±   5      38.55 ± 0.43      38 ± 21 rows  3446, 38.47, 38
	// 2B         male                   3542 ±   5      38.54 ± 0.42      38 ± 21 rows  3554, 38.60, 38
	// 2C         black                  2686 ±   5      38.62 ± 0.55      37 ± 21 rows  2699, 38.24, 37
	// 2D         white                  4298 ±   5      38.50 ± 0.34      38 ± 21 rows  4301, 38.73, 38
	// 3B         married                3353 ±   5      44.11 ± 0.47      42 ± 23 rows  3362, 43.65, 42
	// 4A         black female           1371 ±   4      37.84 ± 0.90      37 ± 17 rows  1376, 38.00, 37
	// 4C         white male             2227 ±   4      38.02 ± 0.55      38 ± 17 rows  2231, 38.67, 38
	// 5C         64 years or over        881 ±  26      74.51 ± 0.73      72 ± 16 rows  866, 74.52, 72
}

// printTable prints the lines of the table, each beside the truth.
func printTable(estimate *marginals.Estimate, town []person) {
	values := make([]float64, sizes[age])
	for i := range values {
		values[i] = float64(i)
	}
	old := marginals.Product{age: slices.Concat(make([]float64, 64), slices.Repeat([]float64{1}, sizes[age]-64))}
	fmt.Println("statistic  group                     count            mean             median     true")
	for _, line := range []struct {
		name, group string
		rows        marginals.Product
	}{
		{"1A", "total population", nil},
		{"2A", "female", marginals.Product{sex: marginals.Pick(2, 0)}},
		{"2B", "male", marginals.Product{sex: marginals.Pick(2, 1)}},
		{"2C", "black", marginals.Product{race: marginals.Pick(2, 1)}},
		{"2D", "white", marginals.Product{race: marginals.Pick(2, 0)}},
		{"3B", "married", marginals.Product{married: marginals.Pick(2, 1)}},
		{"4A", "black female", marginals.Product{sex: marginals.Pick(2, 0), race: marginals.Pick(2, 1)}},
		{"4C", "white male", marginals.Product{sex: marginals.Pick(2, 1), race: marginals.Pick(2, 0)}},
		{"5C", "64 years or over", old},
	} {
		s, err := estimate.Summary(line.rows, age, values)
		if err != nil {
			fmt.Println(err)
			return
		}
		v := s.Value()
		count, mean, median := truth(town, line.rows)
		fmt.Printf("%-10s %-19s %7.0f ± %3.0f  %9.2f ± %.2f  %6d ± %2.0f rows  %d, %.2f, %d\n", line.name, line.group, v.Count, v.CountError, v.Mean, v.MeanError, v.Median, v.MedianError, count, mean, median)
	}
}

// truth counts in the open.
func truth(town []person, rows marginals.Product) (count int, mean float64, median int) {
	ages := []int{}
	for _, p := range town {
		weight := 1.0
		for a, w := range rows {
			weight *= w[p[a]]
		}
		if weight > 0 {
			ages = append(ages, p[3])
			mean += float64(p[3])
		}
	}
	slices.Sort(ages)
	return len(ages), mean / float64(len(ages)), ages[len(ages)/2]
}
