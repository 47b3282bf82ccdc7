package outer

import (
	"slices"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Types of PostgreSQL's catalogs, beside those of package policy.
const (
	typeBytea    policy.Type = 17
	typeChar     policy.Type = 18 // "char"
	typeName     policy.Type = 19
	typeInt2Vec  policy.Type = 22
	typeRegproc  policy.Type = 24
	typeOid      policy.Type = 26
	typeXid      policy.Type = 28
	typeOidVec   policy.Type = 30
	typeJSON     policy.Type = 114
	typeNodeTree policy.Type = 194
	typeRegclass policy.Type = 2205
	typeRegtype  policy.Type = 2206
	typeAnyArray policy.Type = 2277
	typeRegNS    policy.Type = 4089
	typeRegRole  policy.Type = 4096
	typeTextArr  policy.Type = 1009
	typeVoid     policy.Type = 2278
	// The rows of pg_type and pg_attribute.
	typeTypeRow      policy.Type = 71
	typeAttributeRow policy.Type = 75
	typeRecord       policy.Type = 2249
)

// elements maps array types to the types of their elements.
var elements = map[policy.Type]policy.Type{
	1000: policy.Bool, 1002: typeChar, 1003: typeName, 1005: policy.Int2, 1007: policy.Int4, 1009: policy.Text,
	1015: policy.Varchar, 1016: policy.Int8, 1021: policy.Float4, 1022: policy.Float8, 1028: typeOid, 1034: 1033,
	1115: policy.TimestampT, 1182: policy.DateType, 1185: policy.TimestampTZ, 1187: policy.IntervalT, 1183: policy.TimeT,
	1231: policy.NumericType, 2951: policy.UUID, 2211: typeRegtype, 2210: typeRegclass, 1008: typeRegproc, typeInt2Vec: policy.Int2,
	typeOidVec: typeOid, 1263: 2275, 1014: policy.Bpchar, 4090: typeRegNS,
}

var arrays = func() map[policy.Type]policy.Type {
	m := map[policy.Type]policy.Type{}
	for a, e := range elements {
		if a != typeInt2Vec && a != typeOidVec {
			m[e] = a
		}
	}
	return m
}()

// arrayOf is the type of arrays of a type; what needs one cannot be written where there is none.
func arrayOf(t policy.Type, what string) typed {
	array, ok := arrays[t]
	if !ok {
		cannot(what)
	}
	return of(array)
}

// elementOf is the type of an array's elements; what is no array is refused.
func elementOf(e expr, state, message string) policy.Type {
	element, ok := elements[e.oid]
	if !ok {
		wrong(state, message, 0)
	}
	return element
}

// vectors tells whether values of t are arrays whose subscripts begin at 0.
func vectors(t policy.Type) bool { return t == typeInt2Vec || t == typeOidVec }

// ArrayElement returns the element type of an array or vector type.
func ArrayElement(t policy.Type) (policy.Type, bool) {
	e, ok := elements[t]
	return e, ok
}

// stored are the types of values that are held as such.
var stored = map[policy.Type]string{
	policy.Bool: "bool", policy.Int2: "int2", policy.Int4: "int4", policy.Int8: "int8", policy.Float4: "float4", policy.Float8: "float8",
	policy.DateType: "date", policy.TimestampT: "timestamp", policy.TimestampTZ: "timestamp", policy.TimeT: "int8", policy.IntervalT: "interval",
}

// Storage is the DuckDB type in which the embedded sandbox holds values of a PostgreSQL type. Text compares by code
// point in both. A numeric is an order-preserving text that keeps its scale, a timestamptz a TIMESTAMP in UTC, an oid a
// BIGINT, and so a time, of its microseconds; whatever is not named is text.
func Storage(t policy.Type) string {
	if e, ok := elements[t]; ok {
		return Storage(e) + "[]"
	}
	kind, ok := stored[t]
	switch {
	case ok:
	case oidLike(t):
		kind = "int8"
	default:
		kind = "text"
	}
	return dialect.DuckDB.Type(kind)
}

// oidLike tells whether values of t are object identifiers.
func oidLike(t policy.Type) bool {
	return slices.Contains([]policy.Type{typeOid, typeXid, 29, typeRegproc, 2202, 2203, 2204, typeRegclass, typeRegtype, 3734, 3769, typeRegNS, typeRegRole}, t)
}

// textLike tells whether values of t are text of some kind, comparable with text.
func textLike(t policy.Type) bool {
	return slices.Contains([]policy.Type{policy.Text, policy.Varchar, typeName, typeChar, policy.Bpchar, 2275}, t)
}

// plainText tells whether a value of t is held as the text that it is shown as.
func plainText(t policy.Type) bool {
	return Storage(t) == "VARCHAR" && t != policy.NumericType && t != typeRecord && t != policy.Unknown
}

func numberLike(t policy.Type) bool {
	return t.Integer() || t.Floating() || t == policy.NumericType
}

// scalarType tells whether package scalar computes with values of t.
func scalarType(t policy.Type) bool {
	return slices.Contains([]policy.Type{policy.Bool, policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.NumericType, policy.Text,
		policy.Varchar, policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.TimeT, policy.IntervalT, policy.UUID, policy.Unknown}, t)
}
