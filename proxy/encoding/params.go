package encoding

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// Parameter reads the i-th parameter of a Bind message, sent in a session's style; a nil raw is NULL. The time is what
// the texts now and today mean.
func Parameter(i int, t policy.Type, code int16, raw []byte, style Style, now time.Time) (policy.Value, *pgerror.Failure) {
	set := style.Charset
	if raw == nil {
		return nil, nil
	}
	if code == 1 {
		v, err := readBinary(set, t, raw)
		switch {
		case errors.Is(err, errNotUTF8):
			return nil, notText(set)
		case errors.Is(err, errShort):
			return nil, pgerror.New("08P01", "insufficient data left in message")
		case errors.Is(err, errDimensions):
			return nil, severalDimensions()
		case errors.Is(err, errInfinite):
			return nil, infinite()
		case errors.Is(err, errOnlyText):
			return nil, pgerror.New("DP002", fmt.Sprintf("a parameter of type %s is not available in binary", scalar.TypeName(t))).WithHint("Send its text.")
		case err != nil:
			return nil, pgerror.New("22P03", fmt.Sprintf("incorrect binary data format in bind parameter %d", i+1))
		}
		return v, nil
	}
	raw, refusal := set.read(raw)
	if refusal != nil {
		return nil, refusal
	}
	if !utf8.Valid(raw) || hasZero(raw) {
		return nil, notText(set)
	}
	return readText(scalar.Env{Now: now, Zone: style.Zone, Form: style.Form}, t, string(raw))
}

// notText says that a parameter is not text in the client's encoding.
func notText(set *Charset) *pgerror.Failure {
	name := "UTF8"
	if set != nil {
		name = set.name
	}
	return pgerror.New("22021", fmt.Sprintf("invalid byte sequence for encoding %q", name))
}

func hasZero(raw []byte) bool {
	for _, b := range raw {
		if b == 0 {
			return true
		}
	}
	return false
}

// readText reads the text form of a value.
func readText(env scalar.Env, t policy.Type, s string) (policy.Value, *pgerror.Failure) {
	if element, ok := elements[t]; ok {
		return readTextArray(env, element, s)
	}
	switch t {
	case policy.Text, policy.Varchar, policy.Unknown, oidName, policy.Bpchar, oidJSON, oidJSONB, oidXML, oidChar:
		return s, nil
	case oidOid, oidXid, oidCid, oidRegproc, oidRegclass, oidRegtype, oidRegNS, oidRegRole:
		if v, err := env.ParseText(policy.Int8, s); err == nil {
			return v, nil
		}
		return s, nil
	}
	if _, ok := widths[t]; !ok && t != policy.NumericType {
		return s, nil
	}
	v, err := env.ParseText(t, s)
	if err == nil {
		return v, nil
	}
	if special := unbounded(s); t == policy.NumericType && special != "" {
		return special, nil
	}
	word := strings.ToLower(strings.TrimSpace(s))
	if t.Moment() && (word == "infinity" || word == "-infinity") { // which an engine and comparisons read
		return word, nil
	}
	var typed *scalar.Error
	if errors.As(err, &typed) && typed.SQLState == "0A000" { // at which pools of connections drop theirs
		return nil, pgerror.New("DP002", typed.Message).WithHint("Send a date as 2024-02-29, and leave an infinite bound out.")
	}
	if errors.As(err, &typed) {
		return nil, pgerror.New(typed.SQLState, typed.Message)
	}
	return nil, pgerror.New("22P02", "invalid input syntax for a parameter")
}

// A numeric that is no number (NaN) or infinite is none that is computed with here: it stays its text, which is in the
// statement as 'NaN'::numeric would be, so that a PostgreSQL sandbox reads it as PostgreSQL does, and what would
// compare a private column with it is refused.

// unbounded is such a value as PostgreSQL writes it; empty means the text is none.
func unbounded(s string) string {
	switch strings.ToLower(strings.Trim(s, " \t\n\r\f\v")) {
	case "nan":
		return "NaN"
	case "inf", "infinity", "+inf", "+infinity":
		return "Infinity"
	case "-inf", "-infinity":
		return "-Infinity"
	}
	return ""
}

func infinite() *pgerror.Failure {
	return pgerror.New("DP002", "a list with an infinite date, or with a numeric that is infinite or NaN, is not available as a parameter").WithHint("Leave the bound out.")
}

