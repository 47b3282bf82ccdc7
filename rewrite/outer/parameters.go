package outer

import (
	"maps"
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// A client that describes a statement before it binds it is told what type each parameter has, and encodes what it sends by that. Above the leaves the binder
// says it: an untyped constant in a parameter's place is given a type by what stands around it, and the first place decides, as in PostgreSQL.
// In SELECT k FROM leaf_1 WHERE g = $1 AND k LIKE $2 the first is an integer, the second a text.

// Parameters are the types of the parameters that a described plan has no types of, as far as its outer query tells them. The binder for DuckDB finds them for
// every sandbox, since PostgreSQL's rules are its own; of a query that it cannot bind it knows those that come before what it cannot write.
func Parameters(p *plans.Plan) map[int]policy.Type {
	if p.Outer.Tree == nil {
		return nil
	}
	b := &binder{plan: p, parameters: map[int]policy.Type{}}
	_, _ = caught(b.whole) // a refusal is said where the query is written for its sandbox
	maps.DeleteFunc(b.parameters, func(_ int, t policy.Type) bool { return t == policy.Unknown || t == typeRecord })
	return b.parameters
}

// toldByCall notes what types a function or operator of package scalar takes its arguments as.
func (b *binder) toldByCall(name string, args []expr) {
	if !slices.ContainsFunc(args, func(e expr) bool { return e.parameter > 0 }) {
		return
	}
	in := make([]policy.Type, len(args))
	for i, e := range args {
		in[i] = e.oid
	}
	for i, want := range compileEnv.Wants(name, in...) {
		b.told(args[i], want)
	}
}

// told notes what type a place gives to a described parameter.
func (b *binder) told(e expr, t policy.Type) {
	if t == policy.Varchar { // there are no operators of varchar: what is compared with one is a text
		t = policy.Text
	}
	if _, known := b.parameters[e.parameter]; e.parameter > 0 && !known && t != policy.Unknown && b.parameters != nil {
		b.parameters[e.parameter] = t
	}
}
