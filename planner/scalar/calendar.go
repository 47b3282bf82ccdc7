package scalar

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

const (
	microsPerSecond = int64(1_000_000)
	microsPerMinute = 60 * microsPerSecond
	microsPerHour   = 60 * microsPerMinute
	microsPerDay    = 24 * microsPerHour
	daysTo2000      = 10957
	epoch2000       = daysTo2000 * microsPerDay
	julianOf1970    = 2440588

	leastDate    = -julianOf1970              // 4714-11-24 BC
	maxDate      = 2147483493 - julianOf1970  // 5874897-12-31
	leastMicros  = leastDate * microsPerDay   // of a timestamp
	maxTimestamp = int64(9223371331200000000) // past it the values do not fit policy's 1970-based microseconds
)

// civil is a date of the proleptic Gregorian calendar; year 0 is 1 BC.
type civil struct{ year, month, day int }

// daysOf counts the days from 1970-01-01 to a civil date (Hinnant's construction: years that begin in March).
func daysOf(c civil) int64 {
	y := int64(c.year)
	if c.month <= 2 {
		y--
	}
	era := FloorDiv(y, 400)
	ofEra := y - era*400
	ofYear := int64((153*((c.month+9)%12)+2)/5 + c.day - 1)
	return era*146097 + ofEra*365 + ofEra/4 - ofEra/100 + ofYear - 719468
}

// civilOf is the inverse of daysOf.
func civilOf(days int64) civil {
	days += 719468
	era := FloorDiv(days, 146097)
	ofEra := days - era*146097
	year := (ofEra - ofEra/1460 + ofEra/36524 - ofEra/146096) / 365
	ofYear := ofEra - (365*year + year/4 - year/100)
	month := (5*ofYear + 2) / 153
	c := civil{year: int(year + era*400), month: int(month+2)%12 + 1, day: int(ofYear-(153*month+2)/5) + 1}
	if c.month <= 2 {
		c.year++
	}
	return c
}

