package predicate

import (
	"cmp"

	"github.com/dpproxy/dpproxy/policy"
)

// Order compares two values of one ordered kind; false means they are not. NaN is above every number.
func Order(a, b policy.Value) (int, bool) {
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
		return cmp.Compare(-b, -a), ok // which takes NaN for the least
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
