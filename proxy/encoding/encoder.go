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
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

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
