// Package ladders refines a release: the same cells asked again with more accuracy cost the difference, not the whole.
//
// Under the pure accountant a Ladder draws all of its public levels at once, the finest as data plus noise, each coarser
// one as the next finer plus more noise; whoever has paid for a level may see it. Under zCDP no levels are needed:
// Observe again at ρ2 − ρ1 and Combine.
package ladders

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The largest ladders, and the ends of counts and noisy counts: far enough apart, and inside of the int64 range, that
// neither addition nor the samplers' own clipping shows.
const (
	MostLevels = 64
	MostCells  = 1 << 20
	mostCount  = 1 << 61
	mostNoisy  = 1 << 62
)

// Ladder is a checked list of levels. The zero value is invalid.
type Ladder struct {
	levels []privacy.Epsilon // rising
	l1     int64
	finest noise.Distribution
	steps  []step // steps[i] leads from level i+1 to level i
}

// New returns the ladder of rising levels for cells that one unit can move by s.L1 together.
func New(levels []privacy.Epsilon, s privacy.Sensitivity) (Ladder, error) {
	if len(levels) < 1 || len(levels) > MostLevels {
		return Ladder{}, fmt.Errorf("number of levels is %d, must be from 1 to %d", len(levels), MostLevels)
	}
	if s.L1 < 1 || s.L1 > math.MaxInt64/1_000_000 {
		return Ladder{}, fmt.Errorf("L1 sensitivity is %d, must be from 1 to %d", s.L1, int64(math.MaxInt64/1_000_000))
	}
	l := Ladder{levels: append([]privacy.Epsilon(nil), levels...), l1: s.L1}
	for i, e := range levels {
		if e.Micro() <= 0 || i > 0 && e.Micro() <= levels[i-1].Micro() {
			return Ladder{}, fmt.Errorf("level %d is %s, must be greater than 0 and than the level before", i, e)
		}
		d, err := l.laplace(e.Micro())
		if err != nil {
			return Ladder{}, err
		}
		l.finest = d
		if i == 0 {
			continue
		}
		coarse, err := l.laplace(levels[i-1].Micro())
		if err != nil {
			return Ladder{}, err
		}
		between, err := l.laplace(e.Micro() - levels[i-1].Micro())
		if err != nil {
			return Ladder{}, err
		}
		l.steps = append(l.steps, step{coarse, between})
	}
	return l, nil
}

// laplace returns the distribution with q = exp(−micro·10^-6/L1).
func (l Ladder) laplace(micro int64) (noise.Distribution, error) {
	return noise.New(noise.Laplace, l.l1*1_000_000, micro)
}

// Levels returns the number of levels.
func (l Ladder) Levels() int { return len(l.levels) }

// Noise returns the distribution of a level's noise.
func (l Ladder) Noise(level int) (noise.Distribution, error) {
	if err := l.check(level); err != nil {
		return noise.Distribution{}, err
	}
	return l.laplace(l.levels[level].Micro())
}

// Cost returns what it costs to see a level, the finest level already paid for being another (−1: none). A level no finer
// than that is free.
//
// Pure: ε of it, less that of the one paid for. On every outcome the loss of all levels seen is at most ε of the finest,
// whatever made one go on to it, and losses on an outcome are what a pure budget adds up.
// Under zCDP: ε²/2 of it each time, nothing taken off. Given the levels seen, with a loss L of theirs, the loss of the finer
// one beside them lies in [−ε−L, ε−L], of length 2ε: ε²/2-zCDP (Cesar and Rogers 2021). The difference of two ε²/2 would not
// do for who goes on only where the coarse answer was of a kind and spends the difference elsewhere if not: a test has the
// loss, exactly. Observer has no such loss to bear.
func (l Ladder) Cost(paid, wanted int, a privacy.Accountant) (privacy.Cost, error) {
	if err := l.check(wanted); err != nil {
		return privacy.Cost{}, err
	}
	if paid < -1 || paid >= len(l.levels) {
		return privacy.Cost{}, fmt.Errorf("paid level is %d, must be from -1 to %d", paid, len(l.levels)-1)
	}
	if a != privacy.Pure && a != privacy.ZCDP {
		return privacy.Cost{}, fmt.Errorf("accountant is %d, must be pure or zcdp", a)
	}
	e := l.levels[wanted]
	switch {
	case paid >= wanted:
		return privacy.Cost{}, nil
	case a == privacy.ZCDP:
		return privacy.Cost{Rho: e.Rho()}, nil
	case paid >= 0:
		e = privacy.MicroEpsilon(e.Micro() - l.levels[paid].Micro())
	}
	return privacy.Cost{Epsilon: e}, nil
}

