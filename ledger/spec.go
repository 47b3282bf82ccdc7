package ledger

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// The kinds of Specs, the first number of each. Numbers are on disk: never change one.
const (
	specCounts    int64 = 1 + iota // counts and sums of cells
	specChoice                     // cells that are chosen
	specAlarm                      // counts that are compared with a threshold
	specOnline                     // cells that are asked about one question after the other
	specSynthetic                  // rows that are made up
)

// spec writes a Spec: its kind, and all that a Spec of the kind has.
func (e *encoder) spec(s mechanisms.Spec) {
	switch {
	case s.Choice != nil:
		e.i64(specChoice)
		e.choice(s)
	case s.Alarm != nil:
		e.i64(specAlarm)
		e.alarm(s)
	case s.Online != nil:
		e.i64(specOnline)
		e.online(s)
	case s.Synthetic != nil:
		e.i64(specSynthetic)
		e.synthetic(s)
	default:
		e.i64(specCounts)
		e.counts(s)
	}
}

func (d *decoder) spec() mechanisms.Spec {
	switch kind := d.i64(); kind {
	case specCounts:
		return d.counts()
	case specChoice:
		return d.choice()
	case specAlarm:
		return d.alarm()
	case specOnline:
		return d.online()
	case specSynthetic:
		return d.synthetic()
	default:
		if d.err == nil {
			d.err = fmt.Errorf("a measure of kind %d is not known", kind)
		}
		return mechanisms.Spec{}
	}
}

func (e *encoder) counts(s mechanisms.Spec) {
	e.i64(int64(s.Counters))
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

func (d *decoder) counts() mechanisms.Spec {
	s := mechanisms.Spec{Counters: int(d.i64())}
	if s.Counters < 1 {
		d.fail()
	}
	y := d.description(0)
	s.Cells = y.Cells
	s.Strategy = mechanisms.Strategy{Kind: y.Kind, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix, Marginals: y.Marginals, Factors: y.Factors}
	s.Noise = d.noise()
	for range d.count() {
		s.Sums = append(s.Sums, mechanisms.Sum{Bound: mechanisms.Bound{Low: d.i64(), High: d.i64()}, Noise: d.noise(), Values: int(d.i64())})
	}
	return s
}

func (e *encoder) noise(n mechanisms.Noise) {
	e.i64(int64(n.Kind))
	e.i64(n.Num)
	e.i64(n.Den)
	e.i64(n.Step)
}

func (d *decoder) noise() mechanisms.Noise {
	return mechanisms.Noise{Kind: mechanisms.NoiseKind(d.i64()), Num: d.i64(), Den: d.i64(), Step: d.i64()}
}

func (e *encoder) description(d ranges.Description) {
	e.i64(int64(d.Kind))
	e.i64(int64(d.Cells))
	e.ints(d.Radices)
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

// maxNested bounds how deep descriptions are within each other.
const maxNested = 4

func (d *decoder) description(depth int) ranges.Description {
	y := ranges.Description{Kind: ranges.Kind(d.i64()), Cells: int(d.i64()), Radices: d.ints(), Weights: d.list(), Bits: int(d.i64()), Version: int(d.i64()), Matrix: d.list()}
	for range d.count() {
		y.Marginals = append(y.Marginals, ranges.Marginal{Attributes: uint64(d.i64()), Residual: d.boolean(), Weight: d.i64()})
	}
	factors := d.count()
	if depth == maxNested && factors > 0 {
		d.fail()
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

func (e *encoder) choice(s mechanisms.Spec) {
	e.i64(int64(s.Counters))
	e.i64(int64(s.Cells))
	ch := s.Choice
	e.i64(int64(ch.Kind))
	e.i64(int64(len(ch.Blocks)))
	for _, b := range ch.Blocks {
		e.i64(int64(b.Groups))
		e.i64(int64(b.Cells))
	}
	e.i64(int64(len(ch.Shares)))
	for _, share := range ch.Shares {
		e.i64(share.Num)
		e.i64(share.Den)
	}
	e.i64(int64(ch.Most))
	e.list(ch.Weights)
	e.list(ch.From)
	e.contribution(ch.Each)
	e.cost(ch.Cost)
}

func (d *decoder) choice() mechanisms.Spec {
	s := mechanisms.Spec{Counters: int(d.i64()), Cells: int(d.i64())}
	ch := &mechanisms.Choice{Kind: mechanisms.ChoiceKind(d.i64())}
	if ch.Kind == 0 {
		d.fail()
	}
	for range d.count() {
		ch.Blocks = append(ch.Blocks, mechanisms.Block{Groups: int(d.i64()), Cells: int(d.i64())})
	}
	for range d.count() {
		ch.Shares = append(ch.Shares, mechanisms.Share{Num: d.i64(), Den: d.i64()})
	}
	ch.Most, ch.Weights, ch.From, ch.Each, ch.Cost = int(d.i64()), d.list(), d.list(), d.contribution(), d.cost()
	s.Choice = ch
	return s
}

func (e *encoder) alarm(s mechanisms.Spec) {
	a := s.Alarm
	e.i64(int64(a.Positives))
	e.i64(int64(a.Restarts))
	e.contribution(a.Contribution)
	e.cost(a.Cost)
}

func (d *decoder) alarm() mechanisms.Spec {
	a := &mechanisms.Alarm{Positives: int(d.i64()), Restarts: int(d.i64()), Contribution: d.contribution(), Cost: d.cost()}
	if a.Positives < 1 {
		d.fail()
	}
	return mechanisms.Spec{Counters: 1, Cells: 1, Alarm: a}
}

func (e *encoder) online(s mechanisms.Spec) {
	o := s.Online
	e.i64(int64(s.Cells))
	e.i64(int64(o.Rule))
	e.contribution(o.Contribution)
	e.i64(o.Rows)
	e.i64(o.Spare)
	e.i64(int64(o.Updates))
	e.i64(o.Queries)
	e.cost(o.Cost)
}

func (d *decoder) online() mechanisms.Spec {
	s := mechanisms.Spec{Counters: 1, Cells: int(d.i64())}
	s.Online = &mechanisms.Online{Rule: mechanisms.OnlineRule(d.i64()), Contribution: d.contribution(), Rows: d.i64(), Spare: d.i64(), Updates: int(d.i64()), Queries: d.i64(), Cost: d.cost()}
	return s
}

func (e *encoder) synthetic(s mechanisms.Spec) {
	y := s.Synthetic
	e.i64(int64(s.Cells))
	e.i64(int64(y.Rule))
	e.contribution(y.Contribution)
	e.ints(y.Sizes)
	e.i64(y.Total)
	e.i64(int64(y.Drawn))
	e.cost(y.Cost)
}

func (d *decoder) synthetic() mechanisms.Spec {
	s := mechanisms.Spec{Counters: 1, Cells: int(d.i64())}
	s.Synthetic = &mechanisms.Synthetic{Rule: mechanisms.SyntheticRule(d.i64()), Contribution: d.contribution(), Sizes: d.ints(), Total: d.i64(), Drawn: int(d.i64()), Cost: d.cost()}
	return s
}

func (e *encoder) contribution(c mechanisms.Contribution) {
	e.i64(c.Rows)
	e.i64(c.Groups)
	e.i64(c.PerGroup)
	e.i64(int64(c.Neighbors))
}

func (d *decoder) contribution() mechanisms.Contribution {
	return mechanisms.Contribution{Rows: d.i64(), Groups: d.i64(), PerGroup: d.i64(), Neighbors: privacy.Neighbors(d.i64())}
}