// FloorDiv divides towards minus infinity.
func FloorDiv[T int | int32 | int64](a, b T) T {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func leap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysInMonth(year, month int) int {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// split takes a timestamp apart into its day and the microseconds since midnight.
func split(micros int64) (days, ofDay int64) {
	days = FloorDiv(micros, microsPerDay)
	return days, micros - days*microsPerDay
}

// timestampOf puts day and time together, within the type's range.
func timestampOf(days, ofDay int64) (policy.Timestamp, error) {
	if days < leastDate-1 || days > maxTimestamp/microsPerDay+1 {
		return 0, errTimestamp
	}
	return checkTimestamp(addInt64(days*microsPerDay, ofDay))
}

func checkTimestamp(micros int64, ok bool) (policy.Timestamp, error) {
	if !ok || micros < leastMicros || micros >= maxTimestamp {
		return 0, errTimestamp
	}
	return policy.Timestamp(micros), nil
}

func checkDate(days int64) (policy.Date, error) {
	if days < leastDate || days > maxDate {
		return 0, errDate
	}
	return policy.Date(days), nil
}

func dateToTimestamp(d policy.Date) (policy.Timestamp, error) {
	if int64(d) > maxTimestamp/microsPerDay {
		return 0, fail(stateDateOverflow, "date out of range for timestamp")
	}
	return policy.Timestamp(int64(d) * microsPerDay), nil
}

func timestampToDate(t policy.Timestamp) policy.Date {
	days, _ := split(int64(t))
	return policy.Date(days)
}

// toZoned reads a wall clock of the session's zone.
func (env *Env) toZoned(t policy.Timestamp) (policy.Timestamptz, error) { return zoned(t, env.zone()) }

// zoned reads a wall clock of a zone. Where the clock skipped the time or showed it twice, PostgreSQL takes the offset
// before the skip, and the one after the repetition.
func zoned(t policy.Timestamp, zone *time.Location) (policy.Timestamptz, error) {
	local := FloorDiv(int64(t), microsPerSecond)
	earlier := time.Unix(local-86400, 0).In(zone)
	_, before := earlier.Zone()
	offset := int64(before)
	if _, end := earlier.ZoneBounds(); !end.IsZero() {
		_, next := end.In(zone).Zone()
		boundary, after := end.Unix(), int64(next)
		first, second := local-offset, local-after
		switch {
		case first < boundary && second < boundary:
		case first >= boundary && second >= boundary, first <= second:
			offset = after
		}
	}
	utc, err := checkTimestamp(addInt64(int64(t), -offset*microsPerSecond))
	return policy.Timestamptz(utc), err
}

// toLocal is the wall clock of the session's zone.
func (env *Env) toLocal(t policy.Timestamptz) (policy.Timestamp, error) { return local(t, env.zone()) }

func local(t policy.Timestamptz, zone *time.Location) (policy.Timestamp, error) {
	return checkTimestamp(addInt64(int64(t), int64(offsetAt(t, zone))*microsPerSecond))
}

// offsetAt is a zone's distance from UTC in seconds, east positive.
func offsetAt(t policy.Timestamptz, zone *time.Location) int {
	_, offset := zoneAt(t, zone)
	return offset
}

// zoneAt is also the zone's abbreviation then.
func zoneAt(t policy.Timestamptz, zone *time.Location) (name string, offset int) {
	return time.Unix(FloorDiv(int64(t), microsPerSecond), 0).In(zone).Zone()
}

func formatDate(d policy.Date) string {
	c := civilOf(int64(d))
	text, era := civilText(c)
	return text + era
}

// civilText writes year, month and day, and " BC" for years before 1.
func civilText(c civil) (string, string) {
	if c.year > 0 {
		return fmt.Sprintf("%04d-%02d-%02d", c.year, c.month, c.day), ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", 1-c.year, c.month, c.day), " BC"
}

// clockText writes hours, minutes, seconds and the fraction without trailing zeros.
func clockText(ofDay int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", ofDay/microsPerHour, ofDay/microsPerMinute%60, ofDay/microsPerSecond%60)
	return text + fractionText(ofDay%microsPerSecond)
}

func fractionText(micros int64) string {
	if micros == 0 {
		return ""
	}
	return strings.TrimRight(fmt.Sprintf(".%06d", micros), "0")
}

func formatTimestamp(t policy.Timestamp) string {
	days, ofDay := split(int64(t))
	date, era := civilText(civilOf(days))
	return date + " " + clockText(ofDay) + era
}

func (env *Env) formatTimestamptz(t policy.Timestamptz) string {
	offset := offsetAt(t, env.zone())
	days, ofDay := split(int64(t) + int64(offset)*microsPerSecond)
	date, era := civilText(civilOf(days))
	return date + " " + clockText(ofDay) + offsetText(offset) + era
}

// offsetText writes a distance from UTC: +00, -03:30, +00:19:32.
func offsetText(offset int) string {
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	text := fmt.Sprintf("%s%02d", sign, offset/3600)
	if offset%3600 != 0 {
		text += fmt.Sprintf(":%02d", offset/60%60)
	}
	if offset%60 != 0 {
		text += fmt.Sprintf(":%02d", offset%60)
	}
	return text
}

// nowAs is the plan's time as one of the words that need no parentheses.
func (env Env) nowAs(word string) (Expr, error) {
	now := policy.Timestamptz(env.Clock().UnixMicro())
	if word == "current_timestamp" {
		return Constant(now, policy.TimestampTZ), nil
	}
	wall, err := env.toLocal(now)
	if err != nil {
		return nil, err
	}
	switch word {
	case "current_date":
		return Constant(timestampToDate(wall), policy.DateType), nil
	case "localtime":
		return Constant(timeOf(wall), policy.TimeT), nil
	}
	return Constant(wall, policy.TimestampT), nil
}

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
