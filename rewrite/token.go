package rewrite

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// kinds are the types in which columns are read, but for decimals of limited digits (decimal.go).
var kinds = map[policy.Type]string{
	policy.Bool: "bool", policy.Int2: "int8", policy.Int4: "int8", policy.Int8: "int8", policy.Float4: "float4", policy.Float8: "float8",
	policy.NumericType: "numeric", policy.Text: "text", policy.Varchar: "text", policy.UUID: "uuid", policy.DateType: "date",
	policy.TimestampT: "timestamp", policy.TimestampTZ: "timestamptz",
}

// name quotes an identifier. Names that PostgreSQL would cut or refuse are refused.
func (w *composed) name(s string) string {
	if s == "" || len(s) > 63 || strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		w.fail("a name of the policy is empty, longer than 63 bytes, or not valid UTF-8")
	}
	return w.dialect.QuoteAs(s)
}

// operate writes a binary operator, the system's own even where others of that name exist.
func (w *composed) operate(left, operator, right string) string {
	return w.dialect.Operate(left, operator, right)
}

// divide is the operator / on floating values, which may be another one than on whole numbers.
func (w *composed) divide(left, right string) string {
	return dialect.Fill(w.dialect.Divide, left, right)
}

// call writes a function of the system catalog.
func (w *composed) call(function string, args ...string) string {
	return dialect.Fill(w.dialect.Call, function, strings.Join(args, ", "))
}

// cast converts a value of a known type, which cannot fail.
func (w *composed) cast(expression, kind string) string { return w.dialect.CastTo(expression, kind) }

// literal writes a constant of a type from text that holds digits, letters, and . : + - and spaces alone.
func (w *composed) literal(s, kind string) string {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && !strings.ContainsRune(".:+- ", c) {
			w.fail("a constant that is no number, date or time")
			return "NULL"
		}
	}
	return dialect.Fill(w.dialect.Literal, s, w.dialect.Type(kind))
}

// whole writes an integer constant.
func (w *composed) whole(n int64) string { return w.literal(strconv.FormatInt(n, 10), "int8") }

// int4 writes a small one, as cells are numbered.
func (w *composed) int4(n int) string { return w.literal(strconv.Itoa(n), "int4") }

// float writes a floating constant.
func (w *composed) float(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		w.fail("a constant that is not finite")
	}
	return w.literal(strconv.FormatFloat(f, 'g', -1, 64), "float8")
}

// text writes a text as a value of a type; equal ones are one argument, where texts travel so.
func (w *composed) text(s, kind string) string {
	written, ok := w.seen[s]
	if !ok {
		if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
			w.fail("a text constant that is not valid UTF-8 without NUL")
		}
		var travels bool
		if written, travels = w.dialect.TextOf(s, len(w.args)+1); travels {
			w.args = append(w.args, s)
		}
		w.seen[s] = written
	}
	if kind == "text" {
		return written
	}
	return dialect.Fill(w.dialect.Typed, written, w.dialect.Type(kind))
}

// constant writes a value of an ordered column's type.
func (w cells) constant(c *policy.Column, v policy.Value) string {
	switch v := v.(type) {
	case int64:
		return w.whole(v)
	case float64:
		return w.float(v)
	case policy.Numeric:
		return w.decimals(c).constant(v)
	case policy.Date:
		return w.literal(w.instant(int64(v)*86400, 0).Format(time.DateOnly), "date")
	case policy.Timestamp:
		return w.literal(w.instant(0, int64(v)).Format("2006-01-02 15:04:05.000000"), "timestamp")
	case policy.Timestamptz:
		return w.literal(w.instant(0, int64(v)).Format("2006-01-02 15:04:05.000000")+"+00", "timestamptz")
	}
	w.fail("a constant of a type that is not ordered")
	return "NULL"
}

// instant is a moment in UTC whose year has four digits, so that both dialects read its text alike.
func (w *composed) instant(seconds, micros int64) time.Time {
	t := time.Unix(seconds, 0)
	if micros != 0 {
		t = time.UnixMicro(micros)
	}
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		w.fail("a date outside the years 1 to 9999")
	}
	return t
}
