// Package chain holds the rows of a ledger's hash chain, and the one byte form of what they say and of the releases
// beside them. It knows numbers, texts, costs, measures and observations; what a row of each kind says is the ledger's
// to write and to read with it. It does no I/O.
//
// Alice's count(*) of people becomes a charge and, once drawn, a release. The ledger writes the body of the charge
// (Body, then its fields: digests, names, the cost), makes a Row of it with the next number, and links it: the Row's
// hash covers all of its fields and the hash of the row before. The drawn observations become a Release's bytes, and a
// second row says of them the SHA-256, beside the measure's Spec.
package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Form is the byte form of what a ledger keeps: the body of each row and each stored release begins with it. It is the
// only one there is. A form that is written later has another number, which distinguishes the two.
const Form byte = 1

// Encoder writes canonical bytes: every field has a fixed place or a length before it, so that no two different things
// have the same bytes. The zero value is for what is hashed and not kept.
type Encoder struct{ b []byte }

// Body begins the bytes of something that is kept.
func Body() Encoder { return Encoder{[]byte{Form}} }

// Bytes are what was written until now, Hash their SHA-256.
func (e *Encoder) Bytes() []byte  { return e.b }
func (e *Encoder) Hash() [32]byte { return sha256.Sum256(e.b) }

func (e *Encoder) Int(v int64)       { e.b = binary.BigEndian.AppendUint64(e.b, uint64(v)) }
func (e *Encoder) Digest(d [32]byte) { e.b = append(e.b, d[:]...) }
func (e *Encoder) Blob(p []byte)     { e.Int(int64(len(p))); e.b = append(e.b, p...) }
func (e *Encoder) Text(s string)     { e.Int(int64(len(s))); e.b = append(e.b, s...) }

func (e *Encoder) Bool(v bool) {
	if v {
		e.Int(1)
	} else {
		e.Int(0)
	}
}

func (e *Encoder) Cost(c privacy.Cost) {
	e.Int(c.Epsilon.Micro())
	e.Int(c.Rho.Pico())
	e.Int(c.Delta.Atto())
}

// Decoder reads what Encoder wrote. The first fault sticks in err; everything read after it is zero.
type Decoder struct {
	b   []byte
	err error
}

// ErrMalformed is the error of bytes that are not what is written now.
var ErrMalformed = errors.New("malformed row")

// Read begins to read what Body has begun.
func Read(b []byte) Decoder {
	switch {
	case len(b) == 0:
		return Decoder{err: ErrMalformed}
	case b[0] != Form:
		return Decoder{err: fmt.Errorf("%w: its form is %d", ErrMalformed, b[0])}
	}
	return Decoder{b: b[1:]}
}

// fail notes a fault.
func (d *Decoder) fail() {
	if d.err == nil {
		d.err = ErrMalformed
	}
}

func (d *Decoder) take(n int) []byte {
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

// More reports whether something is left that was not read.
func (d *Decoder) More() bool { return d.err == nil && len(d.b) > 0 }

func (d *Decoder) Int() int64 {
	p := d.take(8)
	if p == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(p))
}

// Small reads a number of a few kinds: 256 more is no other kind.
func (d *Decoder) Small() uint8 {
	v := d.Int()
	if v < 0 || v > math.MaxUint8 {
		d.fail()
	}
	return uint8(v)
}

func (d *Decoder) Digest() (v [32]byte) {
	copy(v[:], d.take(len(v)))
	return v
}

func (d *Decoder) Blob() []byte {
	n := d.Int()
	if n < 0 || n > int64(len(d.b)) {
		d.fail()
		return nil
	}
	return slices.Clone(d.take(int(n)))
}

func (d *Decoder) Text() string { return string(d.Blob()) }

func (d *Decoder) Bool() bool {
	n := d.Int()
	if n != 0 && n != 1 {
		d.fail()
	}
	return n == 1
}

func (d *Decoder) Cost() privacy.Cost {
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(d.Int()), Rho: privacy.PicoRho(d.Int()), Delta: privacy.AttoDelta(d.Int())}
}

// Count reads a length of things that take at least eight bytes each.
func (d *Decoder) Count() int {
	n := d.Int()
	if n < 0 || n > int64(len(d.b)/8) {
		d.fail()
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

// End reports the first fault, or that bytes are left over.
func (d *Decoder) End() error {
	if len(d.b) != 0 {
		d.fail()
	}
	return d.err
}
