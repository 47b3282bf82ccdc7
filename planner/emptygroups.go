package planner

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// A GROUP BY over declared domains has a row for every key of the domain, also for those that nobody is in: that is the
// contract, since which keys occur is private (docs/adr/0055). Rows that are shown say so themselves, by a count of 0. Rows
// that are counted, averaged or cut do not:
//
//	SELECT avg(n), count(*) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t
//
// has more groups than plain SQL has. This file finds such uses, and the notice tells what to write. A group that nobody is in
// has counts and sums of 0 and averages of NULL, so a use is told by evaluation: a condition ends it that is not true of such
// a group, a sum that adds 0, any aggregate whose argument is NULL there or whose FILTER is not true. Because of noise a count
// of 0 may be released as more: what passes a condition with a count as large as its error is told apart, with the threshold
// that leaves it out. All of it is read from the statement, the policy and expected errors.

// groupRows are the rows of a relation as far as groups are among them that nobody is in.
type groupRows struct {
	alias   string
	columns []groupColumn
	from    []*emptyGroups // whose groups are among the rows
}

// groupColumn is a column of such rows.
type groupColumn struct {
	name    string
	of      *emptyGroups // whose count or sum it is computed from alone; nil: not known here
	without *expr        // its value at a group that nobody is in
	noise   *expr        // the same, if noise made as much of its counts as their error; nil: not known
	counts  bool         // it is a count, and so nowhere below 0 in truth
}

// emptyGroups are the groups of one leaf.
type emptyGroups struct {
	leaf     int
	keys     string // as the statement names them
	distinct bool   // by SELECT DISTINCT
	rows     int64
	error    int64 // the half-width of count(*), −1: it is not counted
	filtered bool  // a condition leaves out what nobody is in, unless noise lets it pass
}

// emptyWalk goes through a bound statement.
type emptyWalk struct {
	*emptySearch
	with []groupRows
}

// emptySearch is what a walk has in all SELECTs.
type emptySearch struct {
	b      *binder
	plan   *Plan
	said   *notes
	known  map[*pg.SelectStmt]*emptyGroups
	errors map[*CountColumn]int64
	steps  int // expressions that were evaluated
}

// mostEmptySteps bounds the expressions that are evaluated for a statement; what is beyond counts as not known.
const mostEmptySteps = 1 << 13

// tellEmptyGroups notes where groups that nobody is in decide about what a statement shows.
func (p *Plan) tellEmptyGroups(b *binder, said *notes) {
	quiet := *b
	quiet.env.Asked = new(atomic.Bool)
	quiet.params = &parameters{values: b.params.values, types: slices.Clone(b.params.types), describing: b.params.describing}
	search := &emptySearch{b: &quiet, plan: p, said: said, known: map[*pg.SelectStmt]*emptyGroups{}, errors: map[*CountColumn]int64{}}
	(&emptyWalk{emptySearch: search}).query(b.top)
}

// query goes through one SELECT and tells its rows.
func (w *emptyWalk) query(sel *pg.SelectStmt) (out groupRows) {
	if sel == nil {
		return out
	}
	in := &emptyWalk{emptySearch: w.emptySearch, with: slices.Clone(w.with)}
	for _, n := range sel.GetWithClause().GetCtes() {
		c := n.GetCommonTableExpr()
		in.with = append(in.with, in.query(c.Ctequery.GetSelectStmt()).named(c.Ctename, c.Aliascolnames))
	}
	if sel.Larg != nil {
		left, right := in.query(sel.Larg), in.query(sel.Rarg)
		out = groupRows{columns: left.columns, from: append(slices.Clone(left.from), right.from...)}
		if len(left.from) == 0 {
			out.columns = right.named("", nil).columns
			for i := range out.columns {
				if i < len(left.columns) {
					out.columns[i].name = left.columns[i].name
				}
			}
		} else if len(right.from) > 0 {
			out.columns = unknownColumns(left.columns)
		}
		in.cut(sel, out, []groupRows{out})
		return out
	}
	if g := w.b.groups[sel]; g != nil {
		return in.leaf(g)
	}
	var seen []groupRows
	for _, n := range sel.FromClause {
		seen = append(seen, in.item(n)...)
	}
	in.subQueries(append(append([]*pg.Node{sel.WhereClause, sel.HavingClause}, sel.TargetList...), sel.SortClause...))
	seen = in.where(sel.WhereClause, seen)
	if isGrouped(sel) {
		return in.aggregated(sel, seen)
	}
	for _, r := range seen {
		out.from = append(out.from, r.from...)
	}
	for _, n := range sel.TargetList {
		out.columns = append(out.columns, in.columns(n.GetResTarget(), seen)...)
	}
	in.windows(sel, seen)
	in.cut(sel, out, seen)
	return out
}

