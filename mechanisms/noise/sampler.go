package noise

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// Kind names a distribution of the package.
type Kind uint8

// The kinds. The zero value is invalid.
const (
	Laplace  Kind = 1 + iota // P(k) = (1−q)/(1+q)·q^|k|, q = exp(−1/t), t = Num/Den
	Gaussian                 // P(k) ∝ exp(−k²/(2σ²)), σ² = Num/Den
)

// Most is the largest parameter: of the scale t, and of the deviation σ. Up to it a noise of 2^62 is less likely than
// exp(−2^20).
const Most = 1 << 40

// Distribution is a noise distribution with a checked rational parameter. The zero value is invalid.
type Distribution struct {
	kind     Kind
	num, den uint64
	step     uint64 // Gaussian: the integer scale ⌊σ⌋+1 of its proposals
}

// New checks the parameter num/den of a distribution.
func New(kind Kind, num, den int64) (Distribution, error) {
	name := "scale"
	switch kind {
	case Laplace:
	case Gaussian:
		name = "variance"
	default:
		return Distribution{}, fmt.Errorf("noise kind is %d, must be discrete Laplace or discrete Gaussian", kind)
	}
	if num <= 0 || den <= 0 {
		return Distribution{}, fmt.Errorf("noise %s is %d/%d, must have a numerator and a denominator greater than 0", name, num, den)
	}
	d := Distribution{kind: kind, num: uint64(num), den: uint64(den)}
	whole := d.num / d.den
	if kind == Laplace && whole >= Most {
		return Distribution{}, fmt.Errorf("noise scale is %d/%d, must be below %d", num, den, int64(Most))
	}
	d.step = rootOf(whole) + 1
	return d, nil
}

// Valid tells whether d was made by New.
func (d Distribution) Valid() bool { return d.kind != 0 }

// rootOf returns ⌊√n⌋, which is also ⌊√x⌋ for every x in [n, n+1).
func rootOf(n uint64) uint64 { return new(big.Int).Sqrt(new(big.Int).SetUint64(n)).Uint64() }

// Sample draws from the distribution, clipped to the int64 range: a result at either end means that much or more. The
// caller must look at r.Err() after the last draw and before it uses any.
//
// Claim: with fair, independent words the result has exactly the distribution's probabilities, clipped.
// Source: Canonne, Kamath, Steinke 2020, algorithms 1 to 3. Every step compares integers.
func (d Distribution) Sample(r *Reader) int64 {
	switch d.kind {
	case Laplace:
		return d.laplace(r)
	case Gaussian:
		return d.gaussian(r)
	}
	panic("noise: sample of a distribution that New did not make")
}

// laplace: u + num·v, with u uniform below num and kept with probability exp(−u/num), and v geometric with ratio
// exp(−1), is geometric with ratio exp(−1/num). Its quotient by den is geometric with ratio exp(−den/num) = exp(−1/t).
// A fair sign, minus zero refused, makes it two-sided.
func (d Distribution) laplace(r *Reader) int64 {
	for {
		magnitude := geometric(r, d.num, d.den)
		negative := r.coin()
		if r.err != nil {
			return 0
		}
		if negative && magnitude == 0 {
			continue
		}
		switch {
		case magnitude > math.MaxInt64 && negative:
			return math.MinInt64
		case magnitude > math.MaxInt64:
			return math.MaxInt64
		case negative:
			return -int64(magnitude)
		}
		return int64(magnitude)
	}
}

// geometric draws k ≥ 0 with P(k) ∝ exp(−k·den/num), clipped to the uint64 range.
func geometric(r *Reader, num, den uint64) uint64 {
	u := r.below(num)
	for !expMinus(r, u, num) {
		if r.err != nil {
			return 0
		}
		u = r.below(num)
	}
	v := uint64(0)
	for expMinus(r, 1, 1) {
		v++
	}
	high, low := bits.Mul64(num, v)
	low, carry := bits.Add64(low, u, 0)
	high += carry
	if high >= den {
		return math.MaxUint64
	}
	quotient, _ := bits.Div64(high, low, den)
	return quotient
}

// expMinus is true with probability exp(−a/b), for a ≤ b. The number of successes before the first failure of trials
// with probabilities (a/b)/1, (a/b)/2, … is even with that probability: the alternating series of exp.
func expMinus(r *Reader, a, b uint64) bool {
	if a == 0 {
		return true
	}
	for k := uint32(1); r.err == nil; k++ {
		if k > 1 && r.below32(k) != 0 {
			return k&1 == 1
		}
		if a < b && r.below(b) >= a {
			return k&1 == 1
		}
	}
	return false
}

// gaussian: y discrete Laplace of scale s = ⌊σ⌋+1 is kept with probability exp(−(|y|−σ²/s)²/(2σ²)), and so has
// probabilities ∝ exp(−|y|/s − (|y|−σ²/s)²/(2σ²)) ∝ exp(−y²/(2σ²)).
func (d Distribution) gaussian(r *Reader) int64 {
	proposal := Distribution{kind: Laplace, num: d.step, den: 1}
	for {
		y := proposal.laplace(r)
		if r.err != nil {
			return 0
		}
		if d.keep(r, y) {
			return y
		}
	}
}

// keep is true with probability exp(−a²/b), a = |y|·den·s − num, b = 2·num·den·s².
func (d Distribution) keep(r *Reader, y int64) bool {
	size := uint64(y)
	if y < 0 {
		size = -size
	}
	if a, b, ok := d.ratio128(size); ok {
		return expMinus128(r, a, b)
	}
	s, n, den := whole(d.step), whole(d.num), whole(d.den)
	a := new(big.Int).Mul(whole(size), den)
	a.Mul(a, s).Sub(a, n)
	a.Mul(a, a)
	b := n.Lsh(n, 1)
	b.Mul(b, den).Mul(b, s).Mul(b, s)
	return expMinusBig(r, a, b)
}

// ratio128 returns a² and b where both fit.
func (d Distribution) ratio128(size uint64) (squared, b uint128, ok bool) {
	over1, ds := bits.Mul64(d.den, d.step)
	over2, first := bits.Mul64(size, ds)
	b, fits := mul128(d.num, d.step).times(ds)
	if over1|over2 != 0 || !fits || b.high>>63 != 0 {
		return squared, b, false
	}
	b = uint128{b.high<<1 | b.low>>63, b.low << 1}
	distance := max(first, d.num) - min(first, d.num)
	squared.high, squared.low = bits.Mul64(distance, distance)
	return squared, b, true
}

func whole(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
