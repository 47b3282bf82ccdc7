package keys

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// MaxKeys bounds the number of keys of a unit.
const MaxKeys = 1 << 22

// maxThreshold bounds thresholds, so that floats hold them exactly.
const maxThreshold = 1 << 52

// Kind names the noise of a rule.
type Kind uint8

// The kinds. The zero value is invalid.
const (
	Truncated Kind = 1 + iota // discrete Laplace on [−reach, reach]; see truncated.go
	Gaussian                  // discrete Gaussian
)

func (k Kind) String() string {
	return [...]string{"invalid", "truncated Laplace", "Gaussian"}[k]
}

// Rule says with which noise and from which threshold on keys are shown. Made by New or Best it is
// immutable; the zero value is invalid.
type Rule struct {
	kind      Kind
	moved     int64 // keys whose count one unit can move, by 1 each: k, or under replace-one 2k
	delta     privacy.Delta
	num, den  int64 // the noise's scale t or variance σ²
	noise     noise.Distribution
	threshold int64  // of Truncated the larger of its two
	mixed     uint64 // Truncated: of 2^32, how often reach and threshold are one less
	cost      privacy.Cost
}

// New returns the rule of a kind that costs at most so much: ε and δ, or ρ and δ. Of c only Groups (or, where that is
// 0, Rows) and Neighbors matter: a unit has at most that many keys. A Gaussian rule needs ρ.
func New(kind Kind, c privacy.Contribution, cost privacy.Cost) (Rule, error) {
	k, moved, err := keysOf(c)
	if err != nil {
		return Rule{}, err
	}
	e, r := cost.Epsilon.Micro(), cost.Rho.Pico()
	if e < 0 || r < 0 || (e == 0) == (r == 0) {
		return Rule{}, fmt.Errorf("cost is epsilon %s and rho %s, must name one of them, greater than 0", cost.Epsilon, cost.Rho)
	}
	rule := Rule{kind: kind, moved: moved, delta: cost.Delta, cost: cost}
	switch kind {
	case Truncated:
		err = rule.scale()
	case Gaussian:
		if r == 0 {
			return Rule{}, errors.New("cost names epsilon, must name rho: no Gaussian noise is pure")
		}
		err = rule.variance()
	default:
		return Rule{}, fmt.Errorf("kind of rule is %d, must be truncated or Gaussian", kind)
	}
	if err != nil {
		return Rule{}, err
	}
	return rule.finish(k)
}

// Best returns the rule that shows a key from the smallest number of units on with probability at least one half; of
// equals the one with less noise. Under pure that is Truncated, under zCDP Gaussian but for the largest costs.
func Best(c privacy.Contribution, cost privacy.Cost) (Rule, error) {
	best, err := New(Truncated, c, cost)
	if cost.Rho.Pico() == 0 {
		return best, err
	}
	other, otherErr := New(Gaussian, c, cost)
	switch {
	case otherErr != nil:
		return best, err
	case err != nil || other.Half() < best.Half() || other.Half() == best.Half() && other.Variance() < best.Variance():
		return other, nil
	}
	return best, nil
}

// keysOf returns how many keys a unit has, and how many it can move.
func keysOf(c privacy.Contribution) (k, moved int64, err error) {
	k = c.Groups
	if k == 0 {
		k = c.Rows
	}
	if k < 1 || k > MaxKeys {
		return 0, 0, fmt.Errorf("keys of a unit is %d, must be from 1 to %d", k, MaxKeys)
	}
	switch c.Neighbors {
	case privacy.AddRemove:
		return k, k, nil
	case privacy.ReplaceOne:
		return k, 2 * k, nil
	}
	return 0, 0, fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
}

// scale sets t: each moved key is 1/t-DP, hence 1/(2t²)-zCDP (Bun and Steinke 2016, Proposition 1.4), and their noises
// are independent: 1/t is ε/moved, or √(2ρ/moved) rounded down: t up, by less than 2^-19 of it for t ≥ 1/2.
func (r *Rule) scale() error {
	t := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(r.moved), big.NewInt(1e6)), big.NewInt(max(1, r.cost.Epsilon.Micro())))
	if pico := r.cost.Rho.Pico(); pico != 0 {
		square := new(big.Int).Mul(big.NewInt(r.moved), big.NewInt(1e12))
		square.Lsh(square, 39) // t²·2^40 is moved·1e12/(2·pico)·2^40
		square.Quo(square, big.NewInt(pico)).Add(square, big.NewInt(1))
		root := new(big.Int).Sqrt(square)
		t.SetFrac(root.Add(root, big.NewInt(1)), big.NewInt(1<<20))
	}
	return r.parameter(t)
}

// variance sets σ² = moved/(2ρ): the moved keys' squares add up to moved.
func (r *Rule) variance() error {
	v := new(big.Rat).SetFrac(new(big.Int).Mul(big.NewInt(r.moved), big.NewInt(1e12/2)), big.NewInt(r.cost.Rho.Pico()))
	return r.parameter(v)
}

func (r *Rule) parameter(x *big.Rat) error {
	if !x.Num().IsInt64() || !x.Denom().IsInt64() {
		return fmt.Errorf("noise parameter is %s, out of range: the cost is too small for the keys of a unit", x.RatString())
	}
	r.num, r.den = x.Num().Int64(), x.Denom().Int64()
	return nil
}

// finish makes the noise and the threshold. A threshold's δ is split over k keys, the truncation's over all moved ones;
// the proofs are in release.go and truncated.go.
func (r Rule) finish(k int64) (Rule, error) {
	var err error
	kind, find := noise.Gaussian, (*Rule).gaussianThreshold
	if r.kind == Truncated {
		kind, find, k = noise.Laplace, (*Rule).truncate, r.moved
	}
	if r.noise, err = noise.New(kind, r.num, r.den); err != nil {
		return Rule{}, err
	}
	each, err := PerKey(r.delta, k)
	if err != nil {
		return Rule{}, err
	}
	if err := find(&r, each); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// Parameter returns the noise's scale, or of Gaussian noise its variance, as num/den.
func (r Rule) Parameter() (num, den int64) { return r.num, r.den }

// Valid reports whether the rule was made by a constructor.
func (r Rule) Valid() bool { return r.kind != 0 }

// Kind returns the rule's noise.
func (r Rule) Kind() Kind { return r.kind }

// Threshold returns the smallest noisy count that is certain to show its key. (A Truncated rule flips a coin whether
// one less does.)
func (r Rule) Threshold() int64 { return r.threshold }
