package mechanisms

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/ladders"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Finest is the finest level of a release, which stays sealed: what is revealed of it is made of it and of more noise.
// It belongs to the data that it was drawn of and can be refined without them. The zero value is invalid.
type Finest struct {
	noises []Noise // by counter
	values privacy.Sensitive[[]int64]
}

// Valid reports whether f was drawn or loaded.
func (f Finest) Valid() bool { return f.values.Valid() }

// MaxRefined bounds the observations of a release that can be refined, since all of the finest level is kept.
const MaxRefined = 1 << 16

// At is the spec whose every noise is as if wanted had been paid where s was made for paid; false where it cannot be a
// level of a ladder: it has other noise than discrete Laplace, is too large, or is out of range.
func (s Spec) At(paid, wanted privacy.Epsilon) (Spec, bool) {
	if !Is[*Counts](s) || paid.Micro() <= 0 || wanted.Micro() <= 0 || s.check() != nil || s.Counters*s.observed() > MaxRefined {
		return Spec{}, false
	}
	ok := true
	s = s.scaled(func(n Noise) Noise {
		value := new(big.Rat).Mul(big.NewRat(n.Num, n.Den), big.NewRat(paid.Micro(), wanted.Micro()))
		if ok = ok && n.Kind == DiscreteLaplace && value.Num().IsInt64() && value.Denom().IsInt64(); !ok {
			return n
		}
		return Noise{n.Kind, value.Num().Int64(), value.Denom().Int64(), n.Step}
	})
	return s, ok
}

// noises are those of each counter.
func (s Spec) noises() []Noise {
	out := make([]Noise, s.Counters)
	for i := range out {
		out[i] = s.noise(i)
	}
	return out
}

// Refinable reports whether spec can be the level of a ladder that a release by held is refined to, towards finest.
func (s Spec) Refinable(held, finest Spec) bool {
	a, b, c := held.noises(), s.noises(), finest.noises()
	if len(a) != len(b) || len(b) != len(c) {
		return false
	}
	for i := range b {
		if a[i].Step != b[i].Step || b[i].Step != c[i].Step {
			return false
		}
		if b[i] == c[i] {
			if _, err := ladders.NewStep(a[i].scale(), c[i].scale()); err != nil {
				return false
			}
		} else if _, err := ladders.NewBetween(a[i].scale(), b[i].scale(), c[i].scale()); err != nil {
			return false
		}
	}
	return true
}

func (n Noise) scale() ladders.Scale { return ladders.Scale{Num: n.Num, Den: n.Den} }

