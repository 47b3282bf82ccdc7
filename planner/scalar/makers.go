package scalar

import (
	"math"

	"github.com/dpproxy/dpproxy/policy"
)

// makers make dates, moments and intervals of their parts. Parts of an interval may be left out from the last on:
// make_interval(0, 0, 2) is two weeks.
func (r registry) makers() {
	i4, f8 := policy.Int4, policy.Float8
	r.many("make_date", []policy.Type{i4, i4, i4}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		return makeDate(a[0].(int64), a[1].(int64), a[2].(int64))
	})
	parts := []policy.Type{i4, i4, i4, i4, i4, i4, f8}
	for n := 1; n <= len(parts); n++ {
		r.many("make_interval", parts[:n], func(_ *Env, a []policy.Value) (policy.Value, error) { return makeInterval(a) })
	}
	r[keyOf("make_interval", nil)] = &body{none: func(*Env) (policy.Value, error) { return interval{}, nil }}
	moment := []policy.Type{i4, i4, i4, i4, i4, f8}
	r.many("make_timestamp", moment, func(_ *Env, a []policy.Value) (policy.Value, error) { return valued(makeTimestamp(a)) })
	r.many("make_timestamptz", moment, func(env *Env, a []policy.Value) (policy.Value, error) {
		wall, err := makeTimestamp(a)
		if err != nil {
			return nil, err
		}
		return valued(env.toZoned(wall))
	})
	r.many("make_timestamptz", append(moment, policy.Text), func(_ *Env, a []policy.Value) (policy.Value, error) {
		zone, err := zoneNamed(a[6].(string))
		if err != nil {
			return nil, err
		}
		wall, err := makeTimestamp(a)
		if err != nil {
			return nil, err
		}
		return valued(zoned(wall, zone))
	})
	r.stable("make_timestamptz", moment...)
	r.stable("make_timestamptz", append(moment, policy.Text)...)
}

func makeDate(year, month, day int64) (policy.Value, error) {
	bad := fail(stateDateOverflow, "date field value out of range")
	if year < 0 {
		year++ // −1 is 1 BC
	} else if year == 0 {
		return nil, bad
	}
	if month < 1 || month > 12 || day < 1 || day > 31 || year < -5000 || year > 5874898 ||
		day > int64(daysInMonth(int(year), int(month))) {
		return nil, bad
	}
	days := daysOf(civil{int(year), int(month), int(day)})
	if days < leastDate || days > maxDate {
		return nil, errDate
	}
	return policy.Date(days), nil
}

// makeInterval is one of years, months, weeks, days, hours, minutes and seconds. PostgreSQL 15 lets what is too large
// come round, and 17 refuses it.
func makeInterval(a []policy.Value) (policy.Value, error) {
	var parts [6]int64
	for i := range min(len(a), len(parts)) {
		parts[i] = a[i].(int64)
	}
	seconds := 0.0
	if len(a) == 7 {
		seconds = a[6].(float64)
	}
	if math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return nil, errInterval
	}
	months, days := parts[0]*12+parts[1], parts[2]*7+parts[3]
	rest := math.RoundToEven(seconds * 1e6)
	if months != int64(int32(months)) || days != int64(int32(days)) || !(math.Abs(rest) < math.MaxInt64) {
		return nil, unsupported("an interval beyond its type")
	}
	micros, ok := addInt64(parts[4]*microsPerHour+parts[5]*microsPerMinute, int64(rest))
	if !ok {
		return nil, unsupported("an interval beyond its type")
	}
	return interval{Months: int32(months), Days: int32(days), Micros: micros}, nil
}

// makeTimestamp is a day's moment, of year, month, day, hour, minute and seconds; 24:00 is the next day's midnight.
func makeTimestamp(a []policy.Value) (policy.Timestamp, error) {
	day, err := makeDate(a[0].(int64), a[1].(int64), a[2].(int64))
	if err != nil {
		return 0, err
	}
	ofDay, err := clockOf(a[3].(int64), a[4].(int64), a[5].(float64))
	if err != nil {
		return 0, err
	}
	midnight := int64(day.(policy.Date))
	if midnight > maxTimestamp/microsPerDay {
		return 0, errTimestamp
	}
	return checkTimestamp(addInt64(midnight*microsPerDay, ofDay))
}
