package encoding

import (
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
)

// IntervalStyles are the values of IntervalStyle. ActiveRecord sets iso_8601 on every connection.
var IntervalStyles = []string{"postgres", "postgres_verbose", "sql_standard", "iso_8601"}

// appendInterval writes an interval in a style; an unknown one is "postgres".
func appendInterval(dst []byte, v policy.Interval, style string) []byte {
	switch style {
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
	dst = append(appendPadded(dst, int(rest/(3600*microsPerSecond)), 2), ':')
	dst = append(appendPadded(dst, int(rest/(60*microsPerSecond)%60), 2), ':')
	return appendSeconds(dst, int(rest/microsPerSecond%60), int(rest%microsPerSecond))
}

// intervalFields are an interval in units, each with its sign.
type intervalFields struct{ year, month, day, hour, minute, micros int64 }

func splitInterval(v policy.Interval) intervalFields {
	const minute = 60 * microsPerSecond
	return intervalFields{int64(v.Months) / 12, int64(v.Months) % 12, int64(v.Days),
		v.Micros / (60 * minute), v.Micros / minute % 60, v.Micros % minute}
}

func (f intervalFields) timed() bool { return f.hour != 0 || f.minute != 0 || f.micros != 0 }

// seconds appends the seconds without their sign.
func (f intervalFields) seconds(dst []byte, width int) []byte {
	m := max(f.micros, -f.micros)
	dst = appendPadded(dst, int(m/microsPerSecond), width)
	if rest := int(m % microsPerSecond); rest != 0 {
		dst = append(appendSeconds(dst, 0, rest)[:len(dst)], appendSeconds(nil, 0, rest)[2:]...)
	}
	return dst
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

// standard is SQL's own: 1-2, or 3 4:05:06, with one sign; what has more than one of both, or two signs, gets all of them.
func (f intervalFields) standard(dst []byte) []byte {
	all := []int64{f.year, f.month, f.day, f.hour, f.minute, f.micros}
	below, above := false, false
	for _, n := range all {
		below, above = below || n < 0, above || n > 0
	}
	months, rest := f.year != 0 || f.month != 0, f.day != 0 || f.timed()
	clock := func(hour, minute int64) {
		dst = append(strconv.AppendInt(dst, hour, 10), ':')
		dst = f.seconds(append(appendPadded(dst, int(minute), 2), ':'), 2)
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
