package noise

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"sync"
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
	shape    shape // Gaussian: of its proposals
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
	if kind == Gaussian {
		d.shape = shapeOf(d.num, d.den, maxLevel)
	}
	return d, nil
}

// AtLeast returns a quotient of numbers of at most 62 bits that is at least x, and at most 2^-29 of it more, and whether
// there is one.
func AtLeast(x *big.Rat) (num, den int64, fits bool) {
	n, d := new(big.Int).Set(x.Num()), new(big.Int).Set(x.Denom())
	if excess := max(n.BitLen(), d.BitLen()) - 62; excess > 0 {
		divisor := new(big.Int).Lsh(big.NewInt(1), uint(excess))
		if n.BitLen()-d.BitLen() > 31 {
			divisor.Set(d) // a whole number, the next: 2^-31 more at most
		}
		n.Add(n, divisor).Sub(n, big.NewInt(1)).Quo(n, divisor)
		d.Quo(d, divisor)
	}
	return n.Int64(), d.Int64(), n.IsInt64() && d.IsInt64() && d.Sign() != 0
}

// Valid reports whether d was made by New.
func (d Distribution) Valid() bool { return d.kind != 0 }

// rootOf returns ⌊√n⌋, which is also ⌊√x⌋ for every x in [n, n+1).
func rootOf(n *big.Int) uint64 { return new(big.Int).Sqrt(n).Uint64() }

// Sample draws from the distribution, clipped to the int64 range: a result at either end means that much or more. The
// caller must look at r.Err() after the last draw and before it uses any.
//
// Claim: with fair, independent words the result has exactly the distribution's probabilities, clipped. The proofs
// are at geometric and gaussian; every step compares integers. Limits: the time and the words taken depend on the
// result, but from a source of FixedWork. Fill is faster for many.
func (d Distribution) Sample(r *Reader) int64 {
	switch {
	case !d.Valid():
		panic("noise: sample of a distribution that New did not make")
	case r.fixed:
		return fixedOf(d).sample(r)
	case d.kind == Laplace:
		return d.laplace(r)
	}
	return d.gaussian(r)
}

// laplace gives a geometric with ratio exp(−1/t) a fair sign; minus zero refused makes it two-sided.
func (d Distribution) laplace(r *Reader) int64 {
	for {
		magnitude, negative := geometric(r, d.num, d.den)
		if r.err != nil {
			return 0
		}
		if !negative || magnitude != 0 {
			return signed(magnitude, negative)
		}
	}
}

const (
	stepBits = 6
	steps    = 1 << stepBits
)

// unit is the geometric with ratio exp(−1/64).
var unit = sync.OnceValue(func() *table { return build(law{kind: Laplace, num: steps, den: 1}) })

// geometric draws k ≥ 0 with P(k) ∝ exp(−k·den/num), clipped to the uint64 range, and a fair sign.
//
// The idea is that of Canonne, Kamath, Steinke 2020 (algorithm 2), in finer steps and with a table of constants: with u
// uniform below num and kept with probability exp(−u/(64·num)), and j geometric with ratio exp(−1/64), the number
// u + num·j is geometric with ratio exp(−1/(64·num)). Its quotient by 64·den is geometric with ratio exp(−den/num).
func geometric(r *Reader, num, den uint64) (k uint64, negative bool) {
	j, negative := unit().draw(r)
	u := uint64(0)
	if num > 1 {
		u = r.below(num)
		for r.short()>>(16-stepBits) == 0 && !expMinusRest(r, u, num) {
			u = r.below(num)
		}
	}
	high, low := bits.Mul64(num, j)
	low, carry := bits.Add64(low, u, 0)
	high += carry
	low = high<<(64-stepBits) | low>>stepBits
	high >>= stepBits
	if high >= den {
		return math.MaxUint64, negative
	}
	k, _ = bits.Div64(high, low, den)
	return k, negative
}

// expMinusRest goes on with exp(−u/(64·num)) where the first trial of expMinus, with probability u/(64·num), has had
// the part 1/64 of its success.
func expMinusRest(r *Reader, u, num uint64) bool {
	for k := uint32(1); r.err == nil; k++ {
		if k > 1 && r.below(uint64(steps*k)) != 0 || r.below(num) >= u {
			return k&1 == 1
		}
	}
	return true
}

