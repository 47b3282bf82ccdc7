package aggregate

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// SELECT c.name … GROUP BY c.name ORDER BY c.price * count(*) DESC LIMIT n shows the first candidates of a public list
// by a score, and no score: the candidates may be chosen (docs/adr/0020). A score is a weight, which is public, times a
// count or a sum that cannot be below zero.

// findRanking notes that a grouping shows the first candidates alone: a first counter stands for their rank, by which
// the answer is sorted before all else. Where they are not chosen it is 0 in all rows.
func (f *fanned) findRanking() {
	g := f.g
	sel := g.Sel
	if len(f.privateKeys()) > 0 || !g.showsFirstKeys() {
		return
	}
	by := sel.SortClause[0].GetSortBy()
	call, factors := scoreOf(by.Node)
	if by.SortbyDir != pg.SortByDir_SORTBY_DESC || by.SortbyNulls == pg.SortByNulls_SORTBY_NULLS_FIRST || call == nil {
		return
	}
	most, refusal := g.b.Whole(sel.LimitCount, "LIMIT", -1)
	if refusal != nil || most < 1 || most > mechanisms.MaxChosen || int(most) >= len(f.each) {
		return
	}
	r, label := &linear.Ranking{Most: int(most)}, pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("rank of the candidate")}, nil, -1)
	for i, sub := range f.each {
		t := sub.term(call, factors)
		if t == nil || len(r.Terms) > 0 && t.Same != r.Terms[0].Same {
			return
		}
		t.Where = slices.Concat(t.Where, f.own[i])
		r.Terms = append(r.Terms, *t)
	}
	score := sel.SortClause[0]
	if r.Terms[0].Same { // written so that it is the same arithmetic for all candidates
		product := operator("*", call.Args[0], &pg.Node{Node: &pg.Node_FuncCall{FuncCall: countOf(call)}})
		for _, n := range factors {
			product = operator("*", n, product)
		}
		score = pg.MakeSortByNode(product, by.SortbyDir, by.SortbyNulls, -1)
	}
	rank := pg.MakeSortByNode(label, pg.SortByDir_SORTBY_DESC, pg.SortByNulls_SORTBY_NULLS_DEFAULT, -1)
	g.Sel, f.ranking = &pg.SelectStmt{DistinctClause: sel.DistinctClause, TargetList: sel.TargetList, FromClause: sel.FromClause, WhereClause: sel.WhereClause,
		GroupClause: sel.GroupClause, WindowClause: sel.WindowClause, SortClause: []*pg.Node{rank, score}, LimitCount: sel.LimitCount,
		LimitOption: sel.LimitOption, WithClause: sel.WithClause}, r
	f.label = label
	g.Question.Counters = []linear.Counter{{Canon: "rank"}}
	for _, sub := range f.each {
		sub.Question.Counters = g.Question.Counters[:1:1]
	}
}

// scoreOf takes a product apart: one aggregate, and public factors. A nil call: it is none.
func scoreOf(n *pg.Node) (call *pg.FuncCall, factors []*pg.Node) {
	if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) {
		return f, nil
	}
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || !slices.Equal(ast.Strings(e.Name), []string{"*"}) {
		return nil, nil
	}
	left, right := e.Lexpr, e.Rexpr
	if ast.HasAggregate(left) {
		left, right = right, left
	}
	if left == nil || ast.HasAggregate(left) {
		return nil, nil
	}
	if call, factors = scoreOf(right); call == nil {
		return nil, nil
	}
	return call, append(factors, left)
}

// term is a candidate's score; nil means it has none of the form.
func (g *Grouping) term(call *pg.FuncCall, factors []*pg.Node) *linear.Term {
	t := &linear.Term{Weight: big.NewRat(1, 1), Bound: 1}
	for _, n := range factors {
		if e, refusal := g.Below("ORDER BY").Expr(n); refusal != nil || !t.Times(e) {
			return nil
		}
	}
	name, refusal := ast.FunctionName(call)
	if refusal != nil || call.AggDistinct || call.AggWithinGroup || call.FuncVariadic || len(call.AggOrder) > 0 {
		return nil
	}
	if name == "sum" && len(call.Args) == 1 {
		arg, refusal := g.Below("an aggregate").Expr(call.Args[0])
		if refusal != nil {
			return nil
		}
		if arg.IsConstant() { // the same in all rows that the candidate meets
			if !t.Times(arg) {
				return nil
			}
			call, t.Same = countOf(call), true
		} else if addedBy(t, g, call, arg) {
			return t
		}
	}
	where, ok := g.countedWhere(call)
	if !ok {
		return nil
	}
	t.Where = where
	return t
}

// countOf counts the rows that a sum adds up.
func countOf(call *pg.FuncCall) *pg.FuncCall {
	return &pg.FuncCall{Funcname: []*pg.Node{pg.MakeStrNode("count")}, AggStar: true, AggFilter: call.AggFilter, Location: call.Location}
}

// addedBy makes the score a sum of values that are not below 0.
func addedBy(t *linear.Term, g *Grouping, call *pg.FuncCall, arg *semantics.Expr) bool {
	if !semantics.Numeric(arg) {
		return false
	}
	where, refusal := bind.FilterOf(call, g.Below("FILTER"))
	if refusal != nil {
		return false
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return false
	}
	x, refusal := g.value(arg, false, false, semantics.Scored, int(call.Location))
	if refusal != nil || x.Grid.Centre != 0 || x.Plus != nil || x.Least.Sign() < 0 || x.IsConstant() {
		return false
	}
	t.Where, t.Sum = present, x.Sum()
	bound := t.Sum.Weights.Bound
	if t.Sum.Expr == nil {
		bound = t.Sum.Bound
	}
	if bound.Low < 0 || bound.High < 1 {
		return false
	}
	t.Bound = bound.High
	t.Weight = new(big.Rat).Mul(t.Weight, semantics.Power10(x.Grid.Exponent, 1))
	if x.Times != nil {
		if x.Times.Sign() < 0 {
			return false
		}
		t.Weight.Mul(t.Weight, x.Times)
	}
	return true
}
