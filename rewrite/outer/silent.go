package outer

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
)

// A function that tells nothing (package pgcatalog) is one that PostgreSQL only binds: it finds the signature and the
// types, and never calls it, as what is constantly false is left out of every plan. A function whose rows are a
// relation's reads that one.
//
//	SELECT s.name, pg_stat_get_live_tuples(16384) FROM pg_show_all_settings() AS s, pg_lock_status() AS l
//	⇒ SELECT s.name, CASE WHEN false THEN pg_stat_get_live_tuples(16384) END AS pg_stat_get_live_tuples FROM
//	  "pg_catalog.pg_settings" s, LATERAL (SELECT * FROM pg_lock_status() l WHERE false) l

// sets replaces the functions in FROM that have rows of the sandbox's own, or none.
func (t *writer) sets(n *pg.Node) {
	r := n.GetRangeFunction()
	if r == nil || len(r.GetFunctions()) != 1 {
		return
	}
	items := r.GetFunctions()[0].GetList().GetItems()
	if len(items) == 0 {
		return
	}
	name, call := "", items[0].GetFuncCall()
	if name, _ = ast.ColumnName(items[0]); r.Alias == nil {
		r.Alias = &pg.Alias{Aliasname: name}
	}
	if call == nil {
		return
	}
	if rel := pgcatalog.RowsOf(name); rel != "" && len(call.GetArgs()) == 0 && !r.GetOrdinality() && len(r.GetColdeflist()) == 0 {
		n.Node = &pg.Node_RangeVar{RangeVar: &pg.RangeVar{Schemaname: "pg_catalog", Relname: rel, Inh: true, Relpersistence: "p", Alias: r.Alias}}
		return
	}
	for _, f := range pgcatalog.Silent(name) {
		if f.Rows && len(f.Args) == len(call.GetArgs()) {
			t.bound[call] = true
			n.Node = lateral("SELECT * FROM f() WHERE false", r.Alias, func(s *pg.SelectStmt) {
				s.FromClause = []*pg.Node{{Node: &pg.Node_RangeFunction{RangeFunction: r}}}
			})
			return
		}
	}
}

// lateral is a sub-query in FROM, changed from a template.
func lateral(template string, alias *pg.Alias, change func(*pg.SelectStmt)) *pg.Node_RangeSubselect {
	tree, err := pg.Parse(template)
	if err != nil {
		panic("outer: template: " + err.Error())
	}
	query := tree.GetStmts()[0].GetStmt()
	change(query.GetSelectStmt())
	return &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Lateral: true, Subquery: query, Alias: &pg.Alias{Aliasname: alias.GetAliasname()}}}
}

// silent replaces a call by one that is never made, or by a constant of its type.
func (t *writer) silent(n *pg.Node, call *pg.FuncCall) {
	if t.bound[call] {
		return
	}
	template := "CASE WHEN false THEN NULL END"
	if text, ok := pgcatalog.Constant(lastName(call.GetFuncname())); ok {
		template = "CASE WHEN false THEN NULL ELSE '" + text + "' END" // of the function's type
	}
	n.Node = t.expand(template, nil).Node
	n.GetCaseExpr().GetArgs()[0].GetCaseWhen().Result = &pg.Node{Node: &pg.Node_FuncCall{FuncCall: proto.Clone(call).(*pg.FuncCall)}}
}

// oneRow has an expression stand in FROM that PostgreSQL's grammar would not have there, as what a function has become.
func (t *writer) oneRow(n *pg.Node, r *pg.RangeFunction) {
	items := r.GetFunctions()[0].GetList().GetItems()
	if len(r.GetFunctions()) != 1 || r.GetOrdinality() || len(r.GetColdeflist()) > 0 || items[0].GetAConst() != nil {
		cannot("this function in FROM")
	}
	column := r.GetAlias().GetAliasname()
	if names := r.GetAlias().GetColnames(); len(names) == 1 {
		column = names[0].GetString_().GetSval()
	}
	n.Node = lateral("SELECT NULL", r.GetAlias(), func(s *pg.SelectStmt) {
		target := s.GetTargetList()[0].GetResTarget()
		target.Name, target.Val = column, items[0]
	})
}
