package ast

import (
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

// InternalNames are the types' names in pg_catalog.
var InternalNames = map[policy.Type]string{
	policy.Bool: "bool", policy.Int2: "int2", policy.Int4: "int4", policy.Int8: "int8", policy.Float4: "float4", policy.Float8: "float8",
	policy.NumericType: "numeric", policy.Text: "text", policy.Varchar: "varchar", policy.DateType: "date", policy.TimestampT: "timestamp",
	policy.TimestampTZ: "timestamptz", policy.IntervalT: "interval", policy.TimeT: "time", policy.UUID: "uuid", 26: "oid", 19: "name", 2205: "regclass", 2206: "regtype",
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
	array := false
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
	name, known := InternalNames[t]
	if !known {
		return n
	}
	typ := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode(name)}, Typemod: -1, Location: -1}
	if array {
		typ.ArrayBounds = []*pg.Node{pg.MakeIntNode(-1)}
	}
	return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: n, TypeName: typ, Location: -1}}}
}
