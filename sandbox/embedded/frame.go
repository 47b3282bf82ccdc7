package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// The bytes of these messages: a length, and values that keep their exact types. What comes from the child is read as what an
// analyst's query might have forged: no length in it is believed beyond what is there.

// maxFrame bounds one message between the proxy and its child.
const maxFrame = 256 << 20

var errFrame = errors.New("sandbox: malformed frame")

// writeFrame sends one length-prefixed message.
func writeFrame(w *bufio.Writer, body []byte) error {
	if len(body) > maxFrame {
		return errFrame
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(body)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	return w.Flush()
}

// readFrame receives one message.
func readFrame(r *bufio.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, errFrame
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// The tags of values in a frame: each policy.Value keeps its exact type.
const (
	tagNull = iota
	tagFalse
	tagTrue
	tagInteger
	tagFloat
	tagText
	tagNumeric
	tagDate
	tagTimestamp
	tagTimestamptz
	tagTime
	tagInterval
	tagArray
)

// encoder appends the parts of a message.
type encoder struct{ b []byte }

func (e *encoder) int(n int64)   { e.b = binary.AppendVarint(e.b, n) }
func (e *encoder) text(s string) { e.int(int64(len(s))); e.b = append(e.b, s...) }

func (e *encoder) value(v policy.Value) {
	tag := func(t byte) { e.b = append(e.b, t) }
	switch v := v.(type) {
	case nil:
		tag(tagNull)
	case bool:
		if v {
			tag(tagTrue)
		} else {
			tag(tagFalse)
		}
	case int64:
		tag(tagInteger)
		e.int(v)
	case float64:
		tag(tagFloat)
		e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(v))
	case string:
		tag(tagText)
		e.text(v)
	case policy.Numeric:
		tag(tagNumeric)
		e.text(v.At(v.Scale).String())
		e.int(int64(v.Scale))
	case policy.Date:
		tag(tagDate)
		e.int(int64(v))
	case policy.Timestamp:
		tag(tagTimestamp)
		e.int(int64(v))
	case policy.Timestamptz:
		tag(tagTimestamptz)
		e.int(int64(v))
	case policy.Time:
		tag(tagTime)
		e.int(int64(v))
	case policy.Interval:
		tag(tagInterval)
		e.int(int64(v.Months))
		e.int(int64(v.Days))
		e.int(v.Micros)
	case []policy.Value:
		tag(tagArray)
		e.row(v)
	default:
		tag(tagNull)
	}
}

func (e *encoder) row(values []policy.Value) {
	e.int(int64(len(values)))
	for _, v := range values {
		e.value(v)
	}
}

func (e *encoder) columns(columns []sandbox.Column) {
	e.int(int64(len(columns)))
	for _, c := range columns {
		e.text(c.Name)
		e.int(int64(c.Type))
		e.int(int64(c.Typmod))
	}
}

func (e *encoder) rows(r sandbox.Rows) {
	e.columns(r.Columns)
	e.int(int64(len(r.Data)))
	for _, row := range r.Data {
		e.row(row)
	}
}

// decoder takes a message apart. After a fault every part reads as empty and err tells so.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int64) []byte {
	if n < 0 || n > int64(len(d.b)) {
		d.b, d.err = nil, errFrame
		return nil
	}
	part := d.b[:n]
	d.b = d.b[n:]
	return part
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.b, d.err = nil, errFrame
		return 0
	}
	d.b = d.b[size:]
	return n
}

// count reads a number of parts, each at least one byte long.
func (d *decoder) count() int {
	n := d.int()
	if n < 0 || n > int64(len(d.b)) {
		d.b, d.err = nil, errFrame
		return 0
	}
	return int(n)
}

func (d *decoder) text() string { return string(d.take(d.int())) }

func (d *decoder) value() policy.Value {
	tag := d.take(1)
	if tag == nil {
		return nil
	}
	switch tag[0] {
	case tagNull:
		return nil
	case tagFalse, tagTrue:
		return tag[0] == tagTrue
	case tagInteger:
		return d.int()
	case tagFloat:
		if b := d.take(8); b != nil {
			return math.Float64frombits(binary.BigEndian.Uint64(b))
		}
		return nil
	case tagText:
		return d.text()
	case tagNumeric:
		n, ok := new(big.Int).SetString(d.text(), 10)
		scale := d.int()
		if !ok {
			d.b, d.err = nil, errFrame
			return nil
		}
		return policy.Numeric{Coefficient: n, Scale: int32(scale)}
	case tagDate:
		return policy.Date(d.int())
	case tagTimestamp:
		return policy.Timestamp(d.int())
	case tagTimestamptz:
		return policy.Timestamptz(d.int())
	case tagTime:
		return policy.Time(d.int())
	case tagInterval:
		return policy.Interval{Months: int32(d.int()), Days: int32(d.int()), Micros: d.int()}
	case tagArray:
		return d.row()
	}
	d.b, d.err = nil, errFrame
	return nil
}

func (d *decoder) row() []policy.Value {
	n := d.count()
	values := make([]policy.Value, n)
	for i := range values {
		values[i] = d.value()
	}
	return values
}

func (d *decoder) columns() []sandbox.Column {
	columns := make([]sandbox.Column, d.count())
	for i := range columns {
		columns[i] = sandbox.Column{Name: d.text(), Type: policy.Type(d.int()), Typmod: int32(d.int())}
	}
	return columns
}

func (d *decoder) rows() sandbox.Rows {
	r := sandbox.Rows{Columns: d.columns()}
	n := d.int()
	if n < 0 || len(r.Columns) > 0 && n > int64(len(d.b)) {
		d.b, d.err = nil, errFrame
		return r
	}
	if n > 0 {
		r.Data = make([][]policy.Value, n)
	}
	for i := range r.Data {
		r.Data[i] = d.row()
	}
	return r
}
