package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A LATERAL sub-query that aggregates rows of the unit of the row that it stands beside has one row for each of them,
// whose values are sub-queries over that unit (unit_value.go):
//
//	SELECT p.sex, avg(q.n) FROM people p, LATERAL (SELECT count(*) AS n, sum(v.price) AS paid FROM visits v WHERE v.person_id = p.person_id) q GROUP BY 1
//
// so that LEFT JOIN LATERAL … ON true says the same.

// lateral puts such values into sight; nil, nil means the item of FROM is something else.
func (b *Binder) lateral(from *Rows, n *pg.Node, scope *Scope, j joining) (*Rows, *refuse.Refusal) {
	s := n.GetRangeSubselect()
	if s == nil || !s.Lateral || s.Alias == nil || len(j.using) > 0 || j.natural || j.preserved {
		return nil, nil
	}
	sel, pos := s.Subquery.GetSelectStmt(), ast.Location(n)
	if sel == nil || len(sel.TargetList) == 0 {
		return nil, nil
	}
	out := *from
	out.scope = scope
	names, given := slices.Clone(from.names), ast.Strings(s.Alias.Colnames)
	if len(given) > len(sel.TargetList) {
		return nil, ColumnCount.At(pos, s.Alias.Aliasname, len(sel.TargetList), len(given))
	}
	out.exprs = slices.Clone(from.exprs)
	for i, n := range sel.TargetList {
		one := &pg.SelectStmt{WithClause: sel.WithClause, DistinctClause: sel.DistinctClause, TargetList: []*pg.Node{n}, FromClause: sel.FromClause, WhereClause: sel.WhereClause, GroupClause: sel.GroupClause,
			HavingClause: sel.HavingClause, LimitCount: sel.LimitCount, LimitOffset: sel.LimitOffset, LimitOption: sel.LimitOption, Larg: sel.Larg, Rarg: sel.Rarg, Op: sel.Op}
		e, refusal := b.ofUnit(&out, &pg.SubLink{SubLinkType: pg.SubLinkType_EXPR_SUBLINK, Subselect: ast.Select(one), Location: int32(pos)})
		if e == nil || refusal != nil {
			return nil, refusal
		}
		name := ast.Label(n.GetResTarget())
		if i < len(given) {
			name = given[i]
		}
		names, out.exprs = append(names, name), append(out.exprs, e)
	}
	if slices.ContainsFunc(from.parts, func(p relation) bool { return p.alias == s.Alias.Aliasname }) {
		return nil, duplicateAlias.At(j.pos, s.Alias.Aliasname)
	}
	out.names, out.parts = names, append(slices.Clone(from.parts), relation{s.Alias.Aliasname, nil, len(from.names), len(names), 0, 0, nil, nil})
	return out.joinedOn(b, j)
}

// joinedOn are the rows for which the conditions of ON hold, of which ON TRUE is none.
func (r *Rows) joinedOn(b *Binder, j joining) (*Rows, *refuse.Refusal) {
	if j.fromWhere {
		return r, nil
	}
	for _, q := range j.quals {
		e, refusal := b.OverRows(r, "ON").Condition(q, "JOIN/ON")
		if refusal != nil {
			return nil, refusal
		}
		if e.IsConstant() {
			v, refusal := e.Value(nil)
			if refusal != nil {
				return nil, refusal
			}
			if v == policy.Value(true) {
				continue
			}
		}
		if j.outer {
			return nil, outerCondition.At(e.Pos)
		}
		r.where = append(slices.Clone(r.where), e)
	}
	return r, nil
}