// ReleaseFirst is Release as the first level of a ladder: the finest level is drawn as Release would draw it, and the
// level of spec is made of it.
//
// Claim: what is released has the law of Release(spec), and costs what that does. Together with what Refine makes of
// the finest level later it costs what the finest level revealed does. Neighbours and sensitivity: those of the
// contribution that the specs were made for. Theorem and proof: package ladders, Step and Between, applied to each
// observation by itself, with q of each counter's own noise: the finest level is Release(finest), so ε-DP at its own
// cost; a level is a post-processing of the next finer one shown; and a level's law is that of independent discrete
// Laplace noise of its scales, which is ε-DP at its cost as Release shows. Limits: nothing is read of the data later.
// What is refined speaks of the data as they were at the first draw.
func ReleaseFirst(spec, finest Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (privacy.Released[Noisy], Finest, error) {
	var none privacy.Released[Noisy]
	if err := spec.check(); err != nil {
		return none, Finest{}, err
	}
	steps, coarse, fine := make([]ladders.Step, spec.Counters), spec.noises(), finest.noises()
	if len(coarse) != len(fine) || spec.observed() != finest.observed() {
		return none, Finest{}, errors.New("the finest level observes other things than the first")
	}
	for i := range steps {
		if coarse[i].Step != fine[i].Step {
			return none, Finest{}, fmt.Errorf("counter %d: the levels have different steps", i+1)
		}
		var err error
		if steps[i], err = ladders.NewStep(coarse[i].scale(), fine[i].scale()); err != nil {
			return none, Finest{}, fmt.Errorf("counter %d: %w", i+1, err)
		}
	}
	drawn, err := Release(finest, place, truth, random)
	if err != nil {
		return none, Finest{}, err
	}
	values := drawn.Value().Observations
	reader, shown := noise.NewReader(random), make([]int64, len(values))
	for i, z := range values {
		counter := i / spec.observed()
		shown[i] = coarser(steps[counter].Draw, fine[counter], reader, z)
	}
	if err := reader.Err(); err != nil {
		return none, Finest{}, err
	}
	return sealed.Release(Noisy{Observations: shown}), Finest{fine, privacy.Seal(values)}, nil
}

// Refine reveals the level of wanted, of which held and what it was refined from are coarser levels. The caller has
// charged the difference before. See ReleaseFirst.
func Refine(held Spec, shown privacy.Released[Noisy], wanted Spec, finest Finest, random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	if !finest.Valid() || !shown.Valid() {
		return none, errors.New("there is nothing to refine")
	}
	if err := errors.Join(held.check(), wanted.check()); err != nil {
		return none, err
	}
	values, coarse := sealed.Open(finest.values), shown.Value().Observations
	width := wanted.observed()
	if len(values) != wanted.Counters*width || len(coarse) != len(values) || len(finest.noises) != wanted.Counters || held.Counters != wanted.Counters {
		return none, fmt.Errorf("number of observations is %d, must be the %d of what was held", len(values), len(coarse))
	}
	reader, out := noise.NewReader(random), make([]int64, len(values))
	for c, n := range wanted.noises() {
		own := out[c*width : (c+1)*width]
		if n == finest.noises[c] {
			copy(own, values[c*width:])
			continue
		}
		if n.Step != held.noise(c).Step || n.Step != finest.noises[c].Step {
			return none, fmt.Errorf("counter %d: the levels have different steps", c+1)
		}
		between, err := ladders.NewBetween(held.noise(c).scale(), n.scale(), finest.noises[c].scale())
		if err != nil {
			return none, fmt.Errorf("counter %d: %w", c+1, err)
		}
		for i := range own {
			finest, step := values[c*width+i], n.step()
			if step == 1 {
				own[i] = between.Draw(reader, finest, coarse[c*width+i])
				continue
			}
			own[i] = addFar(finest, timesStep(between.Draw(reader, 0, (coarse[c*width+i]-finest)/step), step)) // a whole number of steps
		}
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(Noisy{Observations: out}), nil
}

// coarser makes an observation of a level of one of the next finer, of whose noise it is a further one in the same
// steps.
func coarser(draw coarsening, of Noise, reader *noise.Reader, finer int64) int64 {
	if of.step() == 1 {
		return draw(reader, finer)
	}
	return addFar(finer, timesStep(draw(reader, 0), of.step()))
}

// withStep marks a noise that has steps, beside its kind.
const withStep = 0x80

// AppendTo writes the finest level behind what is in b, for the ledger: whoever can read that has seen it.
func (f Finest) AppendTo(b []byte) []byte {
	values := sealed.Open(f.values)
	b = binary.AppendUvarint(b, uint64(len(f.noises)))
	for _, n := range f.noises {
		kind := byte(n.Kind)
		if n.Step > 1 {
			kind |= withStep
		}
		if b = binary.AppendVarint(binary.AppendVarint(append(b, kind), n.Num), n.Den); n.Step > 1 {
			b = binary.AppendVarint(b, n.Step)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(values)))
	for _, v := range values {
		b = binary.AppendVarint(b, v)
	}
	return b
}

var errFinest = errors.New("the finest level is not what was written")

// LoadFinest reads what AppendTo wrote, all of b.
func LoadFinest(b []byte) (Finest, error) {
	counters, n := binary.Uvarint(b)
	if counters < 1 || counters > MaxCounters { // what is no number is read as 0
		return Finest{}, errFinest
	}
	b = b[n:]
	next := func() int64 {
		v, n := binary.Varint(b)
		if b = b[max(n, 0):]; n <= 0 {
			counters = 0
		}
		return v
	}
	noises := make([]Noise, counters)
	for i := range noises {
		if len(b) == 0 {
			return Finest{}, errFinest
		}
		kind := b[0]
		noises[i].Kind, b = NoiseKind(kind&^withStep), b[1:]
		if noises[i].Num, noises[i].Den = next(), next(); kind&withStep != 0 {
			noises[i].Step = next()
		}
		if noises[i].Kind != DiscreteLaplace || noises[i].checkStep() != nil || noises[i].Num <= 0 || noises[i].Den <= 0 {
			return Finest{}, errFinest
		}
	}
	size, n := binary.Uvarint(b)
	if n <= 0 || size > MaxRefined {
		return Finest{}, errFinest
	}
	b = b[n:]
	values := make([]int64, size)
	for i := range values {
		values[i] = next()
	}
	if counters == 0 || len(b) != 0 {
		return Finest{}, errFinest
	}
	return Finest{noises, privacy.Seal(values)}, nil
}
