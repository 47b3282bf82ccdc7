package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// catalogue lists every refusal, in the order of the documentation.
func catalogue() []*refuse.Reason {
	several := []*refuse.Reason{refuse.UnknownFunction, refuse.UnknownType, refuse.BlankPadded, refuse.UnknownParam, refuse.AggregateIn, refuse.Construct}
	return slices.Concat(Refusals_reuse, parse.RefusedTexts, parse.RefusedStatements, several, Refusals_semantics, Refusals_bind, Refusals_linear,
		Refusals_choose, refuse.AfterPlanning, parse.RefusedMySQL)
}
