package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// catalogue lists every refusal, in the order of the documentation.
func catalogue() []*refuse.Reason {
	several := []*refuse.Reason{refuse.UnknownFunction, refuse.BoundPlace, refuse.UnknownType, refuse.BlankPadded, refuse.UnknownParam, refuse.AggregateIn, refuse.Construct}
	return slices.Concat(reuse.Refusals, parse.RefusedTexts, parse.RefusedStatements, several, semantics.Refusals, bind.Refusals, aggregate.Refusals, outerquery.Refusals, linear.Refusals,
		choose.Refusals, refuse.AfterPlanning, parse.RefusedMySQL)
}
