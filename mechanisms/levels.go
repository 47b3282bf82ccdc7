package mechanisms

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/ladders"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Level is one of several exactnesses at which one draw is shown, to different analysts.
type Level struct {
	Cost privacy.Cost // of seeing it, and any coarser ones
	Spec Spec
}

// MaxLevels bounds the levels of a draw.
const MaxLevels = 16

// slack is what the noise of a Gaussian level is calibrated below its cost: see ReleaseLevels.
const slack = 1 // pico-ρ

// Levels returns the levels of a release at the given costs, which fall: the first is that of spec, which is for the
// first cost, and those that cannot be levels of it are left out. That depends on public things alone.
func Levels(spec Spec, costs []privacy.Cost) ([]Level, error) {
	if len(costs) < 1 || len(costs) > MaxLevels {
		return nil, fmt.Errorf("number of levels is %d, must be from 1 to %d", len(costs), MaxLevels)
	}
	if err := spec.check(); err != nil {
		return nil, err
	}
	levels := []Level{{costs[0], spec}}
	if !Is[*Counts](spec) || spec.Grows() || spec.Counters*spec.observed() > MaxRefined {
		return levels, nil
	}
	far := 0.0 // Σ of ln factors by which the last level's law may differ from that of its noise
	for i, cost := range costs[1:] {
		if cost == costs[i] || !cost.Fits(costs[i]) {
			return nil, fmt.Errorf("cost of level %d is %s, must be below the one before, %s", i+2, cost, costs[i])
		}
		last := levels[len(levels)-1].Spec
		next, ok := spec.cheaper(costs[0], cost)
		if !ok {
			continue
		}
		near, err := next.stepsFrom(last, nil)
		if err != nil || !harmless(far+near, cost.Rho) {
			continue
		}
		far += near
		levels = append(levels, Level{cost, next})
	}
	return levels, nil
}

// harmless reports whether noise whose law differs by so much costs less than the slack more than its ρ.
func harmless(h float64, rho privacy.Rho) bool {
	return h == 0 || 2*math.Sqrt2*math.Sqrt(rho.Float())*h+2*h*h < .1*slack*1e-12
}

// cheaper is the spec whose every noise is as if wanted had been paid where s was made for paid; false where there is
// none.
func (s Spec) cheaper(paid, wanted privacy.Cost) (Spec, bool) {
	by := big.NewRat(1, 1)
	switch {
	case paid.Delta.Atto() != 0 || wanted.Delta.Atto() != 0:
		return Spec{}, false
	case wanted.Epsilon.Micro() > 0:
		by = big.NewRat(paid.Epsilon.Micro(), wanted.Epsilon.Micro())
	case wanted.Rho.Pico() > slack:
		by = big.NewRat(paid.Rho.Pico(), wanted.Rho.Pico()-slack)
	default:
		return Spec{}, false
	}
	ok := true
	s = s.scaled(func(n Noise) Noise {
		out, err := rational(n.Kind, new(big.Rat).Mul(big.NewRat(n.Num, n.Den), by))
		out.Step, ok = n.Step, ok && err == nil
		return out
	})
	return s, ok && s.check() == nil
}

// coarsening makes an observation of a level of the same one of the next finer.
type coarsening func(*noise.Reader, int64) int64

// stepsFrom returns how far the law of all observations together may be off, and sets the steps of the counters, if
// wanted.
func (s Spec) stepsFrom(finer Spec, steps []coarsening) (near float64, err error) {
	for c := range s.Counters {
		to, from := s.noise(c), finer.noise(c)
		var step coarsening
		switch {
		case to.Kind != from.Kind || to.Step != from.Step:
			return 0, errors.New("levels have different kinds of noise, or steps")
		case to.Kind == DiscreteLaplace:
			l, failed := ladders.NewStep(to.scale(), from.scale())
			step, err = l.Draw, failed
		default:
			g, failed := ladders.NewGaussianStep(to.scale(), from.scale())
			step, err = g.Draw, failed
			near += g.Near() * float64(s.observed())
		}
		if err != nil {
			return 0, fmt.Errorf("counter %d: %w", c+1, err)
		}
		if steps != nil {
			steps[c] = func(reader *noise.Reader, z int64) int64 { return coarser(step, from, reader, z) }
		}
	}
	return near, nil
}

// ReleaseLevels draws all levels of a release at once: the finest as Release would, each other one of the next finer
// and of more noise. The levels are what Levels returned.
//
// Claim: what is seen of levels i, …, m, by whoever, costs what level i does; and level i by itself has the law of
// Release(levels[i].Spec), exactly under the pure accountant, and within what its cost allows for under zCDP.
// Neighbours and sensitivity: those of the contribution that the first spec was made for; the others observe the same.
// Theorem: post-processing; for the law packages ladders (Step, GaussianStep); for zCDP the triangle inequality of
// Rényi divergence (Bun, Steinke 2016, Proposition 1.9 and Lemma 5.2 in the form √ρ ≤ √ρ' + √ρ”), and that a factor of
// exp(±H) is H²/2-zCDP (Proposition 1.4 there). Proof: level i+1 is made of level i and of fresh noise, so levels i, …,
// m are a function of level i and of randomness that does not depend on the data: they cost what level i costs. By
// induction the law of an observation of level i is that of its Spec's noise but for a factor of exp(±Σ near) over the
// steps to it; the observations are independent given the true ones, so all of them differ by H = near·observations at
// most, which Levels sums in far. With G the law of exact noise, x and x' neighbours: M(x) to G(x) costs H²/2, G(x) to
// G(x') the ρ−slack that it was calibrated for, G(x') to M(x') H²/2 again: (√(ρ−slack) + √2·H)² = ρ − slack +
// 2√2·√ρ·H + 2H² at most, which harmless keeps below ρ. For Laplace H = 0. Limits: as Release. What is returned but not
// paid for may be shown to nobody: the ledger keeps each level apart.
func ReleaseLevels(levels []Level, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) ([]privacy.Released[Noisy], error) {
	if len(levels) < 1 {
		return nil, errors.New("number of levels is 0, must be at least 1")
	}
	steps := make([][]coarsening, len(levels))
	for i := 1; i < len(levels); i++ {
		s := levels[i].Spec
		if err := s.check(); err != nil {
			return nil, err
		}
		if steps[i] = make([]coarsening, s.Counters); s.Counters != levels[0].Spec.Counters || s.observed() != levels[0].Spec.observed() {
			return nil, fmt.Errorf("level %d observes other things than the first", i+1)
		}
		if _, err := s.stepsFrom(levels[i-1].Spec, steps[i]); err != nil {
			return nil, fmt.Errorf("level %d: %w", i+1, err)
		}
	}
	first, err := Release(levels[0].Spec, place, truth, random)
	if err != nil {
		return nil, err
	}
	out, reader, width := []privacy.Released[Noisy]{first}, noise.NewReader(random), levels[0].Spec.observed()
	for i := 1; i < len(levels); i++ {
		out = append(out, privacy.PostProcess(out[i-1], func(finer Noisy) Noisy {
			coarse := make([]int64, len(finer.Observations))
			for at, z := range finer.Observations {
				coarse[at] = steps[i][at/width](reader, z)
			}
			return Noisy{Observations: coarse}
		}))
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	return out, nil
}
