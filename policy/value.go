package policy

import "math/big"

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
	Bpchar      Type = 1042 // a char(n) (char.go)
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
