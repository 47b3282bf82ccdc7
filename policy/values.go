package policy

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// dayMicros is the length of a day in microseconds.
const dayMicros = 24 * 3600 * 1000000

// ParseValue reads a constant of type t as a policy writes it. Dates and times are ISO 8601; a timestamptz without a
// zone is in UTC. It returns a Value of t's kind, never nil.
func ParseValue(t Type, text string) (Value, error) {
	switch t {
	case Bool:
		return parseBool(text)
	case Int2, Int4, Int8:
		return parseInteger(t, text)
	case NumericType:
		return ParseNumeric(text)
	case Float4, Float8:
		return parseFloat(t, text)
	case DateType:
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, fmt.Errorf("is %.40q, must be a date such as 2026-12-31", text)
		}
		return Date(at.Unix() / 86400), nil
	case TimestampT:
		micros, err := parseInstant(text, false)
		return Timestamp(micros), err
	case TimestampTZ:
		micros, err := parseInstant(text, true)
		return Timestamptz(micros), err
	case UUID:
		return parseUUID(text)
	case Text, Varchar:
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, fmt.Errorf("is %.40q, must be valid UTF-8 without NUL", text)
		}
		return text, nil
	default:
		return nil, fmt.Errorf("is of %s, which has no constants in a policy", t)
	}
}

func parseBool(text string) (Value, error) {
	switch strings.ToLower(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return nil, fmt.Errorf("is %.40q, must be true or false", text)
}

func parseInteger(t Type, text string) (Value, error) {
	bits := 8 * int(t.Length())
	n, err := strconv.ParseInt(text, 10, bits)
	if err != nil {
		return nil, fmt.Errorf("is %.40q, must be a whole number of type %s", text, t)
	}
	return n, nil
}

// parseFloat takes plain decimals only, so that steps and bounds are exact where they are written.
func parseFloat(t Type, text string) (Value, error) {
	if _, err := ParseNumeric(text); err != nil {
		return nil, err
	}
	f, err := strconv.ParseFloat(text, 8*int(t.Length()))
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("is %.40q, out of range for %s", text, t)
	}
	return f + 0, nil
}

var instantLayouts = []string{
	"2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05",
}

// parseInstant reads microseconds since 1970; fractions of a second follow the seconds, a zone only where allowed.
func parseInstant(text string, zone bool) (int64, error) {
	for _, layout := range instantLayouts {
		for _, suffix := range []string{"", "Z07:00", "Z07", " Z07:00"} {
			if suffix != "" && (!zone || layout == "2006-01-02") {
				continue
			}
			at, err := time.Parse(layout+suffix, text)
			if err != nil {
				continue
			}
			if at.Nanosecond()%1000 != 0 {
				return 0, fmt.Errorf("is %.40q, must have at most six digits of a second", text)
			}
			return at.UnixMicro(), nil
		}
	}
	return 0, fmt.Errorf("is %.40q, must be a time such as 2026-12-31 23:59:00", text)
}

// clock writes a time of the day.
func clock(v Time) string {
	if v == dayMicros {
		return "24:00:00"
	}
	return time.UnixMicro(int64(v)).UTC().Format("15:04:05.999999")
}

func parseUUID(text string) (Value, error) {
	lower := strings.ToLower(text)
	ok := len(lower) == 36
	for i := 0; ok && i < len(lower); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			ok = lower[i] == '-'
		} else {
			ok = strings.IndexByte("0123456789abcdef", lower[i]) >= 0
		}
	}
	if !ok {
		return nil, fmt.Errorf("is %.40q, must be a uuid such as 01234567-89ab-cdef-0123-456789abcdef", text)
	}
	return lower, nil
}

// FormatValue writes a domain's value as ParseValue reads it: for messages, documents and fingerprints.
func FormatValue(t Type, v Value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 8*int(t.Length()))
	case Numeric:
		return v.String()
	case Date:
		return time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly)
	case Timestamp:
		return time.UnixMicro(int64(v)).UTC().Format("2006-01-02 15:04:05.999999")
	case Timestamptz:
		return time.UnixMicro(int64(v)).UTC().Format("2006-01-02 15:04:05.999999Z07:00")
	case Time:
		return clock(v)
	case string:
		return v
	default:
		return fmt.Sprintf("%v", v)
	}
}

