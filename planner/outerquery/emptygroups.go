package outerquery

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// A GROUP BY over declared domains has a row for every key of the domain, also for those that nobody is in: that is the
// contract, since which keys occur is private (docs/adr/0055). Rows that are shown say so themselves, by a count of 0.
// Rows that are counted, averaged or cut do not:
//
//	SELECT avg(n), count(*) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t
//
// would have more groups than plain SQL has. This file finds which groups those are, and which of them decide what a
// condition, an aggregate or an order makes of them; emptywalk.go has the places in a SELECT where they do. An aggregate
// or a list above is made of the groups whose count is above its error alone (Occupied), elsewhere the notice says it. A group
// that nobody is in has counts and sums of 0 and averages of NULL, so a use is found by evaluation: a condition ends it
// that is not true of such a group, a sum that adds 0, any aggregate whose argument is NULL there or whose FILTER is
// not true. Because of noise a count of 0 may be released as more: what passes a condition with a count as large as its
// error is distinguished, with the threshold that leaves it out. All of it is read from the statement, the policy and
// expected errors.

// emptyGroups are the groups of one leaf.
type emptyGroups struct {
	sel      *pg.SelectStmt
	leaf     int
	keys     string // as the statement names them
	distinct bool   // by SELECT DISTINCT
	rows     int64
	error    int64 // the half-width of count(*), −1: it is not counted
	filtered bool  // a condition leaves out what nobody is in, unless noise lets it pass
	asked    bool  // HAVING count(*) >= 0: they are to take part
	fanned   bool  // no count says who is in them, or one of them is all groups together
}

// emptySearch is what a walk has in all SELECTs: a search before there is a plan finds which of them are to be
// occupied, and one over the plan what the notice says.
type emptySearch struct {
	plan     *plans.Plan // nil before there is one: then noise makes nothing
	occupied map[*pg.SelectStmt]bool
	notes    *semantics.Notes
	known    map[*pg.SelectStmt]*emptyGroups
	errors   map[*plans.CountColumn]int64
	steps    int // expressions that were evaluated
}

// searches has a walk look for groups that nobody is in.
func (w *walk) searches(s *emptySearch) {
	w.b.Env.Asked = new(atomic.Bool)
	s.known, s.errors = map[*pg.SelectStmt]*emptyGroups{}, map[*plans.CountColumn]int64{}
	w.groups = s
}

// emptyValue is what a column is worth at a group that nobody is in.
type emptyValue struct {
	of      *emptyGroups    // whose count or sum it is computed from alone, nil where that is not known
	without *semantics.Expr // its value
	noise   *semantics.Expr // the same, if noise made as much of its counts as their error
	counts  bool            // it is a count, and so nowhere below 0 in truth
}

// maxEmptySteps bounds the expressions that are evaluated for a statement; what is beyond counts as not known.
const maxEmptySteps = 1 << 13

func isCall(n *pg.Node, name string) bool {
	called, refusal := ast.FunctionName(n.GetFuncCall())
	return refusal == nil && called == name
}

// groupsOf tells the groups of a leaf; no rows: every group that is shown has somebody in it, or there is one group of
// everybody.
func (w *walk) groupsOf(g *aggregate.Grouping, sel *pg.SelectStmt) *emptyGroups {
	e := &emptyGroups{sel: sel, leaf: g.Leaf, error: -1, fanned: g.Fanned != nil || g.Question.Sets != nil,
		distinct: bind.IsDistinct(g.Sel) && len(g.Sel.GroupClause) == 0}
	if g.Fanned != nil && g.Fanned.Ranking() != nil { // the names of the first few are shown
		return e
	}
	var names []string
	declared := false
	for i, k := range g.Question.Keys {
		if k.IsConstant() {
			continue
		}
		if g.Fanned != nil || semantics.Closed(g.Rows.Table, k) == nil || len(g.Question.Where) > 0 {
			declared = true
		}
		names = append(names, w.keyText(g, i))
	}
	if e.keys = strings.Join(names, ", "); !declared || g.Question.Frequency.Units > 0 {
		return e
	}
	e.asked = slices.ContainsFunc(ast.Conjuncts(g.Sel.HavingClause), asksForAll)
	if e.rows = math.MaxInt64; w.groups.plan != nil {
		w.planned(g, e)
	}
	return e
}

// asksForAll reports whether a condition is count(*) >= 0, as nobody writes it who does not mean groups of nobody.
func asksForAll(n *pg.Node) bool {
	return ast.SameTree(n, allGroups())
}

// allGroups is that condition.
var allGroups = sync.OnceValue(func() *pg.Node {
	n, err := ast.ParsedExpr("count(*) >= 0")
	if err != nil {
		panic("outerquery: " + err.Error()) // the text is ours
	}
	return n
})

