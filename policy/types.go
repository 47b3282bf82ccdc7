package policy

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// typeInfo is what PostgreSQL's catalog says of a type.
type typeInfo struct {
	name   string   // as format_type writes it
	also   []string // other spellings in a policy
	length int16    // pg_type.typlen
	most   int      // number of modifiers that may follow in parentheses
	column bool     // may be the type of a policy's column
}

var typeTable = map[Type]typeInfo{
	Unknown:     {name: "unknown", length: -2},
	Bool:        {name: "boolean", also: []string{"bool"}, length: 1, column: true},
	Int2:        {name: "smallint", also: []string{"int2"}, length: 2, column: true},
	Int4:        {name: "integer", also: []string{"int", "int4"}, length: 4, column: true},
	Int8:        {name: "bigint", also: []string{"int8"}, length: 8, column: true},
	Float4:      {name: "real", also: []string{"float4"}, length: 4, column: true},
	Float8:      {name: "double precision", also: []string{"float8", "float", "double"}, length: 8, column: true},
	NumericType: {name: "numeric", also: []string{"decimal"}, length: -1, most: 2, column: true},
	Text:        {name: "text", length: -1, column: true},
	Bpchar:      {name: "character", length: -1},
	Varchar:     {name: "character varying", also: []string{"varchar"}, length: -1, most: 1, column: true},
	DateType:    {name: "date", length: 4, column: true},
	TimestampT:  {name: "timestamp without time zone", also: []string{"timestamp"}, length: 8, column: true},
	TimestampTZ: {name: "timestamp with time zone", also: []string{"timestamptz"}, length: 8, column: true},
	TimeT:       {name: "time without time zone", also: []string{"time"}, length: 8},
	IntervalT:   {name: "interval", length: 16},
	UUID:        {name: "uuid", length: 16, column: true},
}

// columnTypes lists the spellings that a policy's error messages offer.
const columnTypes = "boolean, smallint, integer, bigint, numeric(p,s), real, double precision, text, varchar(n), char(n), enum, " +
	"date, timestamp, timestamptz, uuid"

// Name is the type's name as PostgreSQL's format_type writes it without a modifier: "integer", "double precision".
func (t Type) Name() string {
	if info, ok := typeTable[t]; ok {
		return info.name
	}
	return "type " + strconv.FormatUint(uint64(t), 10)
}

func (t Type) String() string { return t.Name() }

// Length is pg_type.typlen: the bytes of a value, −1 for values of varying length, −2 for C strings.
func (t Type) Length() int16 {
	if info, ok := typeTable[t]; ok {
		return info.length
	}
	return -1
}

// Integer reports whether t is one of the integer types, Floating whether it is real or double precision.
func (t Type) Integer() bool { return t == Int2 || t == Int4 || t == Int8 }

// Floating: see Integer.
func (t Type) Floating() bool { return t == Float4 || t == Float8 }

// Moment reports whether t's values are dates or timestamps.
func (t Type) Moment() bool { return t == DateType || t == TimestampT || t == TimestampTZ }

// Endless reports whether v, of a date or timestamp, is infinite, or, of a numeric, infinite or NaN: such a value is
// its text here, with which nothing is computed.
func (t Type) Endless(v Value) bool {
	_, text := v.(string)
	return text && (t == NumericType || t.Moment())
}

// Textual reports whether t's values are text.
func (t Type) Textual() bool { return t == Text || t == Varchar || t == Bpchar }

// Format is the type with its modifier, as format_type writes it: "numeric(10,2)", "character varying(3)".
func (t Type) Format(typmod int32) string {
	if typmod < 0 {
		return t.Name()
	}
	switch t {
	case NumericType:
		precision, scale := NumericTypmod(typmod)
		return fmt.Sprintf("numeric(%d,%d)", precision, scale)
	case Varchar:
		return fmt.Sprintf("character varying(%d)", typmod-4)
	case Bpchar:
		return fmt.Sprintf("character(%d)", typmod-4)
	default:
		return t.Name()
	}
}

