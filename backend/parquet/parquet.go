// Package parquet writes a Parquet file again as one of which no cell fails a read. A reader makes texts of bytes, and
// moments of milliseconds, as the schema in the file's last bytes says, and one cell that is none ends the read of all
// of them. Bare leaves out what the schema says of such columns:
//
//	optional binary name (STRING)                  optional binary name
//	optional int64 seen (TIMESTAMP(MILLIS))        optional int64 seen
//
// so that they come as bytes and numbers, of which SQL makes values cell by cell. The pages of the file stay as they
// are, where they are.
package parquet

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
)

// Kind is what a column was before.
type Kind uint8

// The kinds. The zero value is none: the column is as it was.
const (
	Text Kind = 1 + iota
	Millis
)

// errForm says that the file is not one of Parquet, or one that nobody here can read. It holds nothing of the file.
var errForm = errors.New("not a Parquet file whose schema can be read")

const (
	magic     = "PAR1"
	maxFooter = 64 << 20
)

// Bare copies a file without what its schema says of texts and of milliseconds, and returns what columns these are, by
// their names in small letters.
func Bare(from, to string) (map[string]Kind, error) {
	in, err := os.Open(from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	size, err := in.Seek(0, io.SeekEnd)
	if err != nil || size < int64(len(magic))+8 {
		return nil, errForm
	}
	var tail [8]byte
	if _, err := in.ReadAt(tail[:], size-8); err != nil || string(tail[4:]) != magic {
		return nil, errForm
	}
	length := int64(binary.LittleEndian.Uint32(tail[:4]))
	if length > maxFooter || length > size-8-int64(len(magic)) {
		return nil, errForm
	}
	footer := make([]byte, length)
	if _, err := in.ReadAt(footer, size-8-length); err != nil {
		return nil, errForm
	}
	footer, kinds, err := withoutKinds(footer)
	if err != nil {
		return nil, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(out, in, size-8-length); err != nil {
		return nil, err
	}
	footer = append(binary.LittleEndian.AppendUint32(footer, uint32(len(footer))), magic...)
	if _, err := out.Write(footer); err != nil {
		return nil, err
	}
	return kinds, out.Close()
}

// The fields of Parquet's metadata that are looked at, by their numbers (parquet.thrift), and values of them.
const (
	fileSchema = 2

	elementType      = 1
	elementName      = 4
	elementChildren  = 5
	elementConverted = 6
	elementLogical   = 10

	typeInt64, typeBytes                                                  = 2, 6
	convertedText, convertedEnum, convertedMillis, convertedJSON          = 0, 4, 9, 19
	logicalText, logicalEnum, logicalTimestamp, logicalJSON, unitOfMillis = 1, 4, 8, 12, 1
)

// withoutKinds is a file's metadata without what its schema says of the columns of such kinds, and which these are.
// Columns within others are left alone.
func withoutKinds(footer []byte) (out []byte, kinds map[string]Kind, err error) {
	r := &reader{data: footer}
	kinds = map[string]Kind{}
	r.fields(func(id int64, kind byte) {
		if id != fileSchema || kind != listKind {
			r.skip(kind)
			return
		}
		n, of := r.list()
		out = append(out, footer[:r.at]...)
		first := true
		var within []int64 // how many columns are to come in each that is open, the file itself first
		for range n {
			if of != structKind {
				r.bad = true
			}
			e := r.element()
			if k := e.kind(); k != 0 && len(within) == 1 {
				kinds[strings.ToLower(e.name)] = k
				e.drop(elementConverted, elementLogical)
			}
			out = e.append(out)
			if !first {
				within[len(within)-1]--
			}
			if first || e.children > 0 {
				within = append(within, e.children)
			}
			for first = false; len(within) > 1 && within[len(within)-1] == 0; {
				within = within[:len(within)-1]
			}
			if r.bad || within[len(within)-1] < 0 {
				r.bad = true
				return
			}
		}
		out = append(out, footer[r.at:]...)
	})
	if r.bad || out == nil {
		return nil, nil, errForm
	}
	return out, kinds, nil
}

// element is one of a schema.
type element struct {
	fields                   []field
	name                     string
	physical, children       int64
	converted, logical, unit int64 // −1: none
}

// field is a field of an element, with its value as it is.
type field struct {
	id    int64
	kind  byte
	value []byte
}

func (r *reader) element() element {
	e := element{physical: -1, converted: -1, logical: -1, unit: -1}
	r.fields(func(id int64, kind byte) {
		from := r.at
		switch {
		case id == elementType && kind == int32Kind:
			e.physical = r.number()
		case id == elementChildren && kind == int32Kind:
			e.children = r.number()
		case id == elementConverted && kind == int32Kind:
			e.converted = r.number()
		case id == elementName && kind == bytesKind:
			e.name = string(r.take(r.length()))
		case id == elementLogical && kind == structKind:
			r.fields(func(id int64, kind byte) {
				if e.logical = id; id != logicalTimestamp || kind != structKind {
					r.skip(kind)
					return
				}
				r.fields(func(id int64, kind byte) {
					if id != 2 || kind != structKind {
						r.skip(kind)
						return
					}
					r.fields(func(id int64, kind byte) { e.unit = id; r.skip(kind) })
				})
			})
		default:
			r.skip(kind)
		}
		e.fields = append(e.fields, field{id, kind, r.data[from:r.at]})
	})
	return e
}

// kind is what a reader makes of an element's values, where a cell may fail that.
func (e element) kind() Kind {
	switch {
	case e.children > 0:
	case e.physical == typeBytes && (e.logical == logicalText || e.logical == logicalEnum || e.logical == logicalJSON ||
		e.converted == convertedText || e.converted == convertedEnum || e.converted == convertedJSON):
		return Text
	case e.physical == typeInt64 && (e.logical == logicalTimestamp && e.unit == unitOfMillis || e.converted == convertedMillis):
		return Millis
	}
	return 0
}

// drop leaves fields out.
func (e *element) drop(ids ...int64) {
	kept := e.fields[:0]
	for _, f := range e.fields {
		dropped := false
		for _, id := range ids {
			dropped = dropped || f.id == id
		}
		if !dropped {
			kept = append(kept, f)
		}
	}
	e.fields = kept
}

// append writes an element.
func (e element) append(to []byte) []byte {
	last := int64(0)
	for _, f := range e.fields {
		if d := f.id - last; d > 0 && d < 16 {
			to = append(to, byte(d)<<4|f.kind)
		} else {
			to = binary.AppendVarint(append(to, f.kind), f.id)
		}
		to, last = append(to, f.value...), f.id
	}
	return append(to, 0)
}
