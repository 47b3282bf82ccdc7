package mechanisms

import (
	"errors"
	"fmt"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/keys"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Discovery is a checked plan for finding the keys of a column whose values nobody declared: package keys' best rule,
// and a guard of memory. The zero value is invalid.
//
// Claim: a release costs at most the cost that the discovery was made of: it is δ-approximately ε-DP, or ρ-zCDP, for
// units that have at most c.Groups (or c.Rows) keys each. Proof: it is two releases. The rule takes what the guard
// leaves, by the claim of keys.Rule.Release. The guard says whether the number of keys n is above usual + X, X discrete
// Laplace of scale spread; a unit moves n by at most k, so the answer is k/spread-DP and k²/(2·spread²)-zCDP. It is cut
// at MaxFound: n > MaxFound is answered by yes. Where two neighbours are on both sides of that, the cut changes an
// answer only if X ≥ MaxFound − usual, 64 times the spread, which happens with less than 10^-27; the smallest δ,
// 10^-18, is set aside for it. Where the guard says yes no key is found.
type Discovery struct {
	rule  keys.Rule
	guard noise.Distribution
	each  int64
}

// FewKeys is how many keys of a unit are counted where it may have any number of them. Under ε the threshold grows with
// that number, and what a key is counted by no faster: units of k keys each, one of which is counted of each, show as
// many as all k would, and units of one key show k times as many. Under ρ the threshold grows with the root.
//
// Measured: keys found of 20,000 that 100,000 people have by Zipf's law, for ε 0.5 or ρ 0.25 and δ 6.25e-8, with 1, 4
// and 16 keys of each. People with one: 422, 104, 21 and 1496, 733, 369; with 1 to 3,000 (Pareto 1.2): 426, 199, 69
// and 1501, 1376, 999; with 5 and more (Pareto 1.5): 427, 421, 238 and 1524, 2816, 3157; with 30 each: 440, 425, 426
// and 1570, 2870, 5501.
func FewKeys(cost privacy.Cost) int64 {
	if cost.Rho.Pico() > 0 {
		return 4
	}
	return 1
}

// usual is about how many keys a discovery works with, MaxFound how many a backend need keep: one more says that there
// are too many.
const (
	usual    = 1 << 21
	MaxFound = 1 << 22
	spread   = 1 << 15
)

// NewDiscovery plans the best discovery for its cost, which names δ, and ε or ρ.
func NewDiscovery(c Contribution, cost privacy.Cost) (Discovery, error) {
	k := c.Groups
	if k == 0 {
		k = c.Rows
	}
	if k < 1 || k > spread {
		return Discovery{}, fmt.Errorf("keys of a unit is %d, must be from 1 to %d", k, spread)
	}
	micro, pico := (k*1_000_000+spread-1)/spread, 466*k*k // 10^12/(2·spread²), rounded up
	e, r := cost.Epsilon.Micro(), cost.Rho.Pico()
	left := privacy.Cost{Delta: privacy.AttoDelta(cost.Delta.Atto() - 1)}
	switch {
	case e > 2*micro && r == 0:
		left.Epsilon = privacy.MicroEpsilon(e - micro)
	case r > 2*pico && e == 0:
		left.Rho = privacy.PicoRho(r - pico)
	default:
		return Discovery{}, fmt.Errorf("cost is %s, too small to find keys of which a unit has up to %d", cost, k)
	}
	rule, err := keys.Best(c, left)
	if err != nil {
		return Discovery{}, err
	}
	guard, err := noise.New(noise.Laplace, spread, 1)
	return Discovery{rule, guard, k}, err
}

// Valid reports whether d was made by NewDiscovery.
func (d Discovery) Valid() bool { return d.rule.Valid() }

// KeysEach is how many keys of a unit may be counted.
func (d Discovery) KeysEach() int64 { return d.each }

// Threshold is the noisy number of units from which on a key is shown, Half the true number from which on it is with
// probability one half.
func (d Discovery) Threshold() int64 { return d.rule.Threshold() }

// Half: see Threshold.
func (d Discovery) Half() int64 { return d.rule.Half() }

// Noise names the rule's noise.
func (d Discovery) Noise() string { return d.rule.Kind().String() }

// Spec describes the numbers of units of so many keys, as far as reading them goes: truncated noise is described as the
// Laplace noise that it is cut from, whose errors are no smaller.
func (d Discovery) Spec(cells int) Spec {
	num, den := d.rule.Parameter()
	n := Noise{Kind: DiscreteLaplace, Num: num, Den: den}
	if d.rule.Kind() == keys.Gaussian {
		n.Kind = DiscreteGaussian
	}
	return Spec{Counters: 1, Cells: cells, Kind: &Counts{Strategy: Strategy{Kind: Identity}, Noise: n}}
}

// Discover opens the sealed groups, each of which has a key and its number of units, and returns the keys that are
// shown, in the order of their bytes, with their noisy numbers of units. A group without a key is nobody's.
func Discover(d Discovery, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	if !d.Valid() {
		return none, errors.New("discovery was not made by NewDiscovery")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	limit := min(usual+d.guard.Sample(reader), MaxFound)
	if err := reader.Err(); err != nil {
		return none, err
	}
	counts := sealed.Map(truth, func(groups []privacy.Group) []keys.Count {
		if int64(len(groups)) > limit {
			return nil
		}
		list := make([]keys.Count, 0, len(groups))
		for _, g := range groups {
			if g.Key != "" && len(g.Counts) == 1 {
				list = append(list, keys.Count{Key: g.Key, Units: g.Counts[0]})
			}
		}
		return list
	})
	shown, err := d.rule.Release(counts, random)
	if err != nil {
		return none, err
	}
	return privacy.PostProcess(shown, func(list []keys.Noisy) Noisy {
		out := Noisy{Observations: make([]int64, len(list)), Keys: make([]string, len(list))}
		for i, k := range list {
			out.Observations[i], out.Keys[i] = k.Units, k.Key
		}
		return out
	}), nil
}
