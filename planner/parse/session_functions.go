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
// place. So none is in a statement that has a leaf, and what is done depends on nothing private.
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

// Assignment is a call of set_config among the columns of a SELECT that reads no table but pg_settings. It does what
// SET does, so the session runs it once the SELECT is answered: of constants once, if there is a row, and else for each
// row. To the plan it is the value that was given, or the name and the value as a JSON array.
//
//	SELECT set_config('bytea_output', 'hex', false) FROM pg_show_all_settings() WHERE name = 'bytea_output'
//	⇒ SELECT 'hex'::text AS set_config FROM pg_show_all_settings() WHERE name = 'bytea_output'
//	SELECT set_config(name, setting, false) FROM pg_settings
//	⇒ SELECT json_build_array(name::text, setting::text)::text AS set_config FROM pg_settings
type Assignment struct {
	Name, Value string // no Name: it is NULL
	Param       int    // the parameter that holds the value, from 1; 0 means Value does
	Local       bool
	Reset       bool // the value is NULL
	Each        bool // each row gives the name and the value
	Column      int  // of the answer, from 0, that shows the new value
}

// takeAssignments puts the given values in the place of calls of set_config. Calls anywhere else stay, and are refused.
func (s *Statement) takeAssignments(q *pg.SelectStmt) {
	alone, settings := len(q.FromClause) == 0 && q.WhereClause == nil && ast.IsRowByRow(q), readsAtMost(q, "pg_settings", "pg_show_all_settings")
	if !alone && (len(q.FromClause) == 0 || !settings) {
		return
	}
	for column, item := range q.TargetList {
		target := item.GetResTarget()
		a, value, ok := assignmentOf(target.GetVal().GetFuncCall())
		if !ok || a.Each && !settings {
			continue
		}
		a.Column = column
		s.Assignments = append(s.Assignments, a)
		if target.Name == "" {
			target.Name = "set_config"
		}
		target.Val = ast.CastByName(value, "text", target.Location)
	}
}

// booleans are the words that a last argument may be.
var booleans = map[string]bool{"on": true, "true": true, "t": true, "off": false, "false": false, "f": false}

// assignmentOf reads set_config(name, value, local), and reports whether it is one whose last argument is a constant.
func assignmentOf(f *pg.FuncCall) (a Assignment, value *pg.Node, ok bool) {
	if f == nil || len(f.Args) != 3 || f.Over != nil || ast.HasAggregateClause(f) {
		return a, nil, false
	}
	names := ast.Strings(f.Funcname)
	if !slices.Equal(names, []string{"set_config"}) && !slices.Equal(names, []string{"pg_catalog", "set_config"}) {
		return a, nil, false
	}
	local, _ := settingValue(f.Args[2])
	if isNull(uncast(f.Args[2])) {
		local = "off"
	}
	if a.Local, ok = booleans[strings.ToLower(local)]; !ok {
		return a, nil, false
	}
	each := func() (Assignment, *pg.Node, bool) {
		pair := []*pg.Node{ast.CastByName(f.Args[0], "text", f.Location), ast.CastByName(f.Args[1], "text", f.Location)}
		return Assignment{Each: true, Local: a.Local}, pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("json_build_array")}, pair, f.Location), true
	}
	if a.Name, ok = textConstant(f.Args[0]); !ok && !isNull(uncast(f.Args[0])) {
		return each()
	}
	value = f.Args[1]
	inner := uncast(value)
	if p := inner.GetParamRef(); p != nil && p.Number > 0 {
		a.Param = int(p.Number)
		return a, value, true
	}
	if isNull(inner) {
		a.Reset = true
		return a, value, true
	}
	if a.Value, ok = textConstant(inner); !ok {
		return each()
	}
	return a, value, true
}

// uncast is what a cast is of, or the node itself.
func uncast(n *pg.Node) *pg.Node {
	if c := n.GetTypeCast(); c != nil {
		return c.Arg
	}
	return n
}

func isNull(n *pg.Node) bool { return n.GetAConst().GetIsnull() }

// textConstant is a string constant, with or without a cast.
func textConstant(n *pg.Node) (string, bool) {
	s, ok := uncast(n).GetAConst().GetVal().(*pg.A_Const_Sval)
	if !ok {
		return "", false
	}
	return s.Sval.Sval, true
}
