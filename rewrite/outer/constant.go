package outer

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Constants get PostgreSQL's type: a number by its size, a quoted literal the type of what stands beside it, or text. A literal
// that is no value of its type is refused with PostgreSQL's error.
//
//	SELECT 1.50, g = '7' FROM leaf_1
//	⇒ SELECT "x1" AS "c1", "c2" AS "c2" FROM (SELECT num_in('1.50') AS "c1", ("t1"."g" = CAST(7 AS INTEGER)) AS "c2",
//	  CAST('1.50' AS DECIMAL(3, 2)) AS "x1" FROM "leaf_1" AS "t1") AS "q2"

// FaultMark stands around the SQLSTATE, a bar and the message of an error that a rewritten query raises by itself.
const FaultMark = "\x02dp\x03"

// raise is an expression that ends the query with an error.
func raise(state, message string) string {
	return "error(" + dialect.QuoteText(FaultMark+state+"|"+message+FaultMark) + ")"
}

func constant(c *pg.A_Const) expr {
	if c.GetIsnull() {
		return expr{sql: "CAST(NULL AS VARCHAR)", typed: of(policy.Unknown), null: true}
	}
	switch v := c.GetVal().(type) {
	case *pg.A_Const_Ival:
		return expr{sql: "CAST(" + strconv.Itoa(int(v.Ival.GetIval())) + " AS INTEGER)", typed: int4Type}
	case *pg.A_Const_Fval:
		text := v.Fval.GetFval()
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return expr{sql: "CAST(" + strconv.FormatInt(n, 10) + " AS BIGINT)", typed: int8Type}
		}
		e := expr{sql: "num_in(" + dialect.QuoteText(text) + ")", typed: typed{oid: policy.NumericType, mod: -1, even: true}}
		if v, err := compileEnv.ParseText(policy.NumericType, text); err == nil {
			e.decimal = constantDecimal(v)
		}
		return e
	case *pg.A_Const_Boolval:
		return expr{sql: strconv.FormatBool(v.Boolval.GetBoolval()), typed: boolType}
	case *pg.A_Const_Sval:
		return untyped(v.Sval.GetSval())
	}
	return cannot("a bit string")
}

func untyped(text string) expr {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		wrong("22021", "invalid byte sequence for encoding \"UTF8\"", 0)
	}
	return expr{sql: quoted(text), typed: of(policy.Unknown), literal: &text}
}

func quoted(text string) string { return "CAST(" + dialect.QuoteText(text) + " AS VARCHAR)" }

// literal gives an untyped literal, or the text of a parameter, a type.
func (b *binder) literal(text string, t typed, given bool) expr {
	e := expr{typed: t}
	if element, ok := elements[t.oid]; ok {
		return b.arrayLiteral(text, t, typed{oid: element, mod: -1}, given)
	}
	switch {
	case t.oid == typeChar:
		_, n := utf8.DecodeRuneInString(text)
		e.sql = quoted(text[:n])
	case t.oid == policy.Text, t.oid == typeName, t.oid == policy.Varchar && t.mod < 0:
		e.sql = quoted(text)
	case oidLike(t.oid):
		e.sql = b.oidLiteral(strings.TrimSpace(text), t.oid)
	case t.oid == policy.TimestampTZ, t.oid == policy.DateType || t.oid == policy.TimestampT, t.mod >= 0 && scalarType(t.oid), t.oid == policy.IntervalT && strings.HasPrefix(strings.TrimSpace(text), "-"):
		// May depend on the session's time zone, clock or IntervalStyle, or needs its modifier applied: computed when the query runs.
		e = b.readCall(quoted(text), t, given)
		if !given {
			b.literalRead(text, t)
		}
	case scalarType(t.oid):
		v, err := scalar.Env{Zone: time.UTC}.ParseText(t.oid, text)
		if err != nil {
			scalarFault(err)
		}
		e.sql, e.even, e.decimal = valueText(t.oid, v), t.oid == policy.NumericType, constantDecimal(v)
	case t.oid == typeJSON && !json.Valid([]byte(text)):
		wrong("22P02", "invalid input syntax for type json", 0)
	case t.oid == policy.Bpchar:
		e = b.castPadded(expr{sql: quoted(text), typed: textType}, t)
	case t.oid == typeBytea, t.oid == 1033:
		cannot("a constant of type " + typeNameOf(t.oid))
	default:
		e.sql = quoted(text)
	}
	return e
}

