package workload

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// noteErrors finds, for each statement, how far its values are expected to be off, and what the same error costs when
// its counts are asked for by themselves: nothing where a count before, as exact as that one has to be, answers it.
func (w *batch) tellErrors(b *Batch, clusters []*cluster) {
	squares := make([]float64, len(b.Statements))
	var before []bought
	for at := range b.Statements {
		for i, k := range clusters {
			for _, a := range k.asks {
				if !slices.Contains(a.statements, at) {
					continue
				}
				own := a.rowsOf(at)
				st := &b.Statements[at]
				if n := len(st.Measures); n == 0 || st.Measures[n-1] != i {
					st.Measures = append(st.Measures, i)
				}
				target := w.read(st, &squares[at], b.Measures[i], k, a, own)
				cost, from := w.alone(a, own, target, b.Measures[i].Cost, before)
				if from == "" {
					before = append(before, bought{a, cost, at})
				} else {
					st.From = from
				}
				st.Alone = st.Alone.Plus(cost)
				b.OneByOne = b.OneByOne.Plus(cost)
			}
		}
		if st := &b.Statements[at]; st.Values > 0 {
			st.RMSE = math.Sqrt(squares[at] / float64(st.Values))
		}
	}
}

// maxCovers bounds how often one count is compared with one before it: so many that the first 360 statements of a
// report are all compared with each other. What is left out makes asking one by one look as dear as it would be without
// re-use.
const maxCovers = 1 << 16

// bought is a count that is asked for by itself.
type bought struct {
	ask       *workRequest
	cost      privacy.Cost
	statement int
}

// rowsOf are the values of one statement.
func (a *workRequest) rowsOf(statement int) (rows []workRow) {
	for _, r := range a.rows {
		if r.statement == statement {
			rows = append(rows, r)
		}
	}
	return rows
}

// read adds the errors of a statement's values that are read from a measure, and returns their mean squared error.
func (w *batch) read(st *BatchStatement, squares *float64, m *plans.Measure, k *cluster, a *workRequest, rows []workRow) float64 {
	if a.chosen || len(rows) == 0 {
		return 0
	}
	sum, told, worst := 0.0, 0.0, 0.0
	var widest workRow
	unit := 1.0 // of what is reported: a sum's errors are in its own, not in steps of its grid
	sums, shown := a.Summed(), 0
	isSum := func(row workRow) bool { return sums != nil && sums[row.counter] != nil }
	// Of counts and sums the counts are reported: sums are in units of their own, and as exact for their range.
	counts := slices.ContainsFunc(rows, func(row workRow) bool { return !isSum(row) })
	variance := variances(m.Spec, w.c.Settings.Confidence)
	var r *reuse.Reading
	errors := m.Spec.Errors(w.c.Settings.Confidence)
	if k.cells != nil {
		r = reuse.CoverCube(a.Query, k.cells)
	}
	for _, row := range rows {
		v := 0.0
		if r != nil {
			v = errors.Variance(cellsRead(r, row))
		} else {
			v = a.errorAlone(row, variance)
		}
		if sum += v; counts && isSum(row) {
			st.Sums = true
			continue
		}
		of := 1.0
		if s := a.Sums[row.counter]; s != nil && s.Unit != nil {
			of, _ = s.Unit.Float64()
		}
		v *= of * of
		told += v
		if shown++; v >= worst {
			worst, widest, unit = v, row, of
		}
	}
	if off, is := plans.ByClamp(a.Table, worst); is {
		st.ByClamp = max(st.ByClamp, off)
		return sum / float64(len(rows))
	}
	half := int64(0)
	if r != nil {
		half = errors.Of(cellsRead(r, widest)).HalfWidth
	} else {
		spans := make([]mechanisms.Span, len(widest.cells))
		for i, cell := range widest.cells {
			spans[i] = mechanisms.Span{From: cell, To: cell + 1}
		}
		half = m.Spec.Only(widest.counter).Error(spans, w.c.Settings.Confidence).HalfWidth
	}
	st.Values += shown
	if unit != 1 {
		half = int64(math.Ceil(float64(half) * unit))
	}
	st.HalfWidth = max(st.HalfWidth, half)
	*squares += told
	return sum / float64(len(rows))
}

// alone is what a count costs by itself when its values are to have a mean squared error.
func (w *batch) alone(a *workRequest, rows []workRow, target float64, share privacy.Cost, before []bought) (cost privacy.Cost, from string) {
	for _, h := range before {
		if h.ask == a {
			return privacy.Cost{}, fmt.Sprintf("the same count as in statement %d", h.statement+1)
		}
	}
	switch {
	case a.chosen:
		return share, ""
	case target == 0:
		return privacy.Cost{}, "the policy: no row can be counted"
	}
	if a.wholly() {
		for _, h := range before {
			if w.covers++; w.covers > maxCovers {
				break
			}
			if h.ask.chosen || !h.ask.wholly() {
				continue
			}
			r := reuse.Cover(a.Query, h.ask.bare())
			if r == nil {
				continue
			}
			spec, err := h.ask.alone(h.cost)
			if err != nil {
				continue
			}
			sum, errors := 0.0, spec.Errors(w.c.Settings.Confidence)
			for _, row := range rows {
				sum += errors.Variance(cellsRead(r, row))
			}
			if sum <= target*float64(len(rows)) {
				return privacy.Cost{}, fmt.Sprintf("the counts of statement %d", h.statement+1)
			}
		}
	}
	return w.least(share, func(cost privacy.Cost) bool {
		spec, err := a.alone(cost)
		if err != nil {
			return false
		}
		variance, sum := variances(spec, w.c.Settings.Confidence), 0.0
		for _, row := range rows {
			sum += a.errorAlone(row, variance)
		}
		return sum <= target*float64(len(rows))
	}), ""
}

// least is the smallest cost that will do, to a thousandth, sought from a likely one on.
func (w *batch) least(from privacy.Cost, do func(privacy.Cost) bool) privacy.Cost {
	high := from
	for n := 0; n < 40 && !do(high); n++ {
		high = timesCost(high, 2)
	}
	low := high
	for n := 0; n < 40 && do(low); n++ {
		low = timesCost(low, .5)
	}
	for range 12 {
		middle := timesCost(low.Plus(high), .5)
		if do(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// bare is the ask as a measure that others may be read from; cover refuses what is no plain count of every row.
func (a *workRequest) bare() *linear.Query {
	if a.Filter != nil || len(a.Counts) != 1 || a.Counts[0] != nil {
		return &linear.Query{Question: &linear.Question{}, Asked: linear.Counted{}}
	}
	for _, p := range a.Factors {
		if p.Masks[0] != nil {
			return &linear.Query{Question: &linear.Question{}, Asked: linear.Counted{}}
		}
	}
	return a.Query
}

// timesCost is a cost times a factor, rounded up.
func timesCost(c privacy.Cost, factor float64) privacy.Cost {
	of := func(n int64) int64 {
		x, _ := new(big.Float).Mul(big.NewFloat(factor), new(big.Float).SetInt64(n)).Float64()
		return int64(math.Min(math.Ceil(x-1e-6), 1<<60))
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(of(c.Epsilon.Micro())), Rho: privacy.PicoRho(of(c.Rho.Pico()))}
}
