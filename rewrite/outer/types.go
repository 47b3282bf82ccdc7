package outer

import "github.com/dpproxy/dpproxy/policy"

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
	typeBpchar   policy.Type = 1042
	typeRegclass policy.Type = 2205
	typeRegtype  policy.Type = 2206
	typeAnyArray policy.Type = 2277
	typeRegNS    policy.Type = 4089
	typeRegRole  policy.Type = 4096
	typeTextArr  policy.Type = 1009
	typeVoid     policy.Type = 2278
	typeRecord   policy.Type = 2249
)

// elements maps array types to the types of their elements.
var elements = map[policy.Type]policy.Type{
	1000: policy.Bool, 1002: typeChar, 1003: typeName, 1005: policy.Int2, 1007: policy.Int4, 1009: policy.Text,
	1015: policy.Varchar, 1016: policy.Int8, 1021: policy.Float4, 1022: policy.Float8, 1028: typeOid, 1034: 1033,
	1115: policy.TimestampT, 1182: policy.DateType, 1185: policy.TimestampTZ, 1187: policy.IntervalT,
	1231: policy.NumericType, 2951: policy.UUID, 2211: typeRegtype, 2210: typeRegclass, 1008: typeRegproc, typeInt2Vec: policy.Int2,
	typeOidVec: typeOid, 1263: 2275, 1014: typeBpchar, 4090: typeRegNS,
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

// ArrayElement returns the element type of an array or vector type.
func ArrayElement(t policy.Type) (policy.Type, bool) {
	e, ok := elements[t]
	return e, ok
}

// Storage is the DuckDB type in which the embedded sandbox holds values of a PostgreSQL type. Text compares by code
// point in both. A numeric is an order-preserving text that keeps its scale, a timestamptz a TIMESTAMP in UTC, an oid a
// BIGINT; whatever is not named is text.
func Storage(t policy.Type) string {
	if e, ok := elements[t]; ok {
		return Storage(e) + "[]"
	}
	switch t {
	case policy.Bool:
		return "BOOLEAN"
	case policy.Int2:
		return "SMALLINT"
	case policy.Int4:
		return "INTEGER"
	case policy.Int8:
		return "BIGINT"
	case policy.Float4:
		return "FLOAT"
	case policy.Float8:
		return "DOUBLE"
	case policy.DateType:
		return "DATE"
	case policy.TimestampT, policy.TimestampTZ:
		return "TIMESTAMP"
	case policy.IntervalT:
		return "INTERVAL"
	}
	if oidLike(t) {
		return "BIGINT"
	}
	return "VARCHAR"
}

// oidLike tells whether values of t are object identifiers.
func oidLike(t policy.Type) bool {
	switch t {
	case typeOid, typeXid, 29, typeRegproc, 2202, 2203, 2204, typeRegclass, typeRegtype, 3734, 3769, typeRegNS, typeRegRole:
		return true
	}
	return false
}

// textLike tells whether values of t are text of some kind, comparable with text.
func textLike(t policy.Type) bool {
	switch t {
	case policy.Text, policy.Varchar, typeName, typeChar, typeBpchar, 2275:
		return true
	}
	return false
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
	switch t {
	case policy.Bool, policy.Int2, policy.Int4, policy.Int8, policy.Float4, policy.Float8, policy.NumericType, policy.Text,
		policy.Varchar, policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.IntervalT, policy.UUID, policy.Unknown:
		return true
	}
	return false
}
