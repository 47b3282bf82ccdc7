package parse

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/policy"
)

// ActKind is a function that does something to the session rather than compute.
type ActKind uint8

// The kinds.
const (
	ActSleep     ActKind = 1 + iota // pg_sleep(seconds)
	ActCancel                       // pg_cancel_backend(pid)
	ActTerminate                    // pg_terminate_backend(pid)
)

// Act is a call of such a function as a column of a SELECT that reads no table but pg_stat_activity. To the plan it is its
// argument; the session does it once the SELECT is answered, for each row, and puts the function's value in its place. So
// none stands in a statement that has a leaf, and what is done depends on nothing private.
type Act struct {
	Kind   ActKind
	Column int // of the answer, from 0
}

// Type is the type of the function's value.
func (a Act) Type() policy.Type {
	if a.Kind == ActSleep {
		return typeVoid
	}
	return policy.Bool
}

const typeVoid policy.Type = 2278

// actions are the functions, with the type of their one argument.
var actions = map[string]struct {
	kind     ActKind
	argument string
}{"pg_sleep": {ActSleep, "float8"}, "pg_cancel_backend": {ActCancel, "int4"}, "pg_terminate_backend": {ActTerminate, "int4"}}

// actForms says in what form the functions are answered.
var actForms = map[string]string{
	"pg_sleep":             "SELECT pg_sleep(seconds), with a constant and without FROM, is answered.",
	"pg_cancel_backend":    "SELECT pg_cancel_backend(pid), alone or FROM pg_stat_activity, is answered for your own sessions.",
	"pg_terminate_backend": "SELECT pg_terminate_backend(pid), alone or FROM pg_stat_activity, is answered for your own sessions.",
	"pg_notify":            "No session hears another here; ask the database itself.",
}

// FormOfAct says in what form a function is answered that does something; "": it is none.
func FormOfAct(name string) string { return actForms[name] }

// takeActs puts the arguments in the place of the calls. Calls anywhere else stay, and are refused.
func (s *Statement) takeActs(q *pg.SelectStmt) {
	if !readsActivityAtMost(q) {
		return
	}
	for column, item := range q.TargetList {
		target := item.GetResTarget()
		f := target.GetVal().GetFuncCall()
		if f == nil || len(f.Args) != 1 || !plainCall(f) {
			continue
		}
		name, refusal := ast.FunctionName(f)
		action, known := actions[name]
		if refusal != nil || !known || action.kind == ActSleep && (len(q.FromClause) > 0 || !constantNode(f.Args[0])) {
			continue
		}
		s.Acts = append(s.Acts, Act{action.kind, column})
		if target.Name == "" {
			target.Name = name
		}
		target.Val = ast.CastByName(f.Args[0], action.argument, target.Location)
	}
}

// readsActivityAtMost tells a SELECT that reads nothing, or pg_stat_activity alone, row by row.
func readsActivityAtMost(q *pg.SelectStmt) bool {
	if q.Op != pg.SetOperation_SETOP_NONE || len(q.ValuesLists)+len(q.GroupClause)+len(q.SortClause)+len(q.DistinctClause)+
		len(q.LockingClause)+len(q.WindowClause) > 0 || q.HavingClause != nil || q.WithClause != nil || q.LimitCount != nil ||
		q.LimitOffset != nil || q.IntoClause != nil || len(q.FromClause) > 1 || len(q.FromClause) == 0 && q.WhereClause != nil {
		return false
	}
	for _, from := range q.FromClause {
		r := from.GetRangeVar()
		if r.GetRelname() != "pg_stat_activity" || r.GetCatalogname() != "" || r.GetSchemaname() != "" && r.GetSchemaname() != "pg_catalog" {
			return false
		}
	}
	plain := true
	ast.Each(q.ProtoReflect(), func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.SubLink, *pg.A_Star:
			plain = false
		case *pg.FuncCall:
			if ast.IsAggregate(v) || v.Over != nil {
				plain = false
			}
		}
	})
	return plain
}

func plainCall(f *pg.FuncCall) bool {
	return f.Over == nil && f.AggFilter == nil && !f.AggDistinct && !f.AggStar && !f.FuncVariadic && len(f.AggOrder) == 0
}

// constantNode tells a constant or parameter, with or without a sign or a cast.
func constantNode(n *pg.Node) bool {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst, *pg.Node_ParamRef:
		return true
	case *pg.Node_TypeCast:
		return constantNode(v.TypeCast.Arg)
	case *pg.Node_AExpr:
		name := strings.Join(ast.Strings(v.AExpr.Name), "")
		return v.AExpr.Lexpr == nil && (name == "-" || name == "+") && constantNode(v.AExpr.Rexpr)
	}
	return false
}
