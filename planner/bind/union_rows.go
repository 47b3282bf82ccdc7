package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// UNION ALL of rows of one table. SELECT n, count(*) FROM (SELECT age AS n FROM people UNION ALL SELECT kids FROM
// people) t GROUP BY n counts each row once for each branch, as a list of two candidates that it meets.

// UnionAll returns a UNION ALL that nothing else is done to.
func UnionAll(sel *pg.SelectStmt) *pg.SelectStmt {
	if sel == nil || sel.Op != pg.SetOperation_SETOP_UNION || !sel.All || len(sel.SortClause) > 0 || ast.IsLimited(sel) || sel.WithClause != nil || len(sel.LockingClause) > 0 {
		return nil
	}
	return sel
}

// fanned are the rows of a UNION ALL of rows of one table: each row once for each branch that passes it on. It returns
// nil if the branches are of several tables, or have keys.
func (b *Binder) fanned(branches []*Rows) (*Rows, *refuse.Refusal) {
	for _, r := range branches {
		if r.fan != nil || len(r.keys) > 0 || r.Table != branches[0].Table || len(r.names) != len(branches[0].names) {
			return nil, nil
		}
	}
	list := &Candidates{alias: branches[0].Alias(), names: branches[0].names}
	for _, r := range branches {
		list.rows, list.where = append(list.rows, slices.Clone(r.exprs)), append(list.where, r.where)
	}
	out := &Rows{Table: branches[0].Table, names: list.names, fan: list, pos: branches[0].pos}
	out.parts = []relation{{list.alias, nil, 0, len(out.names), 0, 0, nil, nil}}
	if refusal := b.typed(list); refusal != nil {
		return nil, refusal
	}
	for c, typ := range list.types {
		out.exprs = append(out.exprs, virtual(c, typ, -1))
	}
	return out, nil
}

// virtual is a column of a list for any candidate.
func virtual(c int, t policy.Type, typmod int32) *semantics.Expr {
	e := semantics.ColumnExpr(virtualColumn+c, t, typmod, -1)
	e.Monotone = false
	return e
}
