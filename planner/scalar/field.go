package scalar

import (
	"math/big"
	"strconv"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

// fieldNames are the fields beyond the units of time.
var fieldNames = map[string]string{
	"epoch": "epoch", "dow": "dow", "doy": "doy", "isodow": "isodow", "isoyear": "isoyear", "julian": "julian",
	"j": "julian", "jd": "julian", "timezone": "timezone", "timezone_h": "timezone_hour", "timezone_m": "timezone_minute",
}

// fieldNamed finds a field of extract, or "".
func fieldNamed(name string) string {
	name = asciiLower(name)
	if unit := unitNamed(name); unit != "" {
		return unit
	}
	return fieldNames[name[:min(len(name), 10)]]
}

func (r registry) fields() {
	for _, t := range []policy.Type{policy.TimestampT, policy.TimestampTZ, policy.IntervalT, policy.DateType, policy.TimeT} {
		get := func(env *Env, name, v policy.Value) (policy.Value, error) {
			field := fieldNamed(name.(string))
			n, err := env.extract(field, v)
			if err == errNoField {
				return nil, fieldError(field, t)
			}
			return valued(n, err)
		}
		r.two("extract", policy.Text, t, get)
		if t == policy.TimestampTZ {
			r.stable("extract", policy.Text, t)
		}
		if t == policy.DateType {
			continue
		}
		r.two("date_part", policy.Text, t, func(env *Env, name, v policy.Value) (policy.Value, error) {
			if f, ok := floatField(env, fieldNamed(name.(string)), v); ok {
				return f, nil
			}
			n, err := get(env, name, v)
			if err != nil {
				return nil, err
			}
			return strconv.ParseFloat(n.(numeric).String(), 64)
		})
		if t == policy.TimestampTZ {
			r.stable("date_part", policy.Text, t)
		}
	}
	viaTimestamp := r[keyOf("date_part", []policy.Type{policy.Text, policy.TimestampT})].two
	r.two("date_part", policy.Text, policy.DateType, func(env *Env, name, v policy.Value) (policy.Value, error) {
		local, err := dateToTimestamp(v.(policy.Date))
		if err != nil {
			return nil, err
		}
		return viaTimestamp(env, name, local)
	})
	r.truncations()
}

// floatField computes the fields whose double precision is not the nearest to the exact value.
func floatField(env *Env, field string, v policy.Value) (float64, bool) {
	var ofDay, days int64
	switch v := v.(type) {
	case policy.Timestamp:
		days, ofDay = split(int64(v))
	case policy.Timestamptz:
		wall, err := env.toLocal(v)
		if err != nil {
			return 0, false
		}
		days, ofDay = split(int64(wall))
	case policy.Time:
		if ofDay = int64(v); field == "julian" {
			return 0, false
		}
	case policy.Interval:
		ofDay = v.Micros
		if field == "epoch" {
			seconds := float64(v.Micros) / 1e6
			seconds += 31557600 * float64(v.Months/12)
			seconds += 2592000 * float64(v.Months%12)
			return seconds + 86400*float64(v.Days), true
		}
		if field == "julian" {
			return 0, false
		}
	}
	second, fraction := ofDay%microsPerMinute/microsPerSecond, float64(ofDay%microsPerSecond)
	switch field {
	case "second":
		return float64(second) + fraction/1e6, true
	case "millisecond":
		return float64(second)*1000 + fraction/1000, true
	case "julian":
		whole := float64(ofDay / microsPerSecond)
		return float64(days+julianOf1970) + (whole+fraction/1e6)/86400, true
	}
	return 0, false
}

var errNoField = fail(stateUnsupported, "unit not supported")

// fieldError says that a type does not have the field, or that nothing has that name.
func fieldError(field string, t policy.Type) error {
	if field == "" {
		return failf(stateParameter, "unit not recognized for type %s", t.Name())
	}
	return failf(stateUnsupported, `unit "%s" not supported for type %s`, field, t.Name())
}

// extract is a field as a numeric, with the scale that PostgreSQL gives it.
func (env *Env) extract(field string, v policy.Value) (numeric, error) {
	switch v := v.(type) {
	case policy.Timestamp:
		return timestampField(field, v)
	case policy.Timestamptz:
		return env.zonedField(field, v)
	case policy.Date:
		return dateField(field, v)
	case policy.Interval:
		return intervalField(field, v)
	case policy.Time:
		return dayTimeField(field, v)
	}
	return numeric{}, errNoField
}

func micros(n int64) numeric { return newNumeric(big.NewInt(n), 6) }

func (env *Env) zonedField(field string, t policy.Timestamptz) (numeric, error) {
	offset := int64(offsetAt(t, env.zone()))
	switch field {
	case "epoch":
		return micros(int64(t)), nil
	case "timezone":
		return numericOf(offset), nil
	case "timezone_hour":
		return numericOf(offset / 3600), nil
	case "timezone_minute":
		return numericOf(offset / 60 % 60), nil
	}
	wall, err := env.toLocal(t)
	if err != nil {
		return numeric{}, err
	}
	return timestampField(field, wall)
}

func timestampField(field string, t policy.Timestamp) (numeric, error) {
	days, ofDay := split(int64(t))
	switch field {
	case "microsecond":
		return numericOf(ofDay % microsPerMinute), nil
	case "millisecond":
		return newNumeric(big.NewInt(ofDay%microsPerMinute), 3), nil
	case "second":
		return micros(ofDay % microsPerMinute), nil
	case "minute":
		return numericOf(ofDay / microsPerMinute % 60), nil
	case "hour":
		return numericOf(ofDay / microsPerHour), nil
	case "epoch":
		return micros(int64(t)), nil
	case "julian":
		part, err := divideNumeric(numericOf(ofDay), numericOf(microsPerDay))
		if err != nil {
			return numeric{}, err
		}
		sum, err := addNumeric(numericOf(days+julianOf1970), part.(numeric))
		if err != nil {
			return numeric{}, err
		}
		return sum.(numeric), nil
	}
	return dayField(field, days)
}

func dateField(field string, d policy.Date) (numeric, error) {
	switch field {
	case "epoch":
		return numericOf(int64(d) * 86400), nil
	case "julian":
		return numericOf(int64(d) + julianOf1970), nil
	}
	return dayField(field, int64(d))
}

// dayField is a field of the calendar day.
func dayField(field string, days int64) (numeric, error) {
	c := civilOf(days)
	var n int
	switch field {
	case "day":
		n = c.day
	case "month":
		n = c.month
	case "quarter":
		n = (c.month-1)/3 + 1
	case "year":
		n = era(c.year)
	case "decade":
		n = int(FloorDiv(int64(c.year), 10))
	case "century":
		n = ordinalSpan(c.year, 100)
	case "millennium":
		n = ordinalSpan(c.year, 1000)
	case "week":
		_, n = isoWeek(days)
	case "isoyear":
		n, _ = isoWeek(days)
		n = era(n)
	case "dow":
		n = weekday(days)
	case "isodow":
		if n = weekday(days); n == 0 {
			n = 7
		}
	case "doy":
		n = int(days-daysOf(civil{c.year, 1, 1})) + 1
	default:
		return numeric{}, errNoField
	}
	return numericOf(int64(n)), nil
}

// era turns the astronomical year into the written one: 0 is 1 BC, written −1.
func era(year int) int {
	if year <= 0 {
		return year - 1
	}
	return year
}

// ordinalSpan numbers centuries and millennia: 2000 is in the 20th, 2001 in the 21st, 1 BC in the −1st.
func ordinalSpan(year, span int) int {
	if year > 0 {
		return (year + span - 1) / span
	}
	return -((span - 1 - (year - 1)) / span)
}

// weekday is 0 on Sundays.
func weekday(days int64) int { return int(days + 4 - 7*FloorDiv(days+4, 7)) }

// isoWeek is the year and number of the week, which begins on Monday and belongs to the year of its Thursday.
func isoWeek(days int64) (year, week int) {
	thursday := days - (days + 3 - 7*FloorDiv(days+3, 7)) + 3
	year = civilOf(thursday).year
	return year, int(thursday-daysOf(civil{year, 1, 1}))/7 + 1
}

func intervalField(field string, v interval) (numeric, error) {
	ofMinute := v.Micros % microsPerMinute
	years := int64(v.Months / 12)
	var n int64
	switch field {
	case "microsecond":
		n = ofMinute
	case "millisecond":
		return newNumeric(big.NewInt(ofMinute), 3), nil
	case "second":
		return micros(ofMinute), nil
	case "minute":
		n = v.Micros / microsPerMinute % 60
	case "hour":
		n = v.Micros / microsPerHour
	case "day":
		n = int64(v.Days)
	case "month":
		n = int64(v.Months % 12)
	case "quarter":
		n = int64(v.Months%12/3 + 1)
	case "year":
		n = years
	case "decade":
		n = years / 10
	case "century":
		n = years / 100
	case "millennium":
		n = years / 1000
	case "epoch":
		// A year counts 365.25 days here, a month thirty.
		seconds := years*31557600 + int64(v.Months%12)*30*86400 + int64(v.Days)*86400
		total := new(big.Int).Mul(big.NewInt(seconds), big.NewInt(microsPerSecond))
		return newNumeric(total.Add(total, big.NewInt(v.Micros)), 6), nil
	default:
		return numeric{}, errNoField
	}
	return numericOf(n), nil
}

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