func (l Ladder) check(level int) error {
	switch {
	case len(l.levels) == 0:
		return errors.New("ladder was not made by New")
	case level < 0 || level >= len(l.levels):
		return fmt.Errorf("level is %d, must be from 0 to %d", level, len(l.levels)-1)
	}
	return nil
}

// Rungs are the noisy cells of every level, still sealed. The zero value is invalid.
type Rungs struct {
	ladder Ladder
	values privacy.Sensitive[[][]int64]
}

// Draw draws all levels, once, for one state of the data.
//
// Claim: seeing the levels up to ε_i, all of them, is ε_i-DP; and level i's noise is discrete Laplace with
// q_i = exp(−ε_i/L1), as if it had been drawn alone.
// Neighbours and sensitivity: those of s.L1 that New was given.
// Source: gradual release (Koufogiannis, Han, Pappas 2015), here for the discrete Laplace.
//
// Proof of privacy: the finest level is a discrete Laplace mechanism with ε_m; level i is made of level i+1 and fresh
// randomness alone. So levels 0…i are a post-processing of level i, and level i, by its law, is ε_i-DP.
// Proof of the law: let q1 > q2 be those of a level and the next finer. A discrete Laplace is the difference of two
// independent geometrics, P(k) = (1−q)q^k, whose generating function is (1−q)/(1−qz). For G with
//
//	P(G=0) = (1−q1)/(1−q2),  P(G=k) = P(G=0)·(q1−q2)·q1^(k−1)
//
// it is (1−q1)(1−q2z)/((1−q2)(1−q1z)), so a geometric of q2 plus an independent G is a geometric of q1. With independent G
// and G', discrete Laplace of q2 plus Y = G − G' is discrete Laplace of q1. (One G alone would give a lopsided sum.)
// Proof of the sampler: P(G ≥ 1) = (q1−q2)/(1−q2), and given that, G−1 is a geometric of q1. Let T1, T2 be geometrics of
// q1 and q2/q1: P(T2 < T1) = Σ_j (1−q2/q1)(q2/q1)^j·q1^(j+1) = (q1−q2)/(1−q2). All of q1, q2/q1 are exp of minus a rational.
//
// Limits: noise belongs to the data that it was drawn for. Reusing it, or noise re-derived from a seed, against changed
// data is not private: the difference of the two answers would show the change bare. After a change draw anew, at the
// full cost. Noise is clipped as in package noise.
func (l Ladder) Draw(truth privacy.Sensitive[[]int64], random io.Reader) (Rungs, error) {
	if err := l.check(0); err != nil {
		return Rungs{}, err
	}
	if !truth.Valid() {
		return Rungs{}, errors.New("truth was never sealed")
	}
	cells := sealed.Open(truth)
	if len(cells) > MostCells {
		return Rungs{}, fmt.Errorf("number of cells is above %d", MostCells)
	}
	reader := noise.NewReader(random)
	values := make([][]int64, len(l.levels))
	for i := range values {
		values[i] = make([]int64, len(cells))
	}
	for c, count := range cells {
		at := add(min(max(count, 0), mostCount), l.finest.Sample(reader))
		for i := len(l.levels) - 1; ; i-- {
			values[i][c] = at
			if i == 0 {
				break
			}
			at = add(at, l.steps[i-1].sample(reader))
		}
	}
	if err := reader.Err(); err != nil {
		return Rungs{}, err
	}
	return Rungs{l, privacy.Seal(values)}, nil
}

// Reveal shows a level. The caller has charged its Cost before.
func (r Rungs) Reveal(level int) (privacy.Released[[]int64], error) {
	if err := r.ladder.check(level); err != nil {
		return privacy.Released[[]int64]{}, err
	}
	return sealed.Release(append([]int64(nil), sealed.Open(r.values)[level]...)), nil
}

// step is the noise Y between a level and the next finer.
type step struct {
	coarse  noise.Distribution // of q1
	between noise.Distribution // of q2/q1
}

// sample draws Y.
func (s step) sample(reader *noise.Reader) int64 {
	up, down := s.side(reader), s.side(reader)
	return up - down
}

// side draws G.
func (s step) side(reader *noise.Reader) int64 {
	if geometric(reader, s.between) >= geometric(reader, s.coarse) {
		return 0
	}
	return min(geometric(reader, s.coarse), mostCount) + 1
}

// geometric draws P(k) = (1−q)q^k: the discrete Laplace of q given that it is not negative.
func geometric(reader *noise.Reader, d noise.Distribution) int64 {
	for reader.Err() == nil {
		if k := d.Sample(reader); k >= 0 {
			return k
		}
	}
	return 0
}

// add returns a+b for a in ±mostNoisy, cut there.
func add(a, b int64) int64 {
	return min(max(a+min(max(b, -mostNoisy), mostNoisy), -mostNoisy), mostNoisy)
}
