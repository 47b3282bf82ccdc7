package scalar

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// Form is how a session writes values as texts, what `n::text` and `'for ' || n` are among them, and reads them. The
// zero value is PostgreSQL's own form.
type Form struct {
	Dates     string // the order in which DateStyle reads '01/02/2024': "DMY", "YMD"; "" means MDY. Dates are written in ISO's alone
	Intervals string // IntervalStyle; "" means postgres
	Digits    uint8  // of a double precision that are written, 1 to 15; 0 means as many as tell it from all others
}

// FormOf is the form of three settings: DateStyle, which is `ISO, DMY`, IntervalStyle, and extra_float_digits.
func FormOf(dates, intervals string, extra int) Form {
	f := Form{Intervals: intervals}
	if _, order, ok := strings.Cut(dates, ", "); ok && order != "MDY" {
		f.Dates = order
	}
	if extra <= 0 {
		f.Digits = uint8(max(1, 15+extra))
	}
	if intervals == "postgres" {
		f.Intervals = ""
	}
	return f
}

// Extra is the setting extra_float_digits, of which all above 0 are one form.
func (f Form) Extra() int {
	if f.Digits == 0 {
		return 1
	}
	return int(f.Digits) - 15
}

// DateStyle is the setting.
func (f Form) DateStyle() string {
	if f.Dates == "" {
		return "ISO, MDY"
	}
	return "ISO, " + f.Dates
}

// Style is the setting IntervalStyle.
func (f Form) Style() string {
	if f.Intervals == "" {
		return "postgres"
	}
	return f.Intervals
}

// text is a value of type t in the session's form.
func (env *Env) text(t policy.Type, v policy.Value) string {
	switch v := v.(type) {
	case float64:
		return string(env.Form.AppendFloat(nil, v, t == policy.Float4))
	case policy.Interval:
		return string(env.Form.AppendInterval(nil, v))
	}
	return env.FormatText(t, v)
}

// AppendFloat writes the shortest digits that read back the same, or as many as the form leaves: of a real nine less
// than of a double precision.
func (f Form) AppendFloat(dst []byte, v float64, single bool) []byte {
	if f.Digits == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return append(dst, formatFloat(v, single)...)
	}
	bits, digits := 64, int(f.Digits)
	if single {
		bits, digits = 32, max(1, int(f.Digits)-9)
	}
	// The significant digits are those of %g: trailing zeros go.
	if shorter, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, bits), bits); err == nil {
		v = shorter
	}
	scientific := strconv.FormatFloat(v, 'e', -1, bits)
	at := strings.IndexByte(scientific, 'e')
	exponent, err := strconv.Atoi(scientific[at+1:])
	if err == nil && exponent >= -4 && exponent < digits {
		return strconv.AppendFloat(dst, v, 'f', -1, bits)
	}
	return append(dst, scientific...)
}

// IntervalStyles are the values of IntervalStyle. ActiveRecord sets iso_8601 on every connection.
var IntervalStyles = []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"}

// AppendInterval writes an interval in the form's style.
func (f Form) AppendInterval(dst []byte, v policy.Interval) []byte {
	switch f.Intervals {
	case "iso_8601":
		return splitInterval(v).iso(dst)
	case "sql_standard":
		return splitInterval(v).standard(dst)
	case "postgres_verbose":
		return splitInterval(v).verbose(dst)
	}
	return appendPostgres(dst, v)
}

// appendPostgres is the style "postgres": 1 year -2 days +03:00:00.
func appendPostgres(dst []byte, v policy.Interval) []byte {
	start := len(dst)
	negative := false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if len(dst) > start {
			dst = append(dst, ' ')
		}
		if negative && n > 0 {
			dst = append(dst, '+')
		}
		negative = n < 0
		dst = append(strconv.AppendInt(dst, n, 10), ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
	}
	part(int64(v.Months/12), "year")
	part(int64(v.Months%12), "mon")
	part(int64(v.Days), "day")
	if v.Micros == 0 && len(dst) > start {
		return dst
	}
	if len(dst) > start {
		dst = append(dst, ' ')
	}
	rest := uint64(v.Micros)
	if v.Micros < 0 {
		dst, rest = append(dst, '-'), -rest
	} else if negative {
		dst = append(dst, '+')
	}
	dst = append(appendPadded(dst, int64(rest/uint64(microsPerHour)), 2), ':')
	dst = append(appendPadded(dst, int64(rest/uint64(microsPerMinute)%60), 2), ':')
	dst = appendPadded(dst, int64(rest/uint64(microsPerSecond)%60), 2)
	return append(dst, fractionText(int64(rest%uint64(microsPerSecond)))...)
}

