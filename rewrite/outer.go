package rewrite

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// OuterQuery is the regenerated outer query for a sandbox.
type OuterQuery struct {
	SQL       string
	Params    []string      // what the session gives for $1, $2, …: "user", "database", "pid", "now", "zone", "version" or a setting
	Relations []string      // what it reads besides leaves, as schema.name
	Columns   []OuterColumn // of the answer; nil for PostgreSQL, which says so itself
	With      string        // PostgreSQL: what stands before SQL, whose own table expressions come first: "", "WITH ", "WITH RECURSIVE "
}

// OuterColumn is a column of an outer query's answer.
type OuterColumn struct {
	Name   string
	Type   policy.Type
	Typmod int32
}

// Outer regenerates the outer query of a plan: for PostgreSQL nearly as it is, for DuckDB with names, operators, functions and
// casts mapped so that they mean what they mean in PostgreSQL. What cannot be mapped is refused.
//
// For DuckDB the tree is bound here: every column, operator, function and cast is resolved by PostgreSQL's rules, and
// the text that comes out names generated aliases only, so that none of DuckDB's own rules of name or type resolution
// is ever asked. Integers, text, booleans and comparisons are DuckDB's; what means something else there (numerics,
// floating point, dates, functions) is computed by package scalar, which the engine calls.
func Outer(p *planner.Plan, d Dialect) (q OuterQuery, refusal *refuse.Refusal) {
	if p.Outer.Tree == nil {
		return OuterQuery{}, refuse.Sandbox("this query has no outer query to run")
	}
	if d == PostgreSQL {
		return forTwin(p)
	}
	defer func() {
		if r := recover(); r != nil {
			stop, ours := r.(*refusing)
			if !ours {
				panic(r)
			}
			q, refusal = OuterQuery{}, stop.refusal
		}
	}()
	b := newBinder(p)
	sql, columns := b.statement(p.Outer.Tree)
	return OuterQuery{SQL: sql, Params: b.params, Relations: b.relationNames(), Columns: columns}, nil
}

// refusing carries a refusal up from the depth of a tree.
type refusing struct{ refusal *refuse.Refusal }

// cannot ends the rewriting: the query has a part that the embedded sandbox does not run.
func cannot(what string) {
	panic(&refusing{refuse.Unsupported(what)})
}

// wrong ends the rewriting: PostgreSQL, too, would refuse the query.
func wrong(state, message string, location int32) {
	r := refuse.Invalid(state, message, "")
	if location > 0 {
		r.Position = int(location) + 1
	}
	panic(&refusing{r})
}

// QuoteName writes an SQL identifier.
func QuoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// quoteText writes an SQL string constant.
func quoteText(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
