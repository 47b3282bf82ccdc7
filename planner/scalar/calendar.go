package scalar

import (
	"fmt"
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
