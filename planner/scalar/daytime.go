package scalar

import (
	"math"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// The type time: microseconds since midnight. 24:00 is one, a day's end, which no timestamp shows.
//
//	visited_at::time BETWEEN '09:00' AND '17:00', date_trunc('hour', at)::time, time '23:00' + interval '2 hours'  ⇒  01:00:00

func (r registry) dayTimes() {
	d, t, iv, i4 := policy.DateType, policy.TimeT, policy.IntervalT, policy.Int4
	r.two("+", t, iv, on2(func(v policy.Time, by interval) (policy.Value, error) { return withinDay(int64(v) + by.Micros), nil }))
	r.two("-", t, iv, on2(func(v policy.Time, by interval) (policy.Value, error) { return withinDay(int64(v) - by.Micros), nil }))
	r.two("+", iv, t, on2(func(by interval, v policy.Time) (policy.Value, error) { return withinDay(int64(v) + by.Micros), nil }))
	r.two("-", t, t, on2(func(a, b policy.Time) (policy.Value, error) { return interval{Micros: int64(a - b)}, nil }))
	r.two("+", d, t, on2(func(day policy.Date, v policy.Time) (policy.Value, error) { return atTime(day, v) }))
	r.two("+", t, d, on2(func(v policy.Time, day policy.Date) (policy.Value, error) { return atTime(day, v) }))
	r.two("timestamp", d, t, on2(atTime))
	r.many("make_time", []policy.Type{i4, i4, policy.Float8}, func(_ *Env, a []policy.Value) (policy.Value, error) {
		micros, err := clockOf(a[0].(int64), a[1].(int64), a[2].(float64))
		return valued(policy.Time(micros), err)
	})
}

// withinDay is a time that begins again at each midnight; the days and months of an interval do not move it.
func withinDay(micros int64) policy.Time {
	return policy.Time(micros - FloorDiv(micros, microsPerDay)*microsPerDay)
}

// atTime is a time of a day.
func atTime(day policy.Date, v policy.Time) (policy.Value, error) {
	midnight, err := dateToTimestamp(day)
	if err != nil {
		return nil, err
	}
	return valued(checkTimestamp(addInt64(int64(midnight), int64(v))))
}

// clockOf are the microseconds since midnight of an hour, a minute and seconds.
func clockOf(hour, minute int64, seconds float64) (int64, error) {
	rest := math.RoundToEven(seconds * 1e6)
	if hour < 0 || hour > 24 || minute < 0 || minute > 59 || !(rest >= 0 && rest <= 60e6) {
		return 0, errClock
	}
	ofDay := hour*microsPerHour + minute*microsPerMinute + int64(rest)
	if ofDay > microsPerDay {
		return 0, errClock
	}
	return ofDay, nil
}

var errClock = fail(stateDateOverflow, "time field value out of range")

// dayTimes are the casts of moments to the time that they show, and of times to intervals and back.
func (c castTable) dayTimes() {
	ts, tz, t, iv := policy.TimestampT, policy.TimestampTZ, policy.TimeT, policy.IntervalT
	c.put(ts, t, on1(func(v policy.Timestamp) (policy.Value, error) { return timeOf(v), nil }))
	c.put(tz, t, func(env *Env, v policy.Value) (policy.Value, error) {
		wall, err := env.toLocal(v.(policy.Timestamptz))
		return valued(timeOf(wall), err)
	})
	c[[2]policy.Type{tz, t}].stable = true
	c.put(t, iv, on1(func(v policy.Time) (policy.Value, error) { return interval{Micros: int64(v)}, nil }))
	c.put(iv, t, on1(func(v interval) (policy.Value, error) { return withinDay(v.Micros), nil }))
}

// timeOf is the time of the day that a wall clock shows.
func timeOf(wall policy.Timestamp) policy.Time {
	_, ofDay := split(int64(wall))
	return policy.Time(ofDay)
}

// parseDayTime reads a clock: 09:00, 9:05:01.5, 9:00 pm, allballs. Others that PostgreSQL reads, with a date or a zone
// among them, are refused.
func parseDayTime(text string) (policy.Value, error) {
	bad := badDate(policy.TimeT)
	rest := asciiLower(trimBlanks(text))
	if rest == "allballs" {
		return policy.Time(0), nil
	}
	if rest == "" || rest[0] < '0' || rest[0] > '9' {
		return nil, bad
	}
	m := &moment{dated: true} // a day that is not asked for
	n := span(rest, "0123456789:.")
	used, err := m.digits(policy.TimeT, rest[:n])
	if err != nil {
		return nil, err
	}
	half := strings.TrimLeft(rest[used:], blanks)
	switch {
	case !m.clocked:
		return nil, errForm
	case half == "am" || half == "pm":
		m.half = half
	case half != "":
		return nil, errForm
	}
	micros, err := m.ofDay()
	return valued(policy.Time(micros), err)
}

// AppendTime writes a time: 09:05:00, with as many digits of a second as it has.
func AppendTime(dst []byte, v policy.Time) []byte { return append(dst, clockText(int64(v))...) }

// dayTimeField is a field of a time. The hour of a day's end is 24.
func dayTimeField(field string, v policy.Time) (numeric, error) {
	switch field {
	case "hour":
		return numericOf(int64(v) / microsPerHour), nil
	case "microsecond", "millisecond", "second", "minute":
		return timestampField(field, policy.Timestamp(v))
	case "epoch":
		return micros(int64(v)), nil
	}
	return numeric{}, errNoField
}
