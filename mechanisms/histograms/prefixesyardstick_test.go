package histograms

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Prefix trees are what Dawa is measured by over the same cells: they keep prefixes of keys whose noisy counts pass a
// threshold, and pay δ for it (ADR 68).

// Keyed is how many rows have a key.
type Keyed struct {
	Key   uint64
	Count int64
}

// Prefixes is a checked plan for keys of up to 64 bits, far too many to list: a tree whose nodes are the keys'
// prefixes, a few bits longer on each level. A prefix with rows gets noise and is kept if it passes the threshold; only
// below kept prefixes does the next level look. It is immutable; the zero value is invalid.
type Prefixes struct {
	keyBits, stride int
	cost            privacy.Cost
	noise           noise.Distribution
	parameter       float64 // of the noise: t, or σ², rounded up
	threshold       int64
}

// NewPrefixes checks the parameters: keys below 2^keyBits, seen stride bits at a time (a divisor). The cost names ε or
// ρ, for the noise, and δ, for the threshold. Few levels have little noise each; many find where rows gather in
// between.
func NewPrefixes(keyBits, stride int, c privacy.Contribution, cost privacy.Cost) (Prefixes, error) {
	if keyBits < 1 || keyBits > 64 {
		return Prefixes{}, fmt.Errorf("bits of a key are %d, must be from 1 to 64", keyBits)
	}
	if stride < 1 || stride > keyBits || keyBits%stride != 0 {
		return Prefixes{}, fmt.Errorf("bits of a level are %d, must divide the key's %d", stride, keyBits)
	}
	b, err := boundsOf(c)
	if err != nil {
		return Prefixes{}, err
	}
	e, r, d := cost.Epsilon.Micro(), cost.Rho.Pico(), cost.Delta.Atto()
	if e < 0 || r < 0 || (e == 0) == (r == 0) {
		return Prefixes{}, fmt.Errorf("cost is epsilon %s and rho %s, must name one of them, greater than 0", cost.Epsilon, cost.Rho)
	}
	if d <= 0 || d >= 1e18 {
		return Prefixes{}, fmt.Errorf("delta is %s, must be greater than 0 and below 1", cost.Delta)
	}
	p := Prefixes{keyBits: keyBits, stride: stride, cost: cost}
	levels := int64(p.Levels())
	if e > 0 {
		p.noise, err = noise.New(noise.Laplace, levels*b.times()*b.rows*1_000_000, e)
		p.parameter = float64(levels*b.times()*b.rows) * 1e6 / float64(e) * (1 + 1e-12)
	} else {
		// σ² = L2²/(2ρ), rounded up to whole squared rows.
		v := new(big.Int).Mul(big.NewInt(levels*b.times()*b.rows*b.rows), big.NewInt(1e12))
		half := new(big.Int).Lsh(big.NewInt(r), 1)
		v.Add(v, half).Sub(v, big.NewInt(1)).Quo(v, half)
		if !v.IsInt64() {
			return Prefixes{}, fmt.Errorf("cost is %s, too small for %d rows of a unit", cost, b.rows)
		}
		p.noise, err = noise.New(noise.Gaussian, v.Int64(), 1)
		p.parameter = float64(v.Int64()) * (1 + 1e-12)
	}
	if err != nil {
		return Prefixes{}, err
	}
	p.threshold, err = p.smallestThreshold(b, cost.Delta.Float()/float64(levels*b.times()))
	return p, err
}

// smallestThreshold returns the smallest threshold that a unit's own prefixes of one level pass with probability at
// most delta: rows·P(1 + noise ≥ τ) and P(rows + noise ≥ τ) are at most that, the former where it has many prefixes,
// the latter where it has one.
func (p Prefixes) smallestThreshold(b bounds, delta float64) (int64, error) {
	passes := func(threshold int64) float64 {
		return math.Max(float64(b.rows)*p.tail(threshold-1), p.tail(threshold-b.rows)) * (1 + 1e-9)
	}
	low, high := b.rows, b.rows+1 // low is refused
	for passes(high) > delta {
		if low, high = high, 2*high; high > 1<<60 {
			return 0, fmt.Errorf("delta is %g a level, too small for the noise", delta)
		}
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; passes(middle) > delta {
			low = middle
		} else {
			high = middle
		}
	}
	return high, nil
}

