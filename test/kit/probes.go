package kit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// Probe is a question whose answers on neighbours are compared: what it costs by the policy, and which number of its
// answer tells most.
type Probe struct {
	Name    string
	SQL     string
	Epsilon float64
	Number  func(rows [][]string) float64 // nil: the first cell
}

// Cell reads a number of an answer.
func Cell(row, column int) func(rows [][]string) float64 {
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

// DrawnBy asks each probe once as each of n users, so that every answer is drawn for itself, and returns the numbers by
// probe.
func DrawnBy(p *Program, n int, probes []Probe) ([][]float64, error) {
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
				if err := AskedBy(p, u, probes, numbers); err != nil {
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

// AskedBy asks them as one user.
func AskedBy(p *Program, u int, probes []Probe, numbers [][]float64) error {
	ctx := context.Background()
	conn, err := pgconn.Connect(ctx, p.ProbeURL(u))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for i, q := range probes {
		results, err := conn.Exec(ctx, fmt.Sprintf("SET dp.epsilon = %g; %s", q.Epsilon, q.SQL)).ReadAll()
		if err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		var rows [][]string
		for _, r := range results[len(results)-1].Rows {
			var row []string
			for _, v := range r {
				row = append(row, string(v))
			}
			rows = append(rows, row)
		}
		number := q.Number
		if number == nil {
			number = Cell(0, 0)
		}
		numbers[i][u] = number(rows)
	}
	return nil
}

// DrawnByBoth asks both sides at once.
func DrawnByBoth(with, without *Program, n int, probes []Probe) (sides [2][][]float64, err error) {
	errs := [2]error{}
	var both sync.WaitGroup
	for i, p := range []*Program{with, without} {
		both.Add(1)
		go func() {
			defer both.Done()
			sides[i], errs[i] = DrawnBy(p, n, probes)
		}()
	}
	both.Wait()
	return sides, errors.Join(errs[:]...)
}

// LowerBounds is procedure P2: from n answers a side to each probe, a lower bound of the ε by which the two sides
// differ. One of them is above the truth with probability at most the alarm. The judge is stattest.Audit: it chooses
// the event on one part of the answers and bounds its probabilities by Clopper and Pearson on the other.
func LowerBounds(sides [2][][]float64, probes []Probe, a stattest.Alarm) ([]float64, error) {
	bounds := make([]float64, len(probes))
	for i := range probes {
		var err error
		if bounds[i], err = (stattest.Audit{One: sides[0][i], Other: sides[1][i]}).Epsilon(a); err != nil {
			return nil, err
		}
	}
	return bounds, nil
}

// BoundsAlarm is the false alarm of one bound.
const BoundsAlarm stattest.Alarm = 1e-5
