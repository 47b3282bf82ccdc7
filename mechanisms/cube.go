package mechanisms

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/marginals"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Asked is a sum of cells that a release will be read for, the attributes of a cube that decide which cells are in it,
// and how much its squared error matters.
type Asked struct {
	Spans      []Span
	Attributes []int
	Weight     float64
}

// Cube is what a release of several columns is to be read for. Its cells are those of a cube whose attributes have
// Shape cells, the last one's fastest; the first Ordered of them are in an order that ranges may be over.
type Cube struct {
	Shape   []int
	Ordered int
	Asked   []Asked
}

// Candidate is a way to measure a cube, with Σ weight·variance of what is asked.
type Candidate struct {
	Name  string
	Spec  Spec
	Error float64
}

// IsCube tells the strategies of cubes, which do not read every sum of cells.
func (y Strategy) IsCube() bool { return y.Kind == Marginals || y.Kind == Product }

// Candidates returns the ways to measure a cube at the given cost that may be best, each with its exact expected error:
// the cells, marginals by their cells or residuals, and for one attribute the strategies of ranges, that for just what
// is asked among them. It needs no data. Quick leaves out what takes long to find.
func (q Cube) Candidates(c Contribution, cost privacy.Cost) ([]Candidate, error) {
	return q.candidates(c, cost, false)
}

// Quick returns some of the candidates.
func (q Cube) Quick(c Contribution, cost privacy.Cost) ([]Candidate, error) {
	return q.candidates(c, cost, true)
}

func (q Cube) candidates(c Contribution, cost privacy.Cost, quick bool) ([]Candidate, error) {
	cells := 1
	for _, n := range q.Shape {
		cells *= n
	}
	plain, err := Plain(1, cells, c, cost)
	if err != nil {
		return nil, err
	}
	list := []Candidate{{"one histogram", plain, q.Error(plain)}}
	add := func(name string, y Strategy, variance func(Spec) float64) {
		s, err := OfStrategy(1, cells, y, c, cost)
		if err != nil {
			return
		}
		if e := variance(s); e > 0 && !math.IsInf(e, 1) {
			list = append(list, Candidate{name, s, e})
		}
	}
	norm := ranges.L1
	if cost.Epsilon.Micro() == 0 {
		norm = ranges.L2
	}
	if len(q.Shape) == 1 {
		q.line(c, cost, norm, quick, add)
		return list, nil
	}
	if len(q.Shape) > marginals.MaxCubeAttributes || cells > marginals.MaxCubeCells {
		return list, nil
	}
	wanted := make([]marginals.Wanted, len(q.Asked))
	for i, a := range q.Asked {
		wanted[i] = marginals.Wanted{Spans: sameSpans(a.Spans), Weight: a.Weight}
		for _, k := range a.Attributes {
			wanted[i].Attributes |= 1 << k
		}
	}
	goal, err := marginals.NewGoal(q.Shape, wanted, norm, c.Neighbors)
	if err != nil {
		return list, nil
	}
	for _, d := range goal.Candidates() {
		add(marginalsName(d), strategyOf(d), func(s Spec) float64 { return goal.Error(d) * s.unitVariance() })
	}
	return list, nil
}

// unitVariance is that of the noise of an observation.
func (s Spec) unitVariance() float64 {
	if _, err := s.noise(0).distribution(); err != nil {
		return math.Inf(1)
	}
	return s.noise(0).variance()
}

// adding adds a candidate whose expected error is known.
type adding func(name string, y Strategy, variance func(Spec) float64)

func marginalsName(d ranges.Description) string {
	if d.Marginals[0].Residual {
		return "marginals by residuals"
	}
	return "marginals"
}

// strategyOf is a description without its cells.
func strategyOf(d ranges.Description) Strategy {
	return Strategy{Kind: d.Kind, Radices: d.Radices, Weights: d.Weights, Bits: d.Bits, Version: d.Version, Matrix: d.Matrix, Marginals: d.Marginals, Factors: d.Factors}
}

