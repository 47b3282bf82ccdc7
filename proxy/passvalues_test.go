package proxy

import (
	"encoding/binary"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// binaryOf is the format in which a value comes: text where it may be no value of dpproxy's types, as numeric's NaN.
func binaryOf(t policy.Type) int16 {
	_, list := elements[t]
	switch t {
	case 1033, oidVoid, oidRegproc, oidRegclass, oidRegtype, oidRegNS, oidRegRole:
		return 0
	}
	if list || widths[t] > 1 {
		return 1
	}
	return 0
}

// valuesOf reads a row. What is of no type that dpproxy offers stays text.
func valuesOf(row [][]byte, columns []sandbox.Column, formats []int16) []policy.Value {
	out := make([]policy.Value, len(row))
	for i, raw := range row {
		if raw == nil {
			continue
		}
		if formats[i] == 1 {
			if list, ok := listOf(elements[columns[i].Type], raw); ok {
				out[i] = list
			} else if v, err := readBinary(nil, columns[i].Type, raw); err == nil {
				out[i] = v
			} else {
				out[i] = "a value that dpproxy's types do not hold"
			}
			continue
		}
		out[i] = string(raw)
		if v, f := readText(scalar.Env{Zone: time.UTC}, columns[i].Type, string(raw)); f == nil {
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
			v, err := readBinary(nil, element, rest[:size])
			list, rest, ok = append(list, v), rest[size:], ok && err == nil
		}
		return list
	}
	return read(dims), ok
}
