package ast

import pg "github.com/pganalyze/pg_query_go/v6"

// LockName is how a locking clause is written.
func LockName(n *pg.Node) string {
	switch n.GetLockingClause().GetStrength() {
	case pg.LockClauseStrength_LCS_FORKEYSHARE:
		return "FOR KEY SHARE"
	case pg.LockClauseStrength_LCS_FORSHARE:
		return "FOR SHARE"
	case pg.LockClauseStrength_LCS_FORNOKEYUPDATE:
		return "FOR NO KEY UPDATE"
	}
	return "FOR UPDATE"
}

// SetOperation is the word of one.
func SetOperation(op pg.SetOperation) string {
	switch op {
	case pg.SetOperation_SETOP_INTERSECT:
		return "INTERSECT"
	case pg.SetOperation_SETOP_EXCEPT:
		return "EXCEPT"
	}
	return "UNION"
}

// IsZero tells the constant 0, isNoLimit LIMIT ALL.
func IsZero(n *pg.Node) bool {
	c := n.GetAConst()
	return c != nil && !c.Isnull && c.GetVal() != nil && c.GetFval() == nil && c.GetSval() == nil && c.GetBoolval() == nil && c.GetIval().GetIval() == 0
}

func IsNoLimit(n *pg.Node) bool { return n.GetAConst().GetIsnull() }
