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

// expMinus128 is true with probability exp(−a/b): whole units one by one, which soon end, then the fraction.
func expMinus128(r *Reader, a, b uint128) bool {
	for ; !a.less(b); a = a.minus(b) {
		if !expMinus(r, 1, 1) {
			return false
		}
	}
	if b.high == 0 {
		return expMinus(r, a.low, b.low)
	}
	for k := uint32(1); r.err == nil; k++ {
		if k > 1 && r.below32(k) != 0 || !r.below128(b).less(a) {
			return k&1 == 1
		}
	}
	return false
}

// below128 returns a uniform integer in [0, n), n ≥ 2^64, by rejection from the next power of two.
func (r *Reader) below128(n uint128) uint128 {
	mask := ^uint64(0) >> bits.LeadingZeros64(n.high)
	for {
		x := uint128{r.word() & mask, r.word()}
		if x.less(n) || r.err != nil {
			return x
		}
	}
}

// expMinusBig is expMinus128 for integers of any size; it uses a up.
func expMinusBig(r *Reader, a, b *big.Int) bool {
	for a.Cmp(b) >= 0 {
		if !expMinus(r, 1, 1) {
			return false
		}
		a.Sub(a, b)
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