// planned adds how many rows groups have in the plan, and the error of their counts.
func (w *walk) planned(g *aggregate.Grouping, e *emptyGroups) {
	leaf := w.groups.plan.Leaves[g.Leaf]
	e.rows = int64(leaf.Rows)
	for i, c := range g.Question.Counters {
		if len(c.Where) == 0 && c.CountsRows() {
			e.error = w.groups.columnError(&leaf.Counts[i])
		}
	}
	if w.b.Occupied[e.sel] && e.error > 0 {
		w.groups.notes.Add("groups of " + e.keys + " with a count of at most " + e.most() + " take no part: " +
			e.having(">= 0") + " keeps them")
	}
}

// most is what a count is by noise alone, nearly always.
func (e *emptyGroups) most() string {
	if e.error == farSum {
		return "its error"
	}
	return predicate.Text(max(e.error, 0))
}

// having is a condition on the rows of each group.
func (e *emptyGroups) having(condition string) string {
	if e.distinct {
		return "GROUP BY " + e.keys + " HAVING count(*) " + condition + " instead of DISTINCT"
	}
	return "HAVING count(*) " + condition + " after GROUP BY " + e.keys
}

// keyText is a key as GROUP BY or DISTINCT names it.
func (w *walk) keyText(g *aggregate.Grouping, key int) string {
	items := g.Sel.GroupClause
	if len(items) == 0 {
		for _, t := range g.Targets {
			items = append(items, t.Node)
		}
	}
	for _, n := range items {
		n, refusal := g.Rows.GroupItem(n, g.Targets)
		if refusal != nil || n.GetGroupingSet() != nil {
			continue
		}
		if e, refusal := g.Below("GROUP BY").Expr(n); refusal == nil && e.Canon == g.Question.Keys[key].Canon {
			if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) > 0 {
				return names[len(names)-1]
			}
			return ast.DeparsedExpr(n)
		}
	}
	var columns []*policy.Column
	for _, c := range g.Question.Keys[key].Cols {
		columns = append(columns, g.Rows.Table.Columns[c])
	}
	return plans.ColumnNames(columns)
}

// columnError is the largest half-width in a column.
func (s *emptySearch) columnError(c *plans.CountColumn) int64 {
	widest, seen := s.errors[c]
	if c.Climbs() { // how far that is off is known once it is read
		return farSum
	}
	for i := 0; i < len(c.Runs) && !seen; i++ {
		widest = max(widest, s.plan.RunError(&c.Runs[i]).HalfWidth)
	}
	s.errors[c] = widest
	return widest
}

// farSum is in place of what noise makes of a sum.
const farSum = 1 << 40

// ofNobody returns what a counter of a leaf may be at a group that nobody is in.
func (w *walk) ofNobody(g *aggregate.Grouping, at int, noise bool) (value, other int64) {
	if w.groups.plan == nil {
		return 0, 0
	}
	counter, column := g.Question.Counters[at], &w.groups.plan.Leaves[g.Leaf].Counts[at]
	switch {
	case counter.Width != nil && len(column.Runs) > 0:
		value = column.Runs[0].Known
	case noise && counter.Sum != nil: // as much of either sign: a value that depends on it is not known
		return farSum, -farSum
	case noise:
		value = w.groups.columnError(column)
	}
	return value, value
}

// atLeaf is the value of an expression above a leaf at a group that nobody is in, nil where it is not known.
func (w *walk) atLeaf(g *aggregate.Grouping, n *pg.Node, noise bool) *semantics.Expr {
	if w.groups.steps++; n == nil || w.groups.steps > maxEmptySteps || g.Thresholds {
		return nil
	}
	before := len(g.Question.Counters)
	e, refusal := (&semantics.Translator{Env: w.b.Env, Params: w.b.Params, Hook: g.Hook, Place: "SELECT"}).Output(n)
	if g.Question.Counters = g.Question.Counters[:before]; refusal != nil {
		return nil
	}
	row, other := make([]policy.Value, len(g.Question.Keys)+before), make([]policy.Value, len(g.Question.Keys)+before)
	for _, c := range e.Cols {
		at := c - len(g.Question.Keys)
		if at < 0 || at >= before || g.Question.Counters[at].Choice != nil {
			return nil
		}
		row[c], other[c] = w.ofNobody(g, at, noise)
	}
	v, err := e.Eval(row)
	if again, err2 := e.Eval(other); err != nil || err2 != nil || predicate.Text(again) != predicate.Text(v) {
		return nil
	}
	return semantics.ConstantExpr(v, e.Type(), -1)
}

// valueAt is the value of an expression at a group that nobody is in, perhaps as noise makes it, and nil where it is
// not known.
type valueAt func(n *pg.Node, e *emptyGroups, noise bool) *semantics.Expr

