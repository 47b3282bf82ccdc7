package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// A count over a range that a held release answers is planned once. An example, prepared by a chart that is moved
// about, and the same as a client without parameters writes it:
//
//	SELECT count(*) FROM people WHERE income BETWEEN $1 AND $2
//	SELECT count(*) FROM people WHERE income BETWEEN 20 AND 3000
//
// Whole numbers that are ends of a condition are lifted out of a text without parameters (parse.Lift), and are from
// there on what parameters are. Of its plan only two things are functions of the parameters: which cells are added up,
// and how far their sum may be off. A Template is a plan with those left out.
//
// Claim: where Plan returns a plan, Build would return the same, given the context that the template's own plan was
// built in. Why: (1) each parameter of the statement is there once, as an end of the range of one column, at an edge
// between two of its cells, so Build's reading of the condition is InCells of that range: for a range within the inner
// cells that has the three pieces below, within and above, whatever its ends. The template's own plan is compared with
// that. (2) What is held over the table is one release, read alone (Views.Extent), so no other path is looked at
// before it, and it is read wherever it goes before a count whatever its error (choose.Preferred), or has no larger
// variance than that count, which is one noise for the share; else Build is asked. (3) The release neither grows nor
// becomes stale, and no expression has asked for the time. (4) Everything else that Build reads is the statement's
// text, the policy, the settings and what is held, which whoever keeps a template compares (proxy/pipeline/compile.go).
// TestTemplatesArePlans holds it against Build, and FuzzTemplates.
//
// A lifted number is one that the grammar read as a whole number of 32 bits and that is in the text as its digits;
// where it is compared with an integer column Build takes it for what a parameter of that value is, and the rest of two
// texts that differ in such numbers alone is the same byte by byte.
//
// Limits: one count(*) of one table; ends that are parameters of the column's own kind of value, without casts, or
// whole numbers; integers, decimals, dates and timestamps; no dp.max_error. All else, and every parameter outside of
// the inner cells or within a step, is planned.

// Template is such a plan. It is immutable, and safe for concurrent use.
type Template struct {
	of     *plans.Plan
	sql    string // the leaf's, without its numbers
	ends   rangeEnds
	errors *mechanisms.Errors
	most   float64 // the variance above which a count may be more exact
}

// unnumbered is a leaf's own text without the numbers of its statement; false means they are not in it as in the
// statement.
func unnumbered(sql string, l *parse.Lifted) (string, bool) {
	if !l.Numbers() {
		return sql, true
	}
	statements, refusal := parse.Parse(sql)
	if refusal != nil || len(statements) != 1 {
		return "", false
	}
	own := parse.Lift(statements[0], l.Params)
	return own.Text, slices.Equal(own.Values, l.Values)
}

// numbered is it with others.
func numbered(sql string, l *parse.Lifted) string {
	if !l.Numbers() {
		return sql
	}
	var out []byte
	for _, v := range l.Values {
		before, after, _ := strings.Cut(sql, "\x00")
		out, sql = fmt.Append(append(out, before...), v), after
	}
	return string(append(out, sql...))
}

// TemplateOf returns the template of a plan that Build made of a statement with these parameters in this context; nil:
// it has none.
func TemplateOf(s parse.Statement, params []policy.Value, p *plans.Plan, c reuse.Context) *Template {
	if c.Holdings == nil || c.Settings.MaxError != 0 || c.Alternatives || len(c.Answers) > 0 || s.Translation() != "" || !readsOne(p, c.Holdings) {
		return nil
	}
	m := p.Measures[0]
	run := soleRun(p)
	if run == nil || m.Cuts != nil || m.Spec.Cells != m.Grain[0].Domain.Size() {
		return nil
	}
	lifted := parse.Lift(s, params)
	ends, ok := endsOf(s.Select(), m.Table, m.Grain[0], &lifted)
	if !ok {
		return nil
	}
	cells, ok := ends.cells(lifted.Values)
	if !ok || !slices.Equal(run.Spans[0], []mechanisms.Span{cells}) {
		return nil
	}
	sql, ok := unnumbered(p.Leaves[0].SQL, &lifted)
	if !ok {
		return nil
	}
	t := &Template{of: p, sql: sql, ends: ends, errors: m.Spec.Only(run.Counter).Errors(p.Confidence), most: math.Inf(1)}
	if !choose.Preferred(m, c.Settings) {
		count, err := mechanisms.Plain(1, 1, m.Table.ContributionTo(1), c.Share(1))
		if err != nil {
			return nil
		}
		t.most = count.Error(predicate.One(0), p.Confidence).Variance
	}
	return t
}

