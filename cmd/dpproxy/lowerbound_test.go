package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// probe is a question whose answers on neighbours are compared: what it costs by the policy, and which number of its answer
// tells most.
type probe struct {
	name    string
	sql     string
	epsilon float64
	number  func(rows [][]string) float64 // nil: the first cell
}

// cell reads a number of an answer.
func cell(row, column int) func(rows [][]string) float64 {
	return func(rows [][]string) float64 {
		if row >= len(rows) || column >= len(rows[row]) {
			return math.NaN()
		}
		n, err := strconv.ParseFloat(rows[row][column], 64)
		if err != nil {
			return math.NaN()
		}
		return n
	}
}

// drawn asks each probe once as each of n users, so that every answer is drawn for itself, and returns the numbers by probe.
func drawnBy(p *program, n int, probes []probe) ([][]float64, error) {
	const clients = 4
	numbers := make([][]float64, len(probes))
	for i := range numbers {
		numbers[i] = make([]float64, n)
	}
	var all sync.WaitGroup
	failed := make(chan error, clients)
	for c := range clients {
		all.Add(1)
		go func() {
			defer all.Done()
			for u := c; u < n; u += clients {
				if err := askedBy(p, u, probes, numbers); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	all.Wait()
	select {
	case err := <-failed:
		return nil, err
	default:
		return numbers, nil
	}
}

func askedBy(p *program, u int, probes []probe, numbers [][]float64) error {
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, p.probeURL(u))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for i, q := range probes {
		results, err := conn.Exec(ctx, fmt.Sprintf("SET dp.epsilon = %g; %s", q.epsilon, q.sql)).ReadAll()
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		var rows [][]string
		for _, r := range results[len(results)-1].Rows {
			var row []string
			for _, v := range r {
				row = append(row, string(v))
			}
			rows = append(rows, row)
		}
		number := q.number
		if number == nil {
			number = cell(0, 0)
		}
		numbers[i][u] = number(rows)
	}
	return nil
}

// drawnByBoth asks both sides at once.
func drawnByBoth(with, without *program, n int, probes []probe) (sides [2][][]float64, err error) {
	errs := [2]error{}
	var both sync.WaitGroup
	for i, p := range []*program{with, without} {
		both.Add(1)
		go func() {
			defer both.Done()
			sides[i], errs[i] = drawnBy(p, n, probes)
		}()
	}
	both.Wait()
	return sides, errors.Join(errs[:]...)
}

// lowerBounds is procedure P2: from n answers a side to each probe, a lower bound of the ε by which the two sides differ. One of
// them is above the truth with probability at most the alarm. The judge is stattest.Audit: it chooses the event on one part
// of the answers and bounds its probabilities by Clopper and Pearson on the other.
func lowerBounds(sides [2][][]float64, probes []probe, a stattest.Alarm) ([]float64, error) {
	bounds := make([]float64, len(probes))
	for i := range probes {
		var err error
		if bounds[i], err = (stattest.Audit{One: sides[0][i], Other: sides[1][i]}).Epsilon(a); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// boundsAlarm is the false alarm of one bound.
const boundsAlarm stattest.Alarm = 1e-5

// TestP2Calibrated: the judge of the procedure, at the lengths that it is used with, is quiet where the noise is right, and finds
// noise that is too small by 2 in 4,000 answers a side, by 1.5 in 20,000, every time.
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
			bound, err := a.Epsilon(boundsAlarm)
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

// aggregates are one question of each kind that is answered with noise, chosen so that number 7 moves it as far as a unit can.
var aggregates = []probe{
	{"COUNT", `SELECT count(*) FROM people WHERE hiv`, 1, nil},
	{"SUM", `SELECT sum(income) FROM people WHERE hiv`, 1, nil},
	{"AVG", `SELECT avg(income) FROM people WHERE hiv`, 1, nil},
	{"COUNT DISTINCT", `SELECT count(DISTINCT uid) FROM events WHERE amount < 10`, 1, nil},
	{"GROUP BY", `SELECT hiv, count(*) FROM people GROUP BY hiv ORDER BY hiv`, 1, cell(1, 1)},
	{"JOIN", `SELECT count(*) FROM people JOIN events USING (uid) WHERE hiv`, 1, nil},
	{"quantile", `SELECT median(age) FROM people WHERE age BETWEEN 25 AND 26`, 1, nil},
}

// aggregateGrids are the steps of what is released for them; 0 where the answer is a ratio of such numbers.
var aggregateGrids = []float64{1, 0.0001, 0, 1, 1, 1, 1}

// offGrid counts the answers that are no multiple of a step, as near as a double precision number can be to one, and the values that one side gives often and the other never.
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

// TestT21LowerBounds is P2 for each kind of aggregate through SQL, over the wire. False alarm: 7 in 100,000. Of the same answers,
// none is off the grid of its release, and the two sides have the same values (T14).
func TestT21LowerBounds(t *testing.T) {
	beside(t)
	if testing.Short() {
		t.Skip("thousands of answers")
	}
	n := length(1000, 4000, 50_000)
	l := lab{users: n, engine: "postgres", people: 60, change: undeclared}
	with, without := l.pair(t)
	sides, err := drawnByBoth(with.program, without.program, n, aggregates)
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := lowerBounds(sides, aggregates, boundsAlarm)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	off, oneSided, outputs := 0, 0, 0
	for i, step := range aggregateGrids {
		if step > 0 {
			o, s := offGrid(sides[0][i], sides[1][i], step)
			off, oneSided, outputs = off+o, oneSided+s, outputs+2*n
		}
	}
	if off+oneSided > 0 {
		t.Errorf("%d of %d answers are off their grid, %d values are one side's alone", off, outputs, oneSided)
	}
	threats.Reached(t, "T14", "%d of %d outputs of %d aggregates off the grid, %d values on one side alone", off, outputs, len(aggregates)-1, oneSided)
	for i, q := range aggregates {
		figures = append(figures, fmt.Sprintf("%s %.2f", q.name, bounds[i]))
		if bounds[i] > q.epsilon {
			t.Errorf("%s: ε is at least %.3f, claimed %g (of %d answers a side)", q.name, bounds[i], q.epsilon, n)
		}
	}
	threats.Reached(t, "T21", "ε of 1 at least, by %d answers a side: %s", n, strings.Join(figures, ", "))
}