// left are groups as a conjunction leaves them: nil where a part of it is not true of a group that nobody is in,
// whatever noise makes of its counts.
func (e *emptyGroups) left(at valueAt, parts []*pg.Node) *emptyGroups {
	out := e
	for _, n := range parts {
		if v := at(n, e, false); v == nil || isTrue(v) {
			continue
		}
		if noisy := at(n, e, true); noisy != nil && !isTrue(noisy) || e.error == 0 {
			return nil
		}
		passed := *e
		passed.filtered, out = true, &passed
	}
	return out
}

func isTrue(e *semantics.Expr) bool {
	v, err := e.Eval(nil)
	return err == nil && v == true
}

// isNothing tells NULL, and 0 where zero is said to be nothing too.
func isNothing(e *semantics.Expr, zero bool) bool {
	if e == nil {
		return false
	}
	v, err := e.Eval(nil)
	if err != nil || v == nil || !zero {
		return err == nil && v == nil
	}
	number, err := strconv.ParseFloat(predicate.Text(v), 64)
	return err == nil && number == 0
}

// valueAt is a valueAt over the relations in sight, of which one has the row of such a group.
func (w *walk) valueAt(n *pg.Node, of *emptyGroups, noise bool) *semantics.Expr {
	if w.groups.steps++; n == nil || w.groups.steps > maxEmptySteps {
		return nil
	}
	t := &semantics.Translator{Env: w.b.Env, Params: w.b.Params, Place: "SELECT"}
	t.Columns = func(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
		if c := w.find(fields); c != nil && c.empty.of != nil && of != nil && c.empty.of.leaf == of.leaf {
			if e := c.empty.without; !noise && e != nil {
				return e, nil
			}
			if e := c.empty.noise; noise && e != nil {
				return e, nil
			}
		}
		return nil, semantics.UnknownColumn.At(pos, strings.Join(fields, "."))
	}
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if n.GetSubLink() != nil {
			return nil, semantics.RowSubquery.At(-1)
		}
		return nil, nil
	}
	e, refusal := t.Output(n)
	if refusal != nil || !e.IsConstant() {
		return nil
	}
	return e
}

// moved are the groups that an aggregate's value, or a window function's, depends on though nobody is in them.
// Aggregates pass over NULL; lag and first_value do not.
func (w *walk) moved(f *pg.FuncCall, at valueAt) (out []*emptyGroups) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil
	}
	for _, r := range w.relations {
		for _, e := range r.from {
			if v := at(f.AggFilter, e, e.filtered); v != nil && !isTrue(v) {
				continue
			}
			args := f.Args
			if f.AggWithinGroup && len(f.AggOrder) > 0 {
				args = []*pg.Node{f.AggOrder[0].GetSortBy().Node}
			}
			if len(args) > 0 && (f.Over == nil || ast.Aggregates[name]) && !strings.Contains(name, "agg") && isNothing(at(args[0], e, e.filtered), name == "sum" && !e.filtered) {
				continue
			}
			if name != "max" || !w.isCount(f) {
				out = append(out, e)
			}
		}
	}
	return out
}

// isCount tells an aggregate of a bare column that is a count.
func (w *walk) isCount(f *pg.FuncCall) bool {
	c := w.find(ast.Strings(aggregate.FirstColumn(f)))
	return c != nil && c.empty.counts
}

// fromTheMost tells an order in which groups that nobody is in come last, as far as counts and sums are not below 0.
func fromTheMost(n *pg.Node, e *emptyGroups, at valueAt) bool {
	s := n.GetSortBy()
	if s == nil || s.SortbyDir != pg.SortByDir_SORTBY_DESC {
		return false
	}
	v := at(s.Node, e, false)
	return isNothing(v, true)
}

// takePart has groups above a leaf be occupied, or notes those that take part though nobody is in them.
func (w *walk) takePart(from []*emptyGroups) {
	for _, e := range from {
		if w.groups.plan == nil && !e.filtered && !e.asked && !e.fanned {
			w.groups.occupied[e.sel] = true
		}
	}
	w.tell(from)
}

// tell notes groups that take part.
func (w *walk) tell(from []*emptyGroups) {
	if w.groups.plan == nil {
		return
	}
	for _, e := range from {
		by := e.having("> " + e.most())
		switch {
		case e.asked:
		case !e.filtered:
			w.groups.notes.Add("groups of " + e.keys + " that nobody is in take part, as they do not in plain SQL: " + by + " leaves them out")
		case e.error > 0:
			w.groups.notes.Add("by noise up to half of the groups of " + e.keys + " that nobody is in pass the condition: " + by + " leaves nearly all of them out")
		default:
			w.groups.notes.Add("by noise some groups of " + e.keys + " that nobody is in pass the condition: one on count(*) above its error leaves them out")
		}
	}
}
