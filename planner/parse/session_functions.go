package parse

import (
	"slices"
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

// Act is a call of such a function as a column of a SELECT that reads no table but pg_stat_activity. To the plan it is
// its argument; the session does it once the SELECT is answered, for each row, and puts the function's value in its
// place. So none stands in a statement that has a leaf, and what is done depends on nothing private.
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

// FormOfAct says in what form a function is answered that does something; "" means it is none.
func FormOfAct(name string) string {
	if strings.HasPrefix(name, "pg_advisory_") || strings.HasPrefix(name, "pg_try_advisory_") { // Flyway, Rails and Prisma take one before they migrate
		return "Nothing can be changed here, so that no session has to wait for another, and no lock is given: let what migrates tables ask the database itself. pg_advisory_unlock_all() is answered."
	}
	return actForms[name]
}

// takeActs puts the arguments in the place of the calls. Calls anywhere else stay, and are refused.
func (s *Statement) takeActs(q *pg.SelectStmt) {
	if len(q.FromClause) == 0 && q.WhereClause != nil || !readsAtMost(q, "pg_stat_activity", "") {
		return
	}
	for column, item := range q.TargetList {
		target := item.GetResTarget()
		f := target.GetVal().GetFuncCall()
		if f == nil || len(f.Args) != 1 || !ast.IsPlainCall(f) {
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

// readsAtMost tells a SELECT that reads nothing, or that relation of pg_catalog alone, by its name or by a function's,
// row by row.
func readsAtMost(q *pg.SelectStmt, relation, function string) bool {
	if !ast.IsRowByRow(q) || len(q.WindowClause) > 0 || len(q.FromClause) > 1 {
		return false
	}
	for _, from := range q.FromClause {
		names := []string{from.GetRangeVar().GetCatalogname() + from.GetRangeVar().GetSchemaname(), from.GetRangeVar().GetRelname()}
		wanted := relation
		if f := from.GetRangeFunction().GetFunctions(); len(f) == 1 && len(f[0].GetList().GetItems()) > 0 {
			names, wanted = ast.Strings(f[0].GetList().GetItems()[0].GetFuncCall().GetFuncname()), function
		}
		ways := [][]string{{wanted}, {"", wanted}, {"pg_catalog", wanted}}
		if !slices.ContainsFunc(ways, func(way []string) bool { return slices.Equal(names, way) }) {
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
