package parse

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
)

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