// readTextArray reads {a,"b c",NULL} of one dimension.
func readTextArray(env scalar.Env, element policy.Type, s string) (policy.Value, *pgerror.Failure) {
	words, quoted, ok := splitArray(s)
	if !ok && strings.HasPrefix(s, "{{") {
		return nil, severalDimensions()
	}
	if !ok {
		return nil, pgerror.New("22P02", "malformed array literal in a parameter")
	}
	list := make([]policy.Value, 0, len(words))
	for i, w := range words {
		if !quoted[i] && (w == "NULL" || w == "null") {
			list = append(list, nil)
			continue
		}
		v, f := readText(env, element, w)
		if f != nil {
			return nil, f
		}
		if element.Endless(v) {
			return nil, infinite()
		}
		list = append(list, v)
	}
	return list, nil
}

func severalDimensions() *pgerror.Failure {
	return pgerror.New("DP002", "an array of several dimensions is not available as a parameter").WithHint("Send one list.")
}

func splitArray(s string) (words []string, quoted []bool, ok bool) {
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return nil, nil, false
	}
	if s == "{}" {
		return nil, nil, true
	}
	var word []byte
	inside, wasQuoted := false, false
	for i := 1; i < len(s); i++ {
		switch b := s[i]; {
		case b == '\\' && i+1 < len(s)-1:
			i++
			word = append(word, s[i])
		case b == '"':
			inside, wasQuoted = !inside, true
		case inside:
			word = append(word, b)
		case b == ',' || b == '}':
			if b == '}' && i != len(s)-1 || len(word) == 0 && !wasQuoted {
				return nil, nil, false
			}
			words, quoted = append(words, string(word)), append(quoted, wasQuoted)
			word, wasQuoted = nil, false
		case b == '{':
			return nil, nil, false
		case b == ' ' && (len(word) == 0 || i+1 < len(s) && (s[i+1] == ',' || s[i+1] == '}')):
		default:
			word = append(word, b)
		}
	}
	return words, quoted, !inside
}

var (
	errBinary     = errors.New("malformed binary value")
	errShort      = errors.New("value ends early")
	errNotUTF8    = errors.New("text that is not UTF-8, or holds a zero")
	errInfinite   = errors.New("infinite date")
	errDimensions = errors.New("array of several dimensions")
	errOnlyText   = errors.New("a type whose binary form is not known here")
)

// readBinary reads the binary form of a value.
func readBinary(set *Charset, t policy.Type, raw []byte) (policy.Value, error) {
	be := binary.BigEndian
	if width := int(widths[t]); width > 0 && t != oidChar && t != oidName && t != oidVoid && len(raw) != width {
		if len(raw) < width {
			return nil, errShort
		}
		return nil, errBinary
	}
	switch t {
	case policy.Bool:
		return raw[0] != 0, nil
	case policy.Int2:
		return int64(int16(be.Uint16(raw))), nil
	case policy.Int4:
		return int64(int32(be.Uint32(raw))), nil
	case policy.Int8:
		return int64(be.Uint64(raw)), nil
	case oidOid, oidXid, oidCid, oidRegproc, oidRegclass, oidRegtype, oidRegNS, oidRegRole:
		return int64(be.Uint32(raw)), nil
	case policy.Float4:
		return float64(math.Float32frombits(be.Uint32(raw))), nil
	case policy.Float8:
		return math.Float64frombits(be.Uint64(raw)), nil
	case policy.DateType:
		return readDate(int32(be.Uint32(raw)))
	case policy.TimestampT:
		micros, err := readMicros(int64(be.Uint64(raw)))
		return policy.Timestamp(micros), err
	case policy.TimestampTZ:
		micros, err := readMicros(int64(be.Uint64(raw)))
		return policy.Timestamptz(micros), err
	case policy.TimeT:
		return readTime(int64(be.Uint64(raw)))
	case policy.IntervalT:
		return policy.Interval{Micros: int64(be.Uint64(raw)), Days: int32(be.Uint32(raw[8:])), Months: int32(be.Uint32(raw[12:]))}, nil
	case policy.UUID:
		h := hex.EncodeToString(raw)
		return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:], nil
	case policy.NumericType:
		return readBinaryNumeric(raw)
	case oidChar:
		if len(raw) != 1 || raw[0] > 127 {
			return nil, errBinary
		}
		return strings.TrimSuffix(string(raw), "\x00"), nil
	case oidJSONB:
		if len(raw) == 0 || raw[0] != 1 {
			return nil, errBinary
		}
		raw = raw[1:]
	}
	if element, ok := elements[t]; ok {
		return readBinaryArray(set, element, raw)
	}
	if t == oidBytea {
		return `\x` + hex.EncodeToString(raw), nil
	}
	if !textual(t) && t != oidVoid { // of which there is nothing to read
		return nil, errOnlyText
	}
	raw, refusal := set.read(raw)
	if refusal != nil || !utf8.Valid(raw) || hasZero(raw) {
		return nil, errNotUTF8
	}
	return string(raw), nil
}