// maxOptimised bounds the cells and the queries that a strategy is optimised for: beyond it that takes longer than a
// report is worth waiting for.
const maxOptimised = 64

// line considers strategies for ranges of one attribute.
func (q Cube) line(c Contribution, cost privacy.Cost, norm ranges.Norm, quick bool, add adding) {
	cells := q.Shape[0]
	if cells < 2 {
		return
	}
	if q.Ordered > 0 {
		for _, w := range []Workload{AllRanges, AllPrefixes} {
			if s, err := RangesFor(w, cells, c, cost); err == nil && s.Counts().Strategy.Kind != Identity {
				add("ranges", s.Counts().Strategy, q.Error)
			}
		}
	}
	if quick || cells > maxOptimised || len(q.Asked) > 4*maxOptimised {
		return
	}
	queries := make([][]float64, len(q.Asked))
	for i, a := range q.Asked {
		queries[i] = make([]float64, cells)
		for _, s := range normal(a.Spans, cells) {
			for k := s.From; k < s.To; k++ {
				queries[i][k] = math.Sqrt(a.Weight)
			}
		}
	}
	if o, err := ranges.Optimise(queries, norm); err == nil {
		add("a matrix optimised for these queries", strategyOf(o.Description), q.Error)
	}
}

// Error returns Σ weight·variance of what is asked, read from a release of s.
func (q Cube) Error(s Spec) float64 {
	reader, sum := s.reader(), 0.0
	for _, a := range q.Asked {
		if reader == nil {
			sum += a.Weight * float64(CellsIn(a.Spans))
		} else {
			sum += a.Weight * reader.Variance(sameSpans(a.Spans))
		}
	}
	return sum * s.unitVariance()
}

// Variance returns the variance of the sum of the cells in spans of the first counter.
func (s Spec) Variance(spans []Span) float64 {
	if r := s.reader(); r != nil {
		return r.Variance(sameSpans(spans)) * s.unitVariance()
	}
	return float64(CellsIn(spans)) * s.unitVariance()
}

// Reads reports whether sums of cells that some of a cube's attributes decide can be read from a release.
func (s Spec) Reads(attributes []int) bool {
	if Is[*Choice](s) {
		return false
	}
	return readsAll(s.description(), attributes, 0)
}

func readsAll(d ranges.Description, attributes []int, from int) bool {
	switch d.Kind {
	case Marginals:
		var wanted uint64
		for _, a := range attributes {
			if a >= from && a < from+len(d.Radices) {
				wanted |= 1 << (a - from)
			}
		}
		return slices.ContainsFunc(d.Marginals, func(m ranges.Marginal) bool { return wanted&^m.Attributes == 0 })
	case Product:
		for _, f := range d.Factors {
			if !readsAll(f, attributes, from) {
				return false
			}
			from += max(1, attributesOf(f))
		}
	}
	return true
}

// attributesOf is the number of attributes that a factor is over: marginals tell theirs, and the cells of several are
// observed by marginals too, so that any other factor has one.
func attributesOf(d ranges.Description) int {
	if d.Kind == Marginals {
		return len(d.Radices)
	}
	return 1
}

// cubeText names what is observed of a cube.
func cubeText(y Strategy) string {
	if y.Kind == Product {
		parts := make([]string, len(y.Factors))
		for i, f := range y.Factors {
			parts[i] = fmt.Sprintf("%s over %d cells", strategyOf(f), f.Cells)
		}
		return " of " + strings.Join(parts, " × ")
	}
	residuals := 0
	for _, m := range y.Marginals {
		if m.Residual {
			residuals++
		}
	}
	switch residuals {
	case 0:
		return fmt.Sprintf(" (%d weighted ones) of the cube %s", len(y.Marginals), dotted(y.Radices))
	case len(y.Marginals):
		return fmt.Sprintf(" by residuals (%d weighted ones) of the cube %s", residuals, dotted(y.Radices))
	}
	return fmt.Sprintf(" (%d weighted ones, %d of them residuals) of the cube %s", len(y.Marginals), residuals, dotted(y.Radices))
}
