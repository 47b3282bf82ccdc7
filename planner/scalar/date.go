package scalar

import (
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

func (r registry) dates() {
	d, ts, tz, iv := policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.IntervalT
	i4 := policy.Int4
	r.two("+", d, i4, on2(addDays))
	r.two("+", i4, d, on2(func(n int64, v policy.Date) (policy.Value, error) { return addDays(v, n) }))
	r.two("-", d, i4, on2(func(v policy.Date, n int64) (policy.Value, error) { return addDays(v, -n) }))
	r.two("-", d, d, on2(func(a, b policy.Date) (policy.Value, error) {
		return inRange(policy.Int4, int64(a)-int64(b), false)
	}))
	r.two("-", ts, ts, on2(func(a, b policy.Timestamp) (policy.Value, error) { return elapsed(int64(a), int64(b)) }))
	r.two("-", tz, tz, on2(func(a, b policy.Timestamptz) (policy.Value, error) { return elapsed(int64(a), int64(b)) }))
	for _, t := range []policy.Type{d, ts, tz, iv} { // what is infinite is refused where it is read
		r.one("isfinite", t, func(*Env, policy.Value) (policy.Value, error) { return true, nil })
	}
	for name, sign := range map[string]int64{"+": 1, "-": -1} {
		r.two(name, d, iv, on2(func(v policy.Date, by interval) (policy.Value, error) {
			local, err := dateToTimestamp(v)
			if err != nil {
				return nil, err
			}
			return valued(shift(local, by, sign))
		}))
		r.two(name, ts, iv, on2(func(v policy.Timestamp, by interval) (policy.Value, error) {
			return valued(shift(v, by, sign))
		}))
		r.two(name, tz, iv, func(env *Env, v, by policy.Value) (policy.Value, error) {
			return valued(env.shiftZoned(v.(policy.Timestamptz), by.(interval), sign))
		})
		r.stable(name, tz, iv)
	}
	for _, t := range []policy.Type{d, ts, tz} {
		plus := r[keyOf("+", []policy.Type{t, iv})]
		r[keyOf("+", []policy.Type{iv, t})] = &body{stable: plus.stable,
			two: func(env *Env, by, v policy.Value) (policy.Value, error) { return plus.two(env, v, by) }}
	}
	r.ages()
	r.makers()
	r.clocks()
	r.zones()
}

func addDays(v policy.Date, n int64) (policy.Value, error) { return valued(checkDate(int64(v) + n)) }

// elapsed is the difference of two timestamps in days and time.
func elapsed(a, b int64) (policy.Value, error) {
	micros, ok := subInt64(a, b)
	if !ok {
		return nil, errInterval
	}
	return justifyHours(interval{Micros: micros})
}

// shift adds an interval to a wall clock: months first (to the last day of a shorter month), then days, then time.
func shift(t policy.Timestamp, by interval, sign int64) (policy.Timestamp, error) {
	days, ofDay := split(int64(t))
	days, err := shiftDays(days, by, sign)
	if err != nil {
		return 0, err
	}
	moved, err := timestampOf(days, ofDay)
	if err != nil {
		return 0, err
	}
	return checkTimestamp(addInt64(int64(moved), sign*by.Micros))
}

func shiftDays(days int64, by interval, sign int64) (int64, error) {
	if by.Months != 0 {
		c := civilOf(days)
		month := int64(c.month-1) + sign*int64(by.Months)
		c.year += int(FloorDiv(month, 12))
		c.month = int(month-12*FloorDiv(month, 12)) + 1
		c.day = min(c.day, daysInMonth(c.year, c.month))
		days = daysOf(c)
		if _, err := timestampOf(days, 0); err != nil {
			return 0, err
		}
	}
	return days + sign*int64(by.Days), nil
}

// shiftZoned moves months and days on the session's wall clock, and time on the world's.
func (env *Env) shiftZoned(t policy.Timestamptz, by interval, sign int64) (policy.Timestamptz, error) {
	if by.Months != 0 {
		var err error
		if t, err = env.shiftWall(t, interval{Months: by.Months}, sign); err != nil {
			return 0, err
		}
	}
	if by.Days != 0 {
		var err error
		if t, err = env.shiftWall(t, interval{Days: by.Days}, sign); err != nil {
			return 0, err
		}
	}
	moved, err := checkTimestamp(addInt64(int64(t), sign*by.Micros))
	return policy.Timestamptz(moved), err
}

func (env *Env) shiftWall(t policy.Timestamptz, by interval, sign int64) (policy.Timestamptz, error) {
	wall, err := env.toLocal(t)
	if err != nil {
		return 0, err
	}
	if wall, err = shift(wall, by, sign); err != nil {
		return 0, err
	}
	return env.toZoned(wall)
}

// age is the difference of two wall clocks counted in years, months and days.
func age(a, b policy.Timestamp) (policy.Value, error) {
	sign := int64(1)
	if a < b {
		a, b, sign = b, a, -1
	}
	dayA, timeA := split(int64(a))
	dayB, timeB := split(int64(b))
	x, y := civilOf(dayA), civilOf(dayB)
	months := int64(x.year-y.year)*12 + int64(x.month-y.month)
	days, micros := int64(x.day-y.day), timeA-timeB
	if micros < 0 {
		micros += microsPerDay
		days--
	}
	for days < 0 {
		days += int64(daysInMonth(y.year, y.month)) // the earlier one's month
		months--
	}
	return newInterval(sign*months, sign*days, sign*micros, true)
}

func (r registry) ages() {
	ts, tz := policy.TimestampT, policy.TimestampTZ
	r.two("age", ts, ts, on2(age))
	r.two("age", tz, tz, func(env *Env, a, b policy.Value) (policy.Value, error) {
		x, err := env.toLocal(a.(policy.Timestamptz))
		if err != nil {
			return nil, err
		}
		y, err := env.toLocal(b.(policy.Timestamptz))
		if err != nil {
			return nil, err
		}
		return age(x, y)
	})
	r.one("age", ts, func(env *Env, v policy.Value) (policy.Value, error) {
		today, err := env.today()
		if err != nil {
			return nil, err
		}
		return age(today, v.(policy.Timestamp))
	})
	r.one("age", tz, func(env *Env, v policy.Value) (policy.Value, error) {
		today, err := env.today()
		if err != nil {
			return nil, err
		}
		wall, err := env.toLocal(v.(policy.Timestamptz))
		if err != nil {
			return nil, err
		}
		return age(today, wall)
	})
	r.stable("age", ts)
	r.stable("age", tz)
}

// today is the midnight that began the plan's day in the session's zone.
func (env *Env) today() (policy.Timestamp, error) {
	wall, err := env.toLocal(policy.Timestamptz(env.Clock().UnixMicro()))
	if err != nil {
		return 0, err
	}
	return dateToTimestamp(timestampToDate(wall))
}

func (r registry) clocks() {
	for _, name := range []string{"now", "transaction_timestamp", "statement_timestamp"} {
		r[keyOf(name, nil)] = &body{stable: true, none: func(env *Env) (policy.Value, error) {
			return policy.Timestamptz(env.Clock().UnixMicro()), nil
		}}
	}
}

// zones registers timezone(zone, t), which AT TIME ZONE means.
func (r registry) zones() {
	r.two("timezone", policy.Text, policy.TimestampT, on2(func(name string, t policy.Timestamp) (policy.Value, error) {
		zone, err := zoneNamed(name)
		if err != nil {
			return nil, err
		}
		return valued(zoned(t, zone))
	}))
	r.two("timezone", policy.Text, policy.TimestampTZ, on2(func(name string, t policy.Timestamptz) (policy.Value, error) {
		zone, err := zoneNamed(name)
		if err != nil {
			return nil, err
		}
		return valued(local(t, zone))
	}))
	r.two("timezone", policy.IntervalT, policy.TimestampT, on2(func(by interval, t policy.Timestamp) (policy.Value, error) {
		if by.Months != 0 || by.Days != 0 {
			return nil, fail(stateParameter, "interval time zone must not include months or days")
		}
		utc, err := checkTimestamp(addInt64(int64(t), -by.Micros/microsPerSecond*microsPerSecond))
		return valued(policy.Timestamptz(utc), err)
	}))
	r.two("timezone", policy.IntervalT, policy.TimestampTZ,
		on2(func(by interval, t policy.Timestamptz) (policy.Value, error) {
			if by.Months != 0 || by.Days != 0 {
				return nil, fail(stateParameter, "interval time zone must not include months or days")
			}
			return valued(checkTimestamp(addInt64(int64(t), by.Micros/microsPerSecond*microsPerSecond)))
		}))
}

// civil checks and orders the numbers of the date.
func (m *moment) civil(t policy.Type, order string) (civil, error) {
	n := m.numbers
	var c civil
	var year number
	switch {
	case m.month != 0 && len(n) == 2:
		year, c.month, c.day = n[1], m.month, n[0].value
		if n[0].digits > 2 || order == "YMD" && n[1].digits <= 2 {
			year, c.day = n[0], n[1].value
		}
	case m.month == 0 && len(n) == 3 && (n[0].digits > 2 || order == "YMD"):
		year, c.month, c.day = n[0], n[1].value, n[2].value
	case m.month == 0 && len(n) == 3 && order == "DMY":
		c.day, c.month, year = n[0].value, n[1].value, n[2]
	case m.month == 0 && len(n) == 3:
		c.month, c.day, year = n[0].value, n[1].value, n[2]
	default:
		return c, badDate(t)
	}
	c.year = year.value
	switch {
	case m.bc && c.year <= 0:
		return c, errField
	case m.bc:
		c.year = 1 - c.year
	case year.digits <= 2 && c.year < 70:
		c.year += 2000
	case year.digits <= 2:
		c.year += 1900
	case c.year == 0:
		return c, errField
	}
	if c.month < 1 || c.month > 12 || c.day < 1 || c.day > 31 || c.year > 5874898 || c.day > daysInMonth(c.year, c.month) {
		return c, errField
	}
	return c, nil
}

// ofDay checks the clock: 24:00:00 is the end of the day, 60 seconds are a minute.
func (m *moment) ofDay() (int64, error) {
	h, min, s := m.clock[0], m.clock[1], m.clock[2]
	switch m.half {
	case "am":
		if h == 12 {
			h = 0
		} else if h > 12 {
			return 0, errField
		}
	case "pm":
		if h > 12 {
			return 0, errField
		} else if h < 12 {
			h += 12
		}
	}
	if h > 24 || min > 59 || s > 60 || h == 24 && (min > 0 || s > 0 || m.micros > 0) || s == 60 && m.micros > 0 {
		return 0, errField
	}
	return int64(h)*microsPerHour + int64(min)*microsPerMinute + int64(s)*microsPerSecond + m.micros, nil
}

// wall is what a text says, and the wall clock that it names; words name that of the session's zone.
func (env *Env) wall(t policy.Type, text string) (m *moment, days, ofDay int64, err error) {
	if m, err = parseMoment(t, text); err != nil {
		return nil, 0, 0, err
	}
	if ofDay, err = m.ofDay(); err != nil {
		return nil, 0, 0, err
	}
	if m.word != "" {
		if m.word == "now" && m.clocked || m.word == "epoch" && (m.clocked || m.zoned) || len(m.numbers) > 0 || m.month != 0 {
			return nil, 0, 0, errForm
		}
		days, ofDay, err = env.wordWall(m.word, ofDay)
		return m, days, ofDay, err
	}
	c, err := m.civil(t, env.Form.Dates)
	if err != nil {
		return nil, 0, 0, err
	}
	return m, daysOf(c), ofDay, nil
}

func (env *Env) wordWall(word string, ofDay int64) (int64, int64, error) {
	if word == "epoch" {
		return 0, 0, nil
	}
	now, err := env.toLocal(policy.Timestamptz(env.Clock().UnixMicro()))
	if err != nil {
		return 0, 0, err
	}
	days, since := split(int64(now))
	switch word {
	case "now":
		return days, since, nil
	case "tomorrow":
		days++
	case "yesterday":
		days--
	}
	return days, ofDay, nil
}

// understood turns a syntax error into a refusal, unless the text is empty or one word that is none of PostgreSQL's:
// PostgreSQL reads many more forms than this package.
func understood(t policy.Type, text string, v policy.Value, err error) (policy.Value, error) {
	if e, ok := err.(*Error); ok && e.SQLState == stateDateFormat {
		word := asciiLower(trimBlanks(text))
		iso := t == policy.IntervalT && strings.HasPrefix(word, "p")
		if span(word, "abcdefghijklmnopqrstuvwxyz") < len(word) || iso {
			return nil, unsupported("this form of %s", t.Name())
		}
	}
	return v, err
}

func (env *Env) parseDate(text string) (policy.Value, error) {
	_, days, _, err := env.wall(policy.DateType, text)
	if err != nil {
		return nil, err
	}
	return valued(checkDate(days))
}

func (env *Env) parseTimestamp(text string) (policy.Value, error) {
	_, days, ofDay, err := env.wall(policy.TimestampT, text)
	if err != nil {
		return nil, err
	}
	return valued(timestampOf(days, ofDay))
}

func (env *Env) parseTimestamptz(text string) (policy.Value, error) {
	m, days, ofDay, err := env.wall(policy.TimestampTZ, text)
	if err != nil {
		return nil, err
	}
	wall, err := timestampOf(days, ofDay)
	if err != nil {
		return nil, err
	}
	var zone *time.Location
	switch {
	case m.word == "epoch":
		zone = time.UTC
	case m.location != nil:
		zone = m.location
	case m.zoned:
		utc, err := checkTimestamp(addInt64(int64(wall), -int64(m.offset)*microsPerSecond))
		return valued(policy.Timestamptz(utc), err)
	default:
		zone = env.zone()
	}
	return valued(zoned(wall, zone))
}
