package noise

import (
	"math"
	"math/big"
	"math/bits"
)

// table draws from a law by looking 15 random bits up; where these do not decide, it takes 48 more and compares 63 with
// certified digits; where these do not decide either, with as many as it takes.
//
// Claim: with fair, independent words the magnitude has exactly the law's probabilities. Proof: let U be uniform, of
// which u is the first 63 binary digits, and G(k) = P(K ≤ k); K is the least k with U < G(k). digits[k] ≤ 2^63·G(k) <
// digits[k]+2 (build, and a test that certifies every entry of many tables). So u < digits[k] proves U < G(k), and u ≥
// digits[k]+2 proves U ≥ G(k); else refine decides, with probability 2^−62 an entry. A slot of the guide is marked as
// decided only where all u that begin with it have the same K by these proofs. Beyond the last entry n−1 a Laplace
// starts anew, K−n having the law of K again (folded: that of the law that is not), and a Gaussian's table ends where
// digits[k]+2 exceeds every u. Limits: which entries are read depends on the value, and so does the time: fixed is for
// whom that matters.
type table struct {
	law    law
	digits []uint64
	guide  []uint16 // by slot: the least k that it may have, doubled, plus 1 where the slot does not decide
}

const (
	slotBits = 15
	restBits = 63 - slotBits
	// maxEntries is what a guide's 15 bits can name.
	maxEntries = 1<<15 - 1
	// cut is where a Laplace's table ends: at P(K > k) < 2^-cut.
	cut = 12
)

// entries returns how many entries the law's table has, about; more than maxEntries mean that it has no table.
func (l law) entries() float64 {
	if l.kind == Laplace {
		return cut*math.Ln2*float64(l.num)/float64(l.den) + 2
	}
	return 9.5*math.Sqrt(float64(l.num)/float64(l.den)) + 2
}

// build makes a law's table; its entries must be at most maxEntries.
//
// The digits are those of 1−T(k)−2^−70 and S(k)−2^−70, where T and S are sums of products of 128-bit fractions, each
// rounded down by less than three units: off by less than n³·16 ≤ 2^49 units of 2^−128, with what n-fold products and
// the divisor add. So what the digits are taken from is below G(k), by less than 2^−69.
func build(l law) *table {
	t := &table{law: l}
	if l.kind == Laplace {
		t.addLaplace()
	} else {
		t.addGaussian()
	}
	t.addGuide()
	return t
}

// fraction is an x in [0, 1) in units of 2^−128.
type fraction = uint128

var almostOne = fraction{math.MaxUint64, math.MaxUint64}

// part returns x·y, too low by less than three units.
func part(x, y fraction) fraction {
	high, low := bits.Mul64(x.high, y.high)
	a, _ := bits.Mul64(x.high, y.low)
	b, _ := bits.Mul64(x.low, y.high)
	low, carry := bits.Add64(low, a, 0)
	high += carry
	low, carry = bits.Add64(low, b, 0)
	return fraction{high + carry, low}
}

func (x uint128) plus(y uint128) (sum uint128, carry uint64) {
	sum.low, carry = bits.Add64(x.low, y.low, 0)
	sum.high, carry = bits.Add64(x.high, y.high, carry)
	return sum, carry
}

// fractionOf returns x/2^128, cut at almostOne.
func fractionOf(x *big.Int) fraction {
	if x.BitLen() > 128 {
		return almostOne
	}
	return fraction{new(big.Int).Rsh(x, 64).Uint64(), new(big.Int).And(x, whole(math.MaxUint64)).Uint64()}
}

// add notes 2^63 times a bound from below.
func (t *table) add(cumulated fraction) {
	const margin = 1 << 58 // 2^−70
	below := fraction{0, 0}
	if floor := (fraction{0, margin}); floor.less(cumulated) {
		below = cumulated.minus(floor)
	}
	t.digits = append(t.digits, below.high>>1)
}

func (t *table) addLaplace() {
	ratio, _ := ExpBounds(whole(t.law.den), whole(t.law.num), 128)
	q, rest := fractionOf(ratio), fractionOf(ratio)
	if t.law.folded {
		sum := new(big.Int).Lsh(big.NewInt(1), 128)
		rest = fractionOf(quotient(new(big.Int).Lsh(ratio, 1), sum.Add(sum, ratio), 128, 0))
	}
	for {
		t.add(almostOne.minus(rest))
		if rest.high>>(64-cut) == 0 {
			return
		}
		rest = part(rest, q)
	}
}

