package twin

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// Values as PostgreSQL writes and reads them: the texts of results, and arrays for parameters.

// fromText reads the text form of a value of type t. What package policy has no form for (dates before Christ, the
// infinities of time, NaN of numeric, types of their own) stays the text that it is.
func fromText(env scalar.Env, t policy.Type, text string) policy.Value {
	switch t {
	case policy.Text, policy.Varchar:
		return text
	case policy.Bool:
		return text == "t"
	case 26, 28, 29: // oid, xid, cid
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return text
	}
	if element, ok := catalog.Element(t); ok {
		if list, ok := listOf(env, t, element, text); ok {
			return list
		}
		return text
	}
	if !simple(t) {
		return text
	}
	v, err := env.ParseText(t, text)
	if err != nil || env.FormatText(t, v) != text && t != policy.UUID {
		return text
	}
	return v
}

// fromBinary reads the binary form of a number of floating point, or of an interval. What is no such is nothing.
func fromBinary(t policy.Type, b []byte) policy.Value {
	switch {
	case t == policy.Float8 && len(b) == 8:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	case t == policy.Float4 && len(b) == 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case t == policy.IntervalT && len(b) == 16:
		return policy.Interval{Micros: int64(binary.BigEndian.Uint64(b)), Days: int32(binary.BigEndian.Uint32(b[8:])), Months: int32(binary.BigEndian.Uint32(b[12:]))}
	}
	return nil
}

// listOf reads an array of one dimension, or a vector.
func listOf(env scalar.Env, t, element policy.Type, text string) ([]policy.Value, bool) {
	list := []policy.Value{}
	if t == 22 || t == 30 { // int2vector, oidvector
		for part := range strings.FieldsSeq(text) {
			list = append(list, fromText(env, element, part))
		}
		return list, true
	}
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, false
	}
	for rest := text[1 : len(text)-1]; rest != ""; {
		item, quoted, after, ok := nextItem(rest)
		if !ok {
			return nil, false
		}
		if item == "NULL" && !quoted {
			list = append(list, nil)
		} else {
			list = append(list, fromText(env, element, item))
		}
		rest = after
	}
	return list, true
}

// nextItem takes the first element off the inside of an array literal that PostgreSQL wrote.
func nextItem(text string) (item string, quoted bool, rest string, ok bool) {
	if text[0] == '{' {
		return "", false, "", false // of more dimensions
	}
	var b strings.Builder
	i := 0
	if quoted = text[0] == '"'; quoted {
		for i = 1; i < len(text) && text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
			if i < len(text) {
				b.WriteByte(text[i])
			}
		}
		i++
	} else {
		for ; i < len(text) && text[i] != ','; i++ {
			b.WriteByte(text[i])
		}
	}
	switch {
	case i == len(text):
		return b.String(), quoted, "", true
	case i > len(text) || text[i] != ',' || i+1 == len(text):
		return "", false, "", false
	}
	return b.String(), quoted, text[i+1:], true
}

// simple tells the types whose arrays are sent as such; values of others travel as text.
func simple(t policy.Type) bool {
	switch t {
	case policy.Bool, policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.NumericType, policy.Text, policy.Varchar,
		policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.TimeT, policy.IntervalT, policy.UUID:
		return true
	}
	return false
}

// typeText names a type of PostgreSQL's own.
func typeText(c sandbox.Column) string {
	if c.Typmod >= 0 {
		switch c.Type {
		case policy.NumericType, policy.Varchar, policy.Bpchar:
			return c.Type.Format(c.Typmod)
		}
	}
	if c.Type == policy.Bpchar { // "character" is character(1)
		return "pg_catalog.bpchar"
	}
	if name, ok := catalog.TypeName(c.Type); ok {
		return name
	}
	return "text"
}

// arrayText writes column k of some rows as an array literal.
func arrayText(env scalar.Env, c sandbox.Column, data [][]policy.Value, k int) []byte {
	out := append(make([]byte, 0, 8*len(data)+2), '{')
	for i, row := range data {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendElement(out, env, c.Type, policy.Filled(c.Type, c.Typmod, row[k]))
	}
	return append(out, '}')
}

func appendElement(out []byte, env scalar.Env, t policy.Type, v policy.Value) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "NULL"...)
	case int64:
		return strconv.AppendInt(out, v, 10)
	case []policy.Value:
		element, _ := catalog.Element(t)
		inner := []byte{'{'}
		for i, one := range v {
			if i > 0 {
				inner = append(inner, ',')
			}
			inner = appendElement(inner, env, element, one)
		}
		return appendQuoted(out, string(append(inner, '}')))
	case string:
		return appendQuoted(out, v)
	}
	return appendQuoted(out, env.FormatText(t, v))
}

func appendQuoted(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch s[i] {
		case '"', '\\':
			out = append(out, '\\')
		case 0: // PostgreSQL's text has no such byte
			continue
		}
		out = append(out, s[i])
	}
	return append(out, '"')
}
