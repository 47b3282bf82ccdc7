package scalar

import (
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
)

type interval = policy.Interval

// compareInterval orders by length: months of thirty days, days of 24 hours.
func compareInterval(a, b interval) int {
	x, y := length(a), length(b)
	return x.Cmp(y)
}

func length(v interval) *big.Int {
	days := big.NewInt(int64(v.Months)*30 + int64(v.Days))
	return days.Mul(days, big.NewInt(microsPerDay)).Add(days, big.NewInt(v.Micros))
}

// newInterval checks the ranges of the parts.
func newInterval(months, days, micros int64, ok bool) (policy.Value, error) {
	if !ok || months != int64(int32(months)) || days != int64(int32(days)) {
		return nil, errInterval
	}
	return interval{Months: int32(months), Days: int32(days), Micros: micros}, nil
}

func addInterval(a, b interval) (policy.Value, error) {
	micros, ok := addInt64(a.Micros, b.Micros)
	return newInterval(int64(a.Months)+int64(b.Months), int64(a.Days)+int64(b.Days), micros, ok)
}

func negateInterval(v interval) (policy.Value, error) {
	return newInterval(-int64(v.Months), -int64(v.Days), -v.Micros, v.Micros != math.MinInt64)
}

func subtractInterval(a, b interval) (policy.Value, error) {
	micros, ok := subInt64(a.Micros, b.Micros)
	return newInterval(int64(a.Months)-int64(b.Months), int64(a.Days)-int64(b.Days), micros, ok)
}

// scaleInterval is v times what factor does to a number. What months and days lose in becoming whole spills into
// days and seconds, rounded to a microsecond, as PostgreSQL does.
func scaleInterval(v interval, factor func(float64) float64) (policy.Value, error) {
	months, days := factor(float64(v.Months)), factor(float64(v.Days))
	for _, part := range []float64{months, days} {
		if !(part >= math.MinInt32 && part <= math.MaxInt32) {
			return nil, errInterval
		}
	}
	wholeMonths, wholeDays := math.Trunc(months), math.Trunc(days)
	spillDays := roundMicro((months - wholeMonths) * 30)
	spillSeconds := roundMicro((days - wholeDays + spillDays - math.Trunc(spillDays)) * 86400)
	if math.Abs(spillSeconds) >= 86400 {
		more := math.Trunc(spillSeconds / 86400)
		wholeDays += more
		spillSeconds -= more * 86400
	}
	wholeDays += math.Trunc(spillDays)
	micros := math.RoundToEven(factor(float64(v.Micros)) + spillSeconds*1e6)
	if !(micros >= math.MinInt64 && micros < math.MaxInt64) {
		return nil, errInterval
	}
	return newInterval(int64(wholeMonths), int64(wholeDays), int64(micros), true)
}

func roundMicro(v float64) float64 { return math.RoundToEven(v*1e6) / 1e6 }

func (r registry) intervals() {
	i, f := policy.IntervalT, policy.Float8
	r.two("+", i, i, on2(addInterval))
	r.two("-", i, i, on2(subtractInterval))
	r.one("-", i, on1(negateInterval))
	times := func(v interval, by float64) (policy.Value, error) {
		return scaleInterval(v, func(x float64) float64 { return x * by })
	}
	r.two("*", i, f, on2(times))
	r.two("*", f, i, on2(func(by float64, v interval) (policy.Value, error) { return times(v, by) }))
	r.two("/", i, f, on2(func(v interval, by float64) (policy.Value, error) {
		if by == 0 {
			return nil, errDivision
		}
		return scaleInterval(v, func(x float64) float64 { return x / by })
	}))
	r.one("justify_hours", i, on1(justifyHours))
	r.one("justify_days", i, on1(justifyDays))
	r.one("justify_interval", i, on1(justifyInterval))
}

// justifyHours turns 24 hours into a day, and gives both the same sign.
func justifyHours(v interval) (policy.Value, error) {
	days := int64(v.Days) + v.Micros/microsPerDay
	micros := v.Micros % microsPerDay
	if days > 0 && micros < 0 {
		micros += microsPerDay
		days--
	} else if days < 0 && micros > 0 {
		micros -= microsPerDay
		days++
	}
	return newInterval(int64(v.Months), days, micros, true)
}

// justifyInterval turns days' worth of time into days and thirty days into a month, and gives all parts one sign.
func justifyInterval(v interval) (policy.Value, error) {
	wholeDays := v.Micros / microsPerDay
	micros := v.Micros - wholeDays*microsPerDay
	days := int64(v.Days) + wholeDays
	months := int64(v.Months) + days/30
	days %= 30
	switch {
	case months > 0 && (days < 0 || days == 0 && micros < 0):
		days += 30
		months--
	case months < 0 && (days > 0 || days == 0 && micros > 0):
		days -= 30
		months++
	}
	switch {
	case days > 0 && micros < 0:
		micros += microsPerDay
		days--
	case days < 0 && micros > 0:
		micros -= microsPerDay
		days++
	}
	return newInterval(months, days, micros, true)
}

// justifyDays turns thirty days into a month.
func justifyDays(v interval) (policy.Value, error) {
	months := int64(v.Months) + int64(v.Days/30)
	days := int64(v.Days % 30)
	if months > 0 && days < 0 {
		days += 30
		months--
	} else if months < 0 && days > 0 {
		days -= 30
		months++
	}
	return newInterval(months, days, v.Micros, true)
}
