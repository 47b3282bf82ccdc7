package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Describe infers the parameter types (given ones win; 0 means infer) and the answer's columns of a Select or Explain.
// Where only the sandbox knows types of the outer query, or of a sub-query that is answered first, ask is true:
// describe Build(nil parameters), whose columns are the answer's if Columns is nil.
func Describe(s parse.Statement, given []policy.Type, c reuse.Context) (d plans.Description, ask bool, refusal *refuse.Refusal) {
	c = c.Limited()
	defer c.Stopped(&refusal)
	explain := s.Kind == parse.KindExplain
	if explain {
		s = s.Explain.Statement
	}
	if s.Kind != parse.KindSelect {
		return d, false, nil
	}
	c.Settings.Literals = s.Literals
	b := aggregate.NewBinder(c, &semantics.Parameters{Types: slices.Clone(given), Describing: true})
	b.Text, b.Top = s.Text, s.Select()
	b.Inner = describing(b, 1, &ask)
	out, refusal := outerquery.Bind(b)
	if refusal != nil {
		return d, false, s.Placed(refusal)
	}
	if out.Tree != nil {
		outerquery.SeeInTree(b)
	}
	d.Params, d.Columns = b.Params.Inferred(), plans.Bounded(out.Columns, s.Bounds)
	if explain {
		d.Columns = []plans.OutColumn{{Name: "QUERY PLAN", Type: policy.Text, Typmod: -1}}
		return d, false, nil
	}
	d.Outputs = outerquery.Outputs(b, nil, nil, false)
	if out.Tree != nil {
		d.Columns, ask = nil, true
	}
	return d, ask, nil
}

// OfferedType returns the name of a type that a client gives a parameter, and reports whether a parameter may have it.
func OfferedType(t policy.Type) (name string, offered bool) {
	return semantics.TypeName(t), t == 0 || t == policy.Unknown || ast.Castable(t)
}
