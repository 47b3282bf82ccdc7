package rewrite

import (
	"cmp"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// order compares two values of one ordered kind; false: they are not. NaN is above every number.
func order(a, b policy.Value) (int, bool) {
	switch a := a.(type) {
	case int64:
		b, ok := b.(int64)
		return cmp.Compare(a, b), ok
	case policy.Date:
		b, ok := b.(policy.Date)
		return cmp.Compare(a, b), ok
	case policy.Timestamp:
		b, ok := b.(policy.Timestamp)
		return cmp.Compare(a, b), ok
	case policy.Timestamptz:
		b, ok := b.(policy.Timestamptz)
		return cmp.Compare(a, b), ok
	case float64:
		b, ok := b.(float64)
		if b != b {
			return -1, ok
		}
		return cmp.Compare(a, b), ok
	case policy.Numeric:
		b, ok := b.(policy.Numeric)
		return a.Cmp(b), ok
	}
	return 0, false
}

// floorAt is the largest number of that scale that is at most v.
func floorAt(v policy.Numeric, scale int32) policy.Numeric {
	cut := v.Rescale(scale)
	if cut.Cmp(v) > 0 {
		cut.Coefficient = new(big.Int).Sub(cut.Coefficient, big.NewInt(1))
	}
	return cut
}
