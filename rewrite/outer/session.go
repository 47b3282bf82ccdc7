package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
)

// sqlValue binds CURRENT_USER, CURRENT_DATE and their like.
func (b *binder) sqlValue(n *pg.SQLValueFunction) expr {
	name := func(param string) expr { return expr{sql: b.param(param), typed: of(typeName)} }
	switch n.GetOp() {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_ROLE, pg.SQLValueFunctionOp_SVFOP_CURRENT_USER, pg.SQLValueFunctionOp_SVFOP_USER,
		pg.SQLValueFunctionOp_SVFOP_SESSION_USER:
		return name("user")
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
		return name("database")
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
		return expr{sql: "CAST('public' AS VARCHAR)", typed: of(typeName)}
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		return b.castCall(b.now(), of(policy.DateType))
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP:
		return b.now()
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP:
		return b.castCall(b.now(), of(policy.TimestampT))
	}
	cannot(strings.ToUpper(planner.SQLValueName(n.GetOp())))
	return expr{}
}

// now is the start of the query.
func (b *binder) now() expr {
	return expr{sql: "make_timestamp(CAST(" + b.param("now") + " AS BIGINT))", typed: of(policy.TimestampTZ)}
}
