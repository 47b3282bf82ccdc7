// Package ast reads and makes trees of PostgreSQL's grammar: what a call is named, which nodes hang below an
// expression, where in the text a node is, what a type's name means, and what PostgreSQL calls a column. Of
//
//	SELECT date_trunc('month', d)::date, count(*) FILTER (WHERE n > 3) FROM visits GROUP BY 1
//
// it says that the first column is named date_trunc and is cast to date, that the second holds an aggregate and is
// named count, and that n > 3 is among the operands of that call. It knows no table and no session: what the names mean
// is bound above it.
package ast

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates are the aggregate functions that the planner tells from other functions.
var Aggregates = map[string]bool{
	"count": true, "sum": true, "avg": true, "min": true, "max": true, "stddev": true, "stddev_pop": true, "stddev_samp": true,
	"variance": true, "var_pop": true, "var_samp": true, "bool_and": true, "bool_or": true, "every": true, "bit_and": true, "bit_or": true,
	"bit_xor": true, "array_agg": true, "string_agg": true, "json_agg": true, "jsonb_agg": true, "json_object_agg": true,
	"jsonb_object_agg": true, "percentile_cont": true, "percentile_disc": true, "mode": true, "corr": true, "covar_pop": true,
	"covar_samp": true, "regr_avgx": true, "regr_avgy": true, "regr_count": true, "regr_intercept": true, "regr_r2": true,
	"regr_slope": true, "regr_sxx": true, "regr_sxy": true, "regr_syy": true, "any_value": true, "xmlagg": true, "range_agg": true,
	"median": true,
}

// FunctionName is the name of a function of PostgreSQL's own schemas.
func FunctionName(f *pg.FuncCall) (string, *refuse.Refusal) {
	names := Strings(f.Funcname)
	last := names[len(names)-1]
	switch {
	case last == "" || !(last[0] >= 'a' && last[0] <= 'z' || last[0] == '_'): // "<="(): no function is called as an operator is
	case len(names) == 1:
		return names[0], nil
	case len(names) == 2 && (names[0] == "pg_catalog" || names[0] == "information_schema"):
		return names[1], nil
	}
	if name := strings.Join(names, "."); name == "dp.low" || name == "dp.high" {
		return "", refuse.BoundPlace.At(int(f.Location), name)
	}
	return "", refuse.UnknownFunction.At(int(f.Location), strings.Join(names, ".")+"()")
}

// NamedArgument is the first argument of a call that is given by its name, as years in make_interval(years => 2);
// empty: none is.
func NamedArgument(f *pg.FuncCall) string {
	for _, a := range f.Args {
		if n := a.GetNamedArgExpr(); n != nil {
			return n.Name
		}
	}
	return ""
}

// IsAggregate tells a call of an aggregate that is not a window function.
func IsAggregate(f *pg.FuncCall) bool {
	names := Strings(f.Funcname)
	return f.Over == nil && len(names) > 0 && (Aggregates[names[len(names)-1]] || f.AggStar || f.AggWithinGroup)
}

// Holds reports whether a node of the expression, outside its sub-queries, satisfies the test.
func Holds(n *pg.Node, test func(*pg.Node) bool) bool {
	return n != nil && (test(n) || slices.ContainsFunc(Children(n), func(c *pg.Node) bool { return Holds(c, test) }))
}

// HasAggregate tells an expression with an aggregate outside its sub-queries.
func HasAggregate(n *pg.Node) bool {
	return Holds(n, func(n *pg.Node) bool { f := n.GetFuncCall(); return f != nil && IsAggregate(f) })
}

// HasWindow tells an expression with a window function outside its sub-queries.
func HasWindow(n *pg.Node) bool {
	return Holds(n, func(n *pg.Node) bool { f := n.GetFuncCall(); return f != nil && f.Over != nil })
}