// unresolved ends the rewriting where package scalar does not know a function: PostgreSQL may well know it.
func unresolved(name string, args int, err error) {
	var fault *scalar.Error
	if name == scalar.WidthBucketOf { // of whose arrays nothing is missing here
		scalarFault(err)
	}
	named := name != "" && (name[0] >= 'a' && name[0] <= 'z' || name[0] == '_')
	if errors.As(err, &fault) && (fault.SQLState == "0A000" || fault.SQLState == "42883" && (named || !compileEnv.Exists(name, args))) {
		if named {
			cannot("this use of function " + name)
		}
		cannot("this use of operator " + name)
	}
	scalarFault(err)
}

// scalarFault ends the rewriting with an error of package scalar.
func scalarFault(err error) {
	var fault *scalar.Error
	if errors.As(err, &fault) && fault.SQLState != "0A000" {
		wrong(fault.SQLState, fault.Message, 0)
	}
	if fault != nil {
		cannot(strings.TrimSuffix(fault.Message, " is not supported"))
	}
	cannot("this expression")
}

func valueText(t policy.Type, v policy.Value) string {
	switch v := v.(type) {
	case nil:
		return "CAST(NULL AS " + Storage(t) + ")"
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return "CAST(" + strconv.FormatInt(v, 10) + " AS " + Storage(t) + ")"
	case float64:
		return "CAST(" + dialect.QuoteText(strconv.FormatFloat(v, 'g', -1, 64)) + " AS " + Storage(t) + ")"
	case policy.Numeric:
		return "num_in(" + dialect.QuoteText(v.String()) + ")"
	case policy.Time:
		return "CAST(" + strconv.FormatInt(int64(v), 10) + " AS " + Storage(t) + ")"
	case policy.Interval:
		return "CAST(" + dialect.QuoteText(strconv.Itoa(int(v.Months))+" months "+strconv.Itoa(int(v.Days))+" days "+
			strconv.FormatInt(v.Micros, 10)+" microseconds") + " AS INTERVAL)"
	case string:
		return quoted(v)
	}
	cannot("a constant of this type")
	return ""
}

// arrayLiteral reads '{a,b}' and the '1 2' of a vector.
func (b *binder) arrayLiteral(text string, t, element typed, given bool) expr {
	body := strings.TrimSpace(text)
	separator := ","
	if vectors(t.oid) {
		separator = " "
	} else if len(body) < 2 || body[0] != '{' || body[len(body)-1] != '}' {
		wrong("22P02", "malformed array literal", 0)
	} else {
		body = strings.TrimSpace(body[1 : len(body)-1])
	}
	var parts []expr
	for _, part := range arrayParts(body, separator[0]) {
		if part.null {
			parts = append(parts, expr{sql: "NULL"})
			continue
		}
		parts = append(parts, b.literal(*part.literal, element, given))
	}
	return expr{sql: "CAST([" + joined(parts) + "] AS " + Storage(t.oid) + ")", typed: t}
}

// arrayParts splits the inside of an array literal at its separators.
func arrayParts(body string, separator byte) []expr {
	var parts []expr
	part, quoted, wasQuoted := strings.Builder{}, false, false
	finish := func() {
		text := part.String()
		if !wasQuoted {
			text = strings.TrimSpace(text)
		}
		parts = append(parts, expr{literal: &text, null: !wasQuoted && strings.EqualFold(text, "null")})
		part.Reset()
		wasQuoted = false
	}
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '\\' && i+1 < len(body):
			i++
			part.WriteByte(body[i])
		case c == '"':
			if !wasQuoted && strings.TrimSpace(part.String()) == "" {
				part.Reset() // blanks before a quoted element
			}
			quoted, wasQuoted = !quoted, true
		case quoted:
			part.WriteByte(c)
		case c == '{' || c == '}':
			cannot("a nested array literal")
		case c == separator:
			finish()
		case wasQuoted && strings.ContainsRune(" \t\n\r\v\f", rune(c)): // and behind one
		default:
			part.WriteByte(c)
		}
	}
	if body != "" {
		finish()
	}
	return parts
}
