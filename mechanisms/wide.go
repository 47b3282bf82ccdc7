package mechanisms

import "math/bits"

// wide is a signed integer of 128 bits: a sum of up to 2^20 observations need not fit in 64.
type wide struct {
	high int64
	low  uint64
}

func (w wide) plus(n int64) wide {
	low, carry := bits.Add64(w.low, uint64(n), 0)
	return wide{w.high + n>>63 + int64(carry), low}
}

func (w wide) add(v wide) wide {
	low, carry := bits.Add64(w.low, v.low, 0)
	return wide{w.high + v.high + int64(carry), low}
}

func (w wide) minus(v wide) wide {
	low, borrow := bits.Sub64(w.low, v.low, 0)
	return wide{w.high - v.high - int64(borrow), low}
}

// cutAt returns w, cut at ±most.
func (w wide) cutAt(most int64) int64 {
	switch n := int64(w.low); {
	case w.high != n>>63 && w.high < 0 || w.high == n>>63 && n < -most:
		return -most
	case w.high != n>>63 || n > most:
		return most
	default:
		return n
	}
}
