// Package noise draws exact discrete Laplace and discrete Gaussian noise from a source of random bytes, and says
// exactly how large a sum of such noise is. What enters the samplers is integers alone; floating point appears only in
// the tails, which are computed from public parameters.
//
// There are three ways to draw, of one distribution: Sample for one number, of any parameter; Fill for many, by a table
// where it pays; and both in fixed work where the source is one of FixedWork, so that nobody who sees the time learns
// the value.
package noise

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
)

// Reader hands out random words from a source of random bytes. It reads ahead, little at first, because one count needs
// some hundred bytes and a histogram a megabyte. A failure of the source sticks: every later word is zero and Err
// tells. It is not safe for concurrent use.
type Reader struct {
	source io.Reader
	buffer []byte
	next   int
	bit    uint64 // the remaining coin flips, below a leading one
	half   uint64 // a spare half word, with bit 32 set when there is one
	rest   uint64 // the remaining quarters of a word
	left   int    // how many there are
	fixed  bool   // the source is one of FixedWork
	err    error
}

const (
	firstRead = 256
	maxRead   = 8192
)

// NewReader returns a Reader on source, crypto/rand.Reader in production.
func NewReader(source io.Reader) *Reader {
	_, fixed := source.(fixedWork)
	return &Reader{source: source, fixed: fixed, bit: 1}
}

// FixedWork marks a source: of a Reader on it Sample and Fill draw in fixed work. The mark goes with the source, so
// that it reaches whatever is drawn from it, in whichever package; a source that wraps this one does not carry it.
func FixedWork(source io.Reader) io.Reader { return fixedWork{source} }

type fixedWork struct{ io.Reader }

// FixedWork reports whether the source was marked so: for who draws more than a Distribution.
func (r *Reader) FixedWork() bool { return r.fixed }

// Err returns the first failure of the source. Nothing drawn before Err was found nil may be used.
func (r *Reader) Err() error { return r.err }

// word returns 64 independent fair bits.
func (r *Reader) word() uint64 {
	if r.next == len(r.buffer) && !r.fill() {
		return 0
	}
	w := binary.LittleEndian.Uint64(r.buffer[r.next:])
	r.next += 8
	return w
}

func (r *Reader) fill() bool {
	if r.err != nil {
		return false
	}
	if r.source == nil {
		r.err = fmt.Errorf("noise: no source of randomness")
		return false
	}
	size := min(maxRead, max(firstRead, 2*len(r.buffer)))
	if size > cap(r.buffer) {
		r.buffer = make([]byte, size)
	}
	r.buffer = r.buffer[:size]
	if err := readFull(r.source, r.buffer); err != nil {
		r.err = fmt.Errorf("noise: the source of randomness failed: %w", err)
		r.buffer, r.next = r.buffer[:0], 0
		return false
	}
	r.next = 0
	return true
}

// readFull fills p. Unlike io.ReadFull it gives up on a source that keeps returning nothing and no error.
func readFull(source io.Reader, p []byte) error {
	for idle := 0; len(p) > 0; {
		n, err := source.Read(p)
		if p = p[n:]; len(p) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		if idle++; n > 0 {
			idle = 0
		} else if idle == 100 {
			return io.ErrNoProgress
		}
	}
	return nil
}

// coin returns a fair bit.
func (r *Reader) coin() bool {
	if r.bit == 1 {
		r.bit = r.word()>>1 | 1<<63
	}
	b := r.bit & 1
	r.bit >>= 1
	return b == 1
}

// short returns 16 independent fair bits.
func (r *Reader) short() uint64 {
	if r.left == 0 {
		r.rest, r.left = r.word(), 4
	}
	x := r.rest & 0xffff
	r.rest >>= 16
	r.left--
	return x
}

// below32 returns a uniform integer in [0, n), n ≥ 1 (Lemire 2019: multiply, and reject the short remainder).
func (r *Reader) below32(n uint32) uint32 {
	for {
		product := uint64(r.word32()) * uint64(n)
		if low := uint32(product); low >= n || low >= -n%n || r.err != nil {
			return uint32(product >> 32)
		}
	}
}

func (r *Reader) word32() uint32 {
	if r.half>>32 != 0 {
		w := uint32(r.half)
		r.half = 0
		return w
	}
	w := r.word()
	r.half = w>>32 | 1<<32
	return uint32(w)
}

// below16 is below32 for n ≤ 2^15.
func (r *Reader) below16(n uint64) uint64 {
	if n == 1 {
		return 0
	}
	for {
		product := r.short() * n
		if low := product & 0xffff; low >= n || low >= (1<<16-n)%n || r.err != nil {
			return product >> 16
		}
	}
}

// below returns a uniform integer in [0, n), n ≥ 1.
func (r *Reader) below(n uint64) uint64 {
	if n <= 1<<14 {
		return r.below16(n)
	}
	if n <= 1<<31 {
		return uint64(r.below32(uint32(n)))
	}
	for {
		high, low := bits.Mul64(r.word(), n)
		if low >= n || low >= -n%n || r.err != nil {
			return high
		}
	}
}
