package main

import (
	"context"
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

// lowerBounds is procedure P2: from n answers a side to each probe, a lower bound of the ε by which the two sides differ. One of
// them is above the truth with probability at most the alarm. The judge is stattest.Audit: it chooses the event on one part
// of the answers and bounds its probabilities by Clopper and Pearson on the other.
func lowerBounds(with, without *program, n int, probes []probe, a stattest.Alarm) ([]float64, error) {
	sides := [2][][]float64{}
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
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
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

// TestT21LowerBounds is P2 for each kind of aggregate through SQL, over the wire. False alarm: 7 in 100,000.
func TestT21LowerBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of answers")
	}
	n := length(1000, 4000, 50_000)
	l := lab{users: n, engine: "postgres", people: 60, change: undeclared}
	with, without := l.pair(t)
	bounds, err := lowerBounds(with.program, without.program, n, aggregates, boundsAlarm)
	if err != nil {
		t.Fatal(err)
	}
	var figures []string
	for i, q := range aggregates {
		figures = append(figures, fmt.Sprintf("%s %.2f", q.name, bounds[i]))
		if bounds[i] > q.epsilon {
			t.Errorf("%s: ε is at least %.3f, claimed %g (of %d answers a side)", q.name, bounds[i], q.epsilon, n)
		}
	}
	threats.Reached(t, "T21", "ε of 1 at least, by %d answers a side: %s", n, strings.Join(figures, ", "))
}