// named gives rows an alias, and their columns the names that it lists.
func (r groupRows) named(alias string, names []*pg.Node) groupRows {
	r.alias, r.columns = alias, slices.Clone(r.columns)
	for i, name := range stringsOf(names) {
		if i < len(r.columns) {
			r.columns[i].name = name
		}
	}
	return r
}

func unknownColumns(columns []groupColumn) []groupColumn {
	out := make([]groupColumn, len(columns))
	for i, c := range columns {
		out[i].name = c.name
	}
	return out
}

// leaf tells the rows of an aggregation over private rows.
func (w *emptyWalk) leaf(g *grouping) (out groupRows) {
	e := w.known[g.sel]
	if e == nil {
		e = w.groupsOf(g)
		w.known[g.sel] = e
	}
	for _, t := range g.targets {
		column := groupColumn{name: t.label, of: e, without: w.atLeaf(g, t.node, false), noise: w.atLeaf(g, t.node, true)}
		column.counts = column.without != nil && t.node.GetFuncCall() != nil && column.without.Type() == policy.Int8 && isCall(t.node, "count")
		out.columns = append(out.columns, column)
	}
	if e.rows == 0 {
		return out
	}
	out.from = []*emptyGroups{e}
	if g.sel.HavingClause != nil {
		out.from = w.left(out.from, func(n *pg.Node, noise bool) *expr { return w.atLeaf(g, n, noise) }, conjunctNodes(g.sel.HavingClause))
	}
	self := []groupRows{out}
	at := func(n *pg.Node, _ *emptyGroups, noise bool) *expr { return w.atLeaf(g, n, noise) }
	w.windowsAt(g.sel, self, at)
	w.cutAt(g.sel, out, self, at)
	return out
}

func isCall(n *pg.Node, name string) bool {
	called, refusal := functionName(n.GetFuncCall())
	return refusal == nil && called == name
}

// groupsOf tells the groups of a leaf; no rows: every group has somebody in it, or there is one group of everybody.
func (w *emptyWalk) groupsOf(g *grouping) *emptyGroups {
	e := &emptyGroups{leaf: g.leaf, error: -1, distinct: isDistinct(g.sel) && len(g.sel.GroupClause) == 0}
	if g.fanned != nil && g.fanned.race != nil { // the names of the first few are shown
		return e
	}
	var names []string
	declared := false
	for i, k := range g.q.keys {
		if k.isConstant() {
			continue
		}
		if g.fanned != nil || closed(g.rows.table, k) == nil || len(g.q.where) > 0 {
			declared = true
		}
		names = append(names, w.keyText(g, i))
	}
	if e.keys = strings.Join(names, ", "); !declared {
		return e
	}
	leaf := w.plan.Leaves[g.leaf]
	e.rows = int64(leaf.Rows)
	for i, c := range g.q.counters {
		if len(c.where) == 0 && c.sum == nil && c.values == nil && c.units == nil && c.choice == nil && c.alarm == nil && c.width == nil {
			e.error = w.columnError(&leaf.Counts[i])
		}
	}
	return e
}

