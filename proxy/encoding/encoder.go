// Package encoding turns values into the bytes of PostgreSQL's protocol and back: rows as text, as binary and as COPY
// writes them, parameters, column descriptions, and the client's own character set.
//
// An example: of SELECT count(*), sex FROM people GROUP BY sex, with the second column asked for in binary,
// RowDescription describes int8 and text, and Encoder.Row makes of the released row (604, "Female") one DataRow: the
// digits "604" and the six bytes of the name. Parameter reads the 0x00000012 of a Bind for $1::int as 18. An Encoder
// takes nothing but released rows.
package encoding

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/sandbox"
)

// The oids of types that only catalogs and clients use.
const (
	oidBytea      policy.Type = 17
	oidChar       policy.Type = 18
	oidName       policy.Type = 19
	oidInt2Vector policy.Type = 22
	oidRegproc    policy.Type = 24
	oidOid        policy.Type = 26
	oidXid        policy.Type = 28
	oidCid        policy.Type = 29
	oidOidVector  policy.Type = 30
	oidJSON       policy.Type = 114
	oidXML        policy.Type = 142
	oidNodeTree   policy.Type = 194
	oidRegclass   policy.Type = 2205
	oidRegtype    policy.Type = 2206
	oidVoid       policy.Type = 2278
	oidJSONB      policy.Type = 3802
	oidRegNS      policy.Type = 4089
	oidRegRole    policy.Type = 4096
)

// elements names the element type of each array type.
var elements = map[policy.Type]policy.Type{
	1000: policy.Bool, 1005: policy.Int2, 1007: policy.Int4, 1016: policy.Int8, 1021: policy.Float4, 1022: policy.Float8,
	1231: policy.NumericType, 1009: policy.Text, 1015: policy.Varchar, 1003: oidName, 1002: oidChar, 1014: policy.Bpchar,
	1028: oidOid, 1182: policy.DateType, 1115: policy.TimestampT, 1185: policy.TimestampTZ, 1187: policy.IntervalT, 1183: policy.TimeT,
	2951: policy.UUID, 199: oidJSON, 3807: oidJSONB, 1008: oidRegproc, 2210: oidRegclass, 2211: oidRegtype, 4090: oidRegNS, 4097: oidRegRole,
	oidInt2Vector: policy.Int2, oidOidVector: oidOid, 1034: 1033,
}

// ElementOf is the element type of an array type.
func ElementOf(t policy.Type) (element policy.Type, ok bool) {
	element, ok = elements[t]
	return element, ok
}

// widths are the typlen of types of fixed width; all others are −1.
var widths = map[policy.Type]int16{
	policy.Bool: 1, policy.Int2: 2, policy.Int4: 4, policy.Int8: 8, policy.Float4: 4, policy.Float8: 8,
	policy.DateType: 4, policy.TimestampT: 8, policy.TimestampTZ: 8, policy.TimeT: 8, policy.IntervalT: 16, policy.UUID: 16,
	oidChar: 1, oidName: 64, oidOid: 4, oidXid: 4, oidCid: 4, oidRegproc: 4, oidRegclass: 4, oidRegtype: 4,
	oidRegNS: 4, oidRegRole: 4, 1033: 12, oidVoid: 4,
	27: 6, 2202: 4, 2203: 4, 2204: 4, 3220: 8, 3734: 4, 3769: 4, 4191: 4, 5069: 8, // tid, the other names of objects, pg_lsn, xid8
}

// WireType returns the type that a client is sent: an untyped literal is text.
func WireType(t policy.Type) policy.Type {
	if t == policy.Unknown || t == 0 {
		return policy.Text
	}
	return t
}

// RowDescription describes columns, each with the numbers by which catalogs know it where it is a table's.
func RowDescription(columns []sandbox.Column, formats []int16) *pgproto3.RowDescription {
	fields := make([]pgproto3.FieldDescription, len(columns))
	for i, c := range columns {
		t := WireType(c.Type)
		width, ok := widths[t]
		if !ok {
			width = -1
		}
		typmod := c.Typmod
		if typmod == 0 {
			typmod = -1
		}
		fields[i] = pgproto3.FieldDescription{Name: []byte(CString(c.Name)), DataTypeOID: uint32(t), DataTypeSize: width,
			TypeModifier: typmod, TableOID: c.Number.Table, TableAttributeNumber: uint16(c.Number.Attribute), Format: Format(formats, i)}
	}
	return &pgproto3.RowDescription{Fields: fields}
}