func readDate(days int32) (policy.Value, error) {
	switch days { // as texts, too
	case math.MaxInt32:
		return "infinity", nil
	case math.MinInt32:
		return "-infinity", nil
	}
	if days > math.MaxInt32-daysTo2000 {
		return nil, errBinary
	}
	return policy.Date(days + daysTo2000), nil
}

// readTime reads the microseconds since midnight, the day's end among them.
func readTime(micros int64) (policy.Value, error) {
	if micros < 0 || micros > 86_400*microsPerSecond {
		return nil, errBinary
	}
	return policy.Time(micros), nil
}

func readMicros(micros int64) (int64, error) {
	if micros == math.MaxInt64 || micros == math.MinInt64 {
		return micros, nil // the infinities
	}
	if micros > math.MaxInt64-microsTo2000 {
		return 0, errBinary
	}
	return micros + microsTo2000, nil
}

// maxNumericDigits bounds each side of the point, as PostgreSQL's own limits do for what is declared.
const maxNumericDigits = 16_383

func readBinaryNumeric(raw []byte) (policy.Value, error) {
	be := binary.BigEndian
	if len(raw) < 8 {
		return nil, errBinary
	}
	groups, weight := int(be.Uint16(raw)), int(int16(be.Uint16(raw[2:])))
	sign, scale := be.Uint16(raw[4:]), int(be.Uint16(raw[6:]))
	if special, ok := map[uint16]string{0xc000: "NaN", 0xd000: "Infinity", 0xf000: "-Infinity"}[sign]; ok && len(raw) == 8 && groups == 0 {
		return special, nil
	}
	if len(raw) != 8+2*groups || sign != 0 && sign != 0x4000 || scale > maxNumericDigits || 4*groups > 2*maxNumericDigits ||
		4*weight > maxNumericDigits || 4*weight < -maxNumericDigits {
		return nil, errBinary
	}
	digits := []byte{'0'}
	for i := range groups {
		g := be.Uint16(raw[8+2*i:])
		if g > 9999 {
			return nil, errBinary
		}
		digits = appendPadded(digits, int(g), 4)
	}
	// The digits count units of 10^(4·(weight+1−groups)); the value is wanted in units of 10^−scale.
	if shift := 4*(weight+1-groups) + scale; shift >= 0 {
		digits = append(digits, strings.Repeat("0", shift)...)
	} else {
		digits = digits[:max(1, len(digits)+shift)]
	}
	n, ok := new(big.Int).SetString(string(digits), 10)
	if !ok {
		return nil, errBinary
	}
	if sign == 0x4000 {
		n.Neg(n)
	}
	return policy.Numeric{Coefficient: n, Scale: int32(scale)}, nil
}

func readBinaryArray(set *Charset, element policy.Type, raw []byte) (policy.Value, error) {
	be := binary.BigEndian
	if len(raw) < 12 {
		return nil, errBinary
	}
	dims := be.Uint32(raw)
	named := policy.Type(be.Uint32(raw[8:]))
	if dims == 0 {
		return []policy.Value{}, nil
	}
	if dims > 1 && dims <= 6 && named == element { // as many as PostgreSQL has
		return nil, errDimensions
	}
	if dims != 1 || len(raw) < 20 || named != element {
		return nil, errBinary
	}
	n, rest := int(be.Uint32(raw[12:])), raw[20:]
	if n > len(rest)/4 {
		return nil, errBinary
	}
	list := make([]policy.Value, 0, n)
	for range n {
		if len(rest) < 4 {
			return nil, errBinary
		}
		size := int(int32(be.Uint32(rest)))
		rest = rest[4:]
		if size == -1 {
			list = append(list, nil)
			continue
		}
		if size < 0 || size > len(rest) {
			return nil, errBinary
		}
		v, err := readBinary(set, element, rest[:size])
		if err == nil && element.Endless(v) {
			err = errInfinite
		}
		if err != nil {
			return nil, err
		}
		list, rest = append(list, v), rest[size:]
	}
	if len(rest) != 0 {
		return nil, errBinary
	}
	return list, nil
}