// tail bounds P(noise ≥ m) for m ≥ 1 from above. Laplace of scale t: q^m/(1+q), q = exp(−1/t). Gaussian: at most the
// continuous one's P(≥ m−1) (Canonne, Kamath, Steinke 2020, proposition 25).
func (p Prefixes) tail(m int64) float64 {
	if p.cost.Epsilon.Micro() > 0 {
		return math.Exp(-float64(m)/p.parameter) / (1 + math.Exp(-1/p.parameter))
	}
	return .5 * math.Erfc(float64(m-1)/math.Sqrt(2*p.parameter))
}

// Levels returns the number of levels.
func (p Prefixes) Levels() int { return p.keyBits / p.stride }

// Threshold returns the least noisy count that is kept.
func (p Prefixes) Threshold() int64 { return p.threshold }

// Variance returns the variance of the noise of a kept prefix, before it is known to have passed.
func (p Prefixes) Variance() float64 { return p.noise.Variance() }

// Cost returns what is to be charged, δ included.
func (p Prefixes) Cost() privacy.Cost { return p.cost }

// Node is a kept prefix: all keys from First on that agree with it in the bits of the levels up to its own.
type Node struct {
	Level int
	First uint64
	Count int64
}

// Release opens the counts and walks down. A key may occur more than once; bits above keyBits are cut off.
//
// Claim: (ε, δ)-DP; under ρ, within δ of a ρ-zCDP mechanism in the sense below. Neighbours: the plan's contribution.
// Sensitivity: a row is in one prefix of each level, so the counts of a level are rows apart in L1 and rows² in squared
// L2, twice that under replace-one; the levels add up. Theorem: Laplace or Gaussian counts behind a threshold
// (Korolova, Kenthapadi, Mishra, Ntoulas 2009; Wilson et al. 2020), composed over the levels, each of which is chosen
// by what the one before released. Proof: say that a prefix is private if it has rows in one of the two databases
// alone. Let E be the event that no private prefix is kept. A private prefix holds at most rows rows, all of the one
// unit, so on a level at most rows of them exist, and with f(c) = P(c + noise ≥ τ), convex up to τ, Σ f(c_i) subject to
// Σ c_i ≤ rows is largest for one prefix or for rows of them: at most δ/levels (a half of it for each side under
// replace-one). So P(E) ≥ 1 − δ on add-remove's larger database, and surely on the other. Outputs in E consist of
// common prefixes, whose noisy counts lose at most ε (or ρ) all together, times the probability that private ones stay
// away, between 1 − δ and 1. Hence P(out ∈ T) ≤ e^ε·P'(out ∈ T)+δ both ways; replace-one has δ/2 from each of the two
// sides. Under ρ the mechanism that never looks at private prefixes is ρ-zCDP and differs from this one with
// probability at most δ: the coupling that the accountant adds δ for. Limits: time and the number of random words
// depend on how many prefixes have rows below kept ones, kept or not; the order of the output does not; where a source
// of randomness fails, how far it got does. Rows below prefixes that were dropped are lost to the level: see Reading.
func (p Prefixes) Release(truth privacy.Sensitive[[]Keyed], random io.Reader) (privacy.Released[[]Node], error) {
	var none privacy.Released[[]Node]
	if p.keyBits == 0 {
		return none, errors.New("plan is the zero value, must be made by NewPrefixes")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	live := p.sorted(sealed.Open(truth))
	kept := []Node{}
	for level := range p.Levels() {
		width := p.keyBits - (level+1)*p.stride // bits below the prefix
		below := live[:0:0]
		for from, to := 0, 0; from < len(live); from = to {
			count := int64(0)
			for ; to < len(live) && live[to].Key>>width == live[from].Key>>width; to++ {
				count = min(count+live[to].Count, noise.MaxCount)
			}
			if noisy := noise.Add(count, p.noise.Sample(reader)); noisy >= p.threshold {
				kept = append(kept, Node{level, live[from].Key >> width << width, noisy})
				below = append(below, live[from:to]...)
			}
		}
		live = below
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(kept), nil
}

// sorted returns the keys with rows, in order, their other bits cut off.
func (p Prefixes) sorted(keyed []Keyed) []Keyed {
	list := make([]Keyed, 0, len(keyed))
	for _, k := range keyed {
		if k.Count > 0 {
			list = append(list, Keyed{k.Key & (math.MaxUint64 >> (64 - p.keyBits)), min(k.Count, noise.MaxCount)})
		}
	}
	slices.SortFunc(list, func(a, b Keyed) int {
		switch {
		case a.Key < b.Key:
			return -1
		case a.Key > b.Key:
			return 1
		}
		return 0
	})
	return list
}