func appendPadded(dst []byte, n int64, width int) []byte {
	s := strconv.FormatInt(n, 10)
	for i := len(s); i < width; i++ {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

// intervalFields are an interval in units, each with its sign.
type intervalFields struct{ year, month, day, hour, minute, micros int64 }

func splitInterval(v policy.Interval) intervalFields {
	return intervalFields{int64(v.Months) / 12, int64(v.Months) % 12, int64(v.Days),
		v.Micros / microsPerHour, v.Micros / microsPerMinute % 60, v.Micros % microsPerMinute}
}

func (f intervalFields) timed() bool { return f.hour != 0 || f.minute != 0 || f.micros != 0 }

// seconds appends the seconds without their sign.
func (f intervalFields) seconds(dst []byte, width int) []byte {
	m := max(f.micros, -f.micros)
	return append(appendPadded(dst, m/microsPerSecond, width), fractionText(m%microsPerSecond)...)
}

// iso is ISO 8601: P1Y-2DT3H.
func (f intervalFields) iso(dst []byte) []byte {
	if f == (intervalFields{}) {
		return append(dst, "PT0S"...)
	}
	part := func(n int64, unit byte) {
		if n != 0 {
			dst = append(strconv.AppendInt(dst, n, 10), unit)
		}
	}
	dst = append(dst, 'P')
	part(f.year, 'Y')
	part(f.month, 'M')
	part(f.day, 'D')
	if !f.timed() {
		return dst
	}
	dst = append(dst, 'T')
	part(f.hour, 'H')
	part(f.minute, 'M')
	if f.micros != 0 {
		if f.micros < 0 {
			dst = append(dst, '-')
		}
		dst = append(f.seconds(dst, 1), 'S')
	}
	return dst
}

// standard is SQL's own: 1-2, or 3 4:05:06, with one sign; what has more than one of both, or two signs, gets all of
// them.
func (f intervalFields) standard(dst []byte) []byte {
	all := []int64{f.year, f.month, f.day, f.hour, f.minute, f.micros}
	below, above := slices.Min(all) < 0, slices.Max(all) > 0
	months, rest := f.year != 0 || f.month != 0, f.day != 0 || f.timed()
	clock := func(hour, minute int64) {
		dst = append(strconv.AppendInt(dst, hour, 10), ':')
		dst = f.seconds(append(appendPadded(dst, minute, 2), ':'), 2)
	}
	if !below && !above {
		return append(dst, '0')
	}
	if below && above || months && rest {
		sign := func(negative bool) {
			if negative {
				dst = append(dst, '-')
			} else {
				dst = append(dst, '+')
			}
		}
		sign(f.year < 0 || f.month < 0)
		dst = append(strconv.AppendInt(dst, magnitude(f.year), 10), '-')
		dst = append(strconv.AppendInt(dst, magnitude(f.month), 10), ' ')
		sign(f.day < 0)
		dst = append(strconv.AppendInt(dst, magnitude(f.day), 10), ' ')
		sign(f.hour < 0 || f.minute < 0 || f.micros < 0)
		clock(magnitude(f.hour), magnitude(f.minute))
		return dst
	}
	if below {
		dst = append(dst, '-')
	}
	if months {
		dst = append(strconv.AppendInt(dst, magnitude(f.year), 10), '-')
		return strconv.AppendInt(dst, magnitude(f.month), 10)
	}
	if f.day != 0 {
		dst = append(strconv.AppendInt(dst, magnitude(f.day), 10), ' ')
	}
	clock(magnitude(f.hour), magnitude(f.minute))
	return dst
}

func magnitude(n int64) int64 { return max(n, -n) }

// verbose names every unit; the sign of the first is that of all, as "ago": @ 1 year 2 mons ago.
func (f intervalFields) verbose(dst []byte) []byte {
	dst = append(dst, '@')
	zero, before := true, false
	part := func(n int64, unit string) {
		if n == 0 {
			return
		}
		if zero {
			before, n = n < 0, magnitude(n)
		} else if before {
			n = -n
		}
		zero = false
		dst = append(strconv.AppendInt(append(dst, ' '), n, 10), ' ')
		dst = append(dst, unit...)
		if n != 1 {
			dst = append(dst, 's')
		}
	}
	part(f.year, "year")
	part(f.month, "mon")
	part(f.day, "day")
	part(f.hour, "hour")
	part(f.minute, "min")
	if f.micros != 0 {
		dst = append(dst, ' ')
		if zero {
			before = f.micros < 0
		} else if f.micros < 0 != before {
			dst = append(dst, '-')
		}
		zero = false
		dst = append(f.seconds(dst, 1), " sec"...)
		if magnitude(f.micros) != microsPerSecond {
			dst = append(dst, 's')
		}
	}
	if zero {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}
