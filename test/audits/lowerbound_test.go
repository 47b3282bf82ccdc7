package audits

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestP2Calibrated: the judge of the procedure, at the lengths that it is used with, is quiet where the noise is right,
// and finds noise that is too small by 2 in 4,000 answers a side, by 1.5 in 20,000, every time.
func TestP2Calibrated(t *testing.T) {
	const runs = 20
	r := rand.New(rand.NewPCG(36, 2))
	laplace := func(epsilon float64) float64 {
		geometric := func() float64 { return math.Floor(math.Log(1-r.Float64()) / -epsilon) }
		return geometric() - geometric()
	}
	for _, c := range []struct {
		answers int
		factor  float64
		caught  int
	}{{4000, 1, 0}, {20_000, 1, 0}, {4000, 2, runs}, {20_000, 1.5, runs}} {
		caught := 0
		for range runs {
			a := stattest.Audit{}
			for range c.answers {
				a.One, a.Other = append(a.One, 1+laplace(c.factor)), append(a.Other, laplace(c.factor))
			}
			bound, err := a.Epsilon(kit.BoundsAlarm)
			if err != nil {
				t.Fatal(err)
			}
			if bound > 1 {
				caught++
			}
		}
		t.Logf("%d answers a side, noise too small by %g: found in %d of %d runs", c.answers, c.factor, caught, runs)
		if caught != c.caught {
			t.Errorf("%d answers a side, noise too small by %g: found in %d of %d runs, must be %d", c.answers, c.factor, caught, runs, c.caught)
		}
	}
}

// aggregates are one question of each kind that is answered with noise, chosen so that number 7 moves it as far as a
// unit can.
var aggregates = []kit.Probe{
	{Name: "SUM", SQL: `SELECT sum(income) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "JOIN", SQL: `SELECT count(*) FROM people JOIN events USING (uid) WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "quantile", SQL: `SELECT median(age) FROM people WHERE age BETWEEN 25 AND 26`, Epsilon: 1, Number: nil},
	{Name: "COUNT", SQL: `SELECT count(*) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "AVG", SQL: `SELECT avg(income) FROM people WHERE hiv`, Epsilon: 1, Number: nil},
	{Name: "COUNT DISTINCT", SQL: `SELECT count(DISTINCT uid) FROM events WHERE amount < 10`, Epsilon: 1, Number: nil},
	{Name: "GROUP BY", SQL: `SELECT hiv, count(*) FROM people GROUP BY hiv ORDER BY hiv`, Epsilon: 1, Number: kit.Cell(1, 1)},
}

// aggregateGrids are the steps of what is released for them; 0 where the answer is a ratio of such numbers.
var aggregateGrids = []float64{0.0001, 1, 1, 1, 0, 1, 1}

// offGrid counts the answers that are no multiple of a step, as near as a double precision number can be to one, and
// the values that one side gives often and the other never.
func offGrid(one, other []float64, step float64) (off, oneSided int) {
	var hits [2]map[float64]int
	for side, numbers := range [][]float64{one, other} {
		hits[side] = map[float64]int{}
		for _, x := range numbers {
			if k := math.Round(x / step); math.Abs(k*step-x) > 1e-3*step {
				off++
			}
			hits[side][x]++
		}
	}
	for side := range hits {
		for x, n := range hits[side] {
			if hits[1-side][x] == 0 && n >= often {
				oneSided++
			}
		}
	}
	return off, oneSided
}

// often is so many hits that the other side of an ε of 1 has one as well: none with probability exp(−60/e).
const often = 60

// TestT21LowerBounds is P2 for each kind of aggregate through SQL, over the wire. False alarm: 7 in 100,000. Of the
// same answers, none is off the grid of its release, and the two sides have the same values (T14).
func TestT21LowerBounds(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("thousands of answers")
	}
	n, kinds := kit.Length(1000, 4000, 50_000), kit.Length(3, len(aggregates), len(aggregates))
	asked, grids := aggregates[:kinds], aggregateGrids[:kinds]
	l := kit.Lab{Users: n, Engine: "postgres", People: 60, Change: kit.Undeclared}
	with, without := l.Pair(t)
	sides, err := kit.DrawnByBoth(with.Program, without.Program, n, asked)
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := kit.LowerBounds(sides, asked, kit.BoundsAlarm)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	off, oneSided, outputs := 0, 0, 0
	for i, step := range grids {
		if step > 0 {
			o, s := offGrid(sides[0][i], sides[1][i], step)
			off, oneSided, outputs = off+o, oneSided+s, outputs+2*n
		}
	}
	if off+oneSided > 0 {
		t.Errorf("%d of %d answers are off their grid, %d values are one side's alone", off, outputs, oneSided)
	}
	threats.Reached(t, "T14", "%d of %d outputs of %d aggregates off the grid, %d values on one side alone", off, outputs, outputs/(2*n), oneSided)
	for i, q := range asked {
		figures = append(figures, fmt.Sprintf("%s %.2f", q.Name, bounds[i]))
		if bounds[i] > q.Epsilon {
			t.Errorf("%s: ε is at least %.3f, claimed %g (of %d answers a side)", q.Name, bounds[i], q.Epsilon, n)
		}
	}
	threats.Reached(t, "T21", "ε of 1 at least, by %d answers a side: %s", n, strings.Join(figures, ", "))
}