// keyText is a key as GROUP BY or DISTINCT names it.
func (w *emptyWalk) keyText(g *grouping, key int) string {
	items := g.sel.GroupClause
	if len(items) == 0 {
		for _, t := range g.targets {
			items = append(items, t.node)
		}
	}
	for _, n := range items {
		n, refusal := g.groupItem(n)
		if refusal != nil || n.GetGroupingSet() != nil {
			continue
		}
		if e, refusal := g.below("GROUP BY").expr(n); refusal == nil && e.canon == g.q.keys[key].canon {
			if names := stringsOf(n.GetColumnRef().GetFields()); len(names) > 0 {
				return names[len(names)-1]
			}
			return strings.TrimPrefix(deparsed(&pg.SelectStmt{TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(n, -1)}}), "SELECT ")
		}
	}
	var columns []*policy.Column
	for _, c := range g.q.keys[key].cols {
		columns = append(columns, g.rows.table.Columns[c])
	}
	return columnNames(columns)
}

// columnError is the largest half-width in a column.
func (w *emptySearch) columnError(c *CountColumn) int64 {
	widest, seen := w.errors[c]
	for i := 0; i < len(c.Runs) && !seen; i++ {
		widest = max(widest, w.plan.runError(&c.Runs[i]).HalfWidth)
	}
	w.errors[c] = widest
	return widest
}

// farSum stands for what noise makes of a sum.
const farSum = 1 << 40

// atLeaf is the value of an expression above a leaf at a group that nobody is in, nil where it is not known.
func (w *emptyWalk) atLeaf(g *grouping, n *pg.Node, noise bool) *expr {
	if w.steps++; n == nil || w.steps > mostEmptySteps || g.alarms != nil {
		return nil
	}
	before := len(g.q.counters)
	e, refusal := (&translator{env: w.b.env, params: w.b.params, hook: g.hook, place: "SELECT"}).output(n)
	if g.q.counters = g.q.counters[:before]; refusal != nil {
		return nil
	}
	row, other := make([]policy.Value, len(g.q.keys)+before), make([]policy.Value, len(g.q.keys)+before)
	for _, c := range e.cols {
		at := c - len(g.q.keys)
		if at < 0 || at >= before || g.q.counters[at].choice != nil {
			return nil
		}
		counter, value := g.q.counters[at], int64(0)
		column := &w.plan.Leaves[g.leaf].Counts[at]
		switch {
		case counter.width != nil && len(column.Runs) > 0:
			value = column.Runs[0].Known
		case noise && counter.sum != nil: // as much of either sign: a value that depends on it is not known
			row[c], other[c] = int64(farSum), int64(-farSum)
			continue
		case noise:
			value = w.columnError(column)
		}
		row[c], other[c] = value, value
	}
	v, err := e.Eval(row)
	if again, err2 := e.Eval(other); err != nil || err2 != nil || textOf(again) != textOf(v) {
		return nil
	}
	return constantExpr(v, e.Type(), -1)
}

// item tells the rows of an item of FROM; a join's are those of its sides, as far as its condition leaves them.
func (w *emptyWalk) item(n *pg.Node) []groupRows {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeSubselect:
		return []groupRows{w.query(v.RangeSubselect.Subquery.GetSelectStmt()).named(v.RangeSubselect.GetAlias().GetAliasname(), v.RangeSubselect.GetAlias().GetColnames())}
	case *pg.Node_RangeVar:
		for i := len(w.with) - 1; i >= 0 && v.RangeVar.Schemaname == ""; i-- {
			if w.with[i].alias != v.RangeVar.Relname {
				continue
			}
			if a := v.RangeVar.Alias; a != nil {
				return []groupRows{w.with[i].named(a.Aliasname, a.Colnames)}
			}
			return []groupRows{w.with[i]}
		}
		return []groupRows{{alias: v.RangeVar.Relname}}
	case *pg.Node_JoinExpr:
		seen := append(w.item(v.JoinExpr.Larg), w.item(v.JoinExpr.Rarg)...)
		if v.JoinExpr.Jointype == pg.JoinType_JOIN_INNER {
			return w.where(v.JoinExpr.Quals, seen)
		}
		return seen
	}
	return []groupRows{{}}
}

