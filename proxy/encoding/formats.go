package encoding

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// PostgreSQL counts binary dates and times from 2000-01-01.
const (
	daysTo2000   = 10_957
	microsTo2000 = daysTo2000 * 86_400 * microsPerSecond
)

const quietNaN = 0x7ff8000000000000

// binary appends the binary form of a value.
func (e *Encoder) binary(dst []byte, t policy.Type, value policy.Value) ([]byte, error) {
	be := binary.BigEndian
	switch v := value.(type) {
	case bool:
		if t != policy.Bool {
			return dst, ErrMismatch
		}
		if v {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case int64:
		return binaryInteger(dst, t, v)
	case float64:
		switch t {
		case policy.Float4:
			return be.AppendUint32(dst, math.Float32bits(float32(v))), nil
		case policy.Float8:
			if math.IsNaN(v) {
				return be.AppendUint64(dst, quietNaN), nil // Go's own has another bit
			}
			return be.AppendUint64(dst, math.Float64bits(v)), nil
		}
	case string:
		if oid, ok := e.names.oid(t, v); ok {
			return binaryInteger(dst, t, oid)
		}
		at := len(dst)
		dst, err := binaryString(dst, t, v)
		if err != nil || !textual(t) {
			return dst, err
		}
		return e.charset.rewritten(dst, at)
	case policy.Numeric:
		if t == policy.NumericType {
			return binaryNumeric(dst, v), nil
		}
	case policy.Date:
		if t == policy.DateType {
			return be.AppendUint32(dst, uint32(int32(v)-daysTo2000)), nil
		}
	case policy.Timestamp:
		if t == policy.TimestampT {
			return be.AppendUint64(dst, uint64(since2000(int64(v)))), nil
		}
	case policy.Timestamptz:
		if t == policy.TimestampTZ {
			return be.AppendUint64(dst, uint64(since2000(int64(v)))), nil
		}
	case policy.Time:
		if t == policy.TimeT {
			return be.AppendUint64(dst, uint64(v)), nil
		}
	case policy.Interval:
		if t == policy.IntervalT {
			dst = be.AppendUint64(dst, uint64(v.Micros))
			dst = be.AppendUint32(dst, uint32(v.Days))
			return be.AppendUint32(dst, uint32(v.Months)), nil
		}
	case []policy.Value:
		return e.binaryArray(dst, t, v)
	}
	return dst, ErrMismatch
}

func since2000(micros int64) int64 {
	if micros == math.MaxInt64 || micros == math.MinInt64 {
		return micros // the infinities
	}
	return micros - microsTo2000
}

func binaryInteger(dst []byte, t policy.Type, v int64) ([]byte, error) {
	be := binary.BigEndian
	switch t {
	case policy.Int2:
		if v != int64(int16(v)) {
			return dst, ErrMismatch
		}
		return be.AppendUint16(dst, uint16(v)), nil
	case policy.Int4:
		if v != int64(int32(v)) {
			return dst, ErrMismatch
		}
		return be.AppendUint32(dst, uint32(v)), nil
	case policy.Int8:
		return be.AppendUint64(dst, uint64(v)), nil
	case oidOid, oidXid, oidCid, oidRegproc, oidRegclass, oidRegtype, oidRegNS, oidRegRole:
		if v != int64(uint32(v)) {
			return dst, ErrMismatch
		}
		return be.AppendUint32(dst, uint32(v)), nil
	case policy.Text, policy.Varchar, oidName, policy.Bpchar:
		return strconv.AppendInt(dst, v, 10), nil
	}
	return dst, ErrMismatch
}

func binaryString(dst []byte, t policy.Type, s string) ([]byte, error) {
	switch t {
	case policy.UUID:
		raw, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
		if err != nil || len(raw) != 16 {
			return dst, ErrMismatch
		}
		return append(dst, raw...), nil
	case oidBytea:
		digits, ok := strings.CutPrefix(s, `\x`) // of bytea_output hex
		raw, err := hex.DecodeString(digits)
		if !ok || err != nil {
			return dst, ErrMismatch
		}
		return append(dst, raw...), nil
	case oidChar:
		if s == "" {
			return append(dst, 0), nil
		}
		return append(dst, s[0]), nil
	case oidJSONB:
		return append(append(dst, 1), CString(s)...), nil
	case oidVoid:
		return dst, nil
	case policy.Text, policy.Varchar, oidName, policy.Bpchar, oidJSON, oidXML, oidNodeTree:
		return append(dst, CString(s)...), nil
	case oidOid, oidXid, oidCid, oidRegproc, oidRegclass, oidRegtype, oidRegNS, oidRegRole, policy.Int2, policy.Int4, policy.Int8:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return dst, ErrMismatch
		}
		return binaryInteger(dst, t, n)
	}
	return dst, ErrMismatch
}

