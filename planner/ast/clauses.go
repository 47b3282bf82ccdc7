package ast

import (
	"cmp"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

var lockNames = map[pg.LockClauseStrength]string{pg.LockClauseStrength_LCS_FORKEYSHARE: "FOR KEY SHARE",
	pg.LockClauseStrength_LCS_FORSHARE: "FOR SHARE", pg.LockClauseStrength_LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE"}

// LockName is how a locking clause is written.
func LockName(n *pg.Node) string {
	return cmp.Or(lockNames[n.GetLockingClause().GetStrength()], "FOR UPDATE")
}

// SetOperation is the word of one.
func SetOperation(op pg.SetOperation) string { return strings.TrimPrefix(op.String(), "SETOP_") }

// IsZero tells the constant 0, isNoLimit LIMIT ALL.
func IsZero(n *pg.Node) bool {
	c := n.GetAConst()
	return c != nil && !c.Isnull && c.GetVal() != nil && c.GetFval() == nil && c.GetSval() == nil && c.GetBoolval() == nil && c.GetIval().GetIval() == 0
}

func IsNoLimit(n *pg.Node) bool { return n.GetAConst().GetIsnull() }

// IsLimited reports whether a SELECT has LIMIT or OFFSET.
func IsLimited(sel *pg.SelectStmt) bool { return sel.LimitCount != nil || sel.LimitOffset != nil }

// IsRowByRow reports whether each column of a SELECT is an expression over a row of FROM, if there is one, but for
// aggregates and windows.
func IsRowByRow(sel *pg.SelectStmt) bool {
	clauses := len(sel.ValuesLists) + len(sel.GroupClause) + len(sel.SortClause) + len(sel.DistinctClause) + len(sel.LockingClause)
	return sel.Larg == nil && clauses == 0 && sel.HavingClause == nil && sel.WithClause == nil && !IsLimited(sel) && sel.IntoClause == nil
}

// HasAggregateClause reports whether a call has what only calls of aggregates have: a star, DISTINCT, ORDER BY, WITHIN
// GROUP or FILTER.
func HasAggregateClause(f *pg.FuncCall) bool {
	return f.AggStar || f.AggDistinct || len(f.AggOrder) > 0 || f.AggFilter != nil
}

// IsPlainCall reports whether a call has nothing but arguments, each by itself.
func IsPlainCall(f *pg.FuncCall) bool {
	return f.Over == nil && !f.FuncVariadic && !HasAggregateClause(f)
}
