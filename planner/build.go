// Package planner turns one SELECT into a plan or a refusal: Build parses nothing and runs nothing, it has the statement bound
// (packages bind and outerquery), an access path of each question chosen (choose), and puts the plan together (plans). It is pure: no I/O, it never sees a
// row, and equal inputs give equal plans. Its rooms, each of which knows only those before it:
//
//	pgcatalog              PostgreSQL's own relations and functions, and what of them is shown
//	refuse, ast, parse     a refusal; trees of the grammar; text → statements
//	predicate, derived     conditions over cells; tables that joins and sub-queries make
//	plans                  what a plan is made of
//	semantics              what an expression over a row means
//	linear                 an aggregation as a linear map on cells
//	reuse                  what is held, and what can be read from it
//	discovery              the keys of columns whose values nobody declared
//	bind                   names and rows below the privacy boundary, a file for each construct
//	outerquery             the cut at the boundary, and what stands above the questions
//	choose, workload       access paths, and which is taken; many statements at once
package planner

import (
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// planOpen binds and plans a statement until nothing of its open columns is missing.
func planOpen(s parse.Statement, values []policy.Value, c reuse.Context, in *inners) (*plans.Plan, *refuse.Refusal) {
	o := discovery.New()
	last := semantics.OpenColumn.At(-1, "that it asks for")
	for range discovery.MaxBindings {
		o.Tables = map[*policy.Table]*policy.Table{}
		p, refusal := build(s, values, c, o, in)
		if o.Learns(refusal) {
			if refusal != nil {
				last = refusal
			}
			continue
		}
		if refusal != nil && refusal.ID == linear.TooManyCells.ID && !o.Large && c.Dataset != nil && c.Dataset.Threshold {
			o.Large = true
			continue
		}
		if refusal != nil || len(o.Wanted) == len(o.Found) {
			if refusal == nil {
				refusal = o.Finish(p, c)
			}
			if refusal != nil {
				return nil, refusal
			}
			return p, nil
		}
		for _, column := range o.Wanted {
			if o.Found[column] != nil {
				continue
			}
			if refusal := o.Find(column, c); refusal != nil {
				return nil, refusal
			}
		}
	}
	return nil, last
}
