package aggregate

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// hypothetical are the aggregates that place a value among the rows as if it were one of them: percent_rank(50000)
// WITHIN GROUP (ORDER BY income) is the share of the rows that come before it. With n rows, b before it, and c before
// it or equal to it,
//
//	rank = b + 1    percent_rank = b/n    cume_dist = (c + 1)/(n + 1)
//
// A NULL is a row like any other: the last one, or the first under DESC or NULLS FIRST.
var hypothetical = semantics.WordSet("rank percent_rank cume_dist")

// among binds one of them.
func (g *Grouping) among(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if len(f.AggOrder) > 1 {
		return nil, bind.NoAggregate.At(pos, name+" of several values")
	}
	arg, descending, refusal := g.selectedArgument(name, f)
	if refusal == nil {
		refusal = rankable(name, arg, pos)
	}
	if refusal != nil {
		return nil, refusal
	}
	where, refusal := bind.FilterOf(f, g.Below("FILTER"))
	if refusal != nil {
		return nil, refusal
	}
	t, by := g.Below("an aggregate"), f.AggOrder[0].GetSortBy()
	x, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	if !x.IsConstant() || x.Parameter == 0 && semantics.MustConstant(x) == nil {
		return nil, bind.NoAggregate.At(pos, name+" of NULL, or of what is no constant,")
	}
	value, same := amongReals(f.Args[0], x.Type(), arg.Type())
	if !same {
		return nil, bind.NoAggregate.At(pos, name+" of a real among "+arg.Type().Name())
	}
	is, refusal := t.Condition(comesBefore(by, value, descending, name == "cume_dist"), name)
	if refusal != nil {
		return nil, refusal
	}
	w := g.formula("float8")
	rows := g.Question.CounterFor(where)
	where = append(slices.Clip(where), linear.Conjuncts([]*semantics.Expr{is})...)
	n, b := w.Counter(rows), w.Counter(g.Question.CounterFor(where))
	if name == "rank" {
		return g.found(fmt.Sprintf("(%s + 1)", b), policy.Int8)
	}
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	share := fmt.Sprintf("%s::float8 / %s", b, n)
	if name == "cume_dist" {
		share = fmt.Sprintf("(%s + 1)::float8 / (%s + 1)", b, n)
	}
	share = fmt.Sprintf("CASE WHEN %s THEN LEAST(1::float8, GREATEST(0::float8, %s)) END", w.Clear(rows, 0), share)
	return g.found(share, policy.Float8)
}

// comesBefore is the condition that a row comes before a value in an order, or is its equal too.
func comesBefore(by *pg.SortBy, value *pg.Node, descending, equal bool) *pg.Node {
	op := "<"
	if descending {
		op = ">"
	}
	if equal {
		op += "="
	}
	before := operator(op, by.Node, value)
	first := descending && by.SortbyNulls == pg.SortByNulls_SORTBY_NULLS_DEFAULT
	if first || by.SortbyNulls == pg.SortByNulls_SORTBY_NULLS_FIRST {
		test := &pg.BooleanTest{Arg: before, Booltesttype: pg.BoolTestType_IS_NOT_FALSE, Location: by.Location}
		return &pg.Node{Node: &pg.Node_BooleanTest{BooleanTest: test}}
	}
	return before
}

// amongReals is a value of their common type, which is real where either is and the other is not double precision. It is
// not same where the rows' values would have to become reals.
func amongReals(value *pg.Node, its, rows policy.Type) (_ *pg.Node, same bool) {
	if rows == policy.Float4 && its != policy.Float8 {
		return ast.Cast(value, policy.Float4), true
	}
	return value, its != policy.Float4 || rows == policy.Float8
}