// steps in words: dates and times step in these.
var units = map[string]int64{"second": 1000000, "minute": 60 * 1000000, "hour": 3600 * 1000000, "day": dayMicros, "week": 7 * dayMicros}

// ParseStep reads the step of an ordered domain: a number for numbers, "1 day", "15 minutes" or "1 second" for dates
// and times.
func ParseStep(t Type, text string) (Step, error) {
	switch {
	case t.Integer():
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return Step{}, fmt.Errorf("is %.40q, must be a whole number", text)
		}
		return Step{Whole: n}, nil
	case t == NumericType || t.Floating():
		n, err := ParseNumeric(text)
		return Step{Decimal: n}, err
	}
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return Step{}, fmt.Errorf("is %.40q, must be a number and a unit such as 1 day", text)
	}
	n, err := strconv.ParseInt(fields[0], 10, 32)
	unit, known := units[strings.TrimSuffix(strings.ToLower(fields[1]), "s")]
	if err != nil || n < 1 || !known || t == DateType && unit < dayMicros {
		if t == DateType {
			return Step{}, fmt.Errorf("is %.40q, must be a number of days or weeks such as 1 day", text)
		}
		return Step{}, fmt.Errorf("is %.40q, must be a number of seconds, minutes, hours, days or weeks such as 15 minutes", text)
	}
	if t == DateType {
		unit /= dayMicros
	}
	if n > (1<<62)/unit {
		return Step{}, fmt.Errorf("is %.40q, too large", text)
	}
	return Step{Whole: n * unit}, nil
}

// maxScale bounds the digits after the point of a numeric constant in a policy.
const maxScale = 100

// NewNumeric is n · 10^−scale.
func NewNumeric(n int64, scale int32) Numeric { return Numeric{big.NewInt(n), scale} }

// ParseNumeric reads a plain decimal such as -12.50; the digits after the point are its scale.
func ParseNumeric(text string) (Numeric, error) {
	bad := fmt.Errorf("is %.40q, must be a decimal number such as 12.5", text)
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole, "+-") + fraction
	if len(whole)-len(strings.TrimLeft(whole, "+-")) > 1 || digits == "" || len(text) > 1000 || len(fraction) > maxScale {
		return Numeric{}, bad
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return Numeric{}, bad
		}
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return Numeric{}, bad
	}
	if strings.HasPrefix(whole, "-") {
		n.Neg(n)
	}
	return Numeric{n, int32(len(fraction))}, nil
}

// At returns n's coefficient at a larger or equal scale: At(2) of 1.5 is 150.
func (n Numeric) At(scale int32) *big.Int {
	if n.Coefficient == nil {
		return new(big.Int)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-n.Scale)), nil)
	return power.Mul(power, n.Coefficient)
}

// Cmp compares by value: 1.50 equals 1.5.
func (n Numeric) Cmp(m Numeric) int {
	scale := max(n.Scale, m.Scale)
	return n.At(scale).Cmp(m.At(scale))
}

// Rescale gives n more or fewer digits after the point, cutting towards zero where digits go.
func (n Numeric) Rescale(scale int32) Numeric {
	if scale >= n.Scale {
		return Numeric{n.At(scale), scale}
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.Scale-scale)), nil)
	return Numeric{power.Quo(n.At(n.Scale), power), scale}
}

// String writes all Scale digits after the point, as PostgreSQL does.
func (n Numeric) String() string {
	if n.Coefficient == nil {
		return "0"
	}
	digits := new(big.Int).Abs(n.Coefficient).String()
	if n.Scale < 0 {
		digits += strings.Repeat("0", int(-n.Scale))
	} else if n.Scale > 0 {
		if short := int(n.Scale) + 1 - len(digits); short > 0 {
			digits = strings.Repeat("0", short) + digits
		}
		digits = digits[:len(digits)-int(n.Scale)] + "." + digits[len(digits)-int(n.Scale):]
	}
	if n.Coefficient.Sign() < 0 {
		digits = "-" + digits
	}
	return digits
}
