package accounting

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"sync"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ApproximateFilter is the filter for (ε_i, δ_i)-DP releases of one message each.
//
// Claim: as long as every charge was accepted, all answers together are (ε, δ)-DP, though costs are chosen after earlier
// answers.
// Theorem (Whitehouse, Ramdas, Rogers, Wu 2023, "Fully adaptive composition in differential privacy"): with δ = δ' + δ”,
// refusing what would break one of
//
//	√(2 ln(1/δ') Σε_i²) + Σε_i²/2 ≤ ε    and    Σδ_i ≤ δ”.
//
// Proof of the code: Σε_i² is a whole number of 10^-12, ln(1/δ') is rounded up to a rational, and the first condition is
// decided as 2 ln(1/δ') S ≤ (ε − S/2)² and S/2 ≤ ε in rationals.
// Limits: interactive mechanisms cannot be opened here. Few large costs are better added up by a PureFilter.
type ApproximateFilter struct {
	mutex      sync.Mutex
	epsilon    privacy.Epsilon
	delta      privacy.Delta // δ', for the composition
	releases   privacy.Delta // δ”, for the releases' own
	twiceLog   *big.Rat      // 2 ln(1/δ'), rounded up
	squares    *big.Rat      // Σε_i²
	deltaSpent privacy.Delta
}

// Deltas are the two parts of a δ.
type Deltas struct {
	Composition privacy.Delta // δ', greater than 0
	Releases    privacy.Delta // δ”, may be 0
}

// NewApproximateFilter returns the filter of (e, d.Composition + d.Releases).
func NewApproximateFilter(e privacy.Epsilon, d Deltas) (*ApproximateFilter, error) {
	if err := checkPair(e, d.Composition); err != nil {
		return nil, err
	}
	if err := checkThreshold(d.Releases); err != nil {
		return nil, err
	}
	if err := checkDelta(privacy.AttoDelta(min(d.Composition.Atto()+d.Releases.Atto(), 1e18))); err != nil {
		return nil, err
	}
	twice := new(big.Rat).SetFloat64(-2 * math.Log(d.Composition.Float()) * (1 + 0x1p-40))
	return &ApproximateFilter{epsilon: e, delta: d.Composition, releases: d.Releases, twiceLog: twice, squares: new(big.Rat)}, nil
}

// Charge charges a release before it is drawn.
func (f *ApproximateFilter) Charge(c ApproximateCost) error {
	if c.epsilon.Micro() <= 0 {
		return errors.New("cost was not made by Approximate")
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	each := big.NewRat(c.epsilon.Micro(), 1e6)
	squares := new(big.Rat).Add(f.squares, each.Mul(each, each))
	if f.releases.Atto()-f.deltaSpent.Atto() < c.delta.Atto() || !f.fits(squares) {
		return fmt.Errorf("%w: a release of epsilon %s, delta %s is too much after the others", ErrSpent, c.epsilon, c.delta)
	}
	f.squares, f.deltaSpent = squares, privacy.AttoDelta(f.deltaSpent.Atto()+c.delta.Atto())
	return nil
}

func (f *ApproximateFilter) fits(squares *big.Rat) bool {
	rest := new(big.Rat).Mul(squares, big.NewRat(1, 2))
	rest.Sub(big.NewRat(f.epsilon.Micro(), 1e6), rest)
	if rest.Sign() < 0 {
		return false
	}
	return new(big.Rat).Mul(f.twiceLog, squares).Cmp(rest.Mul(rest, rest)) <= 0
}

// Guarantee returns the (ε, δ) that all answers together keep.
func (f *ApproximateFilter) Guarantee() (privacy.Epsilon, privacy.Delta) {
	return f.epsilon, privacy.AttoDelta(f.delta.Atto() + f.releases.Atto())
}
