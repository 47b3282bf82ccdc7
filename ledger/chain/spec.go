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

// Spec writes a Spec: its kind, and all that a Spec of the kind has. It walks a copy, as others read the kind
// meanwhile.
func (e *Encoder) Spec(s mechanisms.Spec) {
	w := walk{to: e}
	switch k := s.Kind.(type) {
	case *mechanisms.Counts:
		e.Int(specCounts)
		own := *k
		w.counts(&s, &own)
	case *mechanisms.Choice:
		e.Int(specChoice)
		own := *k
		w.choice(&s, &own)
	case *mechanisms.Alarm:
		e.Int(specAlarm)
		own := *k
		w.alarm(&s, &own)
	case *mechanisms.Online:
		e.Int(specOnline)
		own := *k
		w.online(&s, &own)
	case *mechanisms.Synthetic:
		e.Int(specSynthetic)
		own := *k
		w.synthetic(&s, &own)
	}
}

func (d *Decoder) Spec() (s mechanisms.Spec) {
	w := walk{from: d}
	switch kind := d.Int(); kind {
	case specCounts:
		s.Kind = w.counts(&s, &mechanisms.Counts{})
	case specChoice:
		s.Kind = w.choice(&s, &mechanisms.Choice{})
	case specAlarm:
		s.Kind = w.alarm(&s, &mechanisms.Alarm{})
	case specOnline:
		s.Kind = w.online(&s, &mechanisms.Online{})
	case specSynthetic:
		s.Kind = w.synthetic(&s, &mechanisms.Synthetic{})
	default:
		if d.err == nil {
			d.err = fmt.Errorf("%w: a measure of kind %d is not known", ErrMalformed, kind)
		}
	}
	return s
}

// walk goes through the fields of a Spec in the order of their bytes, and writes each or sets it to what is read: one
// of the two is not nil. So the two cannot disagree on what a kind has.
type walk struct {
	to   *Encoder
	from *Decoder
}

func number[T ~int | ~int64 | ~uint8 | ~uint64](w walk, fields ...*T) {
	for _, n := range fields {
		if w.to != nil {
			w.to.Int(int64(*n))
		} else {
			v := w.from.Int()
			*n = T(v)
			w.needs(int64(*n) == v) // 256 more is no other kind, rule or relation
		}
	}
}

// list walks a length, and then each of so many, which take at least eight bytes. None is nil.
func list[T any](w walk, all *[]T, each func(walk, *T)) {
	if w.to != nil {
		w.to.Int(int64(len(*all)))
		for i := range *all {
			each(w, &(*all)[i])
		}
		return
	}
	for range w.from.Count() {
		if w.from.err != nil {
			return
		}
		var one T
		each(w, &one)
		*all = append(*all, one)
	}
}

func numbers[T ~int | ~int64](w walk, all *[]T) {
	list(w, all, func(w walk, n *T) { number(w, n) })
}

// needs has what is read fail unless it is so.
func (w walk) needs(sound bool) {
	if w.from != nil && !sound {
		w.from.fail()
	}
}

func (w walk) counts(s *mechanisms.Spec, c *mechanisms.Counts) mechanisms.Kind {
	number(w, &s.Counters)
	w.needs(s.Counters >= 1)
	y := c.Strategy
	d := ranges.Description{Kind: y.Kind, Cells: s.Cells, Radices: y.Radices, Weights: y.Weights, Bits: y.Bits, Version: y.Version, Matrix: y.Matrix, Marginals: y.Marginals, Factors: y.Factors}
	w.description(&d, 0)
	s.Cells = d.Cells
	c.Strategy = mechanisms.Strategy{Kind: d.Kind, Radices: d.Radices, Weights: d.Weights, Bits: d.Bits, Version: d.Version, Matrix: d.Matrix, Marginals: d.Marginals, Factors: d.Factors}
	w.noise(&c.Noise)
	list(w, &c.Sums, func(w walk, sum *mechanisms.Sum) {
		number(w, &sum.Low, &sum.High)
		w.noise(&sum.Noise)
		number(w, &sum.Values)
	})
	return c
}

func (w walk) noise(n *mechanisms.Noise) {
	number(w, &n.Kind)
	number(w, &n.Num, &n.Den, &n.Step)
}

// maxNested bounds how deep descriptions are within each other.
const maxNested = 4

func (w walk) description(d *ranges.Description, depth int) {
	number(w, &d.Kind)
	number(w, &d.Cells)
	numbers(w, &d.Radices)
	numbers(w, &d.Weights)
	number(w, &d.Bits, &d.Version)
	numbers(w, &d.Matrix)
	list(w, &d.Marginals, func(w walk, m *ranges.Marginal) {
		number(w, &m.Attributes)
		w.bool(&m.Residual)
		number(w, &m.Weight)
	})
	list(w, &d.Factors, func(w walk, f *ranges.Description) {
		if w.needs(depth < maxNested); depth < maxNested {
			w.description(f, depth+1)
		}
	})
}

func (w walk) bool(b *bool) {
	if w.to != nil {
		w.to.Bool(*b)
	} else {
		*b = w.from.Bool()
	}
}

func (w walk) choice(s *mechanisms.Spec, ch *mechanisms.Choice) mechanisms.Kind {
	number(w, &s.Counters, &s.Cells)
	number(w, &ch.Kind)
	w.needs(ch.Kind != 0)
	list(w, &ch.Blocks, func(w walk, b *mechanisms.Block) { number(w, &b.Groups, &b.Cells) })
	list(w, &ch.Shares, func(w walk, s *mechanisms.Share) { number(w, &s.Num, &s.Den) })
	number(w, &ch.Most)
	numbers(w, &ch.Weights)
	numbers(w, &ch.From)
	w.contribution(&ch.Each)
	w.cost(&ch.Cost)
	return ch
}

func (w walk) alarm(s *mechanisms.Spec, a *mechanisms.Alarm) mechanisms.Kind {
	s.Counters, s.Cells = 1, 1
	number(w, &a.Positives, &a.Restarts)
	w.needs(a.Positives >= 1)
	w.contribution(&a.Contribution)
	w.cost(&a.Cost)
	return a
}

func (w walk) online(s *mechanisms.Spec, o *mechanisms.Online) mechanisms.Kind {
	s.Counters = 1
	number(w, &s.Cells)
	number(w, &o.Rule)
	w.contribution(&o.Contribution)
	number(w, &o.Rows, &o.Spare)
	number(w, &o.Updates)
	number(w, &o.Queries)
	w.cost(&o.Cost)
	return o
}

func (w walk) synthetic(s *mechanisms.Spec, y *mechanisms.Synthetic) mechanisms.Kind {
	s.Counters = 1
	number(w, &s.Cells)
	number(w, &y.Rule)
	w.contribution(&y.Contribution)
	numbers(w, &y.Sizes)
	number(w, &y.Total)
	number(w, &y.Drawn)
	w.cost(&y.Cost)
	return y
}

func (w walk) contribution(c *mechanisms.Contribution) {
	number(w, &c.Rows, &c.Groups, &c.PerGroup)
	number(w, &c.Neighbors)
}

func (w walk) cost(c *privacy.Cost) {
	if w.to != nil {
		w.to.Cost(*c)
	} else {
		*c = w.from.Cost()
	}
}