// subQueries goes through the sub-queries of expressions. Rows that are asked for, and not read, tell nothing of their counts.
func (w *emptyWalk) subQueries(list []*pg.Node) {
	for _, n := range list {
		if n.GetResTarget() != nil {
			n = n.GetResTarget().Val
		}
		if n.GetSortBy() != nil {
			n = n.GetSortBy().Node
		}
		holds(n, func(n *pg.Node) bool {
			if s := n.GetSubLink(); s != nil {
				out := w.query(s.Subselect.GetSelectStmt())
				if s.SubLinkType != pg.SubLinkType_EXPR_SUBLINK {
					w.tell(out.from)
				}
			}
			return false
		})
	}
}

// where leaves out the groups that a condition leaves out.
func (w *emptyWalk) where(condition *pg.Node, seen []groupRows) []groupRows {
	if condition == nil {
		return seen
	}
	out := slices.Clone(seen)
	for i := range out {
		var from []*emptyGroups
		for _, e := range out[i].from {
			from = append(from, w.left([]*emptyGroups{e}, func(n *pg.Node, noise bool) *expr { return w.at(n, seen, e, noise) }, conjunctNodes(condition))...)
		}
		out[i].from = from
	}
	return out
}

// left are the groups that a conjunction leaves: none where a part of it is not true of a group that nobody is in, whatever
// noise makes of its counts.
func (w *emptyWalk) left(from []*emptyGroups, at func(n *pg.Node, noise bool) *expr, parts []*pg.Node) []*emptyGroups {
	out := from
	for _, n := range parts {
		if constantOf(at(n, false)) == nil || isTrue(at(n, false)) {
			continue
		}
		if noisy := constantOf(at(n, true)); noisy != nil && !isTrue(noisy) {
			return nil
		}
		out = nil
		for _, e := range from {
			if e.error == 0 {
				continue
			}
			passed := *e
			passed.filtered = true
			out = append(out, &passed)
		}
	}
	return out
}

// constantOf drops what is not a value.
func constantOf(e *expr) *expr {
	if e == nil || !e.isConstant() {
		return nil
	}
	return e
}

func isTrue(e *expr) bool {
	v, err := e.Eval(nil)
	return err == nil && v == true
}

// isNothing tells NULL, and 0 where zero is said to be nothing too.
func isNothing(e *expr, zero bool) bool {
	if e == nil {
		return false
	}
	v, err := e.Eval(nil)
	if err != nil || v == nil || !zero {
		return err == nil && v == nil
	}
	number, err := strconv.ParseFloat(textOf(v), 64)
	return err == nil && number == 0
}

// at is the value of an expression where one relation's row is of a group that nobody is in, nil where it is not known.
func (w *emptyWalk) at(n *pg.Node, seen []groupRows, of *emptyGroups, noise bool) *expr {
	if w.steps++; n == nil || w.steps > mostEmptySteps {
		return nil
	}
	t := &translator{env: w.b.env, params: w.b.params, place: "SELECT"}
	t.columns = func(fields []string, pos int) (*expr, *Refusal) {
		if c := find(fields, seen); c != nil && c.of != nil && of != nil && c.of.leaf == of.leaf {
			if e := c.without; !noise && e != nil {
				return e, nil
			}
			if e := c.noise; noise && e != nil {
				return e, nil
			}
		}
		return nil, unknownColumn.at(pos, strings.Join(fields, "."))
	}
	t.hook = func(n *pg.Node) (*expr, *Refusal) {
		if n.GetSubLink() != nil {
			return nil, rowSubquery.at(-1)
		}
		return nil, nil
	}
	e, refusal := t.output(n)
	if refusal != nil {
		return nil
	}
	return constantOf(e)
}

// find finds a column.
func find(fields []string, seen []groupRows) *groupColumn {
	name, words := fields[len(fields)-1], fields[:len(fields)-1]
	for _, r := range seen {
		if len(words) > 0 && words[len(words)-1] != r.alias {
			continue
		}
		for i := range r.columns {
			if r.columns[i].name == name {
				return &r.columns[i]
			}
		}
	}
	return nil
}

