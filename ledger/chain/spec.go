package chain

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

// Spec writes a Spec: its kind, and all that a Spec of the kind has.
func (e *Encoder) Spec(s mechanisms.Spec) {
	switch {
	case s.Choice != nil:
		e.Int(specChoice)
		e.choice(s)
	case s.Alarm != nil:
		e.Int(specAlarm)
		e.alarm(s)
	case s.Online != nil:
		e.Int(specOnline)
		e.online(s)
	case s.Synthetic != nil:
		e.Int(specSynthetic)
		e.synthetic(s)
	default:
		e.Int(specCounts)
		e.counts(s)
	}
}

func (d *Decoder) Spec() mechanisms.Spec {
	switch kind := d.Int(); kind {
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

func (e *Encoder) counts(s mechanisms.Spec) {
	e.Int(int64(s.Counters))
	y := s.Strategy
	e.description(ranges.Description{Kind: y.Kind, Cells: s.Cells, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix,
		Marginals: y.Marginals, Factors: y.Factors})
	e.noise(s.Noise)
	e.Int(int64(len(s.Sums)))
	for _, sum := range s.Sums {
		e.Int(sum.Low)
		e.Int(sum.High)
		e.noise(sum.Noise)
		e.Int(int64(sum.Values))
	}
}

func (d *Decoder) counts() mechanisms.Spec {
	s := mechanisms.Spec{Counters: int(d.Int())}
	if s.Counters < 1 {
		d.fail()
	}
	y := d.description(0)
	s.Cells = y.Cells
	s.Strategy = mechanisms.Strategy{Kind: y.Kind, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix, Marginals: y.Marginals, Factors: y.Factors}
	s.Noise = d.noise()
	for range d.Count() {
		s.Sums = append(s.Sums, mechanisms.Sum{Bound: mechanisms.Bound{Low: d.Int(), High: d.Int()}, Noise: d.noise(), Values: int(d.Int())})
	}
	return s
}

func (e *Encoder) noise(n mechanisms.Noise) {
	e.Int(int64(n.Kind))
	e.Int(n.Num)
	e.Int(n.Den)
	e.Int(n.Step)
}

func (d *Decoder) noise() mechanisms.Noise {
	return mechanisms.Noise{Kind: mechanisms.NoiseKind(d.Int()), Num: d.Int(), Den: d.Int(), Step: d.Int()}
}

func (e *Encoder) description(d ranges.Description) {
	e.Int(int64(d.Kind))
	e.Int(int64(d.Cells))
	e.ints(d.Radices)
	e.list(d.Weights)
	e.Int(int64(d.Bits))
	e.Int(int64(d.Version))
	e.list(d.Matrix)
	e.Int(int64(len(d.Marginals)))
	for _, m := range d.Marginals {
		e.Int(int64(m.Attributes))
		e.Bool(m.Residual)
		e.Int(m.Weight)
	}
	e.Int(int64(len(d.Factors)))
	for _, f := range d.Factors {
		e.description(f)
	}
}

// maxNested bounds how deep descriptions are within each other.
const maxNested = 4

func (d *Decoder) description(depth int) ranges.Description {
	y := ranges.Description{Kind: ranges.Kind(d.Int()), Cells: int(d.Int()), Radices: d.ints(), Weights: d.list(), Bits: int(d.Int()), Version: int(d.Int()), Matrix: d.list()}
	for range d.Count() {
		y.Marginals = append(y.Marginals, ranges.Marginal{Attributes: uint64(d.Int()), Residual: d.Bool(), Weight: d.Int()})
	}
	factors := d.Count()
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

func (e *Encoder) choice(s mechanisms.Spec) {
	e.Int(int64(s.Counters))
	e.Int(int64(s.Cells))
	ch := s.Choice
	e.Int(int64(ch.Kind))
	e.Int(int64(len(ch.Blocks)))
	for _, b := range ch.Blocks {
		e.Int(int64(b.Groups))
		e.Int(int64(b.Cells))
	}
	e.Int(int64(len(ch.Shares)))
	for _, share := range ch.Shares {
		e.Int(share.Num)
		e.Int(share.Den)
	}
	e.Int(int64(ch.Most))
	e.list(ch.Weights)
	e.list(ch.From)
	e.contribution(ch.Each)
	e.Cost(ch.Cost)
}

func (d *Decoder) choice() mechanisms.Spec {
	s := mechanisms.Spec{Counters: int(d.Int()), Cells: int(d.Int())}
	ch := &mechanisms.Choice{Kind: mechanisms.ChoiceKind(d.Int())}
	if ch.Kind == 0 {
		d.fail()
	}
	for range d.Count() {
		ch.Blocks = append(ch.Blocks, mechanisms.Block{Groups: int(d.Int()), Cells: int(d.Int())})
	}
	for range d.Count() {
		ch.Shares = append(ch.Shares, mechanisms.Share{Num: d.Int(), Den: d.Int()})
	}
	ch.Most, ch.Weights, ch.From, ch.Each, ch.Cost = int(d.Int()), d.list(), d.list(), d.contribution(), d.Cost()
	s.Choice = ch
	return s
}

func (e *Encoder) alarm(s mechanisms.Spec) {
	a := s.Alarm
	e.Int(int64(a.Positives))
	e.Int(int64(a.Restarts))
	e.contribution(a.Contribution)
	e.Cost(a.Cost)
}

func (d *Decoder) alarm() mechanisms.Spec {
	a := &mechanisms.Alarm{Positives: int(d.Int()), Restarts: int(d.Int()), Contribution: d.contribution(), Cost: d.Cost()}
	if a.Positives < 1 {
		d.fail()
	}
	return mechanisms.Spec{Counters: 1, Cells: 1, Alarm: a}
}

func (e *Encoder) online(s mechanisms.Spec) {
	o := s.Online
	e.Int(int64(s.Cells))
	e.Int(int64(o.Rule))
	e.contribution(o.Contribution)
	e.Int(o.Rows)
	e.Int(o.Spare)
	e.Int(int64(o.Updates))
	e.Int(o.Queries)
	e.Cost(o.Cost)
}

func (d *Decoder) online() mechanisms.Spec {
	s := mechanisms.Spec{Counters: 1, Cells: int(d.Int())}
	s.Online = &mechanisms.Online{Rule: mechanisms.OnlineRule(d.Int()), Contribution: d.contribution(), Rows: d.Int(), Spare: d.Int(), Updates: int(d.Int()), Queries: d.Int(), Cost: d.Cost()}
	return s
}

func (e *Encoder) synthetic(s mechanisms.Spec) {
	y := s.Synthetic
	e.Int(int64(s.Cells))
	e.Int(int64(y.Rule))
	e.contribution(y.Contribution)
	e.ints(y.Sizes)
	e.Int(y.Total)
	e.Int(int64(y.Drawn))
	e.Cost(y.Cost)
}

func (d *Decoder) synthetic() mechanisms.Spec {
	s := mechanisms.Spec{Counters: 1, Cells: int(d.Int())}
	s.Synthetic = &mechanisms.Synthetic{Rule: mechanisms.SyntheticRule(d.Int()), Contribution: d.contribution(), Sizes: d.ints(), Total: d.Int(), Drawn: int(d.Int()), Cost: d.Cost()}
	return s
}

func (e *Encoder) contribution(c mechanisms.Contribution) {
	e.Int(c.Rows)
	e.Int(c.Groups)
	e.Int(c.PerGroup)
	e.Int(int64(c.Neighbors))
}

func (d *Decoder) contribution() mechanisms.Contribution {
	return mechanisms.Contribution{Rows: d.Int(), Groups: d.Int(), PerGroup: d.Int(), Neighbors: privacy.Neighbors(d.Int())}
}
