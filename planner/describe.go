package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Describe infers the parameter types (given ones win; 0: infer) and the answer's columns of a Select or Explain. For an
// outer query whose types only the sandbox knows, Columns is nil and ask is true: describe Build(nil parameters).
func Describe(s parse.Statement, given []policy.Type, c Context) (d Description, ask bool, refusal *refuse.Refusal) {
	c = c.limited()
	defer c.stopped(&refusal)
	explain := s.Kind == parse.KindExplain
	if explain {
		s = s.Explain.Statement
	}
	if s.Kind != parse.KindSelect {
		return d, false, nil
	}
	b := newBinder(c, &parameters{types: slices.Clone(given), describing: true})
	b.text, b.top = s.Text, s.Select()
	out, refusal := b.bind(b.top)
	if refusal != nil {
		return d, false, s.Placed(refusal)
	}
	if out.Tree != nil {
		b.inferInTree()
	}
	d.Params, d.Columns = b.params.inferred(), out.Columns
	if explain {
		d.Columns = []OutColumn{{Name: "QUERY PLAN", Type: policy.Text, Typmod: -1}}
		return d, false, nil
	}
	if out.Tree != nil {
		d.Columns = nil
		return d, true, nil
	}
	return d, false, nil
}
