package scalar

import (
	"math"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// readers registers to_date and to_timestamp.
func (r registry) readers() {
	t := policy.Text
	r.two("to_date", t, t, on2(func(text, format string) (policy.Value, error) {
		days, _, err := readTemplate(text, format)
		if err != nil {
			return nil, err
		}
		return valued(checkDate(days))
	}))
	r.stable("to_date", t, t)
	r.two("to_timestamp", t, t, func(env *Env, text, format policy.Value) (policy.Value, error) {
		days, ofDay, err := readTemplate(text.(string), format.(string))
		if err != nil {
			return nil, err
		}
		wall, err := timestampOf(days, ofDay)
		if err != nil {
			return nil, err
		}
		return valued(env.toZoned(wall))
	})
	r.stable("to_timestamp", t, t)
	r.one("to_timestamp", policy.Float8, on1(func(v float64) (policy.Value, error) {
		if math.IsNaN(v) {
			return nil, errTimestamp
		}
		if math.IsInf(v, 0) {
			return nil, errInfinite
		}
		micros := math.RoundToEven((v - daysTo2000*86400) * 1e6)
		if !(math.Abs(micros) < 9.2e18) {
			return nil, errTimestamp
		}
		at, err := checkTimestamp(addInt64(int64(micros), epoch2000))
		return valued(policy.Timestamptz(at), err)
	}))
}

// read collects the fields of a text.
type read struct {
	fields map[string]int
}

// digitsOf are the fields that to_date and to_timestamp read here, with their digits.
var digitsOf = map[string]int{"YYYY": 4, "MM": 2, "DD": 2, "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2, "MS": 3, "US": 6}

// readTemplate reads texts that show exactly what the template says: all digits of each field, the same separators.
// PostgreSQL is more lenient; what it would read differently or in addition is refused.
func readTemplate(text, format string) (days, ofDay int64, err error) {
	refused := unsupported("this text or template")
	pieces, err := template(format)
	if err != nil {
		return 0, 0, err
	}
	r := read{fields: map[string]int{}}
	for _, p := range pieces {
		if p.field == "" {
			rest, ok := strings.CutPrefix(text, p.literal)
			if !ok || strings.Trim(p.literal, "-/.,:; T") != "" || strings.Contains(p.literal, "  ") {
				return 0, 0, refused
			}
			text = rest
			continue
		}
		n, ok := r.field(p, text)
		if !ok {
			return 0, 0, refused
		}
		text = text[n:]
	}
	if text != "" || len(r.fields) == 0 {
		return 0, 0, refused
	}
	return r.moment()
}

// field reads one field and returns its length.
func (r *read) field(p piece, text string) (int, bool) {
	name := strings.ToUpper(p.field)
	if p.fill || p.ordinal != "" {
		return 0, false
	}
	if _, twice := r.fields[name]; twice {
		return 0, false
	}
	if name == "MON" || name == "MONTH" {
		length := span(asciiLower(text), "abcdefghijklmnopqrstuvwxyz")
		word := asciiLower(text[:length])
		month := monthNamed(word)
		_, twice := r.fields["MM"]
		if month == 0 || twice || name == "MON" && length != 3 || name == "MONTH" && word != monthNames[month-1] {
			return 0, false
		}
		r.fields["MM"] = month
		return length, true
	}
	digits, known := digitsOf[name]
	if length := span(text, "0123456789"); !known || length < digits || name == "US" && length > digits {
		return 0, false
	}
	r.fields[name] = asNumber(text[:digits]).value
	return digits, true
}

// moment checks the fields.
func (r *read) moment() (days, ofDay int64, err error) {
	c := civil{year: 0, month: 1, day: 1}
	year, hasYear := r.fields["YYYY"]
	if !hasYear || year == 0 {
		return 0, 0, unsupported("a template without a year")
	}
	c.year = year
	if month, ok := r.fields["MM"]; ok {
		c.month = month
	}
	if day, ok := r.fields["DD"]; ok {
		c.day = day
	}
	hour, minute, second := r.fields["HH24"], r.fields["MI"], r.fields["SS"]
	for _, name := range []string{"HH12", "HH"} {
		if _, ok := r.fields[name]; ok {
			return 0, 0, unsupported("a twelve-hour clock")
		}
	}
	if _, both := r.fields["US"]; both {
		if _, ms := r.fields["MS"]; ms {
			return 0, 0, unsupported("this template")
		}
	}
	if c.month < 1 || c.month > 12 || c.day < 1 || c.day > daysInMonth(c.year, c.month) || hour > 23 || minute > 59 ||
		second > 59 {
		return 0, 0, errField
	}
	ofDay = int64(hour)*microsPerHour + int64(minute)*microsPerMinute + int64(second)*microsPerSecond
	return daysOf(c), ofDay + int64(r.fields["MS"])*1000 + int64(r.fields["US"]), nil
}
