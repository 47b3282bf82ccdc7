package outer

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/policy"
)

// What a query asks of its session are parameters: who asks, of which database, when.
//
//	SELECT current_user, current_date
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT CAST($1 AS VARCHAR) AS "c1", (DATE '1970-01-01' +
//	  CAST(pg_call('{"to":1082,"mod":-1,"a":[{"t":1184,"m":-1}]}', CAST(epoch_us(make_timestamp(CAST(CAST($2 AS VARCHAR) AS
//	  BIGINT))) AS VARCHAR)) AS INTEGER)) AS "c2") AS "q1"

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
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		return b.castCall(b.now(), typed{oid: policy.TimeT, mod: n.GetTypmod()})
	}
	return cannot(strings.ToUpper(ast.SQLValueName(n.GetOp())))
}

// now is the start of the query.
func (b *binder) now() expr {
	return expr{sql: "make_timestamp(CAST(" + b.param("now") + " AS BIGINT))", typed: of(policy.TimestampTZ)}
}
