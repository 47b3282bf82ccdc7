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
	tries      = flag.Int("tries", 60, "with -regenerate: moves of the descent for each layout")
	moves      = flag.Int("moves", 1500, "with -regenerate: moves for the best layout")
)

// TestRegenerateStrategies makes the files in strategies:
//
//	go test ./mechanisms/ranges -run TestRegenerateStrategies -regenerate all -timeout 0
//
// A file is replaced only by a better strategy. It takes seconds up to 1024 cells and some minutes for 4096.
func TestRegenerateStrategies(t *testing.T) {
	if *regenerate == "" {
		t.Skip("needs -regenerate")
	}
	wanted := shippedCells
	if *regenerate != "all" {
		wanted = nil
		for _, field := range strings.Split(*regenerate, ",") {
			cells, err := strconv.Atoi(field)
			if err != nil || !slices.Contains(shippedCells, cells) {
				t.Fatalf("-regenerate %s: must be among %v", field, shippedCells)
			}
			wanted = append(wanted, cells)
		}
	}
	for _, cells := range wanted {
		for _, workload := range []Workload{AllRanges, AllPrefixes} {
			renew(t, cells, workload)
		}
	}
}

func renew(t *testing.T, cells int, workload Workload) {
	t.Helper()
	began := time.Now()
	rows, symmetric, value := optimiseIdentity(workload, cells, *tries, *moves)
	data := encodeRows(rows, symmetric)
	after := meanOf(t, data, cells, workload)
	name, before := strategyFile(cells, workload), math.Inf(1)
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
