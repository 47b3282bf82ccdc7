package aggregate

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/formula"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

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
	g.Thresholds = found
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