// NumericTypmod takes the modifier of numeric(precision, scale) apart; both are −1 where there is none. Scales are
// eleven bits, signed: numeric(6,-2) is whole hundreds.
func NumericTypmod(typmod int32) (precision, scale int32) {
	if typmod < 4 {
		return -1, -1
	}
	bits := typmod - 4
	return bits >> 16 & 0xffff, (bits&0x7ff ^ 1024) - 1024
}

// ParseType reads a type as a policy writes it, with its modifier in PostgreSQL's encoding (−1: none).
func ParseType(text string) (Type, int32, error) {
	name, modifiers, err := splitType(strings.ToLower(text))
	if err != nil {
		return 0, -1, fmt.Errorf("type is %q, %w", text, err)
	}
	for t, info := range typeTable {
		if !info.column || name != info.name && !contains(info.also, name) {
			continue
		}
		if len(modifiers) > info.most {
			return 0, -1, fmt.Errorf("type is %q, %s takes no such modifier", text, info.name)
		}
		typmod, err := encodeTypmod(t, modifiers)
		if err != nil {
			return 0, -1, fmt.Errorf("type is %q, %w", text, err)
		}
		return t, typmod, nil
	}
	if name == "time" || name == "time without time zone" || name == "timetz" || name == "time with time zone" {
		return 0, -1, fmt.Errorf("type is %q, which no column may have: list one of whole numbers that the database makes of it, extract(hour FROM …), or the moment itself", text)
	}
	return 0, -1, fmt.Errorf("type is %q, must be one of %s", text, columnTypes)
}

// splitType splits "numeric(10, 2)" into its name and the numbers in parentheses.
func splitType(text string) (string, []int32, error) {
	name, rest, found := strings.Cut(text, "(")
	name = strings.Join(strings.Fields(name), " ")
	if !found {
		return name, nil, nil
	}
	inside, ok := strings.CutSuffix(strings.TrimSpace(rest), ")")
	if !ok {
		return "", nil, fmt.Errorf("must close its parenthesis")
	}
	var modifiers []int32
	for part := range strings.SplitSeq(inside, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 32)
		if err != nil {
			return "", nil, fmt.Errorf("must have whole numbers in parentheses")
		}
		modifiers = append(modifiers, int32(n))
	}
	return name, modifiers, nil
}

