package marginals

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Estimate is the best linear unbiased reading of a release. Whatever is read from it adds up: a marginal summed over an
// attribute is the marginal without it. It is post-processing, and safe for concurrent use.
type Estimate struct {
	plan      Plan
	residuals map[Set][]float64 // the first d_i − 1 coordinates on each axis; the rest follows, lines add up to 0
}

// NewEstimate reads a release made by the plan.
func NewEstimate(p Plan, released privacy.Released[Noisy]) (*Estimate, error) {
	if err := p.valid(); err != nil {
		return nil, err
	}
	if !released.Valid() {
		return nil, fmt.Errorf("release was never released")
	}
	if n := len(released.Value().Observations); n != p.Observed() {
		return nil, fmt.Errorf("number of observations is %d, must be the %d of the plan", n, p.Observed())
	}
	e := &Estimate{plan: p, residuals: map[Set][]float64{}}
	for _, o := range p.observations {
		noisy := make([]float64, o.length)
		for i := range noisy {
			noisy[i] = float64(released.Value().Observations[o.offset+i])
		}
		if o.residual {
			e.addResidual(o, noisy)
		} else {
			e.addHistogram(o, noisy)
		}
	}
	return e, nil
}

// addResidual reads the rows of a residual.
func (e *Estimate) addResidual(o observation, rows []float64) {
	e.add(o, o.set, e.plan.workload.domain.unframed(o.set, rows))
}

// unframed returns the coordinates of the residual on s whose rows are given.
func (d Domain) unframed(s Set, rows []float64) []float64 {
	shape := d.shape(s)
	rowsShape := make([]int, len(shape))
	for i, n := range shape {
		rowsShape[i] = frameRows(n)
	}
	for axis, n := range shape {
		rows = along(rows, rowsShape, axis, n-1, unframe)
		rowsShape[axis] = n - 1
	}
	return rows
}

// addHistogram reads all residuals of a histogram.
func (e *Estimate) addHistogram(o observation, cells []float64) {
	d := e.plan.workload.domain
	cells = d.splitAll(o.set, cells)
	for a := range e.plan.workload.below(o.set) {
		e.add(o, a, d.residualOf(o.set, a, cells))
	}
}

// splitAll splits a marginal on s along all of its attributes.
func (d Domain) splitAll(s Set, cells []float64) []float64 {
	shape := d.shape(s)
	for axis, n := range shape {
		cells = along(cells, shape, axis, n, split)
	}
	return cells
}

// residualOf returns the coordinates of residual a of a marginal on s that splitAll has split.
func (d Domain) residualOf(s, a Set, cells []float64) []float64 {
	list := []float64{}
	block(d.shape(s), inside(s, a), func(at int) { list = append(list, cells[at]) })
	return list
}

// add weighs what an observation says of residual a by its share of the precision.
func (e *Estimate) add(o observation, a Set, coordinates []float64) {
	share := o.precision(e.plan.workload.domain, a) * e.plan.variance[a]
	if e.residuals[a] == nil {
		e.residuals[a] = make([]float64, len(coordinates))
	}
	for i, r := range coordinates {
		e.residuals[a][i] += share * r
	}
}

// Marginal returns the cells of the marginal on s, a subset of a marginal of the workload, by ascending attribute, the
// last fastest. It is unbiased, so it may be negative here and there.
func (e *Estimate) Marginal(s Set) (privacy.Released[[]float64], error) {
	cells, err := e.marginal(s)
	if err != nil {
		return privacy.Released[[]float64]{}, err
	}
	return sealed.Release(cells), nil
}

func (e *Estimate) marginal(s Set) ([]float64, error) {
	if err := e.plan.has(s); err != nil {
		return nil, err
	}
	d := e.plan.workload.domain
	shape := d.shape(s)
	cells := make([]float64, d.Cells(s))
	for a := range s.subsets {
		i, list := 0, e.residuals[a]
		block(shape, inside(s, a), func(at int) {
			cells[at] = list[i]
			i++
		})
	}
	for axis, n := range shape {
		cells = along(cells, shape, axis, n, join)
	}
	return cells, nil
}

// Sum returns the sum of the rows, each weighed as the product says.
func (e *Estimate) Sum(q Product) (privacy.Released[float64], error) {
	x, err := e.sum(q)
	if err != nil {
		return privacy.Released[float64]{}, err
	}
	return sealed.Release(x), nil
}

