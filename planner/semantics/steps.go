package semantics

import (
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

// Ends and strides of series: generate_series(date '2025-01-01', date '2025-01-31', interval '1 week').

// StepsOf is a number, or a moment or interval in microseconds, a month as its fewest days; nil for anything else.
func StepsOf(v policy.Value) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case policy.Numeric:
		return new(big.Rat).SetFrac(v.At(max(0, v.Scale)), Power10(max(0, int(v.Scale)), 1).Num())
	case policy.Date:
		return new(big.Rat).SetInt64(int64(v) * dayMicros)
	case policy.Timestamp:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Timestamptz:
		return new(big.Rat).SetInt64(int64(v))
	case policy.Interval:
		days := big.NewInt(int64(v.Months)*28 + int64(v.Days))
		return new(big.Rat).SetInt(days.Add(days.Mul(days, big.NewInt(dayMicros)), big.NewInt(v.Micros)))
	}
	return nil
}

// IsMoment tells dates and moments.
func IsMoment(t policy.Type) bool {
	return t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ
}
