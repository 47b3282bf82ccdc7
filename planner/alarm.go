package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// SELECT count(*) > 500 FROM t WHERE …, SELECT 'alarm' FROM t HAVING count(*) > 500 and bool_or(x) ask whether a count is at
// least a number, and for no count. With SET dp.alarms = n they are answered by a sparse vector (docs/adr/0030): what it
// costs pays for a run, which is the analyst's own on that table and ends at its n-th yes; each no before that is free.

// alarmed is a comparison of a count with a constant.
type alarmed struct {
	where []*expr
	least int64 // the count is compared with, from below
	any   bool  // of bool_or: it is enough that a row is there, so noise alone must not say so
}

// alarmOf says which column of which sheet shows an alarm.
type alarmOf struct {
	sheet, counter int
	*alarmed
}

// AlarmQuestion is what a run of alarms is asked.
type AlarmQuestion struct {
	Measure *Measure // counts the rows; nil: no row can be counted, whatever the data
	Least   int64    // whether there are so many
}

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

// alarms makes a sheet for each alarm of each leaf.
func (v *sheeter) alarms(sheets []*sheet) (out []*sheet, refusal *refuse.Refusal) {
	for i, sh := range sheets {
		for n, c := range sh.counters {
			if c.alarm == nil {
				continue
			}
			own := sh.on(sh.sets[0], nil, nil)
			own.where = slices.Concat(own.where, c.alarm.where)
			own.counterFor(nil)
			s, refusal := solve(own, v.b.env, v.notes)
			if refusal != nil {
				return nil, refusal
			}
			s.alarm = &alarmOf{i, n, c.alarm}
			a := &ask{solved: s, set: sh.sets[0], fills: []fill{{0, 0, -1}}}
			if a.wanted() {
				s.tellRules(v.notes)
			}
			if c.alarm.any {
				v.notes.add("bool_or, bool_and and every are told by counts clearly above what noise alone would make of none: a few rows go unseen")
			}
			out = append(out, &sheet{question: own, sets: sh.sets, frames: []*solved{s}, asks: []*ask{a}})
		}
	}
	return out, nil
}

// oneAlarm finds the run that is asked: one of hers on the table that is as exact as asked now and has a yes left, else a new
// one, which is bought.
func (ch *chooser) oneAlarm(s *solved, share privacy.Cost) (*way, *refuse.Refusal) {
	each := s.table.ContributionTo(1)
	spec, err := mechanisms.NewAlarm(mechanisms.AlarmFor(ch.c.Settings.Alarms, each, share))
	if err != nil {
		return nil, noMechanism.At(-1, err.Error())
	}
	question := s.measure("alarm", s.table.Name+s.about())
	run := &Measure{Kind: "alarms", Name: s.table.Name + "_alarms", Table: s.table, Counters: []predicate.Pred{nil}, Spec: spec, Cost: share}
	for n := 0; ; n++ {
		b := predicate.EncodeText(predicate.EncodeText(nil, "run of alarms"), knownOf(s.table).fingerprint)
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, each.Rows), int64(each.Neighbors)), int64(n))
		run.described, run.Digest = b, sha256.Sum256(b)
		if ch.c.Holdings == nil {
			break
		}
		held := ch.c.Holdings.Held(run.Digest)
		if len(held) == 0 {
			break
		}
		h := held[0]
		if held, ok := h.Spec.Kind.(*mechanisms.Alarm); ok && share.Fits(held.Cost) && ch.c.AlarmsLeft != nil && ch.c.AlarmsLeft(h.ID) > 0 {
			w := &way{measure: run}
			w.hold(h, "your run of alarms on this table goes on, and each question of it is free: "+predicate.Text(int64(ch.c.AlarmsLeft(h.ID)))+" of "+predicate.Text(int64(held.Positives))+" yes answers are left")
			question.Spec = h.Spec
			w.alarm = &AlarmQuestion{question, s.alarm.threshold(h.Spec, ch.c.Settings.Confidence)}
			return w, nil
		}
	}
	run.Why = "dp.alarms is on: the answer is yes or no, and a run of such questions is bought, of which each no is free"
	question.Spec = spec
	return &way{measure: run, alarm: &AlarmQuestion{question, s.alarm.threshold(spec, ch.c.Settings.Confidence)}}, nil
}

// threshold is what the count is compared with: that of bool_or is so much higher that, where no row has it, the answer is no
// at the confidence.
func (a *alarmed) threshold(spec mechanisms.Spec, c mechanisms.Confidence) int64 {
	if a.any {
		return a.least + spec.Margin(c)
	}
	return a.least
}

// addAlarm puts an alarm into the leaf that shows it.
func (p *Plan) addAlarm(s *solved, w *way) {
	column := &p.Leaves[s.alarm.sheet].Counts[s.alarm.counter]
	column.Type = policy.Bool
	run := &column.Runs[0]
	run.Alarm = &AlarmQuestion{Least: s.alarm.least}
	if w != nil {
		run.Measure, run.Alarm = p.measure(w.measure), w.alarm
	}
}