func (e *Estimate) sum(q Product) (float64, error) {
	s, err := e.plan.check(q)
	if err != nil {
		return 0, err
	}
	cells, err := e.marginal(s)
	if err != nil {
		return 0, err
	}
	shape := e.plan.workload.domain.shape(s)
	for axis, a := range s.Attributes() {
		cells = along(cells, shape, axis, 1, func(line, to []float64) { to[0] = dot(line, q[a]) })
		shape[axis] = 1
	}
	return cells[0], nil
}

// Along returns, for the rows that the product selects, the count in each cell of one further attribute.
func (e *Estimate) Along(q Product, attribute int) (privacy.Released[[]float64], error) {
	cells, err := e.line(q, attribute)
	if err != nil {
		return privacy.Released[[]float64]{}, err
	}
	return sealed.Release(cells), nil
}

func (e *Estimate) line(q Product, attribute int) ([]float64, error) {
	full, err := e.plan.with(q, attribute, nil)
	if err != nil {
		return nil, err
	}
	s, err := e.plan.check(full)
	if err != nil {
		return nil, err
	}
	cells, err := e.marginal(s)
	if err != nil {
		return nil, err
	}
	shape := e.plan.workload.domain.shape(s)
	for axis, a := range s.Attributes() {
		if a != attribute {
			cells = along(cells, shape, axis, 1, func(line, to []float64) { to[0] = dot(line, q[a]) })
			shape[axis] = 1
		}
	}
	return cells, nil
}

// Summary is one line of a table of groups: how many rows, and of the value that an attribute holds the mean and the
// cell of the median, each with how far it may be off (one standard deviation, to first order for the mean).
type Summary struct {
	Count, CountError float64
	Mean, MeanError   float64
	Median            int     // cell of the value's attribute
	MedianError       float64 // in rows: by how many the count below the median's upper end may differ from a half
}

// Summary describes the rows that the product selects by an attribute whose cells stand for the values. Where the product
// has weights for that attribute itself, 0 or 1, it selects by the value too. A group whose count is not well above its
// error has a mean and a median that say nothing.
//
// The error of the mean m is that of Σ (value − m)·count, a linear question, over the count.
func (e *Estimate) Summary(q Product, attribute int, values []float64) (privacy.Released[Summary], error) {
	var none privacy.Released[Summary]
	mask, group := q[attribute], maps.Clone(q)
	delete(group, attribute)
	line, err := e.line(group, attribute)
	if err != nil {
		return none, err
	}
	if len(values) != len(line) {
		return none, fmt.Errorf("number of values is %d, must be the %d cells of attribute %d", len(values), len(line), attribute)
	}
	if mask == nil {
		mask = slices.Repeat([]float64{1}, len(line))
	}
	if len(mask) != len(line) {
		return none, fmt.Errorf("number of weights of attribute %d is %d, must be %d", attribute, len(mask), len(line))
	}
	for i := range line {
		line[i] *= mask[i]
	}
	out := Summary{Count: sum(line)}
	out.Mean = dot(line, values) / out.Count
	out.Median = medianCell(line)
	deviation := func(f func(cell int) float64) float64 {
		weights := make([]float64, len(line))
		for i := range weights {
			weights[i] = mask[i] * f(i)
		}
		full, _ := e.plan.with(group, attribute, weights)
		v, _ := e.plan.VarianceOf(full)
		return math.Sqrt(v)
	}
	out.CountError = deviation(func(int) float64 { return 1 })
	out.MeanError = deviation(func(i int) float64 { return values[i] - out.Mean }) / math.Abs(out.Count)
	out.MedianError = deviation(func(i int) float64 {
		if i <= out.Median {
			return .5
		}
		return -.5
	})
	return sealed.Release(out), nil
}

// medianCell returns the first cell up to which the nearest non-decreasing prefixes reach half of the total.
func medianCell(line []float64) int {
	prefixes := ranges.Prefixes(line)
	ranges.Isotonic(prefixes)
	half := prefixes[len(prefixes)-1] / 2
	return min(sort.Search(len(line), func(i int) bool { return prefixes[i+1] >= half }), len(line)-1)
}
