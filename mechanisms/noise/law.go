package noise

import "math/big"

// law is the distribution of a magnitude, K ≥ 0.
//
//	Laplace:  P(K = k) ∝ exp(−k·den/num)
//	Gaussian: P(K = k) ∝ exp(−k²·den/(2·num))
//
// A folded law is that of |noise|: 0 has half of the weight, since it has one sign only.
type law struct {
	kind     Kind
	num, den uint64
	folded   bool
}

// bounds returns integers low ≤ 2^bits·P(K ≤ k) ≤ high, no further apart than a few units.
func (l law) bounds(k int, bits uint) (low, high *big.Int) {
	guarded := bits + 64 // the sums and quotients below lose less than that
	if l.kind == Laplace {
		return l.laplaceBounds(k, bits, guarded)
	}
	// S is the sum of the weights up to k, Z of all. Z is cut where a weight is at most 2^-guarded; there the next ones
	// fall by exp(−1/σ) each at least, so that the rest is at most σ+1 < 2^33 such units.
	var sum, total [2]*big.Int
	for i := range total {
		total[i] = new(big.Int).Lsh(big.NewInt(1), guarded)
		if l.folded {
			total[i].Rsh(total[i], 1)
		}
		sum[i] = total[i]
	}
	twice := new(big.Int).Lsh(whole(l.num), 1)
	for j := int64(1); ; j++ {
		square := new(big.Int).Mul(big.NewInt(j), big.NewInt(j))
		low, high := ExpBounds(square.Mul(square, whole(l.den)), twice, guarded)
		total = [2]*big.Int{new(big.Int).Add(total[0], low), new(big.Int).Add(total[1], high)}
		if j <= int64(k) {
			sum = total
		}
		if j >= int64(k) && high.Cmp(big.NewInt(1)) <= 0 {
			break
		}
	}
	total[1].Add(total[1], new(big.Int).Lsh(big.NewInt(1), 33))
	return quotient(sum[0], total[1], bits, 0), quotient(sum[1], total[0], bits, 1)
}

// laplaceBounds: P(K > k) = q^(k+1), and folded 2·q^(k+1)/(1+q), with q = exp(−den/num).
func (l law) laplaceBounds(k int, bits, guarded uint) (low, high *big.Int) {
	exponent := new(big.Int).Mul(big.NewInt(int64(k)+1), whole(l.den))
	least, most := ExpBounds(exponent, whole(l.num), guarded)
	if l.folded {
		one := new(big.Int).Lsh(big.NewInt(1), guarded)
		small, large := ExpBounds(whole(l.den), whole(l.num), guarded)
		least = quotient(least.Lsh(least, 1), large.Add(large, one), guarded, 0)
		most = quotient(most.Lsh(most, 1), small.Add(small, one), guarded, 1)
	}
	one := new(big.Int).Lsh(big.NewInt(1), guarded)
	low = new(big.Int).Sub(one, most)
	high = new(big.Int).Sub(one, least)
	return low.Rsh(low, guarded-bits), high.Rsh(high, guarded-bits).Add(high, big.NewInt(1))
}

// quotient returns ⌊2^bits·a/b⌋ + more.
func quotient(a, b *big.Int, bits uint, more int64) *big.Int {
	q := new(big.Int).Lsh(a, bits)
	return q.Quo(q, b).Add(q, big.NewInt(more))
}

// ExpBounds returns integers low ≤ 2^bits·exp(−a/b) ≤ high, at most three apart.
//
// The argument is halved h times, to x < 2^−8; Taylor's series, in units of 2^−p, takes at most p/8+2 terms, each lower
// by less than two units than it should be, as x is by less than one: the sum is within p+2 units. Each of h squarings
// of a value of at most 1 doubles the error and adds at most two units: within (p+4)·2^h at the end, and p is bits +
// h + 24.
func ExpBounds(a, b *big.Int, bits uint) (low, high *big.Int) {
	if a.Cmp(new(big.Int).Mul(b, big.NewInt(int64(bits)))) > 0 {
		return new(big.Int), big.NewInt(1)
	}
	h := uint(new(big.Int).Quo(a, b).BitLen()) + 8
	p := bits + h + 24
	x := new(big.Int).Lsh(a, p-h)
	x.Quo(x, b)
	term := new(big.Int).Lsh(big.NewInt(1), p)
	value := new(big.Int).Set(term)
	for n := int64(1); term.Sign() > 0; n++ {
		term.Mul(term, x).Rsh(term, p).Quo(term, big.NewInt(n))
		if n&1 == 1 {
			value.Sub(value, term)
		} else {
			value.Add(value, term)
		}
	}
	for range h {
		value.Mul(value, value).Rsh(value, p)
	}
	off := new(big.Int).Lsh(big.NewInt(int64(p)+4), h)
	low, high = new(big.Int).Sub(value, off), new(big.Int).Add(value, off)
	if low.Sign() < 0 {
		low.SetInt64(0)
	}
	return low.Rsh(low, p-bits), high.Rsh(high, p-bits).Add(high, big.NewInt(1))
}

// refine returns the least k ≥ from with U < P(K ≤ k), where U is uniform, u holds its first known digits, and U is
// known to be at least P(K ≤ from−1). It draws digits as far as it needs them.
func refine(r *Reader, u *big.Int, known uint, from int, bounds func(k int, bits uint) (low, high *big.Int)) int {
	for k := from; r.err == nil; {
		switch low, high := bounds(k, known); {
		case u.Cmp(low) < 0:
			return k
		case u.Cmp(high) >= 0:
			k++
		default:
			u = new(big.Int).Lsh(u, 64)
			u.Add(u, whole(r.word()))
			known += 64
		}
	}
	return from
}
