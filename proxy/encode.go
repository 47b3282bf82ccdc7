package proxy

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// encoder writes released rows as DataRow messages. It takes nothing but Released, so a value that no mechanism and no
// public source made cannot come this way.
type encoder struct {
	types       []policy.Type
	formats     []int16
	zone        *time.Location
	floatDigits int         // extra_float_digits
	intervals   string      // IntervalStyle
	names       objectNames // of the objects that binary columns name
	charset     *charset
}

var errEncode = errors.New("value does not fit its column's type")

func newEncoder(columns []sandbox.Column, formats []int16, zone *time.Location, floatDigits int) *encoder {
	e := &encoder{types: make([]policy.Type, len(columns)), formats: make([]int16, len(columns)), zone: zone, floatDigits: floatDigits}
	for i, c := range columns {
		e.types[i], e.formats[i] = onWire(c.Type), format(formats, i)
	}
	return e
}

// row appends the i-th row as one message.
func (e *encoder) row(dst []byte, rows privacy.Released[sandbox.Rows], i int) ([]byte, error) {
	if !rows.Valid() {
		return dst, errEncode
	}
	values := rows.Value().Data[i]
	if len(values) != len(e.types) {
		return dst, errEncode
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

// encodedRows are DataRow messages on their way out.
type encodedRows []byte

// Backend marks a message that a server sends.
func (encodedRows) Backend() {}

// Decode exists for the interface; encoded rows are only sent.
func (encodedRows) Decode([]byte) error { return errors.New("rows are only sent") }

// Encode appends the messages.
func (r encodedRows) Encode(dst []byte) ([]byte, error) { return append(dst, r...), nil }
