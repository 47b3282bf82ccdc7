package scalar

import (
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

func (r registry) truncations() {
	t, ts, tz, iv := policy.Text, policy.TimestampT, policy.TimestampTZ, policy.IntervalT
	r.two("date_trunc", t, ts, on2(func(name string, v policy.Timestamp) (policy.Value, error) {
		unit := fieldNamed(name)
		out, err := truncateTimestamp(unit, v)
		if err == errNoField {
			return nil, fieldError(unit, ts)
		}
		return valued(out, err)
	}))
	r.two("date_trunc", t, tz, func(env *Env, name, v policy.Value) (policy.Value, error) {
		return truncateZoned(fieldNamed(name.(string)), v.(policy.Timestamptz), env.zone())
	})
	r.stable("date_trunc", t, tz)
	r.many("date_trunc", []policy.Type{t, tz, t}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		zone, err := zoneNamed(a[2].(string))
		if err != nil {
			return nil, err
		}
		return truncateZoned(fieldNamed(a[0].(string)), a[1].(policy.Timestamptz), zone)
	})
	r.stable("date_trunc", t, tz, t)
	r.many("date_bin", []policy.Type{iv, ts, ts}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		micros, err := binned(a[0].(interval), int64(a[1].(policy.Timestamp)), int64(a[2].(policy.Timestamp)))
		if err != nil {
			return nil, err
		}
		return valued(checkTimestamp(micros, true))
	})
	r.many("date_bin", []policy.Type{iv, tz, tz}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		micros, err := binned(a[0].(interval), int64(a[1].(policy.Timestamptz)), int64(a[2].(policy.Timestamptz)))
		if err != nil {
			return nil, err
		}
		at, err := checkTimestamp(micros, true)
		return valued(policy.Timestamptz(at), err)
	})
	r.two("date_trunc", t, iv, on2(func(name string, v interval) (policy.Value, error) {
		return truncateInterval(fieldNamed(name), v)
	}))
}

// binned is the beginning of the stride that holds a time, counted from origin on.
func binned(stride interval, at, origin int64) (int64, error) {
	days, ok := mulInt64(int64(stride.Days), microsPerDay)
	size, fits := addInt64(days, stride.Micros)
	switch {
	case stride.Months != 0:
		return 0, fail(stateUnsupported, "timestamps cannot be binned into intervals containing months or years")
	case !ok || !fits:
		return 0, errInterval
	case size <= 0:
		return 0, fail(stateDateOverflow, "stride must be greater than zero")
	}
	away, ok := addInt64(at, -origin)
	if !ok {
		return 0, errInterval
	}
	out, ok := addInt64(origin, FloorDiv(away, size)*size)
	if !ok {
		return 0, errTimestamp
	}
	return out, nil
}

var clockUnits = map[string]int64{"microsecond": 1, "millisecond": 1000, "second": microsPerSecond,
	"minute": microsPerMinute, "hour": microsPerHour}

// truncateTimestamp is the beginning of the unit that holds t.
func truncateTimestamp(unit string, t policy.Timestamp) (policy.Timestamp, error) {
	days, ofDay := split(int64(t))
	if size, ok := clockUnits[unit]; ok {
		return timestampOf(days, ofDay-ofDay%size)
	}
	c := civilOf(days)
	switch unit {
	case "day":
		return timestampOf(days, 0)
	case "week":
		return timestampOf(days-(days+3-7*FloorDiv(days+3, 7)), 0)
	case "month":
		c.day = 1
	case "quarter":
		c.month, c.day = (c.month-1)/3*3+1, 1
	case "year":
		c.month, c.day = 1, 1
	case "decade":
		c = civil{int(FloorDiv(int64(c.year), 10)) * 10, 1, 1}
	case "century":
		c = civil{int(FloorDiv(int64(c.year)-1, 100))*100 + 1, 1, 1}
	case "millennium":
		c = civil{int(FloorDiv(int64(c.year)-1, 1000))*1000 + 1, 1, 1}
	default:
		return 0, errNoField
	}
	return timestampOf(daysOf(c), 0)
}

// truncateZoned truncates the wall clock of a zone. Below a day the offset stays, so that the hour that a clock shows
// twice stays two hours.
func truncateZoned(unit string, t policy.Timestamptz, zone *time.Location) (policy.Value, error) {
	wall, err := local(t, zone)
	if err != nil {
		return nil, err
	}
	cut, err := truncateTimestamp(unit, wall)
	if err == errNoField {
		return nil, fieldError(unit, policy.TimestampTZ)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := clockUnits[unit]; ok {
		return t - policy.Timestamptz(wall-cut), nil
	}
	return valued(zoned(cut, zone))
}

func truncateInterval(unit string, v interval) (policy.Value, error) {
	if size, ok := clockUnits[unit]; ok {
		v.Micros -= v.Micros % size
		return v, nil
	}
	v.Micros = 0
	switch unit {
	case "day":
		return v, nil
	case "month":
		return interval{Months: v.Months}, nil
	case "quarter":
		return interval{Months: v.Months - v.Months%3}, nil
	case "year":
		return interval{Months: v.Months - v.Months%12}, nil
	case "decade":
		return interval{Months: v.Months - v.Months%120}, nil
	case "century":
		return interval{Months: v.Months - v.Months%1200}, nil
	case "millennium":
		return interval{Months: v.Months - v.Months%12000}, nil
	}
	return nil, fieldError(unit, policy.IntervalT)
}
