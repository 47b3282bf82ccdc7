package scalar

import (
	"cmp"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Compare orders two non-NULL values of one type as ORDER BY does (text by code point): −1, 0, 1.
func Compare(_ policy.Type, a, b policy.Value) int {
	switch a := a.(type) {
	case bool:
		switch b := b.(bool); {
		case a == b:
			return 0
		case b:
			return -1
		}
		return 1
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return compareFloat(a, b.(float64))
	case string:
		return strings.Compare(a, b.(string))
	case policy.Numeric:
		return compareNumeric(a, b.(policy.Numeric))
	case policy.Date:
		return cmp.Compare(a, b.(policy.Date))
	case policy.Timestamp:
		return cmp.Compare(a, b.(policy.Timestamp))
	case policy.Timestamptz:
		return cmp.Compare(a, b.(policy.Timestamptz))
	case policy.Time:
		return cmp.Compare(a, b.(policy.Time))
	case policy.Interval:
		return compareInterval(a, b.(policy.Interval))
	}
	return 0
}

// comparisonOutcomes says for each operator what it answers when the left side is less, equal, greater.
var comparisonOutcomes = map[string][3]bool{
	"<": {true, false, false}, "<=": {true, true, false}, "=": {false, true, false},
	"<>": {true, false, true}, ">=": {false, true, true}, ">": {false, false, true},
}

func (r registry) comparisons() {
	for name, outcomes := range comparisonOutcomes {
		for _, t := range []policy.Type{policy.Bool, policy.Text, policy.Bpchar, policy.UUID, policy.NumericType, policy.DateType,
			policy.TimestampT, policy.TimestampTZ, policy.IntervalT, policy.TimeT} {
			r.two(name, t, t, func(_ *Env, a, b policy.Value) (policy.Value, error) {
				return outcomes[Compare(t, a, b)+1], nil
			})
		}
		for _, a := range integerTypes {
			for _, b := range integerTypes {
				r.two(name, a, b, on2(func(a, b int64) (policy.Value, error) {
					return outcomes[cmp.Compare(a, b)+1], nil
				}))
			}
		}
		for _, a := range []policy.Type{policy.Float4, policy.Float8} {
			for _, b := range []policy.Type{policy.Float4, policy.Float8} {
				r.two(name, a, b, on2(func(a, b float64) (policy.Value, error) {
					return outcomes[compareFloat(a, b)+1], nil
				}))
			}
		}
		r.dateComparisons(name, outcomes)
	}
}

// dateComparisons compares dates, timestamps and timestamps with a zone with one another.
func (r registry) dateComparisons(name string, outcomes [3]bool) {
	types := []policy.Type{policy.DateType, policy.TimestampT, policy.TimestampTZ}
	for _, a := range types {
		for _, b := range types {
			if a == b {
				continue
			}
			zoned := a == policy.TimestampTZ || b == policy.TimestampTZ
			r.two(name, a, b, func(env *Env, x, y policy.Value) (policy.Value, error) {
				left, err := env.instant(x, zoned)
				if err != nil {
					return nil, err
				}
				right, err := env.instant(y, zoned)
				if err != nil {
					return nil, err
				}
				return outcomes[cmp.Compare(left, right)+1], nil
			})
			if zoned {
				r.stable(name, a, b)
			}
		}
	}
}

// instant is the microsecond of a date or timestamp: of UTC, or of the wall clock where none has a zone.
func (env *Env) instant(v policy.Value, zoned bool) (int64, error) {
	switch v := v.(type) {
	case policy.Date:
		local, err := dateToTimestamp(v)
		if err != nil || !zoned {
			return int64(local), err
		}
		at, err := env.toZoned(local)
		return int64(at), err
	case policy.Timestamp:
		if !zoned {
			return int64(v), nil
		}
		at, err := env.toZoned(v)
		return int64(at), err
	case policy.Timestamptz:
		return int64(v), nil
	}
	return 0, nil
}