func (t *table) addGaussian() {
	num, den := whole(t.law.num), whole(t.law.den)
	low, _ := ExpBounds(den, new(big.Int).Lsh(num, 1), 128)
	first := fractionOf(low)
	low, _ = ExpBounds(den, num, 128)
	square := fractionOf(low)
	// each goes through the weights of 1, 2, …: the ratio of neighbours falls by exp(−1/σ²).
	each := func(weight fraction, visit func(weight fraction) bool) {
		ratio := first
		for {
			if weight = part(weight, ratio); !visit(weight) {
				return
			}
			ratio = part(ratio, square)
		}
	}
	all, wholes := fraction{}, uint64(1) // the weight of 0; the others count twice in a folded law, once in another
	times := 1
	if t.law.folded {
		times = 2
	}
	each(almostOne, func(weight fraction) bool {
		for range times {
			var carry uint64
			all, carry = all.plus(weight)
			wholes += carry
		}
		return weight != fraction{}
	})
	total := new(big.Int).Lsh(whole(wholes), 128)
	total.Add(total, new(big.Int).Lsh(whole(all.high), 64)).Add(total, whole(all.low))
	cumulated := fractionOf(quotient(new(big.Int).Lsh(big.NewInt(1), 128), total, 128, 0))
	t.add(cumulated)
	each(cumulated, func(weight fraction) bool {
		for range times {
			cumulated, _ = cumulated.plus(weight)
		}
		t.add(cumulated)
		return t.digits[len(t.digits)-1] < 1<<63-2 && weight != fraction{}
	})
}

func (t *table) addGuide() {
	t.guide = make([]uint16, 1<<slotBits)
	k := 0
	for slot := range t.guide {
		from := uint64(slot) << restBits
		for k < len(t.digits) && t.digits[k]+2 <= from {
			k++
		}
		t.guide[slot] = uint16(k) << 1
		if k == len(t.digits) || t.digits[k] < from+1<<restBits {
			t.guide[slot] |= 1
		}
	}
}

// draw returns a magnitude and a fair sign.
func (t *table) draw(r *Reader) (k uint64, negative bool) {
	x := r.short()
	entry := t.guide[x>>1&(1<<slotBits-1)]
	if entry&1 == 0 {
		return uint64(entry >> 1), x&1 == 1
	}
	return t.undecided(r, x>>1), x&1 == 1
}

func (t *table) undecided(r *Reader, slot uint64) uint64 {
	u := slot<<restBits | r.word()>>(64-restBits)
	for k := int(t.guide[slot] >> 1); k < len(t.digits); k++ {
		if u < t.digits[k] {
			return uint64(k)
		}
		if u < t.digits[k]+2 {
			return uint64(refine(r, whole(u), 63, k, t.law.bounds))
		}
	}
	n := uint64(len(t.digits))
	if t.law.kind == Gaussian {
		return uint64(refine(r, whole(u), 63, int(n), t.law.bounds))
	}
	k, _ := geometric(r, t.law.num, t.law.den)
	sum, carry := bits.Add64(n, k, 0)
	return sum | -carry
}

// fill draws signed values, four a word as long as the guide decides.
func (t *table) fill(r *Reader, out []int64) {
	for len(out) >= 4 && r.err == nil {
		w := r.word()
		for i := range 4 {
			x := w >> (16 * i) & 0xffff
			entry := t.guide[x>>1&(1<<slotBits-1)]
			if entry&1 != 0 {
				out[i] = signed(t.undecided(r, x>>1), x&1 == 1)
				continue
			}
			out[i] = int64(uint64(entry>>1)^-(x&1)) + int64(x&1)
		}
		out = out[4:]
	}
	for i := range out {
		k, negative := t.draw(r)
		out[i] = signed(k, negative)
	}
}

// signed returns ±k, cut at the ends of int64: at either end it means that much or more.
func signed(k uint64, negative bool) int64 {
	switch {
	case negative && k > math.MaxInt64:
		return math.MinInt64
	case negative:
		return -int64(k)
	}
	return int64(min(k, math.MaxInt64))
}