// lasts is true with probability exp(−n): j ≥ 0 of the ratio exp(−1/64) is 64·n or more with just that. Its work does
// not grow with n, but by one more draw where n is above 2^32, and one of j so large has come.
func lasts(r *Reader, n uint64) bool {
	for ; n > 1<<32; n -= 1 << 32 {
		if !lasts(r, 1<<32) {
			return false
		}
	}
	j, _ := unit().draw(r)
	return j>>stepBits >= n
}

// shape is what a Gaussian's proposals are made of: j ≥ 0 with P(j) ∝ exp(−j²/(2v)), v = 2^level/8, spread over width
// integers each. width²·v is at least the variance, and little more where that is above 1/8.
type shape struct {
	width uint64
	level uint8
}

const eighth = 8

// shapeOf returns the shape with the least width²·v, the level at most most.
func shapeOf(num, den uint64, most uint8) shape {
	best := shape{}
	for level := range most + 1 {
		if level+1 < most && num/den > 1<<level/eighth {
			continue // two levels are enough where the width is more than 1
		}
		s := shape{uint64(1), level}
		if !s.covers(num, den) {
			s.width = rootOf(quotient(whole(num), new(big.Int).Lsh(whole(den), uint(level)), 3, 0)) + 1
			if less := (shape{s.width - 1, level}); less.covers(num, den) {
				s = less
			}
		}
		if best.width == 0 || s.size().less(best.size()) {
			best = s
		}
	}
	return best
}

// size returns 8·width²·v.
func (s shape) size() uint128 { return mul128(s.width*s.width, 1<<s.level) }

// covers reports whether width²·v ≥ num/den.
func (s shape) covers(num, den uint64) bool {
	size, fits := s.size().times(den)
	return !fits || !size.less(mul128(num, eighth))
}

// law is that of the proposals' j.
func (s shape) law() law { return law{kind: Gaussian, num: 1 << s.level, den: eighth} }

const maxLevel = 16

// halves are the tables of the proposals.
var halves = func() (all [maxLevel + 1]func() *table) {
	for level := range all {
		all[level] = sync.OnceValue(func() *table { return build(shape{1, uint8(level)}.law()) })
	}
	return all
}()

// gaussian: y = width·j + u, u uniform below width, is proposed with a probability ∝ exp(−j²/(2v)), whatever u is, and
// kept with probability exp(−(y²/σ² − j²/v)/2): the exponent is not positive, as y ≥ width·j and width² ≥ σ²/v. What is
// kept has probabilities ∝ exp(−y²/(2σ²)), y ≥ 0. A fair sign, minus zero refused, makes it two-sided. (Rejection from
// a fixed discrete Gaussian, spread out, is Karney's idea, 2016.)
func (d Distribution) gaussian(r *Reader) int64 {
	proposals := halves[d.shape.level]()
	for {
		j, negative := proposals.draw(r)
		u := uint64(0)
		if d.shape.width > 1 {
			u = r.below(d.shape.width)
		}
		high, y := bits.Mul64(d.shape.width, j)
		y, carry := bits.Add64(y, u, 0)
		if r.err != nil {
			return 0
		}
		if high|carry != 0 {
			y = math.MaxUint64
		}
		if d.shape.keep(r, d, y, j) && (!negative || y != 0) {
			return signed(y, negative)
		}
	}
}

// keep is true with probability exp(−a/b), a = y²·den·2^level − 8·j²·num, b = num·2^(level+1).
func (s shape) keep(r *Reader, d Distribution, y, j uint64) bool {
	if a, b, ok := s.ratio128(d, y, j); ok {
		return expMinus128(r, a, b)
	}
	a, b := s.ratio(d, y, j)
	return expMinusBig(r, a, b)
}

func (s shape) ratio(d Distribution, y, j uint64) (a, b *big.Int) {
	a = new(big.Int).Mul(whole(y), whole(y))
	a.Mul(a, whole(d.den)).Lsh(a, uint(s.level))
	square := new(big.Int).Mul(whole(j), whole(eighth*j))
	a.Sub(a, square.Mul(square, whole(d.num)))
	return a, new(big.Int).Lsh(whole(d.num), uint(s.level)+1)
}

// ratio128 returns a and b where they and their parts fit.
func (s shape) ratio128(d Distribution, y, j uint64) (a, b uint128, ok bool) {
	first, fits := mul128(y, y).times(d.den)
	first, fit := first.times(1 << s.level)
	if !fits || !fit || j>>30 != 0 {
		return a, b, false
	}
	return first.minus(mul128(eighth*j*j, d.num)), mul128(d.num, 2<<s.level), true
}

func whole(n uint64) *big.Int { return new(big.Int).SetUint64(n) }
