package planner

import (
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// SELECT count(*) > 500 FROM t WHERE …, SELECT 'alarm' FROM t HAVING count(*) > 500 and bool_or(x) ask whether a count is at
// least a number, and for no count. With SET dp.alarms = n they are answered by a sparse vector (docs/adr/0030): what it
// costs pays for a run, which is the analyst's own on that table and ends at its n-th yes; each no before that is free.

// mostThreshold bounds thresholds.
const mostThreshold = 1 << 53

// findAlarms notes the comparisons of a SELECT that shows nothing else of its rows.
func (g *grouping) findAlarms() {
	if g.b.c.Settings.Alarms == 0 || g.b.c.Settings.MaxError > 0 || len(g.q.keys) > 0 || g.q.sets != nil || g.above || g.fanned != nil {
		return
	}
	found := map[*pg.Node]*found{}
	counters := g.q.counters
	nodes := []*pg.Node{g.sel.HavingClause}
	for _, t := range g.targets {
		nodes = append(nodes, t.node)
	}
	for _, n := range g.sel.SortClause {
		nodes = append(nodes, n.GetSortBy().GetNode())
	}
	for _, n := range nodes {
		if !g.alarmsIn(n, found) {
			g.q.counters = counters
			return
		}
	}
	g.alarms = found
}

// alarmsIn collects the comparisons of an expression; false: it reads its rows otherwise too.
func (g *grouping) alarmsIn(n *pg.Node, into map[*pg.Node]*found) bool {
	if n.GetNode() == nil || !ast.HasAggregate(n) {
		return true
	}
	if f := g.alarm(n); f != nil {
		into[n] = f
		return true
	}
	if f := n.GetFuncCall(); f != nil && ast.IsAggregate(f) || ast.HasWindow(n) {
		return false
	}
	for _, c := range ast.Children(n) {
		if !g.alarmsIn(c, into) {
			return false
		}
	}
	return true
}

// alarm reads count(…) > constant, bool_or, bool_and or every; nil: it is none.
func (g *grouping) alarm(n *pg.Node) *found {
	if f := n.GetFuncCall(); f != nil {
		return g.boolAlarm(f)
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
	c, refusal := (&translator{env: g.b.env, params: g.b.params, place: "a comparison"}).expr(constant)
	if refusal != nil || !c.isConstant() {
		return nil
	}
	v, refusal := c.value(nil)
	if refusal != nil {
		return nil
	}
	x, ok := derived.RatOf(v)
	if !ok || x.Cmp(big.NewRat(mostThreshold, 1)) > 0 || x.Cmp(big.NewRat(-mostThreshold, 1)) < 0 {
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
		return g.alarmFor(alarmed{where, least.Int64(), false}, false)
	case "<", "<=":
		return g.alarmFor(alarmed{where, least.Int64(), false}, true)
	}
	return nil
}

// countedWhere is the condition under which a call counts rows.
func (g *grouping) countedWhere(call *pg.FuncCall) ([]*expr, bool) {
	scratch := *g
	scratch.q = &question{table: g.rows.table}
	found, refusal := scratch.aggregate(call)
	if refusal != nil || found.formula != nil || found.counter != 0 || len(scratch.q.counters) != 1 {
		return nil, false
	}
	c := scratch.q.counters[0]
	return c.where, c.sum == nil && c.values == nil && c.units == nil && c.choice == nil
}

// boolAlarm is bool_or: whether a row has it; bool_and and every: whether none has the opposite.
func (g *grouping) boolAlarm(f *pg.FuncCall) *found {
	name, refusal := ast.FunctionName(f)
	if refusal != nil || !boolAggregates[name] || len(f.Args) != 1 || f.Over != nil || f.AggWithinGroup {
		return nil
	}
	t := g.below("FILTER")
	var where []*expr
	if f.AggFilter != nil {
		e, refusal := t.condition(f.AggFilter, "FILTER")
		if refusal != nil {
			return nil
		}
		where = conjuncts([]*expr{e})
	}
	arg, refusal := t.condition(f.Args[0], name)
	if refusal != nil {
		return nil
	}
	if name != "bool_or" {
		if arg, refusal = t.not(arg); refusal != nil {
			return nil
		}
	}
	return g.alarmFor(alarmed{append(where, conjuncts([]*expr{arg})...), 1, true}, name != "bool_or")
}

var boolAggregates = wordSet("bool_or bool_and every")

// alarmFor is the leaf's column of an alarm, added at first use; not: the opposite is shown.
func (g *grouping) alarmFor(a alarmed, not bool) *found {
	canon := "at least " + predicate.Text(a.least) + " where " + whereText(a.where)
	if a.any {
		canon = "any of " + canon
	}
	at := slices.IndexFunc(g.q.counters, func(c counter) bool { return c.canon == canon })
	if at < 0 {
		at = len(g.q.counters)
		g.q.counters = append(g.q.counters, counter{alarm: &a, canon: canon})
	}
	if not {
		tree, err := pg.Parse("SELECT NOT " + leafName(len(g.b.questions)) + "." + g.q.columnName(at))
		if err != nil {
			return nil
		}
		return &found{key: -1, counter: -1, typ: policy.Bool, formula: tree.Stmts[0].Stmt.GetSelectStmt().TargetList[0].GetResTarget().Val}
	}
	return &found{key: -1, counter: at, typ: policy.Bool, choice: true}
}
