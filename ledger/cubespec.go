package ledger

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// specCube marks the form of a Spec's bytes that knows strategies of cubes: the counters, the cells, the strategy as a
// description with all in it, the noise, the sums. Numbers are on disk: never change one.
const specCube int64 = -5

func (e *encoder) cubeSpec(s mechanisms.Spec) {
	e.i64(specCube)
	e.i64(int64(s.Counters))
	e.i64(int64(s.Cells))
	y := s.Strategy
	e.description(ranges.Description{Kind: y.Kind, Cells: s.Cells, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix,
		Marginals: y.Marginals, Factors: y.Factors})
	e.noise(s.Noise)
	e.i64(int64(len(s.Sums)))
	for _, sum := range s.Sums {
		e.i64(sum.Low)
		e.i64(sum.High)
		e.noise(sum.Noise)
		e.i64(int64(sum.Values))
	}
}

func (e *encoder) description(d ranges.Description) {
	e.i64(int64(d.Kind))
	e.i64(int64(d.Cells))
	e.i64(int64(len(d.Radices)))
	for _, r := range d.Radices {
		e.i64(int64(r))
	}
	e.list(d.Weights)
	e.i64(int64(d.Bits))
	e.i64(int64(d.Version))
	e.list(d.Matrix)
	e.i64(int64(len(d.Marginals)))
	for _, m := range d.Marginals {
		e.i64(int64(m.Attributes))
		e.boolean(m.Residual)
		e.i64(m.Weight)
	}
	e.i64(int64(len(d.Factors)))
	for _, f := range d.Factors {
		e.description(f)
	}
}

// cubeSpec reads what follows the mark.
func (d *decoder) cubeSpec() mechanisms.Spec {
	s := mechanisms.Spec{Counters: int(d.i64()), Cells: int(d.i64())}
	y := d.description(0)
	if s.Counters < 1 || y.Cells != s.Cells {
		d.err = errBody
	}
	s.Strategy = mechanisms.Strategy{Kind: y.Kind, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix, Marginals: y.Marginals, Factors: y.Factors}
	s.Noise = d.noise()
	for range d.count() {
		s.Sums = append(s.Sums, mechanisms.Sum{Bound: mechanisms.Bound{Low: d.i64(), High: d.i64()}, Noise: d.noise(), Values: int(d.i64())})
	}
	return s
}

// mostNested bounds how deep descriptions are within each other.
const mostNested = 4

func (d *decoder) description(depth int) ranges.Description {
	y := ranges.Description{Kind: ranges.Kind(d.i64()), Cells: int(d.i64())}
	for _, r := range d.list() {
		y.Radices = append(y.Radices, int(r))
	}
	y.Weights, y.Bits, y.Version, y.Matrix = d.list(), int(d.i64()), int(d.i64()), d.list()
	for range d.count() {
		y.Marginals = append(y.Marginals, ranges.Marginal{Attributes: uint64(d.i64()), Residual: d.boolean(), Weight: d.i64()})
	}
	factors := d.count()
	if depth == mostNested && factors > 0 {
		d.err = errBody
		return y
	}
	for range factors {
		if d.err != nil {
			return y
		}
		y.Factors = append(y.Factors, d.description(depth+1))
	}
	return y
}