// encodeTypmod writes modifiers as pg_attribute.atttypmod does.
func encodeTypmod(t Type, modifiers []int32) (int32, error) {
	if len(modifiers) == 0 {
		return -1, nil
	}
	if t == Varchar {
		if modifiers[0] < 1 || modifiers[0] > 10485760 {
			return -1, fmt.Errorf("its length must be between 1 and 10485760")
		}
		return modifiers[0] + 4, nil
	}
	precision, scale := modifiers[0], int32(0)
	if len(modifiers) == 2 {
		scale = modifiers[1]
	}
	if precision < 1 || precision > 1000 {
		return -1, fmt.Errorf("its precision must be between 1 and 1000")
	}
	if scale < 0 || scale > precision {
		return -1, fmt.Errorf("its scale must be between 0 and the precision")
	}
	return (precision<<16 | scale) + 4, nil
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// char(n). PostgreSQL stores its values filled up with blanks, which do not count where they are compared with a
// constant, and leaves them off wherever a value becomes text. A column that is declared so is text, whose values are
// without them; the planner leaves them off constants that it is compared with (Column.Blanks). So are the values of
// what is released of it, until an engine is given them or a client is sent them, which have them filled up: there they
// are chars (Filled, Trimmed).

// An enumerated type of the database (CREATE TYPE status AS ENUM ('new', 'paid')) is declared as enum, whose values are
// texts: its labels. Engines read it by a function of enumerated types alone, so that a column that became another type
// is not read at all.

// maxChar is PostgreSQL's own bound of n.
const maxChar = 10485760

// CharTypmod is the modifier of char(n), and CharLength the n of a modifier, 0 where it has none.
func CharTypmod(n int) int32 { return int32(n) + 4 }

// CharLength: see CharTypmod.
func CharLength(typmod int32) int { return int(max(typmod-4, 0)) }

// Become makes c a column of a type that something is shown with, which may be a char; its values are without their
// blanks then (Trimmed).
func (c *Column) Become(t Type, typmod int32) {
	if c.Type, c.Typmod = t, typmod; t != Bpchar {
		return
	}
	if c.Type, c.Typmod, c.Blanks = Text, -1, CharLength(typmod); c.Blanks == 0 {
		c.Blanks, c.Ragged = maxChar, true
	}
}

// Held is the type that values of t have in columns and domains: of a char text.
func (t Type) Held() Type {
	if t == Bpchar {
		return Text
	}
	return t
}

// Filled is a value of a type and modifier as an engine or a client has it: a char(n) with its blanks. (What `outside:
// other` makes of a value may be longer, and is not cut.)
func Filled(t Type, typmod int32, v Value) Value {
	s, ok := v.(string)
	if t != Bpchar || !ok {
		return v
	}
	if n := CharLength(typmod) - utf8.RuneCountInString(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// Trimmed is such a value as the planner has it.
func Trimmed(t Type, v Value) Value {
	if s, ok := v.(string); ok && t == Bpchar {
		return strings.TrimRight(s, " ")
	}
	return v
}

// parseType reads the type of a column into it: those of ParseType, char(n), or enum.
func (c *Column) parseType(text string) error {
	name, modifiers, err := splitType(strings.ToLower(text))
	switch {
	case err == nil && name == "enum":
		if len(modifiers) > 0 {
			return fmt.Errorf("type is %q, enum takes no such modifier", text)
		}
		c.Type, c.Typmod, c.Enum = Text, -1, true
	case err == nil && (name == "char" || name == "character"):
		n := int32(1)
		if len(modifiers) > 0 {
			n = modifiers[0]
		}
		if len(modifiers) > 1 || n < 1 || n > maxChar {
			return fmt.Errorf("type is %q, char takes a length from 1 to %d", text, maxChar)
		}
		c.Type, c.Typmod, c.Blanks = Text, -1, int(n)
	default:
		c.Type, c.Typmod, err = ParseType(text)
		return err
	}
	return nil
}

// Type is a PostgreSQL type by its oid.
type Type uint32

// The types that columns may have, and those that expressions over them reach.
const (
	Unknown     Type = 705 // an untyped literal
	Bool        Type = 16
	Int2        Type = 21
	Int4        Type = 23
	Int8        Type = 20
	Float4      Type = 700
	Float8      Type = 701
	NumericType Type = 1700
	Text        Type = 25
	Varchar     Type = 1043
	Bpchar      Type = 1042 // a char(n)
	DateType    Type = 1082
	TimestampT  Type = 1114
	TimestampTZ Type = 1184
	TimeT       Type = 1083 // without a time zone
	IntervalT   Type = 1186
	UUID        Type = 2950
)

// Value is one SQL value: nil for NULL, bool, int64 (all integer types), float64 (real, double precision), string
// (text, varchar, name, char, uuid and every type not named here), Numeric, Date, Timestamp, Timestamptz, Time,
// Interval, or []Value (arrays). Nothing else.
type Value any

// Numeric is the decimal Coefficient · 10^−Scale, Scale being the digits shown after the point.
type Numeric struct {
	Coefficient *big.Int
	Scale       int32
}

// Date is days since 1970-01-01.
type Date int32

// Timestamp is microseconds since 1970-01-01 00:00:00, without a zone.
type Timestamp int64

// Timestamptz is microseconds since 1970-01-01 00:00:00 UTC.
type Timestamptz int64

// Time is microseconds since midnight, the end of the day, 24:00, among them.
type Time int64

// Interval is PostgreSQL's interval.
type Interval struct {
	Months, Days int32
	Micros       int64
}