// readsOne reports whether a plan reads one release of one column without buying anything, which is all that is held
// over its table and stays as it is, as do the values of its expressions.
func readsOne(p *plans.Plan, held reuse.Holdings) bool {
	return p.Timeless() && p.Cost.IsZero() && p.Outer.Direct != nil && len(p.Measures) == 1 && len(p.Measures[0].Grain) == 1 &&
		len(p.Finds)+len(p.Inner)+len(p.Alternatives)+len(p.Probed) == 0 && readAlone(p.Measures[0], held)
}

// readAlone reports whether a measure is a release that is all that is held over its table, and stays as it is.
func readAlone(m *plans.Measure, held reuse.Holdings) bool {
	if !m.Held || m.Continual != nil || m.Window != nil || m.Open != nil || m.Kind != "range" || m.Declared != nil && m.Declared.Refresh > 0 || !mechanisms.Is[*mechanisms.Counts](m.Spec) {
		return false
	}
	views := held.Views(m.Table)
	if views == nil {
		return false
	}
	e := views.Extent()
	return e.Read == 1 && e.Combine == 1 && e.Only == m.HeldID
}

// soleRun is how the one count of a plan is read; nil means there is more.
func soleRun(p *plans.Plan) *plans.Run {
	if len(p.Leaves) != 1 || len(p.Columns) != 1 || p.Columns[0].Error == nil || p.Columns[0].Off != nil {
		return nil
	}
	leaf := p.Leaves[0]
	if leaf.Rows != 1 || leaf.Synthetic != nil || len(leaf.Keys) > 0 || len(leaf.Counts) != 1 || leaf.Counts[0].Type != 0 || len(leaf.Counts[0].Runs) != 1 {
		return nil
	}
	run := &leaf.Counts[0].Runs[0]
	if run.Measure != 0 || !run.IsSum() || run.Most != 0 || len(run.Spans) != 1 {
		return nil
	}
	return run
}

// Plan is the plan of a statement of the template's text; nil means it is to be built.
func (t *Template) Plan(l parse.Lifted) *plans.Plan {
	return t.plan(l, func(cells []mechanisms.Span) (mechanisms.Error, bool) { return t.errors.Of(cells), true })
}

// Quick is Plan where that takes microseconds; nil means it may take longer, or is to be built.
func (t *Template) Quick(l parse.Lifted) *plans.Plan { return t.plan(l, t.errors.Quick) }

func (t *Template) plan(l parse.Lifted, errorOf func(cells []mechanisms.Span) (mechanisms.Error, bool)) *plans.Plan {
	cells, ok := t.ends.cells(l.Values)
	if !ok {
		return nil
	}
	off, ok := errorOf([]mechanisms.Span{cells})
	if !ok || off.Variance > t.most {
		return nil
	}
	p, leaf, m := *t.of, *t.of.Leaves[0], *t.of.Measures[0]
	leaf.Counts = slices.Clone(leaf.Counts)
	leaf.SQL = numbered(t.sql, &l)
	run := leaf.Counts[0].Runs[0]
	run.Spans = [][]mechanisms.Span{{cells}}
	leaf.Counts[0].Runs = []plans.Run{run}
	p.Columns = slices.Clone(p.Columns)
	p.Columns[0].Error = &off
	if p.Columns[0].Source != nil {
		p.Columns[0].Source = &leaf.Counts[0]
	}
	p.Leaves, p.Measures = []*plans.Leaf{&leaf}, []*plans.Measure{&m}
	return &p
}

// rangeEnds is a condition on one column: parameters between which its values are.
type rangeEnds struct {
	lifted      *parse.Lifted // while it is read
	domain      *policy.Domain
	params      int // of the statement
	low, high   int // the parameters, −1: none
	above, less bool
}