// Children are the operands of an expression; a sub-query has only its test.
func Children(n *pg.Node) []*pg.Node {
	switch v := n.GetNode().(type) {
	case *pg.Node_AExpr:
		return []*pg.Node{v.AExpr.Lexpr, v.AExpr.Rexpr}
	case *pg.Node_BoolExpr:
		return v.BoolExpr.Args
	case *pg.Node_FuncCall:
		out := append(append([]*pg.Node{v.FuncCall.AggFilter}, v.FuncCall.Args...), v.FuncCall.AggOrder...)
		if w := v.FuncCall.Over; w != nil {
			out = append(append(append(out, w.PartitionClause...), w.OrderClause...), w.StartOffset, w.EndOffset)
		}
		return out
	case *pg.Node_TypeCast:
		return []*pg.Node{v.TypeCast.Arg}
	case *pg.Node_NullTest:
		return []*pg.Node{v.NullTest.Arg}
	case *pg.Node_BooleanTest:
		return []*pg.Node{v.BooleanTest.Arg}
	case *pg.Node_CaseExpr:
		return append([]*pg.Node{v.CaseExpr.Arg, v.CaseExpr.Defresult}, v.CaseExpr.Args...)
	case *pg.Node_CaseWhen:
		return []*pg.Node{v.CaseWhen.Expr, v.CaseWhen.Result}
	case *pg.Node_CoalesceExpr:
		return v.CoalesceExpr.Args
	case *pg.Node_MinMaxExpr:
		return v.MinMaxExpr.Args
	case *pg.Node_AArrayExpr:
		return v.AArrayExpr.Elements
	case *pg.Node_RowExpr:
		return v.RowExpr.Args
	case *pg.Node_List:
		return v.List.Items
	case *pg.Node_SubLink:
		return []*pg.Node{v.SubLink.Testexpr}
	case *pg.Node_CollateClause:
		return []*pg.Node{v.CollateClause.Arg}
	case *pg.Node_AIndirection:
		return append([]*pg.Node{v.AIndirection.Arg}, v.AIndirection.Indirection...)
	case *pg.Node_AIndices:
		return []*pg.Node{v.AIndices.Lidx, v.AIndices.Uidx}
	case *pg.Node_GroupingFunc:
		return v.GroupingFunc.Args
	case *pg.Node_ResTarget:
		return []*pg.Node{v.ResTarget.Val}
	case *pg.Node_SortBy:
		return []*pg.Node{v.SortBy.Node}
	case *pg.Node_NamedArgExpr:
		return []*pg.Node{v.NamedArgExpr.Arg}
	}
	return nil
}

// Location is the byte offset of a node, −1 where the grammar keeps none.
func Location(n *pg.Node) int {
	switch v := n.GetNode().(type) {
	case *pg.Node_ColumnRef:
		return int(v.ColumnRef.Location)
	case *pg.Node_AConst:
		return int(v.AConst.Location)
	case *pg.Node_ParamRef:
		return int(v.ParamRef.Location)
	case *pg.Node_AExpr:
		return operationAt(v.AExpr)
	case *pg.Node_BoolExpr:
		return int(v.BoolExpr.Location)
	case *pg.Node_FuncCall:
		return int(v.FuncCall.Location)
	case *pg.Node_TypeCast:
		return int(v.TypeCast.Location)
	case *pg.Node_CaseExpr:
		return int(v.CaseExpr.Location)
	case *pg.Node_CoalesceExpr:
		return int(v.CoalesceExpr.Location)
	case *pg.Node_SubLink:
		return int(v.SubLink.Location)
	case *pg.Node_NullTest:
		return int(v.NullTest.Location)
	case *pg.Node_RangeVar:
		return int(v.RangeVar.Location)
	case *pg.Node_ResTarget:
		return int(v.ResTarget.Location)
	case *pg.Node_RowExpr:
		return int(v.RowExpr.Location)
	case *pg.Node_AArrayExpr:
		return int(v.AArrayExpr.Location)
	}
	return -1
}

// operationAt is where an operation begins: at its left operand, or at the operator where there is none.
func operationAt(e *pg.A_Expr) int {
	if left := Location(e.Lexpr); left >= 0 {
		return left
	}
	return int(e.Location)
}

