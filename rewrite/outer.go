package rewrite

import "github.com/dpproxy/dpproxy/planner"

// OuterQuery is the regenerated outer query for a sandbox.
type OuterQuery struct {
	SQL string
}

// Outer regenerates the outer query of a plan: for PostgreSQL as it is, for DuckDB with names, operators, functions and
// casts mapped so that they mean what they mean in PostgreSQL. What cannot be mapped is refused.
func Outer(p *planner.Plan, d Dialect) (OuterQuery, *planner.Refusal) { panic("to be written") }
