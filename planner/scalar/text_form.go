package scalar

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// ParseText reads the text form of a value of type t, as 't'::type does. FormatText writes it as PostgreSQL sends it
// (DateStyle ISO, IntervalStyle postgres), whatever the session's form: what it writes is read back as the same value.
func (env Env) ParseText(t policy.Type, text string) (policy.Value, error) {
	switch t {
	case policy.Bool:
		return parseBool(text)
	case policy.Int2, policy.Int4, policy.Int8:
		return parseInteger(t, text)
	case policy.Float4, policy.Float8:
		return parseFloat(t, text)
	case policy.NumericType:
		return parseNumericText(text)
	case policy.Text, policy.Varchar, policy.Bpchar, policy.Unknown:
		return policy.Trimmed(t, text), nil
	case policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.IntervalT, policy.TimeT:
		v, err := env.parseTime(t, text)
		return understood(t, text, v, err)
	case policy.UUID:
		return parseUUID(text)
	}
	return nil, unsupported("type %s", loadCatalog().typeName(t))
}

func (env *Env) parseTime(t policy.Type, text string) (policy.Value, error) {
	switch t {
	case policy.DateType:
		return env.parseDate(text)
	case policy.TimestampT:
		return env.parseTimestamp(text)
	case policy.TimestampTZ:
		return env.parseTimestamptz(text)
	case policy.TimeT:
		return parseDayTime(text)
	}
	return env.Form.parseInterval(text)
}

// FormatText: see ParseText.
func (env Env) FormatText(t policy.Type, v policy.Value) string {
	switch v := v.(type) {
	case bool:
		if v {
			return "t"
		}
		return "f"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v, t == policy.Float4)
	case string:
		return v
	case numeric:
		return v.String()
	case policy.Date:
		return formatDate(v)
	case policy.Timestamp:
		return formatTimestamp(v)
	case policy.Timestamptz:
		return env.formatTimestamptz(v)
	case policy.Time:
		return clockText(int64(v))
	case policy.Interval:
		return string(appendPostgres(nil, v))
	}
	return ""
}

const blanks = " \t\n\v\f\r"

func trimBlanks(s string) string { return strings.Trim(s, blanks) }

func parseBool(text string) (policy.Value, error) {
	s := strings.ToLower(trimBlanks(text))
	for word, v := range map[string]bool{"true": true, "yes": true, "false": false, "no": false} {
		if s != "" && strings.HasPrefix(word, s) {
			return v, nil
		}
	}
	switch s {
	case "on", "1":
		return true, nil
	case "of", "off", "0":
		return false, nil
	}
	return nil, badText(policy.Bool)
}

func parseInteger(t policy.Type, text string) (policy.Value, error) {
	s := trimBlanks(text)
	digits := strings.TrimPrefix(s, "-")
	if digits == s {
		digits = strings.TrimPrefix(s, "+")
	}
	if !allDigits(digits) {
		return nil, badText(t)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || t == policy.Int4 && n != int64(int32(n)) || t == policy.Int2 && n != int64(int16(n)) {
		return nil, failf(stateRange, "value is out of range for type %s", t.Name())
	}
	return n, nil
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// decimalForm splits [sign] digits [. digits] [e [sign] digits]; ok is false for any other text.
func decimalForm(s string) (negative bool, whole, fraction, exponent string, ok bool) {
	negative = strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		s, exponent = s[:i], s[i+1:]
		if !allDigits(strings.TrimLeft(exponent, "+-")) || len(exponent)-len(strings.TrimLeft(exponent, "+-")) > 1 {
			return
		}
	}
	whole, fraction, _ = strings.Cut(s, ".")
	ok = (whole == "" || allDigits(whole)) && (fraction == "" || allDigits(fraction)) && whole+fraction != ""
	return
}

func parseFloat(t policy.Type, text string) (policy.Value, error) {
	s := trimBlanks(text)
	switch strings.ToLower(s) {
	case "nan", "+nan", "-nan":
		return math.NaN(), nil
	case "inf", "infinity", "+inf", "+infinity":
		return math.Inf(1), nil
	case "-inf", "-infinity":
		return math.Inf(-1), nil
	}
	if strings.Contains(strings.ToLower(s), "0x") || strings.Contains(strings.ToLower(s), "nan(") {
		return nil, unsupported("a hexadecimal number")
	}
	_, whole, fraction, _, ok := decimalForm(s)
	if !ok {
		return nil, badText(t)
	}
	bits := 64
	if t == policy.Float4 {
		bits = 32
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil || v == 0 && strings.Trim(whole+fraction, "0") != "" {
		return nil, failf(stateRange, "value is out of range for type %s", t.Name())
	}
	return v, nil
}

// parseNumericText reads a numeric constant; not-a-number and infinities are refused.
func parseNumericText(text string) (policy.Value, error) {
	s := trimBlanks(text)
	switch strings.ToLower(s) {
	case "nan", "inf", "infinity", "+inf", "+infinity", "-inf", "-infinity":
		return nil, ErrInfinite
	}
	return parseNumeric(s)
}

func parseNumeric(s string) (policy.Value, error) {
	negative, whole, fraction, exponentText, ok := decimalForm(s)
	if !ok {
		if i := strings.IndexAny(s, "eE"); i >= 0 && strings.ContainsAny(s[i:], blanks) {
			return nil, unsupported("a blank before an exponent")
		}
		return nil, badText(policy.NumericType)
	}
	exponent := 0
	if exponentText != "" {
		var err error
		if exponent, err = strconv.Atoi(exponentText); err != nil || exponent > 1<<30 || exponent < -1<<30 {
			return nil, badText(policy.NumericType)
		}
	}
	scale := len(fraction) - exponent
	if len(whole)+len(fraction) > 2*maxWholeDigits || scale > maxScale {
		return nil, errNumeric
	}
	c := bigOf(whole + fraction)
	if c.Sign() == 0 {
		return newNumeric(c, int32(max(scale, 0))), nil
	}
	if -scale > maxWholeDigits {
		return nil, errNumeric
	}
	if negative {
		c.Neg(c)
	}
	if scale < 0 {
		return fits(newNumeric(new(big.Int).Mul(c, pow10(int32(-scale))), 0))
	}
	return fits(newNumeric(c, int32(scale)))
}

// parseUUID reads 32 hexadecimal digits, with hyphens after every fourth if wanted, in braces if wanted.
func parseUUID(text string) (policy.Value, error) {
	s := strings.ToLower(text)
	if inner, ok := strings.CutPrefix(s, "{"); ok {
		if s, ok = strings.CutSuffix(inner, "}"); !ok {
			return nil, badText(policy.UUID)
		}
	}
	digits := make([]byte, 0, 32)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			digits = append(digits, c)
		case c == '-' && len(digits)%4 == 0 && i > 0 && s[i-1] != '-' && i < len(s)-1:
		default:
			return nil, badText(policy.UUID)
		}
	}
	if len(digits) != 32 {
		return nil, badText(policy.UUID)
	}
	d := string(digits)
	return d[:8] + "-" + d[8:12] + "-" + d[12:16] + "-" + d[16:20] + "-" + d[20:], nil
}

