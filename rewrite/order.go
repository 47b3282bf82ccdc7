package rewrite

import (
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

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
