package quantiles

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// adult returns a column of adult.csv, as cells of the width from 0 on.
func adult(t testing.TB, column string, cells, width int) []int64 {
	t.Helper()
	file, err := os.Open(material.Path(t, "data", "adult.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	names, err := reader.Read()
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for i, name := range names {
		if name == column {
			at = i
		}
	}
	counts := make([]int64, cells)
	for {
		row, err := reader.Read()
		if err == io.EOF {
			return counts
		}
		if err != nil {
			t.Fatal(err)
		}
		value, err := strconv.Atoi(row[at])
		if err != nil {
			t.Fatal(err)
		}
		counts[min(value/width, cells-1)]++
	}
}

// shapes of 10,000 rows over 4096 cells: a spread-out one, one of few peaks, one with a long tail.
func shapes() map[string][]int64 {
	const cells, rows = 4096, 10_000
	source := rand.New(rand.NewPCG(5, 6))
	all := map[string][]int64{"uniform": make([]int64, cells), "peaks": make([]int64, cells), "tail": make([]int64, cells)}
	for range rows {
		all["uniform"][source.IntN(cells)]++
		all["peaks"][min(max(200*(1+source.IntN(19))+int(8*source.NormFloat64()), 0), cells-1)]++
		all["tail"][min(int(20*math.Exp(1.5*source.NormFloat64())), cells-1)]++
	}
	return all
}

// rankError returns the mean distance, in rows, of the shares' ranks from those of the cells.
func rankError(counts []int64, all []Quantile, cells []int) float64 {
	prefix := make([]int64, len(counts)+1)
	for j, n := range counts {
		prefix[j+1] = prefix[j] + n
	}
	sum := 0.0
	for i, q := range all {
		target := q.Float() * float64(prefix[len(counts)])
		sum += max(0, target-float64(prefix[cells[i]+1]), float64(prefix[cells[i]])-target)
	}
	return sum / float64(len(all))
}

// separately draws each quantile on its own, at its share of ε.
func separately(t testing.TB, counts []int64, all []Quantile, cost int64, random io.Reader) []int {
	cells := []int{}
	for _, q := range all {
		m := made(t, len(counts), []Quantile{q}, addOne, epsilon(cost/int64(len(all))))
		cells = append(cells, released(t, m, counts, random)[0])
	}
	return cells
}

// tree returns the cells that a range release gives, as least squares reads it, and the deviation of its prefix sums.
func tree(t testing.TB, counts []int64, all []Quantile, random io.Reader) []int {
	radices := []int{16, 16, 16}
	if len(counts) <= 256 {
		radices = []int{16, 16}
	}
	shape, err := ranges.NewTree(len(counts), radices)
	if err != nil {
		t.Fatal(err)
	}
	d, err := noise.New(noise.Laplace, int64(len(radices)), 1)
	if err != nil {
		t.Fatal(err)
	}
	reader := noise.NewReader(random)
	observed := make([]int64, shape.Nodes())
	offset, block := 0, 1
	for range radices {
		block *= 16
	}
	for _, radix := range radices {
		block /= radix
		for j, n := range counts {
			observed[offset+j/block] += n
		}
		offset += (len(counts) + block - 1) / block
	}
	for i := range observed {
		observed[i] += d.Sample(reader)
	}
	c := NewCDF(ranges.Prefixes(shape.Fit(observed)))
	cells := []int{}
	for _, q := range all {
		cells = append(cells, c.Disc(q))
	}
	return cells
}

// treeDeviation is of the prefix sums of such a tree at ε = 1 (the literature's table: 8.45 at 256 cells, 14.14 at
// 4096).
func treeDeviation(cells int) Deviation {
	if cells <= 256 {
		return 8.45
	}
	return 14.14
}

// measured returns the mean rank errors of the three ways at ε = 1.
func measured(t testing.TB, counts []int64, all []Quantile, trials int) (each, recursive, read float64) {
	random := seeded(77)
	m := made(t, len(counts), all, addOne, epsilon(1_000_000))
	for range trials {
		each += rankError(counts, all, separately(t, counts, all, 1_000_000, random)) / float64(trials)
		recursive += rankError(counts, all, released(t, m, counts, random)) / float64(trials)
		read += rankError(counts, all, tree(t, counts, all, random)) / float64(trials)
	}
	return each, recursive, read
}

// BenchmarkQuantiles prints the mean rank error in rows of m quantiles at ε = 1, and what the chooser expects. Best
// known, on three DPBench shapes: m = 1: .4/.4/.8 (recursive), 9: 6.3/5.1/6.3, 29: 8.5/6.4/8.0, 99: 13/10/11; tree 6.4
// to 7.9.
func BenchmarkQuantiles(b *testing.B) {
	data := shapes()
	data["adult age"] = adult(b, "age", 128, 1)
	data["adult fnlwgt"] = adult(b, "fnlwgt", 4096, 400)
	data["adult gain"] = adult(b, "capital_gain", 4096, 25)
	for _, name := range []string{"uniform", "peaks", "tail", "adult age", "adult fnlwgt", "adult gain"} {
		for _, m := range []int{1, 9, 29, 99} {
			b.Run(fmt.Sprintf("%s/%d", name, m), func(b *testing.B) {
				all, err := Evenly(m)
				if err != nil {
					b.Fatal(err)
				}
				counts, rows := data[name], int64(0)
				for _, n := range counts {
					rows += n
				}
				each, recursive, read := 0.0, 0.0, 0.0
				for b.Loop() {
					each, recursive, read = measured(b, counts, all, 10)
				}
				mechanism := made(b, len(counts), all, addOne, epsilon(1_000_000))
				b.ReportMetric(each, "each/rows")
				b.ReportMetric(recursive, "recursive/rows")
				b.ReportMetric(read, "tree/rows")
				b.ReportMetric(mechanism.Expected(ExpectedRows(rows)), "expected/rows")
				choice := 0.0
				if mechanism.PreferRanges(ExpectedRows(rows), treeDeviation(len(counts))) {
					choice = 1
				}
				b.ReportMetric(choice, "prefers-tree")
			})
		}
	}
}

// BenchmarkRelease: time alone.
func BenchmarkRelease(b *testing.B) {
	for _, cells := range []int{1 << 12, 1 << 20} {
		counts := make([]int64, cells)
		for j := range counts {
			counts[j] = int64(j % 7)
		}
		truth, random := privacy.Seal(counts), seeded(1)
		for _, m := range []int{1, 99} {
			all, err := Evenly(m)
			if err != nil {
				b.Fatal(err)
			}
			mechanism := made(b, cells, all, addOne, epsilon(1_000_000))
			b.Run(fmt.Sprintf("%d-of-%d", m, cells), func(b *testing.B) {
				for b.Loop() {
					if _, err := mechanism.Release(truth, random); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