// columns are those that a target shows.
func (w *emptyWalk) columns(target *pg.ResTarget, seen []groupRows) (out []groupColumn) {
	if ref := target.GetVal().GetColumnRef(); ref != nil {
		if len(ref.Fields) > 0 && ref.Fields[len(ref.Fields)-1].GetAStar() != nil {
			words := stringsOf(ref.Fields)
			for _, r := range seen {
				if len(words) == 0 || words[len(words)-1] == r.alias {
					out = append(out, r.columns...)
				}
			}
			return out
		}
		if c := find(stringsOf(ref.Fields), seen); c != nil {
			same := *c
			same.name = columnLabel(target)
			return []groupColumn{same}
		}
	}
	column := groupColumn{name: columnLabel(target)}
	for _, r := range seen {
		for _, e := range r.from {
			if v := w.at(target.GetVal(), seen, e, false); v != nil {
				column.of, column.without, column.noise = e, v, w.at(target.GetVal(), seen, e, true)
			}
		}
	}
	return []groupColumn{column}
}

// aggregated tells groups that an aggregation above a leaf reads.
func (w *emptyWalk) aggregated(sel *pg.SelectStmt, seen []groupRows) (out groupRows) {
	nodes := []*pg.Node{sel.HavingClause}
	for _, n := range sel.TargetList {
		nodes = append(nodes, n.GetResTarget().Val)
	}
	for _, n := range sel.SortClause {
		nodes = append(nodes, n.GetSortBy().Node)
	}
	for _, n := range nodes {
		holds(n, func(n *pg.Node) bool {
			if f := n.GetFuncCall(); f != nil && f.Over == nil && isAggregate(f) {
				w.tell(w.moved(f, seen, func(n *pg.Node, e *emptyGroups, noise bool) *expr { return w.at(n, seen, e, noise) }))
			}
			return false
		})
	}
	for _, n := range sel.TargetList {
		out.columns = append(out.columns, groupColumn{name: columnLabel(n.GetResTarget())})
	}
	if len(sel.GroupClause) > 0 || isDistinct(sel) {
		for _, r := range seen {
			out.from = append(out.from, r.from...)
		}
	}
	return out
}

// moved are the groups that an aggregate's value depends on though nobody is in them.
func (w *emptyWalk) moved(f *pg.FuncCall, seen []groupRows, at func(n *pg.Node, e *emptyGroups, noise bool) *expr) (out []*emptyGroups) {
	name, refusal := functionName(f)
	if refusal != nil {
		return nil
	}
	for _, r := range seen {
		for _, e := range r.from {
			if v := at(f.AggFilter, e, e.filtered); v != nil && !isTrue(v) {
				continue
			}
			args := f.Args
			if f.AggWithinGroup && len(f.AggOrder) > 0 {
				args = []*pg.Node{f.AggOrder[0].GetSortBy().Node}
			}
			if len(args) > 0 && !strings.Contains(name, "agg") && isNothing(at(args[0], e, e.filtered), name == "sum" && !e.filtered) {
				continue
			}
			if name != "max" || !isCount(f, seen) {
				out = append(out, e)
			}
		}
	}
	return out
}

// isCount tells an aggregate of a bare column that is a count.
func isCount(f *pg.FuncCall, seen []groupRows) bool {
	fields := stringsOf(firstColumn(f))
	if len(fields) == 0 {
		return false
	}
	c := find(fields, seen)
	return c != nil && c.counts
}

func firstColumn(f *pg.FuncCall) []*pg.Node {
	if len(f.Args) != 1 {
		return nil
	}
	return f.Args[0].GetColumnRef().GetFields()
}

func (w *emptyWalk) windows(sel *pg.SelectStmt, seen []groupRows) {
	w.windowsAt(sel, seen, func(n *pg.Node, e *emptyGroups, noise bool) *expr { return w.at(n, seen, e, noise) })
}