// Format is the format code of the i-th of several values: none given is text, one given holds for all.
func Format(codes []int16, i int) int16 {
	switch {
	case len(codes) == 0:
		return 0
	case len(codes) == 1:
		return codes[0]
	}
	return codes[i]
}

// CheckFormats refuses codes that fit neither the number of values nor the two formats there are. The words of what has
// the formats have a gap for the number.
func CheckFormats(codes []int16, n int, what, has string) *pgerror.Failure {
	if len(codes) > 1 && len(codes) != n {
		return pgerror.New("08P01", fmt.Sprintf("bind message has %d %s formats but "+has, len(codes), what, n))
	}
	for _, c := range codes {
		if c != 0 && c != 1 {
			return pgerror.New("22023", fmt.Sprintf("unsupported format code: %d", c))
		}
	}
	return nil
}

// Encoder writes released rows as DataRow messages. It takes nothing but Released, so a value that no mechanism and no
// public source made cannot come this way.
type Encoder struct {
	types   []policy.Type
	formats []int16
	zone    *time.Location
	form    scalar.Form
	names   ObjectNames // of the objects that binary columns name
	charset *Charset
}

// ErrMismatch is the error of a value that its column's type does not hold.
var ErrMismatch = errors.New("value does not fit its column's type")

// Style is how a session's settings want values written, and read.
type Style struct {
	Zone    *time.Location
	Form    scalar.Form
	Charset *Charset
}

// NewEncoder writes columns in the formats that a client asked for; names are those of the objects that binary columns
// name.
func NewEncoder(columns []sandbox.Column, formats []int16, style Style, names ObjectNames) *Encoder {
	e := &Encoder{types: make([]policy.Type, len(columns)), formats: make([]int16, len(columns)), zone: style.Zone, form: style.Form,
		names: names, charset: style.Charset}
	for i, c := range columns {
		e.types[i], e.formats[i] = WireType(c.Type), Format(formats, i)
	}
	return e
}

// Row appends the i-th row as one message.
func (e *Encoder) Row(dst []byte, rows privacy.Released[sandbox.Rows], i int) ([]byte, error) {
	if !rows.Valid() {
		return dst, ErrMismatch
	}
	values := rows.Value().Data[i]
	if len(values) != len(e.types) {
		return dst, ErrMismatch
	}
	start := len(dst)
	dst = append(dst, 'D', 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(values)))
	for k, v := range values {
		if v == nil {
			dst = binary.BigEndian.AppendUint32(dst, 0xFFFFFFFF)
			continue
		}
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		var err error
		if e.formats[k] == 1 {
			dst, err = e.binary(dst, e.types[k], v)
		} else if dst, err = e.text(dst, e.types[k], v); err == nil {
			dst, err = e.charset.rewritten(dst, at+4)
		}
		if err != nil {
			return dst[:start], err
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	binary.BigEndian.PutUint32(dst[start+1:], uint32(len(dst)-start-1))
	return dst, nil
}

// Encoded are messages on their way out: rows, above all.
type Encoded []byte

// Backend marks a message that a server sends.
func (Encoded) Backend() {}

// Decode exists for the interface; what is encoded is only sent.
func (Encoded) Decode([]byte) error { return errors.New("what is encoded is only sent") }

// Encode appends the messages.
func (r Encoded) Encode(dst []byte) ([]byte, error) { return append(dst, r...), nil }

// nameTables list the objects of each type that is written as a name in text and as an oid in binary.
var nameTables = map[policy.Type]string{
	oidRegclass: "SELECT oid, oid::pg_catalog.regclass::text FROM pg_catalog.pg_class",
	oidRegtype:  "SELECT oid, oid::pg_catalog.regtype::text FROM pg_catalog.pg_type",
	oidRegproc:  "SELECT oid, oid::pg_catalog.regproc::text FROM pg_catalog.pg_proc",
	oidRegNS:    "SELECT oid, oid::pg_catalog.regnamespace::text FROM pg_catalog.pg_namespace",
	oidRegRole:  "SELECT oid, oid::pg_catalog.regrole::text FROM pg_catalog.pg_roles",
}

// NamesQuery lists the objects of a type with their oids; it is empty for a type whose values are no names.
func NamesQuery(t policy.Type) string { return nameTables[t] }

// ObjectNames are the oids of catalog objects by type and name.
type ObjectNames map[policy.Type]map[string]int64

// oid is the number of a named object.
func (n ObjectNames) oid(t policy.Type, name string) (int64, bool) {
	if name == "-" && nameTables[t] != "" {
		return 0, true // how the absence of an object is written
	}
	oid, ok := n[t][name]
	return oid, ok
}
