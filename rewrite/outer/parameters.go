package outer

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A client that describes a statement before it binds it is told what type each parameter has, and encodes what it sends by that. Above the leaves the binder
// says it: an untyped constant in a parameter's place is given a type by what stands around it, and the first place decides, as in PostgreSQL.
// In SELECT lag(k, $1) OVER (ORDER BY k) FROM leaf_1 WHERE g = $2 AND k LIKE $3 the first two are integers, the third a text.
//
// What is asked is not a text to run, so that what cannot be bound ends nothing: it has a type that nobody knows, and the binder goes on with what stands around it and in it.

// describing is what a binder knows of described parameters.
type describing struct {
	parameters map[int]policy.Type // as far as they are told
	visited    map[any]policy.Type // the type of each node of the tree that was bound, or has failed
}

// typeUnknowable is the type of what cannot be bound.
const typeUnknowable, typeJSONB policy.Type = 2276, 3802

// Parameters are the types of the parameters that a described plan has no types of, as far as its outer query tells them. The binder for DuckDB finds them for
// every sandbox, since PostgreSQL's rules are its own.
func Parameters(p *plans.Plan) map[int]policy.Type {
	if p.Outer.Tree == nil {
		return nil
	}
	b := &binder{plan: p, describing: describing{map[int]policy.Type{}, map[any]policy.Type{}}}
	b.attempt(func() { b.statement(p.Outer.Tree) }) // a refusal is said where the query is written for its sandbox
	return b.parameters
}

// parameter is a described parameter: of the type that another place told, or of none yet.
func (b *binder) parameter(n int) expr {
	if t, known := b.parameters[n]; known {
		return expr{sql: "CAST(NULL AS " + Storage(t) + ")", typed: of(t)}
	}
	return expr{sql: "CAST(NULL AS VARCHAR)", typed: typed{oid: policy.Unknown, mod: -1, parameter: n}, null: true}
}

// attempt binds a part; false: it cannot be bound.
func (b *binder) attempt(bind func()) (bound bool) { return b.tried(bind) == nil }

// tried binds a part, and is why it cannot be bound.
func (b *binder) tried(bind func()) *refuse.Refusal {
	_, refusal := caught(func() (Query, *refuse.Refusal) { bind(); return Query{}, nil })
	return refusal
}

// ofCall is the type of a call that cannot be bound, where PostgreSQL's catalog has it; what it takes its arguments as is told.
func (b *binder) ofCall(node *pg.Node) policy.Type {
	name, nodes := "", []*pg.Node(nil)
	switch n := node.GetNode().(type) {
	case *pg.Node_TypeCast:
		if lastName(n.TypeCast.GetTypeName().GetNames()) != "jsonb" || len(n.TypeCast.GetTypeName().GetArrayBounds()) > 0 { // of the types that no cast is written to here, the one that is read in binary
			return typeUnknowable
		}
		if p := -n.TypeCast.GetArg().GetParamRef().GetNumber(); p > 0 {
			b.told(b.parameter(int(p)).typed, typeJSONB)
		}
		return typeJSONB
	case *pg.Node_FuncCall:
		name, nodes = lastName(n.FuncCall.GetFuncname()), n.FuncCall.GetArgs()
	case *pg.Node_AExpr:
		if n.AExpr.GetKind() != pg.A_Expr_Kind_AEXPR_OP {
			return typeUnknowable
		}
		if name = lastName(n.AExpr.GetName()); n.AExpr.GetLexpr() != nil {
			nodes = append(nodes, n.AExpr.GetLexpr())
		}
		nodes = append(nodes, n.AExpr.GetRexpr())
	}
	args := make([]expr, len(nodes))
	in := make([]policy.Type, len(nodes))
	for i, n := range nodes {
		if in[i] = b.visited[n]; in[i] == 0 {
			in[i] = typeUnknowable
		}
		args[i] = expr{typed: of(in[i])}
		if p := -n.GetParamRef().GetNumber(); p > 0 {
			args[i] = b.parameter(int(p))
		}
	}
	b.toldByCall(name, args...)
	if t := compileEnv.Gives(name, in...); t != policy.Unknown {
		return t
	}
	return typeUnknowable
}

// within binds the parts of what cannot be bound that were not yet.
func (b *binder) within(sc *scope, nodes ...*pg.Node) {
	for _, n := range nodes {
		if n == nil || n.Node == nil || b.visited[n] != 0 {
			continue
		}
		b.attempt(func() {
			if s := n.GetSelectStmt(); s != nil {
				b.nested(s, sc)
			} else if item := n.GetResTarget(); item != nil {
				b.expr(item.GetVal(), sc)
			} else {
				b.expr(n, sc)
			}
		})
	}
}

// rest looks at those parts of a described query that has failed which were not bound yet, in the scope that it has come to.
func (b *binder) rest(s *pg.SelectStmt, sc *scope) {
	for _, side := range []*pg.SelectStmt{s.GetLarg(), s.GetRarg()} {
		if side != nil && b.visited[side] == 0 {
			b.attempt(func() { b.query(side, sc) })
		}
	}
	b.within(sc, s.GetWhereClause())
	b.within(sc, s.GetTargetList()...)
	b.within(sc, s.GetHavingClause())
	b.within(sc, s.GetGroupClause()...)
	for _, by := range s.GetSortClause() {
		b.within(sc, by.GetSortBy().GetNode())
	}
	b.attempt(func() { b.limits(s, sc) })
}

// toldByCall notes what types a function, an operator, an aggregate or a window function takes its arguments as.
func (b *binder) toldByCall(name string, args ...expr) {
	if !slices.ContainsFunc(args, func(e expr) bool { return e.parameter > 0 }) {
		return
	}
	in := make([]policy.Type, len(args))
	for i, e := range args {
		in[i] = e.oid
	}
	for i, want := range compileEnv.Wants(name, in...) {
		b.told(args[i].typed, want)
	}
}

// toldByElement notes what types x op ANY (array) and ALL give its sides: that of the operator between one and an element of the other.
func (b *binder) toldByElement(op string, l, r expr) {
	if l.parameter == 0 && r.parameter == 0 {
		return
	}
	element := policy.Unknown
	if of, array := elements[r.oid]; array {
		element = of
	}
	if want := compileEnv.Wants(op, l.oid, element); want != nil {
		b.told(l.typed, want[0])
		if array, ok := arrays[want[1]]; ok {
			b.told(r.typed, array)
		}
	}
}

// toldBeside notes the type that values are brought to which stand beside one another: in CASE, IN, UNION, VALUES, an ARRAY.
func (b *binder) toldBeside(types ...typed) {
	if !slices.ContainsFunc(types, func(t typed) bool { return t.parameter > 0 }) {
		return
	}
	in := make([]policy.Type, len(types))
	for i, t := range types {
		in[i] = t.oid
	}
	if common, ok := compileEnv.Common(in...); ok {
		for _, t := range types {
			b.told(t, common)
		}
	}
}

// reach is the type by which a frame's RANGE reaches out from a value of type t, to which it is added.
func reach(t policy.Type) policy.Type {
	switch t {
	case policy.DateType, policy.TimestampT, policy.TimestampTZ, policy.TimeT:
		return policy.IntervalT
	case policy.Float4:
		return policy.Float8
	}
	return t
}

// told notes what type a place gives to a described parameter.
func (b *binder) told(e typed, t policy.Type) {
	if e.parameter == 0 || b.parameters == nil || t == 0 || t == policy.Unknown || t == typeRecord || t == typeUnknowable {
		return
	}
	if _, known := b.parameters[e.parameter]; !known {
		b.parameters[e.parameter] = t
	}
}