// Conjuncts flattens ANDs.
func Conjuncts(n *pg.Node) []*pg.Node {
	if n == nil {
		return nil
	}
	b := n.GetBoolExpr()
	if b == nil || b.Boolop != pg.BoolExprType_AND_EXPR {
		return []*pg.Node{n}
	}
	var out []*pg.Node
	for _, a := range b.Args {
		out = append(out, Conjuncts(a)...)
	}
	return out
}

// SameTree tells that two trees are equal but for the places in the text that they came from.
func SameTree(a, b *pg.Node) bool {
	x, y := proto.Clone(a), proto.Clone(b)
	placeless(x.ProtoReflect())
	placeless(y.ProtoReflect())
	return proto.Equal(x, y)
}

func placeless(m protoreflect.Message) {
	Each(m, func(m protoreflect.Message) {
		m.Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if strings.HasSuffix(string(field.Name()), "location") {
				m.Clear(field)
			}
			return true
		})
	})
}

// PlaceAt gives every node of a tree one place.
func PlaceAt(m protoreflect.Message, pos int32) {
	Each(m, func(m protoreflect.Message) {
		if field := m.Descriptor().Fields().ByName("location"); field != nil && field.Kind() == protoreflect.Int32Kind {
			m.Set(field, protoreflect.ValueOfInt32(pos))
		}
	})
}

// Each visits a tree, from the top.
func Each(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList() && field.Message() != nil:
			for i := range v.List().Len() {
				Each(v.List().Get(i).Message(), visit)
			}
		case !field.IsList() && field.Message() != nil:
			Each(v.Message(), visit)
		}
		return true
	})
}

// IsSubLink tells a sub-query of an expression.
func IsSubLink(n *pg.Node) bool { return n.GetSubLink() != nil }

// Copied is a node made anew, without places in the text: part makes its parts. Names and numbers of the grammar's own
// are copied.
func Copied(n *pg.Node, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) (*pg.Node, *refuse.Refusal) {
	out, refusal := copied(n.ProtoReflect(), part)
	if refusal != nil {
		return nil, refusal
	}
	return out.Interface().(*pg.Node), nil
}

// CopiedList is a list of nodes made anew.
func CopiedList(list []*pg.Node, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) ([]*pg.Node, *refuse.Refusal) {
	var out []*pg.Node
	for _, n := range list {
		made, refusal := partOf(n, part)
		if refusal != nil {
			return nil, refusal
		}
		out = append(out, cmp.Or(made, &pg.Node{})) // the empty node of DISTINCT
	}
	return out, nil
}

func partOf(n *pg.Node, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) (*pg.Node, *refuse.Refusal) {
	switch n.GetNode().(type) {
	case *pg.Node_String_, *pg.Node_Integer, *pg.Node_AStar:
		return Copied(n, part)
	}
	return part(n)
}

func copied(m protoreflect.Message, part func(*pg.Node) (*pg.Node, *refuse.Refusal)) (protoreflect.Message, *refuse.Refusal) {
	out, fields := m.New(), m.Descriptor().Fields()
	for i := range fields.Len() { // in their order, which is that of the text
		field := fields.Get(i)
		switch {
		case field.Name() == "location":
			out.Set(field, protoreflect.ValueOfInt32(-1))
		case !m.Has(field):
		case field.IsList():
			for k := range m.Get(field).List().Len() {
				made, refusal := CopiedList([]*pg.Node{m.Get(field).List().Get(k).Message().Interface().(*pg.Node)}, part)
				if refusal != nil {
					return nil, refusal
				}
				out.Mutable(field).List().Append(protoreflect.ValueOfMessage(made[0].ProtoReflect()))
			}
		case field.Message() == nil:
			out.Set(field, m.Get(field))
		default:
			of := m.Get(field).Message()
			if n, ok := of.Interface().(*pg.Node); ok {
				made, refusal := partOf(n, part)
				if refusal != nil {
					return nil, refusal
				}
				if made != nil {
					out.Set(field, protoreflect.ValueOfMessage(made.ProtoReflect()))
				}
				continue
			}
			made, refusal := copied(of, part)
			if refusal != nil {
				return nil, refusal
			}
			out.Set(field, protoreflect.ValueOfMessage(made))
		}
	}
	return out, nil
}

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
