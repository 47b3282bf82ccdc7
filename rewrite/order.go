package rewrite

import (
	"cmp"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// order compares two values of one ordered kind; false means they are not. NaN is above every number.
func order(a, b policy.Value) (int, bool) {
	switch a := a.(type) {
	case int64:
		return orderAs(a, b)
	case policy.Date:
		return orderAs(a, b)
	case policy.Timestamp:
		return orderAs(a, b)
	case policy.Timestamptz:
		return orderAs(a, b)
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

func orderAs[T cmp.Ordered](a T, b policy.Value) (int, bool) {
	v, ok := b.(T)
	return cmp.Compare(a, v), ok
}

// wholeOf is a value of a type whose values are whole numbers, of days or microseconds where they are moments.
func wholeOf(v policy.Value) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case policy.Date:
		return int64(v), true
	case policy.Timestamp:
		return int64(v), true
	case policy.Timestamptz:
		return int64(v), true
	}
	return 0, false
}

// wholeEnds are the ends of a domain of such a type.
func wholeEnds(d *policy.Domain) (least, most int64, ok bool) {
	least, _ = wholeOf(d.Min)
	most, ok = wholeOf(d.Max)
	return least, most, ok
}

// floorAt is the largest number of that scale that is at most v.
func floorAt(v policy.Numeric, scale int32) policy.Numeric {
	cut := v.Rescale(scale)
	if cut.Cmp(v) > 0 {
		cut.Coefficient = new(big.Int).Sub(cut.Coefficient, big.NewInt(1))
	}
	return cut
}
