package noise

import (
	"encoding/binary"
	"math/big"
	"math/bits"
)

// uint128 is an unsigned integer of 128 bits: the discrete Gaussian's acceptance test seldom needs more.
type uint128 struct{ high, low uint64 }

func mul128(a, b uint64) uint128 {
	high, low := bits.Mul64(a, b)
	return uint128{high, low}
}

// times returns x·n and whether it fits.
func (x uint128) times(n uint64) (uint128, bool) {
	over, middle := bits.Mul64(x.high, n)
	carry, low := bits.Mul64(x.low, n)
	high, c := bits.Add64(middle, carry, 0)
	return uint128{high, low}, over == 0 && c == 0
}

func (x uint128) less(y uint128) bool { return x.high < y.high || x.high == y.high && x.low < y.low }

func (x uint128) minus(y uint128) uint128 {
	low, borrow := bits.Sub64(x.low, y.low, 0)
	return uint128{x.high - y.high - borrow, low}
}

// expMinus128 is true with probability exp(−a/b): whole units at once, then the fraction by trials with probabilities
// (a/b)/1, (a/b)/2, …, whose number of successes before the first failure is even with the fraction's probability: the
// alternating series of exp.
func expMinus128(r *Reader, a, b uint128) bool {
	if !a.less(b) {
		if b.high != 0 || a.high >= b.low {
			return expMinusBig(r, a.big(), b.big())
		}
		n, rest := bits.Div64(a.high, a.low, b.low)
		if !lasts(r, n) {
			return false
		}
		a = uint128{0, rest}
	}
	if a == (uint128{}) {
		return true
	}
	for k := uint32(1); r.err == nil; k++ {
		if k > 1 && r.below(uint64(k)) != 0 || !less(r, a, b) {
			return k&1 == 1
		}
	}
	return false
}

// less is true with probability a/b, a < b. It compares 16 bits of a uniform U, v/2^16 ≤ U < (v+1)/2^16, with what the
// leading 47 bits of b, and as far as them those of a, say of a/b: between a'/(b'+1) and (a'+1)/b'. Where that does not
// decide, once in some 2^15, what is left of U is compared with a/b·2^16 − v.
func less(r *Reader, a, b uint128) bool {
	drop := uint(max(0, b.length()-47))
	top, bottom := a.shifted(drop), b.shifted(drop)
	v := r.short()
	switch {
	case v*bottom >= (top+1)<<16:
		return false
	case (v+1)*(bottom+1) <= top<<16:
		return true
	}
	divisor := b.big()
	rest := a.big()
	rest.Lsh(rest, 16)
	rest.Sub(rest, new(big.Int).Mul(whole(v), divisor))
	return rest.Sign() > 0 && (rest.Cmp(divisor) >= 0 || r.belowBig(divisor).Cmp(rest) < 0)
}

func (x uint128) length() int {
	if x.high != 0 {
		return 64 + bits.Len64(x.high)
	}
	return bits.Len64(x.low)
}

// shifted returns ⌊x/2^n⌋, which must be below 2^64.
func (x uint128) shifted(n uint) uint64 {
	if n >= 64 {
		return x.high >> (n - 64)
	}
	return x.high<<(64-n) | x.low>>n
}

func (x uint128) big() *big.Int {
	n := new(big.Int).Lsh(whole(x.high), 64)
	return n.Add(n, whole(x.low))
}

// expMinusBig is expMinus128 for integers of any size; it uses a up.
func expMinusBig(r *Reader, a, b *big.Int) bool {
	n := new(big.Int)
	for n.QuoRem(a, b, a); n.BitLen() > 32; n.Sub(n, big.NewInt(1<<32)) {
		if !lasts(r, 1<<32) {
			return false
		}
	}
	if n.Sign() > 0 && !lasts(r, n.Uint64()) {
		return false
	}
	for k := uint32(1); r.err == nil; k++ {
		if k > 1 && r.below32(k) != 0 || r.belowBig(b).Cmp(a) >= 0 {
			return k&1 == 1
		}
	}
	return false
}

// belowBig returns a uniform integer in [0, n), by rejection from the next power of two.
func (r *Reader) belowBig(n *big.Int) *big.Int {
	length := n.BitLen()
	text := make([]byte, (length+63)/64*8)
	for {
		for i := 0; i < len(text); i += 8 {
			binary.BigEndian.PutUint64(text[i:], r.word())
		}
		x := new(big.Int).SetBytes(text)
		x.Rsh(x, uint(len(text)*8-length))
		if x.Cmp(n) < 0 || r.err != nil {
			return x
		}
	}
}
