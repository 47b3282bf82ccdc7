package outerquery

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Types of parameters that only the sandbox will use. In SELECT relname FROM pg_class WHERE oid = $1 LIMIT $2, which a client describes
// before it binds, $1 is an oid and $2 a bigint.

// The oids of types that only catalog queries use.
const (
	oidType      policy.Type = 26
	oidArrayType policy.Type = 1028
	nameType     policy.Type = 19
)

// oidAliases are the types that read an object's name as its oid.
var oidAliases = map[string]policy.Type{"oid": oidType, "regproc": 24, "regclass": 2205, "regtype": 2206, "regnamespace": 4089, "regrole": 4096}

// otherTypes are types that only what an engine computes has.
var otherTypes = map[string]policy.Type{"name": nameType, "json": 114}

// catalogArguments are the types of the arguments of functions that clients call with parameters.
var catalogArguments = map[string][]policy.Type{
	"pg_get_indexdef": {oidType, policy.Int4, policy.Bool}, "pg_get_constraintdef": {oidType, policy.Bool}, "pg_get_viewdef": {oidType, policy.Bool},
	"pg_get_functiondef": {oidType}, "pg_get_triggerdef": {oidType, policy.Bool}, "pg_get_ruledef": {oidType, policy.Bool}, "pg_get_userbyid": {oidType},
	"format_type": {oidType, policy.Int4}, "obj_description": {oidType, nameType}, "col_description": {oidType, policy.Int4},
	"shobj_description": {oidType, nameType}, "pg_table_is_visible": {oidType}, "pg_type_is_visible": {oidType}, "pg_relation_size": {2205},
	"pg_table_size": {2205}, "pg_total_relation_size": {2205},
}

// seriesArguments are the types of generate_series: of moments where one of its ends is one, or its step an interval, and else of numbers. With a date PostgreSQL
// takes moments with a zone, as where it has nothing but the step to choose by.
func seriesArguments(args []*pg.Node) []policy.Type {
	types := make([]policy.Type, len(args))
	for i, a := range args {
		types[i] = seriesType(a)
	}
	of := policy.Int4
	switch {
	case slices.Contains(types, policy.TimestampTZ):
		of = policy.TimestampTZ
	case slices.Contains(types, policy.TimestampT):
		of = policy.TimestampT
	case slices.Contains(types, policy.DateType), len(types) == 3 && types[2] == policy.IntervalT:
		of = policy.TimestampTZ
	case slices.Contains(types, policy.NumericType):
		of = policy.NumericType
	case slices.Contains(types, policy.Int8):
		of = policy.Int8
	}
	if semantics.IsMoment(of) {
		return []policy.Type{of, of, policy.IntervalT}
	}
	return []policy.Type{of, of, of}
}

// seriesType is the type of an end by its look: now() - interval '7 days' is a moment.
func seriesType(n *pg.Node) policy.Type {
	if a := n.GetAExpr(); a != nil && a.Lexpr != nil {
		if t := seriesType(a.Lexpr); semantics.IsMoment(t) {
			return t
		}
	}
	switch n.GetSqlvalueFunction().GetOp() {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		return policy.DateType
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return policy.TimestampTZ
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		return policy.TimestampT
	}
	if f := n.GetFuncCall(); f != nil {
		name, _ := ast.FunctionName(f)
		switch {
		case name == "now":
			return policy.TimestampTZ
		case name == "date_trunc" && len(f.Args) > 1:
			if t := seriesType(f.Args[1]); t == policy.TimestampT {
				return t
			}
			return policy.TimestampTZ
		}
	}
	if f := n.GetAConst().GetFval(); f != nil && !strings.ContainsAny(f.Fval, ".eE") && len(f.Fval) < 19 {
		return policy.Int8
	}
	return catalogColumnType(n)
}

// SeeInTree counts the parameters of a statement that a sandbox will type.
func SeeInTree(b *aggregate.Binder) {
	ast.Each(b.Top.ProtoReflect(), func(m protoreflect.Message) {
		if p, ok := m.Interface().(*pg.ParamRef); ok {
			b.Params.Seen = max(b.Params.Seen, int(p.Number))
		}
	})
}

// InferInTree finds the types of parameters in a sub-query of which only its answer is asked, as far as they show without a look at what it reads: from casts, from
// LIMIT and OFFSET, and from comparisons with constants and with catalog columns of well-known names.
func InferInTree(b *aggregate.Binder) {
	in := inference{b.Params}
	in.inferIn(b.Top)
	for _, n := range b.Top.TargetList {
		in.inferAs(n.GetResTarget().GetVal(), policy.Text) // a column of no other type
	}
}

// inference is where the types of parameters are noted.
type inference struct{ params *semantics.Parameters }

