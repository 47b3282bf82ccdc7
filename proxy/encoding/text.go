package encoding

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

const microsPerSecond = 1_000_000

// text appends the text form of a value as PostgreSQL writes it with DateStyle ISO and the session's form.
func (e *Encoder) text(dst []byte, t policy.Type, value policy.Value) ([]byte, error) {
	switch v := value.(type) {
	case bool:
		if v {
			return append(dst, 't'), nil
		}
		return append(dst, 'f'), nil
	case int64:
		return strconv.AppendInt(dst, v, 10), nil
	case float64:
		return e.form.AppendFloat(dst, v, t == policy.Float4), nil
	case string:
		return append(dst, CString(v)...), nil
	case policy.Numeric:
		return appendNumeric(dst, v), nil
	case policy.Date:
		return appendDate(dst, time.Unix(int64(v)*86400, 0).UTC()), nil
	case policy.Timestamp:
		return appendTimestamp(dst, int64(v), time.UTC, false), nil
	case policy.Timestamptz:
		return appendTimestamp(dst, int64(v), e.zone, true), nil
	case policy.Time:
		return scalar.AppendTime(dst, v), nil
	case policy.Interval:
		return e.form.AppendInterval(dst, v), nil
	case []policy.Value:
		return e.arrayText(dst, t, v)
	}
	return dst, ErrMismatch
}

func appendNumeric(dst []byte, n policy.Numeric) []byte {
	if n.Coefficient == nil {
		return append(dst, '0')
	}
	digits := n.Coefficient.String()
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	scale := int(n.Scale)
	if scale < 0 {
		digits, scale = digits+strings.Repeat("0", -scale), 0
	}
	if pad := scale + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	whole := len(digits) - scale
	dst = append(dst, digits[:whole]...)
	if scale > 0 {
		dst = append(append(dst, '.'), digits[whole:]...)
	}
	return dst
}

func appendPadded(dst []byte, n, width int) []byte {
	s := strconv.Itoa(n)
	for i := len(s); i < width; i++ {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

func appendDay(dst []byte, t time.Time) []byte {
	year := t.Year()
	if year <= 0 {
		year = 1 - year
	}
	dst = append(appendPadded(dst, year, 4), '-')
	dst = append(appendPadded(dst, int(t.Month()), 2), '-')
	return appendPadded(dst, t.Day(), 2)
}

func appendDate(dst []byte, t time.Time) []byte {
	dst = appendDay(dst, t)
	if t.Year() <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

func appendTimestamp(dst []byte, micros int64, zone *time.Location, offset bool) []byte {
	switch micros {
	case math.MaxInt64:
		return append(dst, "infinity"...)
	case math.MinInt64:
		return append(dst, "-infinity"...)
	}
	t := time.UnixMicro(micros).In(zone)
	dst = append(appendDay(dst, t), ' ')
	dst = append(appendPadded(dst, t.Hour(), 2), ':')
	dst = append(appendPadded(dst, t.Minute(), 2), ':')
	dst = appendSeconds(dst, t.Second(), t.Nanosecond()/1000)
	if offset {
		_, seconds := t.Zone()
		sign := byte('+')
		if seconds < 0 {
			sign, seconds = '-', -seconds
		}
		dst = appendPadded(append(dst, sign), seconds/3600, 2)
		if seconds%3600 != 0 {
			dst = appendPadded(append(dst, ':'), seconds%3600/60, 2)
		}
		if seconds%60 != 0 {
			dst = appendPadded(append(dst, ':'), seconds%60, 2)
		}
	}
	if t.Year() <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// appendSeconds writes seconds with as many of six decimals as are not trailing zeros.
func appendSeconds(dst []byte, seconds, micros int) []byte {
	dst = appendPadded(dst, seconds, 2)
	if micros == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), micros, 6)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

// arrayText writes an array; the two vector types of the catalogs have a form of their own.
func (e *Encoder) arrayText(dst []byte, t policy.Type, list []policy.Value) ([]byte, error) {
	element := elements[t]
	vector := t == oidInt2Vector || t == oidOidVector
	if !vector {
		dst = append(dst, '{')
	}
	for i, v := range list {
		if i > 0 && vector {
			dst = append(dst, ' ')
		} else if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		switch inner := v.(type) {
		case nil:
			dst = append(dst, "NULL"...)
		case []policy.Value:
			dst, err = e.arrayText(dst, t, inner)
		default:
			var one []byte
			if one, err = e.text(nil, element, v); err == nil {
				dst = appendQuoted(dst, string(one))
			}
		}
		if err != nil {
			return dst, err
		}
	}
	if !vector {
		dst = append(dst, '}')
	}
	return dst, nil
}

// appendQuoted writes an element, in quotes where it could be misread.
func appendQuoted(dst []byte, s string) []byte {
	if s != "" && !strings.EqualFold(s, "null") && !strings.ContainsAny(s, "{},\"\\ \t\n\r\v\f") {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// CString makes s fit for a zero-terminated UTF-8 string.
func CString(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
