package ranges

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var (
	regenerate = flag.String("regenerate", "", "numbers of cells whose shipped strategies are optimised anew, or all")
	only       = flag.String("workload", "", "with -regenerate: all ranges, or prefixes; both if absent")
	tries      = flag.Int("tries", 60, "with -regenerate: moves of the descent for each layout")
	hats       = flag.String("layout", "", "with -regenerate: numbers of hats of the levels, the finest first, instead of a search for them")
	again      = flag.Bool("again", false, "with -regenerate: from the shipped strategy on, instead of a search for layouts")
	excess     = flag.Float64("excess", 1e-5, "with -again: up to how much is added to each weight, to leave a local optimum")
	moves      = flag.Int("moves", 1500, "with -regenerate: moves for the best layout")
)

// TestRegenerateStrategies makes the files in strategies:
//
//	go test ./mechanisms/ranges -run TestRegenerateStrategies -regenerate all -timeout 0
//
// A file is replaced only by a better strategy. It takes seconds up to 1024 cells and an hour for 8192, where fewer
// -tries and -moves do nearly as well. The shipped files are the best of a few runs, which differ by some thousandths:
// with layouts given by hand (for all ranges over 4096 cells, -layout 280,34,6) and one or two runs with -again.
func TestRegenerateStrategies(t *testing.T) {
	if *regenerate == "" {
		t.Skip("needs -regenerate")
	}
	wanted := shippedCells
	if *regenerate != "all" {
		wanted = numbers(t, *regenerate)
	}
	for _, cells := range wanted {
		if !slices.Contains(shippedCells, cells) {
			t.Fatalf("-regenerate %d: must be among %v", cells, shippedCells)
		}
		for _, workload := range []Workload{AllRanges, AllPrefixes} {
			if *only == "" || *only == workload.String() {
				renew(t, cells, workload)
			}
		}
	}
}

func numbers(t *testing.T, list string) []int {
	t.Helper()
	var found []int
	for _, field := range strings.Split(list, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			t.Fatalf("%q in %s: must be a number from 1", field, list)
		}
		found = append(found, n)
	}
	return found
}

func renew(t *testing.T, cells int, workload Workload) {
	t.Helper()
	began := time.Now()
	name, symmetric := strategyFile(cells, workload), workload == AllRanges && cells%2 == 0
	from := starts(workload, cells, layouts(workload, cells))
	switch {
	case *again:
		from = [][]float64{shippedStart(t, name, cells, symmetric)}
	case *hats != "":
		from = starts(workload, cells, []layout{numbers(t, *hats)})
	}
	rows, value := optimiseIdentity(workload, cells, from, *tries, *moves)
	data := encodeRows(rows, symmetric)
	after := meanOf(t, data, cells, workload)
	before := math.Inf(1)
	if old, err := os.ReadFile(name); err == nil {
		before = meanOf(t, old, cells, workload)
	}
	t.Logf("%s: %d rows, %d bytes: RMSE %.4f (%.4f before rounding), shipped %.4f, %s", name, len(rows), len(data), after,
		math.Sqrt(2*value/workload.queries(cells)), before, time.Since(began).Round(time.Millisecond))
	if after < before {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shippedStart returns the parameters of a shipped strategy, with an excess.
func shippedStart(t *testing.T, name string, cells int, symmetric bool) []float64 {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := decodeRows(data, cells)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newPIdentity(cells, rows)
	if err != nil {
		t.Fatal(err)
	}
	var x []float64
	for k, r := range s.rows {
		if symmetric && k%2 == 1 {
			continue // the mirror image of the row before
		}
		row := make([]float64, cells)
		for j := range row {
			_, row[j] = math.Modf(0.6180339887498949 * float64(len(x)+j+1))
			row[j] *= *excess
		}
		for i, w := range r.weights {
			row[r.from+i] += float64(w) / float64(s.own[r.from+i])
		}
		x = append(x, row...)
	}
	return x
}

// meanOf returns the RMSE at ε = 1, with continuous Laplace noise.
func meanOf(t *testing.T, data []byte, cells int, workload Workload) float64 {
	t.Helper()
	rows, err := decodeRows(data, cells)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newPIdentity(cells, rows)
	if err != nil {
		t.Fatal(err)
	}
	return pureError(s, workload)
}

func pureError(s Strategy, workload Workload) float64 {
	return math.Sqrt(2*s.MeanVariance(workload)) * float64(s.Sensitivity(1).L1)
}

func TestTemplateDerivative(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct {
		workload    Workload
		cells, rows int
	}{{AllRanges, 12, 2}, {AllRanges, 13, 3}, {AllPrefixes, 12, 3}, {AllPrefixes, 1, 1}} {
		p := newTemplate(c.workload, c.cells, c.rows)
		x, g, other := make([]float64, c.cells*c.rows), make([]float64, c.cells*c.rows), make([]float64, c.cells*c.rows)
		for i := range x {
			x[i] = r.Float64()
		}
		p.evaluate(g, x)
		for i, v := range x {
			const h = 1e-5
			x[i] = v + h
			above := p.evaluate(other, x)
			x[i] = v - h
			below := p.evaluate(other, x)
			x[i] = v
			if slope := (above - below) / (2 * h); math.Abs(slope-g[i]) > 1e-4*(1+math.Abs(slope)) {
				t.Errorf("seed 3, 4: %s, %d cells, parameter %d: derivative %g, difference quotient %g", c.workload, c.cells, i, g[i], slope)
			}
		}
	}
}
