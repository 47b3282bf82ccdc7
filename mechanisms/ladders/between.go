package ladders

import (
	"errors"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Scale is the scale Num/Den of a discrete Laplace: q = exp(−Den/Num).
type Scale struct{ Num, Den int64 }

// maxScale keeps noise inside of the int64 range, but for a chance below exp(−2000).
const maxScale = 1 << 50

func (s Scale) rate() *big.Rat { return big.NewRat(s.Den, s.Num) }

// Step leads from a level to a coarser one. The zero value is invalid.
type Step struct{ jump jump }

// NewStep returns the step from a level of the scale fine to one of the scale coarse.
func NewStep(coarse, fine Scale) (Step, error) {
	if err := ordered(coarse, fine); err != nil {
		return Step{}, err
	}
	j, err := newJump(coarse.rate(), fine.rate())
	return Step{j}, err
}

// Draw returns the coarser level, whose law is that of its own scale: with q1 > q2 those of the coarse and the fine
// level, discrete Laplace of q1 is discrete Laplace of q2 plus an independent Y that is 0 of chance w =
// (q2/q1)·((1−q1)/(1−q2))² and else drawn of the discrete Laplace p1 of q1. On |z| = 1, with c = Re z, the quotient of
// their generating functions is ((1−q1)/(1−q2))²·(1+q2²−2q2·c)/(1+q1²−2q1·c), and Y's is w +
// (1−w)·(1−q1)²/(1+q1²−2q1·c): two quotients of linear functions of c with one denominator, equal at c = 1 and, as c
// grows, at the end.
func (s Step) Draw(reader *noise.Reader, fine int64) int64 {
	if reader.FixedWork() {
		return add(fine, s.jump.fixed(reader))
	}
	if s.jump.stays(reader) {
		return fine
	}
	return add(fine, s.jump.far.Sample(reader))
}

// Between draws a level between two that are there. The zero value is invalid.
type Between struct {
	coarse, gap *big.Rat // the rate of the coarse level, and how much larger that of the middle one is

	up   jump // from the middle to the coarse level
	down jump // from the finest to the middle

	rest  noise.Distribution // geometric of r = q2/q1
	outer noise.Distribution // geometric of q1·q2
	inner odds               // β = (1−q1q2)/(1−q2²)
	back  odds               // (1−q1²)/(1−q2²)
}

// NewBetween returns how levels of the scale middle are drawn between the coarse and the finest one.
func NewBetween(coarse, middle, finest Scale) (Between, error) {
	if err := errors.Join(ordered(coarse, middle), ordered(middle, finest)); err != nil {
		return Between{}, err
	}
	x1, x2 := coarse.rate(), middle.rate()
	b := Between{coarse: x1, gap: new(big.Rat).Sub(x2, x1)}
	sum, twice1, twice2 := new(big.Rat).Add(x1, x2), new(big.Rat).Add(x1, x1), new(big.Rat).Add(x2, x2)
	var errs [6]error
	b.up, errs[0] = newJump(x1, x2)
	b.down, errs[1] = newJump(x2, finest.rate())
	b.rest, errs[2] = laplaceOf(b.gap)
	b.outer, errs[3] = laplaceOf(sum)
	b.inner, errs[4] = newOdds(sum, twice2)
	b.back, errs[5] = newOdds(twice1, twice2)
	return b, errors.Join(errs[:]...)
}

// Draw returns the middle level, given the finest and the coarse one.
//
// Claim: if coarse was made of finest by a Step (or is a level that was drawn Between such), then the three are
// distributed as if the middle level had been made of the finest, and the coarse one of it. So whoever has seen the
// coarse and then the middle level has seen a post-processing of the middle one, which is discrete Laplace noise of its
// scale: both together cost what the middle one costs, whatever made her ask. Proof: let z, y be the two values, d =
// y−z ≥ 0 (the other sign is its mirror image), and q1 > q2 > q3 those of the coarse, middle and finest level. By the
// law of a Step the middle is z+A and y is z+A+B with A = 0 of chance a and else of p2, B = 0 of chance b and else of
// p1. Given A+B = d the cases are in the proportions, all divided by p1(d), for d > 0
//
//	A = 0, B = d:                a·(1−b)
//	A = d, B = 0:                (1−a)·b·p2(d)/p1(d)  = (1−a)·(q2/q1)^(d+1)·(1−q1²)/(1−q2²)
//	both drawn, A < 0:           (1−a)·(1−β),         −A−1 a geometric of q1q2
//	both drawn, 0 ≤ A ≤ d:       (1−a)·β·(1−r^(d+1)), A a geometric of r = q2/q1, given that it is at most d
//	both drawn, A > d:           (1−a)·(1−β)·r^d,     A−d−1 a geometric of q1q2
//
// with β = (1−q1q2)/(1−q2²), since (1−b)·p2(0)/(1−r) = β and (1−b)·p2(0)·q1q2/(1−q1q2) = 1−β. At d = 0 they are the
// same times p1(0), and neither drawn has a·b. A case is taken at random and kept with its proportion, which is at most
// 1: what is kept has the conditional law. P(d) is p1(d) times the sum of the proportions (the third and fourth are
// taken as one case), so that over the law of d the expected number of tries is at most 4, and 5 more for d = 0. All
// proportions are products of exp of minus a rational, of chances that one geometric is below another, and of
// complements. Limits: how long one draw takes depends on the noise, hence on d. Noise is clipped as in package noise,
// of a chance below exp(−2000); the law is that of noise that is not.
func (b Between) Draw(reader *noise.Reader, finest, coarse int64) int64 {
	d, sign := coarse-finest, int64(1)
	if d < 0 {
		d, sign = -d, -1
	}
	for reader.Err() == nil {
		if a, kept := b.try(reader, d); kept {
			return add(finest, sign*a)
		}
	}
	return coarse
}

// try takes one case at random, and reports whether it is kept.
func (b Between) try(reader *noise.Reader, d int64) (a int64, kept bool) {
	cases := uint64(4)
	if d == 0 {
		cases = 5
	}
	at := reader.Below(cases)
	if at == 4 {
		return 0, b.down.stays(reader) && b.up.stays(reader)
	}
	if d == 0 && !b.atZero(reader) || b.down.stays(reader) != (at == 0) {
		return 0, false
	}
	switch at {
	case 0:
		return 0, !b.up.stays(reader)
	case 1:
		return d, b.falls(reader, d+1) && b.back.flip(reader)
	case 2:
		if !b.inner.flip(reader) {
			return -1 - b.outer.OneSided(reader), true
		}
		a = b.rest.OneSided(reader)
		return a, a <= d
	}
	return add(d+1, b.outer.OneSided(reader)), !b.inner.flip(reader) && b.falls(reader, d)
}

// falls is true of chance (q2/q1)^n.
func (b Between) falls(reader *noise.Reader, n int64) bool {
	return reader.ExpMinus(new(big.Rat).Mul(b.gap, new(big.Rat).SetInt64(n)))
}

// atZero is true of chance p1(0) = (1−q1)/(1+q1).
func (b Between) atZero(reader *noise.Reader) bool {
	if reader.ExpMinus(b.coarse) {
		return false
	}
	for reader.Err() == nil { // 1/(1+q1): heads is yes; tails is no of chance q1, and else nothing yet
		if reader.Coin() {
			return true
		}
		if reader.ExpMinus(b.coarse) {
			return false
		}
	}
	return false
}

// jump is the noise between two levels: 0 of chance w, else that of the coarse one.
type jump struct {
	gap  *big.Rat // of the rates
	far  noise.Distribution
	odds odds // (1−q1)/(1−q2)
}

func newJump(coarse, fine *big.Rat) (jump, error) {
	far, err := laplaceOf(coarse)
	if err != nil {
		return jump{}, err
	}
	o, err := newOdds(coarse, fine)
	return jump{new(big.Rat).Sub(fine, coarse), far, o}, err
}

// stays is true of chance w = (q2/q1)·((1−q1)/(1−q2))².
func (j jump) stays(reader *noise.Reader) bool {
	first := j.odds.flip(reader)
	return first && j.odds.flip(reader) && reader.ExpMinus(j.gap)
}

// fixed is the noise in work that does not go with it: everything is drawn, whether it is needed or not. A geometric of
// exp(−gap) is above 0 with the chance exp(−gap). How often geometric draws anew is independent of what it returns.
func (j jump) fixed(reader *noise.Reader) int64 {
	first := j.odds.fails(reader)
	second := j.odds.fails(reader)
	moves := first | second | less(j.odds.between.OneSided(reader), 1)
	return j.far.Sample(reader) & -int64(moves)
}

// less is 1 where a < b and else 0, for numbers that are not negative.
func less(a, b int64) uint64 {
	_, borrow := bits.Sub64(uint64(a), uint64(b), 0)
	return borrow
}

// odds is a chance (1−q1)/(1−q2) with q1 = exp(−x1) > q2 = exp(−x2).
type odds struct{ coarse, between noise.Distribution }

func newOdds(x1, x2 *big.Rat) (odds, error) {
	coarse, err := laplaceOf(x1)
	if err != nil {
		return odds{}, err
	}
	between, err := laplaceOf(new(big.Rat).Sub(x2, x1))
	return odds{coarse, between}, err
}

// flip: with T1, T2 geometrics of q1 and q2/q1, P(T2 < T1) = Σ_j (1−q2/q1)(q2/q1)^j·q1^(j+1) = (q1−q2)/(1−q2), and the
// chance is 1 less that.
func (o odds) flip(reader *noise.Reader) bool {
	return o.fails(reader) == 0
}

// fails is 1 with what is left of the chance, and else 0.
func (o odds) fails(reader *noise.Reader) uint64 {
	between := o.between.OneSided(reader)
	return less(between, o.coarse.OneSided(reader))
}

// laplaceOf is the discrete Laplace with q = exp(−x).
func laplaceOf(x *big.Rat) (noise.Distribution, error) {
	if x.Sign() <= 0 || !x.Num().IsInt64() || !x.Denom().IsInt64() {
		return noise.Distribution{}, fmt.Errorf("rate of a level is %s, out of range", x.RatString())
	}
	return noise.New(noise.Laplace, x.Denom().Int64(), x.Num().Int64())
}

func ordered(coarse, fine Scale) error {
	for _, s := range []Scale{coarse, fine} {
		if s.Num <= 0 || s.Den <= 0 || s.Num/maxScale > s.Den {
			return fmt.Errorf("scale of a level is %d/%d, must be above 0 and at most 2^50", s.Num, s.Den)
		}
	}
	if coarse.rate().Cmp(fine.rate()) >= 0 {
		return fmt.Errorf("scale of the coarser level is %d/%d, must be above %d/%d", coarse.Num, coarse.Den, fine.Num, fine.Den)
	}
	return nil
}
