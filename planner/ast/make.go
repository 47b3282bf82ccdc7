package ast

import (
	"cmp"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// GrammarVersion is the version of the trees that the grammar makes, which writing a tree needs again.
const GrammarVersion = 170007

// Select is a SELECT as a node.
func Select(s *pg.SelectStmt) *pg.Node {
	return &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: s}}
}

// StringNodes rebuilds a list of String nodes.
func StringNodes(list []*pg.Node) []*pg.Node {
	var out []*pg.Node
	for _, s := range Strings(list) {
		out = append(out, pg.MakeStrNode(s))
	}
	return out
}

// CastByName casts to a type of pg_catalog.
func CastByName(n *pg.Node, name string, location int32) *pg.Node {
	t := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(name)}, Typemod: -1, Location: -1}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: t, Location: location}}}
}

// InternalNames are the types' names in pg_catalog; othersNames are those of types that only catalogs and clients use,
// otherArrays the elements of arrays of them.
var (
	InternalNames = map[policy.Type]string{
		policy.Bool: "bool", policy.Int2: "int2", policy.Int4: "int4", policy.Int8: "int8", policy.Float4: "float4", policy.Float8: "float8",
		policy.NumericType: "numeric", policy.Text: "text", policy.Varchar: "varchar", policy.DateType: "date", policy.TimestampT: "timestamp",
		policy.TimestampTZ: "timestamptz", policy.IntervalT: "interval", policy.TimeT: "time", policy.UUID: "uuid",
	}
	othersNames = map[policy.Type]string{
		17: "bytea", 18: "char", 19: "name", 24: "regproc", 26: "oid", 28: "xid", 114: "json", 142: "xml", 650: "cidr", 829: "macaddr", 869: "inet", 1266: "timetz",
		2205: "regclass", 2206: "regtype", 3802: "jsonb", 4089: "regnamespace",
	}
	otherArrays = map[policy.Type]policy.Type{1001: 17, 1003: 19, 1028: 26, 199: 114, 1041: 869, 3807: 3802}
)

// NamedType is the type, but for an array, of a name in pg_catalog; 0 if no parameter may have it.
func NamedType(name string) policy.Type {
	for _, names := range []map[policy.Type]string{InternalNames, othersNames} {
		for t, known := range names {
			if known == name {
				return t
			}
		}
	}
	return 0
}

// OthersType reports whether only catalogs and clients use a type that Cast has a name for.
func OthersType(t policy.Type) bool { return othersNames[t] != "" || otherArrays[t] != 0 }

// Castable reports whether Cast has a name for a type.
func Castable(t policy.Type) bool {
	for element, of := range ArrayTypes {
		if of == t {
			t = element
		}
	}
	return InternalNames[t] != "" || OthersType(t) || t == policy.Bpchar || t == BpcharArray
}

// CastTo is n::t for a column's type, which may be a char.
func CastTo(n *pg.Node, t policy.Type, typmod int32) *pg.Node {
	if t != policy.Bpchar {
		return Cast(n, t)
	}
	if typmod < 4 { // the grammar's printer writes pg_catalog.bpchar as char, of which PostgreSQL makes char(1)
		return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("bpchar")}, Typemod: -1, Location: -1}, Location: -1}}}
	}
	out := CastByName(n, "bpchar", -1)
	out.GetTypeCast().TypeName.Typmods = []*pg.Node{pg.MakeAConstIntNode(int64(policy.CharLength(typmod)), -1)}
	return out
}

// Cast is n::t, of a char its text; a type without a name here leaves n as it is.
func Cast(n *pg.Node, t policy.Type) *pg.Node {
	element, array := otherArrays[t]
	if array {
		t = element
	}
	for element, of := range ArrayTypes {
		if of == t {
			t, array = element, true
		}
	}
	switch t { // values of chars are texts
	case policy.Bpchar:
		t = policy.Text
	case BpcharArray:
		t, array = policy.Text, true
	}
	name := cmp.Or(InternalNames[t], othersNames[t])
	if name == "" {
		return n
	}
	typ := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(name)}, Typemod: -1, Location: -1}
	if array {
		typ.ArrayBounds = []*pg.Node{pg.MakeIntNode(-1)}
	}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: typ, Location: -1}}}
}