// windowsAt tells groups that window functions read. Ranks from the most to the least end with those that nobody is in.
func (w *emptyWalk) windowsAt(sel *pg.SelectStmt, seen []groupRows, at func(n *pg.Node, e *emptyGroups, noise bool) *expr) {
	nodes := slices.Clone(sel.SortClause)
	for _, n := range sel.TargetList {
		nodes = append(nodes, n.GetResTarget().Val)
	}
	for _, n := range nodes {
		if n.GetSortBy() != nil {
			n = n.GetSortBy().Node
		}
		holds(n, func(n *pg.Node) bool {
			f := n.GetFuncCall()
			if f == nil || f.Over == nil {
				return false
			}
			order := f.Over.OrderClause
			for _, d := range sel.WindowClause {
				if d.GetWindowDef().GetName() == f.Over.Name && f.Over.Name != "" {
					order = d.GetWindowDef().OrderClause
				}
			}
			name, _ := functionName(f)
			for _, e := range w.moved(f, seen, at) {
				ranks := name == "rank" || name == "dense_rank" || name == "row_number"
				if !ranks || len(order) == 0 || !fromTheMost(order[0], e, at) {
					w.tell([]*emptyGroups{e})
				}
			}
			return false
		})
	}
}

// fromTheMost tells an order in which groups that nobody is in come last, as far as counts and sums are not below 0.
func fromTheMost(n *pg.Node, e *emptyGroups, at func(n *pg.Node, e *emptyGroups, noise bool) *expr) bool {
	s := n.GetSortBy()
	if s == nil || s.SortbyDir != pg.SortByDir_SORTBY_DESC {
		return false
	}
	v := at(s.Node, e, false)
	return isNothing(v, true)
}

func (w *emptyWalk) cut(sel *pg.SelectStmt, out groupRows, seen []groupRows) {
	w.cutAt(sel, out, seen, func(n *pg.Node, e *emptyGroups, noise bool) *expr { return w.at(n, seen, e, noise) })
}

// cutAt tells groups that LIMIT and OFFSET choose among, but from the most down.
func (w *emptyWalk) cutAt(sel *pg.SelectStmt, out groupRows, seen []groupRows, at func(n *pg.Node, e *emptyGroups, noise bool) *expr) {
	if sel.LimitCount == nil && sel.LimitOffset == nil || isNoLimit(sel.LimitCount) && sel.LimitOffset == nil {
		return
	}
	limit, refusal := w.b.whole(sel.LimitCount, "LIMIT", -1)
	if refusal != nil {
		return
	}
	for _, e := range out.from {
		if len(out.from) == 1 && len(seen) == 1 && sel.LimitOffset == nil && limit >= e.rows {
			continue
		}
		if len(sel.SortClause) > 0 {
			by := sel.SortClause[0]
			if i := w.shownAt(by.GetSortBy(), out); i >= 0 {
				if c := out.columns[i]; by.GetSortBy().SortbyDir == pg.SortByDir_SORTBY_DESC && c.of != nil && isNothing(c.without, true) {
					continue
				}
			} else if fromTheMost(by, e, at) {
				continue
			}
		}
		w.tell([]*emptyGroups{e})
	}
}

// shownAt is the column of the output that an ORDER BY item names, −1 for none.
func (w *emptyWalk) shownAt(s *pg.SortBy, out groupRows) int {
	targets := make([]target, len(out.columns))
	for i, c := range out.columns {
		targets[i].label = c.name
	}
	i, refusal := sortTarget(s.GetNode(), targets)
	if refusal != nil {
		return -1
	}
	return i
}

// tell notes groups that take part.
func (w *emptyWalk) tell(from []*emptyGroups) {
	for _, e := range from {
		by := "HAVING count(*) > " + textOf(max(e.error, 0)) + " after GROUP BY " + e.keys
		if e.distinct {
			by = "GROUP BY " + e.keys + " HAVING count(*) > " + textOf(max(e.error, 0)) + " instead of DISTINCT"
		}
		switch {
		case !e.filtered:
			w.said.add("groups of " + e.keys + " that nobody is in take part, as they do not in plain SQL: " + by + " leaves them out")
		case e.error > 0:
			w.said.add("by noise up to half of the groups of " + e.keys + " that nobody is in pass the condition: " + by + " leaves nearly all of them out")
		default:
			w.said.add("by noise some groups of " + e.keys + " that nobody is in pass the condition: one on count(*) above its error leaves them out")
		}
	}
}
