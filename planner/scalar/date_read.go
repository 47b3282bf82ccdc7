package scalar

import (
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/policy"
)

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
