package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The kinds of rows. Numbers are on disk: never change one.
const (
	rowGenesis int64 = 1 + iota // a ledger begins: its random name
	rowPolicy                   // a policy is in force
	rowTerms                    // the terms of one dataset: grants, caps, unit, neighbours, accountant
	rowRename                   // a dataset goes on under another id
	rowBind                     // base relations belong to a dataset from now on
	rowCharge                   // one item was paid for
	rowSave                     // one release was drawn and stored
	rowRevoke                   // one release is withdrawn
	rowForfeit                  // budget given up for an accepted rollback
	rowVouch                    // the operator vouches that nothing is missing, though the witness was lost
	rowGrow                     // a release that grows was drawn for further cells: their observations
)

// row is one link of the chain.
type row struct {
	seq, kind, at, ds int64
	holder            string
	body              []byte
	hash              Digest
}

// link computes the row's hash from its predecessor's. Every field has a fixed place or a length before it, so no two
// different rows have the same bytes.
func (r *row) link(previous Digest) Digest {
	e := encoder{b: make([]byte, 0, 128+len(r.holder)+len(r.body))}
	e.b = append(e.b, previous[:]...)
	e.i64(r.seq)
	e.i64(r.kind)
	e.i64(r.at)
	e.i64(r.ds)
	e.str(r.holder)
	e.bytes(r.body)
	return sha256.Sum256(e.b)
}

// encoder writes the canonical bytes of a row's body.
type encoder struct{ b []byte }

func (e *encoder) i64(v int64)     { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }
func (e *encoder) digest(d Digest) { e.b = append(e.b, d[:]...) }
func (e *encoder) bytes(p []byte)  { e.i64(int64(len(p))); e.b = append(e.b, p...) }
func (e *encoder) str(s string)    { e.i64(int64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) boolean(v bool) {
	if v {
		e.i64(1)
	} else {
		e.i64(0)
	}
}

func (e *encoder) cost(c privacy.Cost) {
	e.i64(c.Epsilon.Micro())
	e.i64(c.Rho.Pico())
	e.i64(c.Delta.Atto())
}

// The forms of a Spec's bytes. The first one has no mark: it begins with the number of counters, which is above 0. It
// knows counts with one noise, observed by cells or by an unweighted tree, and is still written for those. The second
// begins with its mark, below 0, and knows everything. Numbers are on disk: never change one.
const (
	specFull   int64 = -2
	specValues int64 = -3 // the second form, with the values of each sum: written where a sum has some
	specSteps  int64 = -6 // before another form: the step of each sum's noise, 0 for none; written where one has some
)

func (e *encoder) spec(s mechanisms.Spec) {
	switch {
	case s.Choice != nil:
		e.choiceSpec(s)
		return
	case s.Alarm != nil:
		e.alarmSpec(s)
		return
	case s.Online != nil:
		e.onlineSpec(s)
		return
	case s.Synthetic != nil:
		e.syntheticSpec(s)
		return
	}
	if slices.ContainsFunc(s.Sums, func(sum mechanisms.Sum) bool { return sum.Noise.Step != 0 }) {
		e.i64(specSteps)
		e.i64(int64(len(s.Sums)))
		for _, sum := range s.Sums {
			e.i64(sum.Noise.Step)
		}
	}
	if s.Strategy.IsCube() {
		e.cubeSpec(s)
		return
	}
	if y := s.Strategy; s.Sums != nil || y.Kind > mechanisms.Tree || y.Weights != nil {
		e.fullSpec(s)
		return
	}
	e.i64(int64(s.Counters))
	e.i64(int64(s.Cells))
	e.i64(int64(s.Strategy.Kind))
	e.i64(int64(len(s.Strategy.Radices)))
	for _, r := range s.Strategy.Radices {
		e.i64(int64(r))
	}
	e.noise(s.Noise)
}

func (e *encoder) fullSpec(s mechanisms.Spec) {
	mark := specFull
	if slices.ContainsFunc(s.Sums, func(sum mechanisms.Sum) bool { return sum.Values > 0 }) {
		mark = specValues
	}
	e.i64(mark)
	e.i64(int64(s.Counters))
	e.i64(int64(s.Cells))
	y := s.Strategy
	e.i64(int64(y.Kind))
	e.i64(int64(len(y.Radices)))
	for _, r := range y.Radices {
		e.i64(int64(r))
	}
	e.list(y.Weights)
	e.i64(int64(y.Bits))
	e.i64(int64(y.Version))
	e.list(y.Matrix)
	e.noise(s.Noise)
	e.i64(int64(len(s.Sums)))
	for _, sum := range s.Sums {
		e.i64(sum.Low)
		e.i64(sum.High)
		e.noise(sum.Noise)
		if mark == specValues {
			e.i64(int64(sum.Values))
		}
	}
}

func (e *encoder) noise(n mechanisms.Noise) {
	e.i64(int64(n.Kind))
	e.i64(n.Num)
	e.i64(n.Den)
}

func (e *encoder) list(list []int64) {
	e.i64(int64(len(list)))
	for _, n := range list {
		e.i64(n)
	}
}

// decoder reads what encoder wrote. The first fault sticks in err; everything read after it is zero.
type decoder struct {
	b   []byte
	err error
}

var errBody = errors.New("malformed row")

func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.b) {
		d.err = errBody
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) i64() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

