package parquet

import "encoding/binary"

// The kinds of values in Thrift's compact protocol.
const (
	trueKind   = 1
	falseKind  = 2
	byteKind   = 3
	int32Kind  = 5
	int64Kind  = 6
	doubleKind = 7
	bytesKind  = 8
	listKind   = 9
	setKind    = 10
	mapKind    = 11
	structKind = 12
)

// maxDepth bounds how deep values lie in each other.
const maxDepth = 64

// reader reads Thrift's compact protocol. bad says that it is none; nothing more is read then.
type reader struct {
	data  []byte
	at    int
	depth int
	bad   bool
}

// take is the next n bytes.
func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.data)-r.at {
		r.bad = true
		return nil
	}
	r.at += n
	return r.data[r.at-n : r.at]
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// number is a whole number with a sign.
func (r *reader) number() int64 {
	n, used := binary.Varint(r.data[r.at:])
	if used <= 0 {
		r.bad = true
	}
	r.take(max(used, 0))
	return n
}

// length is that of a list or of bytes: each of them takes a byte at least, but of a list of booleans nothing less.
func (r *reader) length() int {
	n, used := binary.Uvarint(r.data[r.at:])
	if used <= 0 || n > uint64(len(r.data)) {
		r.bad = true
		return 0
	}
	r.take(used)
	return int(n)
}

// list is the head of a list or set.
func (r *reader) list() (n int, of byte) {
	head := r.byte()
	if n = int(head >> 4); n == 15 {
		n = r.length()
	}
	return n, head & 15
}

// fields calls each for the fields of a struct, which reads the value.
func (r *reader) fields(each func(id int64, kind byte)) {
	if r.depth++; r.depth > maxDepth {
		r.bad = true
	}
	defer func() { r.depth-- }()
	for id := int64(0); !r.bad; {
		head := r.byte()
		kind := head & 15
		if kind == 0 {
			return
		}
		if d := int64(head >> 4); d > 0 {
			id += d
		} else {
			id = r.number()
		}
		each(id, kind)
	}
}

// skip passes over the value of a field.
func (r *reader) skip(kind byte) {
	switch kind {
	case trueKind, falseKind: // the kind is the value
	case byteKind:
		r.take(1)
	case int32Kind - 1, int32Kind, int64Kind:
		r.number()
	case doubleKind:
		r.take(8)
	case bytesKind:
		r.take(r.length())
	case listKind, setKind:
		n, of := r.list()
		r.each(n, of)
	case mapKind:
		if n := r.length(); n > 0 {
			kinds := r.byte()
			for range n {
				r.each(1, kinds>>4)
				r.each(1, kinds&15)
			}
		}
	case structKind:
		r.fields(func(_ int64, kind byte) { r.skip(kind) })
	default:
		r.bad = true
	}
}

// each passes over so many values of a kind, of which a boolean is a byte here.
func (r *reader) each(n int, kind byte) {
	if r.depth++; r.depth > maxDepth {
		r.bad = true
	}
	defer func() { r.depth-- }()
	if kind == trueKind || kind == falseKind {
		kind = byteKind
	}
	for ; n > 0 && !r.bad; n-- {
		r.skip(kind)
	}
}
