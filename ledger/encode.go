package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// form is the byte form of what the ledger keeps: the body of each row and each stored release begins with it. It is the only
// one there is. A form that is written later has another number, by which the two are told apart.
const form byte = 1

// encoder writes canonical bytes: every field has a fixed place or a length before it, so that no two different things have
// the same bytes. The zero value is for what is hashed and not kept.
type encoder struct{ b []byte }

// written begins the bytes of something that is kept.
func written() encoder { return encoder{[]byte{form}} }

func (e *encoder) i64(v int64)     { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }
func (e *encoder) digest(d Digest) { e.b = append(e.b, d[:]...) }
func (e *encoder) bytes(p []byte)  { e.i64(int64(len(p))); e.b = append(e.b, p...) }
func (e *encoder) str(s string)    { e.i64(int64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) boolean(v bool) {
	if v {
		e.i64(1)
	} else {
		e.i64(0)
	}
}

func (e *encoder) cost(c privacy.Cost) {
	e.i64(c.Epsilon.Micro())
	e.i64(c.Rho.Pico())
	e.i64(c.Delta.Atto())
}

func (e *encoder) list(list []int64) {
	e.i64(int64(len(list)))
	for _, n := range list {
		e.i64(n)
	}
}

func (e *encoder) ints(list []int) {
	e.i64(int64(len(list)))
	for _, n := range list {
		e.i64(int64(n))
	}
}

// decoder reads what encoder wrote. The first fault sticks in err; everything read after it is zero.
type decoder struct {
	b   []byte
	err error
}

var errBody = errors.New("malformed row")

// kept begins to read what written has begun.
func kept(b []byte) decoder {
	switch {
	case len(b) == 0:
		return decoder{err: errBody}
	case b[0] != form:
		return decoder{err: fmt.Errorf("form %d is not known", b[0])}
	}
	return decoder{b: b[1:]}
}

// fail notes a fault.
func (d *decoder) fail() {
	if d.err == nil {
		d.err = errBody
	}
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail()
	}
	if d.err != nil {
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) i64() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

func (d *decoder) digest() (v Digest) {
	copy(v[:], d.take(len(v)))
	return v
}

func (d *decoder) bytes() []byte {
	n := d.i64()
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return nil
	}
	return slices.Clone(d.take(int(n)))
}

func (d *decoder) str() string { return string(d.bytes()) }

func (d *decoder) boolean() bool {
	n := d.i64()
	if n != 0 && n != 1 {
		d.fail()
	}
	return n == 1
}

func (d *decoder) cost() privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(d.i64()), Rho: privacy.PicoRho(d.i64()), Delta: privacy.AttoDelta(d.i64())}
}

// count reads a length of things that take at least eight bytes each.
func (d *decoder) count() int {
	n := d.i64()
	if n < 0 || n > int64(len(d.b)/8) {
		d.fail()
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

// list and ints read numbers; none is nil.
func (d *decoder) list() []int64 {
	n := d.count()
	if n == 0 {
		return nil
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = d.i64()
	}
	return list
}

func (d *decoder) ints() (list []int) {
	for _, n := range d.list() {
		list = append(list, int(n))
	}
	return list
}

// end reports the first fault, or that bytes are left over.
func (d *decoder) end() error {
	if len(d.b) != 0 {
		d.fail()
	}
	return d.err
}
