package outer

import (
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Query is the regenerated outer query for a sandbox.
type Query struct {
	SQL       string
	Params    []string // what the session gives for $1, $2, …: "user", "database", "pid", "now", "zone", "version" or a setting
	Relations []string // what it reads besides leaves, as schema.name
	Columns   []Column // of the answer; nil for PostgreSQL, which says so itself
	With      string   // PostgreSQL: what stands before SQL, whose own table expressions come first: "", "WITH ", "WITH RECURSIVE "
}

// Column is a column of an outer query's answer.
type Column struct {
	Name   string
	Type   policy.Type
	Typmod int32
}

// Render regenerates the outer query of a plan: for PostgreSQL nearly as it is, for DuckDB with names, operators, functions and
// casts mapped so that they mean what they mean in PostgreSQL. What cannot be mapped is refused.
func Render(p *planner.Plan, d dialect.Dialect) (q Query, refusal *planner.Refusal) {
	if p.Outer.Tree == nil {
		return Query{}, planner.RefuseSandbox("this query has no outer query to run")
	}
	defer func() {
		if r := recover(); r != nil {
			stop, ours := r.(*refusing)
			if !ours {
				panic(r)
			}
			q, refusal = Query{}, stop.refusal
		}
	}()
	if d == dialect.PostgreSQL {
		return forTwin(p)
	}
	b := newBinder(p)
	sql, columns := b.statement(p.Outer.Tree)
	return Query{SQL: sql, Params: b.params, Relations: b.relationNames(), Columns: columns}, nil
}

// refusing carries a refusal up from the depth of a tree.
type refusing struct{ refusal *planner.Refusal }

// cannot ends the rewriting: the query has a part that the embedded sandbox does not run.
func cannot(what string) {
	panic(&refusing{planner.RefuseUnsupported(what)})
}

// wrong ends the rewriting: PostgreSQL, too, would refuse the query.
func wrong(state, message string, location int32) {
	r := planner.RefuseInvalid(state, message, "")
	if location > 0 {
		r.Position = int(location) + 1
	}
	panic(&refusing{r})
}
