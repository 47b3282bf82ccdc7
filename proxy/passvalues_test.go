package proxy

import (
	"encoding/binary"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/sandbox"
)

// binaryOf is the format in which a value comes: text where it may be no value of dpproxy's types, as numeric's NaN.
func binaryOf(t policy.Type) int16 {
	if encoding.NamesQuery(t) != "" || t == 1033 || t == 2278 { // aclitem, void
		return 0
	}
	width := encoding.RowDescription([]sandbox.Column{{Type: t}}, nil).Fields[0].DataTypeSize
	if _, list := encoding.ElementOf(t); list || width > 1 {
		return 1
	}
	return 0
}

// textOf is the text form of a value.
func textOf(t policy.Type, v policy.Value) ([]byte, error) {
	columns := []sandbox.Column{{Type: t}}
	e := encoding.NewEncoder(columns, nil, encoding.Style{Zone: time.UTC}, nil)
	row, err := e.Row(nil, privacy.Published(sandbox.Rows{Columns: columns, Data: [][]policy.Value{{v}}}), 0)
	if err != nil {
		return nil, err
	}
	return row[11:], nil // behind the heads of the message and of its one value
}

// valuesOf reads a row. What is of no type that dpproxy offers stays text.
func valuesOf(row [][]byte, columns []sandbox.Column, formats []int16) []policy.Value {
	out := make([]policy.Value, len(row))
	for i, raw := range row {
		if raw == nil {
			continue
		}
		if formats[i] == 1 {
			element, _ := encoding.ElementOf(columns[i].Type)
			if list, ok := listOf(element, raw); ok {
				out[i] = list
			} else if v, f := encoding.Parameter(0, columns[i].Type, 1, raw, encoding.Style{Zone: time.UTC}, time.Time{}); f == nil {
				out[i] = v
			} else {
				out[i] = "a value that dpproxy's types do not hold"
			}
			continue
		}
		out[i] = string(raw)
		if v, f := encoding.Parameter(0, columns[i].Type, 0, raw, encoding.Style{Zone: time.UTC}, time.Time{}); f == nil {
			out[i] = v
		}
	}
	return out
}

// listOf reads a binary array of any number of dimensions.
func listOf(element policy.Type, raw []byte) (list []policy.Value, ok bool) {
	be := binary.BigEndian
	if element == 0 || len(raw) < 12 {
		return nil, false
	}
	var dims []int
	rest := raw[12:]
	for range be.Uint32(raw) {
		dims = append(dims, int(be.Uint32(rest)))
		rest = rest[8:]
	}
	if len(dims) == 0 {
		return []policy.Value{}, true
	}
	ok = true
	var read func(dims []int) []policy.Value
	read = func(dims []int) (list []policy.Value) {
		for range dims[0] {
			if len(dims) > 1 {
				list = append(list, read(dims[1:]))
				continue
			}
			size := int(int32(be.Uint32(rest)))
			rest = rest[4:]
			if size < 0 {
				list = append(list, nil)
				continue
			}
			v, f := encoding.Parameter(0, element, 1, rest[:size], encoding.Style{Zone: time.UTC}, time.Time{})
			list, rest, ok = append(list, v), rest[size:], ok && f == nil
		}
		return list
	}
	return read(dims), ok
}