func (d *decoder) digest() (v Digest) {
	copy(v[:], d.take(len(v)))
	return v
}

func (d *decoder) bytes() []byte {
	n := d.i64()
	if n < 0 || n > int64(len(d.b)) {
		d.err = errBody
		return nil
	}
	return slices.Clone(d.take(int(n)))
}

func (d *decoder) str() string   { return string(d.bytes()) }
func (d *decoder) boolean() bool { return d.i64() == 1 }

func (d *decoder) cost() privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(d.i64()), Rho: privacy.PicoRho(d.i64()), Delta: privacy.AttoDelta(d.i64())}
}

// count reads a length of things that take at least eight bytes each.
func (d *decoder) count() int {
	n := d.i64()
	if n < 0 || n > int64(len(d.b)/8) {
		d.err = errBody
		return 0
	}
	return int(n)
}

func (d *decoder) spec() mechanisms.Spec {
	first := d.i64()
	switch first {
	case specChoice:
		return d.choiceSpec()
	case specAlarm:
		return d.alarmSpec()
	case specOnline:
		return d.onlineSpec()
	case specSynthetic:
		return d.syntheticSpec()
	}
	if first == specCube {
		return d.cubeSpec()
	}
	if first == specSteps {
		steps := d.list()
		s := d.spec()
		if len(steps) != len(s.Sums) || slices.ContainsFunc(s.Sums, func(sum mechanisms.Sum) bool { return sum.Noise.Step != 0 }) {
			d.err = errBody
			return s
		}
		for i, step := range steps {
			s.Sums[i].Noise.Step = step
		}
		return s
	}
	values := first == specValues
	full := values || first == specFull
	if full {
		first = d.i64()
	}
	if first < 1 {
		d.err = errBody
	}
	s := mechanisms.Spec{Counters: int(first), Cells: int(d.i64())}
	y := &s.Strategy
	y.Kind = mechanisms.StrategyKind(d.i64())
	for _, r := range d.list() {
		y.Radices = append(y.Radices, int(r))
	}
	if full {
		y.Weights, y.Bits, y.Version, y.Matrix = d.list(), int(d.i64()), int(d.i64()), d.list()
	}
	s.Noise = d.noise()
	if full {
		for range d.count() {
			sum := mechanisms.Sum{Bound: mechanisms.Bound{Low: d.i64(), High: d.i64()}, Noise: d.noise()}
			if values {
				sum.Values = int(d.i64())
			}
			s.Sums = append(s.Sums, sum)
		}
	}
	return s
}

func (d *decoder) noise() mechanisms.Noise {
	return mechanisms.Noise{Kind: mechanisms.NoiseKind(d.i64()), Num: d.i64(), Den: d.i64()}
}

// list reads numbers; none is nil.
func (d *decoder) list() []int64 {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = d.i64()
	}
	return list
}

// end reports the first fault, or that bytes are left over.
func (d *decoder) end() error {
	if d.err == nil && len(d.b) != 0 {
		d.err = errBody
	}
	return d.err
}
