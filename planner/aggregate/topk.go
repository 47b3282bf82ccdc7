package aggregate

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/formula"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// SELECT c.name … GROUP BY c.name ORDER BY c.price * count(*) DESC LIMIT n shows the first candidates of a public list
// by a score, and no score: the candidates may be chosen (docs/adr/0020). A score is a weight, which is public, times a
// count or a sum that cannot be below zero.

// findRanking notes that a grouping shows the first candidates alone: the first counter is their rank, by which
// the answer is sorted before all else. Where they are not chosen it is 0 in all rows.
func (f *fanned) findRanking() {
	g := f.g
	sel := g.Sel
	if len(f.privateKeys()) > 0 || g.Question.Frequency.Units > 0 || !g.showsFirstKeys() {
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

// SELECT city FROM people GROUP BY city ORDER BY count(*) DESC LIMIT 3 shows an order and no count: the question says
// that the first three keys will do, so that they may be chosen instead of counted.

// showsFirstKeys reports whether a grouping shows its keys, those alone that come first in one order.
func (g *Grouping) showsFirstKeys() bool {
	sel := g.Sel
	return !g.Above && sel.HavingClause == nil && sel.LimitOffset == nil && len(sel.SortClause) == 1 && sel.LimitCount != nil && sel.LimitOption != pg.LimitOption_LIMIT_OPTION_WITH_TIES &&
		!slices.ContainsFunc(g.Targets, func(t bind.Target) bool { return ast.HasAggregate(t.Node) || ast.HasWindow(t.Node) })
}

// findTop notes that a grouping shows the first n keys alone.
func (g *Grouping) findTop() {
	sel := g.Sel
	if len(g.Question.Keys) == 0 || g.Question.Sets != nil || g.Question.Frequency.Units > 0 || !g.showsFirstKeys() {
		return
	}
	by := sel.SortClause[0].GetSortBy()
	f := by.Node.GetFuncCall()
	if by.SortbyDir != pg.SortByDir_SORTBY_DESC || f == nil || !ast.IsAggregate(f) || f.AggDistinct {
		return
	}
	if name, refusal := ast.FunctionName(f); refusal != nil || name != "count" {
		return
	}
	if n, refusal := g.b.Whole(sel.LimitCount, "LIMIT", -1); refusal == nil && n >= 1 && n <= mechanisms.MaxChosen {
		g.Question.Top = int(n)
	}
}

// SELECT count(*) > 500 FROM t WHERE …, SELECT 'alarm' FROM t HAVING count(*) > 500 and bool_or(x) ask whether a count
// is at least a number, and for no count. With SET dp.alarms = n they are answered by a sparse vector (docs/adr/0030):
// what it costs pays for a run, which is the analyst's own on that table and ends at its n-th yes; each no before that
// is free.

// maxThreshold bounds thresholds.
const maxThreshold = 1 << 53

// findThresholds notes the comparisons of a SELECT that shows nothing else of its rows.
func (g *Grouping) findThresholds() {
	if g.b.Context.Settings.Alarms == 0 || g.b.Context.Settings.MaxError > 0 || len(g.Question.Keys) > 0 || g.Question.Sets != nil || g.Above || g.Fanned != nil {
		return
	}
	found := map[*pg.Node]*Found{}
	counters := g.Question.Counters
	nodes := []*pg.Node{g.Sel.HavingClause}
	for _, t := range g.Targets {
		nodes = append(nodes, t.Node)
	}
	for _, n := range g.Sel.SortClause {
		nodes = append(nodes, n.GetSortBy().GetNode())
	}
	for _, n := range nodes {
		if !g.thresholdsIn(n, found) {
			g.Question.Counters = counters
			return
		}
	}
	g.given, g.Thresholds = found, true
}

// thresholdsIn collects the comparisons of an expression; false means it reads its rows otherwise too.
func (g *Grouping) thresholdsIn(n *pg.Node, into map[*pg.Node]*Found) bool {
	if n.GetNode() == nil || !ast.HasAggregate(n) {
		return true
	}
	if f := g.thresholdTest(n); f != nil {
		into[n] = f
		return true
	}
	if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) || ast.HasWindow(n) {
		return false
	}
	for _, c := range ast.Children(n) {
		if !g.thresholdsIn(c, into) {
			return false
		}
	}
	return true
}

// thresholdTest reads count(…) > constant, bool_or, bool_and or every; nil means it is none.
func (g *Grouping) thresholdTest(n *pg.Node) *Found {
	if f := n.GetFuncCall(); f != nil {
		return g.boolThreshold(f)
	}
	e := n.GetAExpr()
	if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 {
		return nil
	}
	call, constant, op := e.Lexpr.GetFuncCall(), e.Rexpr, ast.Strings(e.Name)[0]
	if call == nil || !ast.IsAggregate(call) {
		call, constant, op = e.Rexpr.GetFuncCall(), e.Lexpr, predicate.Mirrored[op]
	}
	if call == nil || !ast.IsAggregate(call) || call.Over != nil || call.AggDistinct {
		return nil
	}
	if name, refusal := ast.FunctionName(call); refusal != nil || name != "count" {
		return nil
	}
	c, refusal := (&semantics.Translator{Env: g.b.Env, Params: g.b.Params, Place: "a comparison"}).Expr(constant)
	if refusal != nil || !c.IsConstant() {
		return nil
	}
	v, refusal := c.Value(nil)
	if refusal != nil {
		return nil
	}
	x, ok := derived.RatOf(v)
	if !ok || x.Cmp(big.NewRat(maxThreshold, 1)) > 0 || x.Cmp(big.NewRat(-maxThreshold, 1)) < 0 {
		return nil
	}
	least := new(big.Int).Quo(new(big.Int).Sub(x.Num(), new(big.Int).Mod(x.Num(), x.Denom())), x.Denom()) // rounded down
	if (op == ">" || op == "<=") || !x.IsInt() {
		least.Add(least, big.NewInt(1))
	}
	where, ok := g.countedWhere(call)
	if !ok {
		return nil
	}
	switch op {
	case ">", ">=":
		return g.thresholdFor(linear.ThresholdTest{Where: where, Least: least.Int64(), Any: false}, false)
	case "<", "<=":
		return g.thresholdFor(linear.ThresholdTest{Where: where, Least: least.Int64(), Any: false}, true)
	}
	return nil
}

// countedWhere is the condition under which a call counts rows.
func (g *Grouping) countedWhere(call *pg.FuncCall) ([]*semantics.Expr, bool) {
	scratch := *g
	scratch.Question = &linear.Question{Table: g.Rows.Table}
	found, refusal := scratch.Aggregate(call)
	if refusal != nil || found.Formula != nil || found.Counter != 0 || len(scratch.Question.Counters) != 1 {
		return nil, false
	}
	c := scratch.Question.Counters[0]
	return c.Where, c.CountsRows()
}

// boolThreshold is bool_or: whether a row has it; bool_and and every: whether none has the opposite.
func (g *Grouping) boolThreshold(f *pg.FuncCall) *Found {
	name, refusal := ast.FunctionName(f)
	if refusal != nil || !boolAggregates[name] || len(f.Args) != 1 || f.Over != nil || f.AggWithinGroup {
		return nil
	}
	t := g.Below("FILTER")
	where, refusal := bind.FilterOf(f, t)
	if refusal != nil {
		return nil
	}
	arg, refusal := t.Condition(f.Args[0], name)
	if refusal != nil {
		return nil
	}
	if name != "bool_or" {
		if arg, refusal = t.Not(arg); refusal != nil {
			return nil
		}
	}
	return g.thresholdFor(linear.ThresholdTest{Where: append(where, linear.Conjuncts([]*semantics.Expr{arg})...), Least: 1, Any: true}, name != "bool_or")
}

var boolAggregates = semantics.WordSet("bool_or bool_and every")

// thresholdFor is the leaf's column of an alarm, added at first use; not: the opposite is shown.
func (g *Grouping) thresholdFor(a linear.ThresholdTest, not bool) *Found {
	canon := "at least " + predicate.Text(a.Least) + " where " + linear.WhereText(a.Where)
	if a.Any {
		canon = "any of " + canon
	}
	at := slices.IndexFunc(g.Question.Counters, func(c linear.Counter) bool { return c.Canon == canon })
	if at < 0 {
		at = len(g.Question.Counters)
		g.Question.Counters = append(g.Question.Counters, linear.Counter{Threshold: &a, Canon: canon})
	}
	if not {
		tree, refusal := formula.Parsed("NOT " + (&formula.Writer{Leaf: len(g.b.Questions), Question: g.Question}).Counter(at))
		if refusal != nil {
			return nil
		}
		return &Found{Key: -1, Counter: -1, Type: policy.Bool, Formula: tree}
	}
	return &Found{Key: -1, Counter: at, Type: policy.Bool, choice: true}
}