func (b inference) inferIn(sel *pg.SelectStmt) {
	if sel == nil {
		return
	}
	b.inferIn(sel.Larg)
	b.inferIn(sel.Rarg)
	for _, n := range sel.GetWithClause().GetCtes() {
		b.inferIn(n.GetCommonTableExpr().GetCtequery().GetSelectStmt())
	}
	for _, n := range []*pg.Node{sel.LimitCount, sel.LimitOffset} {
		b.inferAs(n, policy.Int8)
		b.inferNode(n)
	}
	for _, list := range [][]*pg.Node{sel.TargetList, sel.FromClause, sel.GroupClause, sel.SortClause, sel.ValuesLists, {sel.WhereClause, sel.HavingClause}} {
		for _, n := range list {
			b.inferNode(n)
		}
	}
}

func (b inference) inferNode(n *pg.Node) {
	switch v := n.GetNode().(type) {
	case nil:
		return
	case *pg.Node_RangeSubselect:
		b.inferIn(v.RangeSubselect.Subquery.GetSelectStmt())
	case *pg.Node_JoinExpr:
		b.inferNode(v.JoinExpr.Larg)
		b.inferNode(v.JoinExpr.Rarg)
		b.inferNode(v.JoinExpr.Quals)
	case *pg.Node_RangeFunction:
		for _, f := range v.RangeFunction.Functions {
			b.inferNode(f)
		}
	case *pg.Node_SubLink:
		b.inferIn(v.SubLink.Subselect.GetSelectStmt())
	case *pg.Node_ParamRef:
		b.params.Seen = max(b.params.Seen, int(v.ParamRef.Number))
	case *pg.Node_TypeCast:
		b.inferAs(v.TypeCast.Arg, namedType(v.TypeCast.TypeName))
	case *pg.Node_AExpr:
		b.inferPair(v.AExpr)
	case *pg.Node_FuncCall:
		names := ast.Strings(v.FuncCall.Funcname)
		types := catalogArguments[names[len(names)-1]]
		if names[len(names)-1] == "generate_series" {
			types = seriesArguments(v.FuncCall.Args)
		}
		for i, arg := range v.FuncCall.Args[:min(len(types), len(v.FuncCall.Args))] {
			b.inferAs(arg, types[i])
		}
	}
	for _, c := range ast.Children(n) {
		b.inferNode(c)
	}
}

// patternOperators match a name with a text.
var patternOperators = map[string]bool{"~": true, "!~": true, "~*": true, "!~*": true, "~~": true, "!~~": true, "~~*": true, "!~~*": true}

// inferPair looks at a comparison of a parameter with a column, a cast or a constant.
func (b inference) inferPair(a *pg.A_Expr) {
	operator := ast.Strings(a.Name)
	pattern := len(operator) > 0 && patternOperators[operator[len(operator)-1]]
	for _, pair := range [][2]*pg.Node{{a.Lexpr, a.Rexpr}, {a.Rexpr, a.Lexpr}} {
		t := catalogColumnType(pair[1])
		if a.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY || a.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL {
			t = arrayOf(t)
		}
		if pattern && t == nameType {
			t = policy.Text
		}
		b.inferAs(pair[0], t)
		for _, item := range pair[0].GetList().GetItems() {
			b.inferAs(item, t)
		}
	}
}

func (b inference) inferAs(n *pg.Node, t policy.Type) {
	if p := n.GetParamRef(); p != nil && t != 0 {
		b.params.Note(&semantics.Expr{Parameter: int(p.Number)}, t)
	}
}

func arrayOf(t policy.Type) policy.Type {
	if t == oidType {
		return oidArrayType
	}
	return ast.ArrayTypes[t]
}

// catalogColumnType is the type of an expression by its look: a number, a count, a cast, or a catalog column's usual name.
func catalogColumnType(n *pg.Node) policy.Type {
	switch n.GetAConst().GetVal().(type) {
	case *pg.A_Const_Ival:
		return policy.Int4
	case *pg.A_Const_Fval:
		return policy.NumericType
	case *pg.A_Const_Boolval:
		return policy.Bool
	}
	if f := n.GetFuncCall(); f != nil && slices.Equal(ast.Strings(f.Funcname), []string{"count"}) {
		return policy.Int8
	}
	if c := n.GetTypeCast(); c != nil {
		return namedType(c.TypeName)
	}
	names := ast.Strings(n.GetColumnRef().GetFields())
	if len(names) == 0 {
		return 0
	}
	switch name := names[len(names)-1]; {
	case name == "attnum" || name == "conkey":
		return policy.Int2
	case name == "oid" || strings.HasSuffix(name, "relid") || strings.HasSuffix(name, "namespace") || name == "typelem" || name == "objoid":
		return oidType
	case name != "name" && strings.HasSuffix(name, "name") && !strings.Contains(name, "_"):
		return nameType
	}
	return 0
}

func namedType(t *pg.TypeName) policy.Type {
	name := strings.TrimPrefix(ast.TypeName(t), "pg_catalog.")
	typ := ast.TypeNames[name]
	if alias, ok := oidAliases[name]; ok {
		typ = alias
	}
	if named, ok := otherTypes[name]; ok {
		typ = named
	}
	if len(t.ArrayBounds) == 0 || typ == 0 {
		return typ
	}
	return arrayOf(typ)
}