// formatFloat writes the fewest digits that read back as v, with an exponent where the type's digits run out.
func formatFloat(v float64, single bool) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	bits, most := 64, 15
	if single {
		bits, most = 32, 6
	}
	scientific := shortest(v, bits)
	mark := strings.IndexByte(scientific, 'e')
	exponent, err := strconv.Atoi(scientific[mark+1:])
	if err != nil {
		return scientific
	}
	if v != 0 && (exponent < -4 || exponent >= most) {
		return scientific
	}
	digits := len(scientific[:mark]) - 1
	if strings.HasPrefix(scientific, "-") {
		digits--
	}
	fraction := max(digits-1-exponent, 0)
	if !strings.Contains(scientific[:mark], ".") {
		fraction = max(-exponent, 0)
	}
	plain, err := strconv.ParseFloat(scientific, 64)
	if err != nil {
		return scientific
	}
	return strconv.FormatFloat(plain, 'f', fraction, 64)
}

// shortest is v in scientific form with the fewest digits that lie strictly inside the interval that rounds to v.
// Go also takes the interval's ends, which only large numbers meet.
func shortest(v float64, bits int) string {
	text := strconv.FormatFloat(v, 'e', -1, bits)
	if mark := strings.IndexByte(text, 'e'); mark > 2 {
		// Half-way between two shortest forms Go takes the upper one, PostgreSQL the even one.
		digits := mark - 2 - strings.Count(text[:1], "-")
		even := strconv.FormatFloat(v, 'e', digits, bits)
		if back, err := strconv.ParseFloat(even, bits); err == nil && back == v {
			text = even
		}
	}
	limit := float64(1 << 51)
	if bits == 32 {
		limit = 1 << 22
	}
	if math.Abs(v) < limit {
		return text
	}
	for digits := 0; digits < 17; digits++ {
		candidate := strconv.FormatFloat(v, 'e', digits, bits)
		if len(candidate) >= len(text) && strictlyInside(v, candidate, bits) {
			if strictlyInside(v, text, bits) && len(candidate) == len(text) {
				return text
			}
			return candidate
		}
	}
	return text
}

// strictlyInside reports whether the decimal reads back as v and is not half-way to a neighbour.
func strictlyInside(v float64, decimal string, bits int) bool {
	up, down := math.Nextafter(v, math.Inf(1)), math.Nextafter(v, math.Inf(-1))
	if bits == 32 {
		up = float64(math.Nextafter32(float32(v), float32(math.Inf(1))))
		down = float64(math.Nextafter32(float32(v), float32(math.Inf(-1))))
	}
	at, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return false
	}
	for _, neighbour := range []float64{up, down} {
		if math.IsInf(neighbour, 0) {
			continue
		}
		middle := new(big.Rat).SetFloat64(v)
		middle.Add(middle, new(big.Rat).SetFloat64(neighbour))
		middle.Mul(middle, big.NewRat(1, 2))
		if c := at.Cmp(middle); c == 0 || (c > 0) != (neighbour < v) {
			return false
		}
	}
	return true
}