// binaryNumeric writes groups of four decimal digits, aligned at the decimal point.
func binaryNumeric(dst []byte, n policy.Numeric) []byte {
	digits := string(appendNumeric(nil, n))
	sign := uint16(0)
	if digits[0] == '-' {
		sign, digits = 0x4000, digits[1:]
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	scale := len(fraction)
	if short := len(whole) % 4; short != 0 {
		whole = strings.Repeat("0", 4-short) + whole
	}
	if short := len(fraction) % 4; short != 0 {
		fraction += strings.Repeat("0", 4-short)
	}
	var groups []uint16
	for all := whole + fraction; len(all) >= 4; all = all[4:] {
		group, _ := strconv.ParseUint(all[:4], 10, 16)
		groups = append(groups, uint16(group))
	}
	weight := len(whole)/4 - 1
	for len(groups) > 0 && groups[0] == 0 {
		groups = groups[1:]
		weight--
	}
	for len(groups) > 0 && groups[len(groups)-1] == 0 {
		groups = groups[:len(groups)-1]
	}
	if len(groups) == 0 {
		weight, sign = 0, 0
	}
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(len(groups)))
	dst = be.AppendUint16(dst, uint16(int16(weight)))
	dst = be.AppendUint16(dst, sign)
	dst = be.AppendUint16(dst, uint16(scale))
	for _, g := range groups {
		dst = be.AppendUint16(dst, g)
	}
	return dst
}

// binaryArray writes an array of one or more dimensions; each must be even.
func (e *Encoder) binaryArray(dst []byte, t policy.Type, list []policy.Value) ([]byte, error) {
	element, ok := elements[t]
	if !ok {
		return dst, ErrMismatch
	}
	be := binary.BigEndian
	var dims []int
	flat := list
	for len(flat) > 0 {
		dims = append(dims, len(flat))
		first, nested := flat[0].([]policy.Value)
		if !nested {
			break
		}
		flat = first
	}
	lower := uint32(1)
	if t == oidInt2Vector || t == oidOidVector {
		lower = 0
	}
	dst = be.AppendUint32(dst, uint32(len(dims)))
	nulls := len(dst)
	dst = be.AppendUint32(dst, 0)
	dst = be.AppendUint32(dst, uint32(element))
	for _, d := range dims {
		dst = be.AppendUint32(dst, uint32(d))
		dst = be.AppendUint32(dst, lower)
	}
	if len(dims) == 0 {
		return dst, nil
	}
	return e.binaryElements(dst, element, list, dims, nulls)
}

func (e *Encoder) binaryElements(dst []byte, element policy.Type, list []policy.Value, dims []int, nulls int) ([]byte, error) {
	if len(list) != dims[0] {
		return dst, ErrMismatch
	}
	be := binary.BigEndian
	for _, v := range list {
		var err error
		inner, nested := v.([]policy.Value)
		switch {
		case nested && len(dims) > 1:
			dst, err = e.binaryElements(dst, element, inner, dims[1:], nulls)
		case nested || len(dims) > 1:
			err = ErrMismatch
		case v == nil:
			be.PutUint32(dst[nulls:], 1)
			dst = be.AppendUint32(dst, 0xFFFFFFFF)
		default:
			at := len(dst)
			dst = append(dst, 0, 0, 0, 0)
			if dst, err = e.binary(dst, element, v); err == nil {
				be.PutUint32(dst[at:], uint32(len(dst)-at-4))
			}
		}
		if err != nil {
			return dst, err
		}
	}
	return dst, nil
}

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