// cells are those of the range; false means they are not all inner ones, or none.
func (r *rangeEnds) cells(params []policy.Value) (mechanisms.Span, bool) {
	if len(params) != r.params {
		return mechanisms.Span{}, false
	}
	span := mechanisms.Span{From: 0, To: r.domain.Regular}
	var ok bool
	if r.low >= 0 {
		if span.From, ok = r.domain.Edge(params[r.low], r.above); !ok {
			return span, false
		}
	}
	if r.high >= 0 {
		if span.To, ok = r.domain.Edge(params[r.high], !r.less); !ok {
			return span, false
		}
	}
	inner := span.From < span.To && (r.low < 0 || span.From > 0) && (r.high < 0 || span.To < r.domain.Regular)
	return span, inner
}

// rangedTypes are those whose values compare as their cells do, whatever the session's settings.
var rangedTypes = []policy.Type{policy.Int2, policy.Int4, policy.Int8, policy.NumericType, policy.DateType, policy.TimestampT, policy.TimestampTZ}

// endsOf reads SELECT count(*) FROM table WHERE …, the condition being a range of one column between parameters; false:
// it is something else.
func endsOf(s *pg.SelectStmt, table *policy.Table, column *policy.Column, lifted *parse.Lifted) (r rangeEnds, ok bool) {
	d := column.Domain
	switch {
	case len(s.GetTargetList()) != 1 || len(s.FromClause) != 1 || s.WhereClause == nil || len(s.WindowClause) > 0 || !ast.IsRowByRow(s):
		return r, false
	case d == nil || !d.Ordered() || d.Ladder != nil || !slices.Contains(rangedTypes, column.Type):
		return r, false
	}
	from, call := s.FromClause[0].GetRangeVar(), s.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	if from == nil || from.Relname != table.Name || !isCountOfRows(call) {
		return r, false
	}
	names := []string{column.Name, cmp.Or(from.Alias.GetAliasname(), from.Relname)}
	r = rangeEnds{lifted: lifted, domain: d, low: -1, high: -1}
	ok = len(from.Alias.GetColnames()) == 0 && r.read(s.WhereClause, names) && r.params > 0 && max(r.low, r.high) < r.params
	r.lifted = nil
	return r, ok
}

func isCountOfRows(f *pg.FuncCall) bool {
	return f != nil && f.AggStar && len(f.Funcname) == 1 && f.Funcname[0].GetString_().GetSval() == "count" && f.AggFilter == nil && f.Over == nil && !f.AggDistinct && len(f.AggOrder)+len(f.Args) == 0
}

// read takes in one condition, or several that hold together.
func (r *rangeEnds) read(n *pg.Node, column []string) bool {
	if b := n.GetBoolExpr(); b != nil {
		return b.Boolop == pg.BoolExprType_AND_EXPR && !slices.ContainsFunc(b.Args, func(a *pg.Node) bool { return !r.read(a, column) })
	}
	a := n.GetAExpr()
	if a == nil || len(a.Name) != 1 {
		return false
	}
	switch a.Kind {
	case pg.A_Expr_Kind_AEXPR_BETWEEN:
		ends := a.Rexpr.GetList().GetItems()
		return isColumn(a.Lexpr, column) && len(ends) == 2 && r.end(">=", ends[0]) && r.end("<=", ends[1])
	case pg.A_Expr_Kind_AEXPR_OP:
		op := a.Name[0].GetString_().GetSval()
		if isColumn(a.Lexpr, column) {
			return r.end(op, a.Rexpr)
		}
		return isColumn(a.Rexpr, column) && r.end(predicate.Mirrored[op], a.Lexpr)
	}
	return false
}

// end takes in one end, a parameter that is nowhere else.
func (r *rangeEnds) end(op string, n *pg.Node) bool {
	at, ok := r.lifted.Of(n)
	if !ok || at == r.low || at == r.high {
		return false
	}
	switch {
	case (op == ">" || op == ">=") && r.low < 0:
		r.low, r.above = at, op == ">"
	case (op == "<" || op == "<=") && r.high < 0:
		r.high, r.less = at, op == "<"
	default:
		return false
	}
	r.params++
	return true
}

// isColumn tells a column by its name, alone or behind that of its table.
func isColumn(n *pg.Node, names []string) bool {
	fields := n.GetColumnRef().GetFields()
	if len(fields) == 0 || len(fields) > len(names) {
		return false
	}
	for i, f := range fields {
		if f.GetString_().GetSval() != names[len(fields)-1-i] {
			return false
		}
	}
	return true
}
