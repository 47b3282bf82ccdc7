package aggregate

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregate calls. Of SELECT count(*) FILTER (WHERE active), sum(income) FROM people the first adds a counter of rows
// with a condition, the second one of a sum; avg and the like are arithmetic over several counters (moments.go), and
// what does not add up is chosen (quantiles.go).

// listing are the aggregates that show each row's value.
var listing = semantics.WordSet("array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg xmlagg")

// Aggregate binds an aggregate call to a counter.
func (g *Grouping) Aggregate(f *pg.FuncCall) (*Found, *refuse.Refusal) {
	if g.Fanned != nil {
		return g.Fanned.aggregate(f)
	}
	pos := int(f.Location)
	name, refusal := bind.AggregateName(f)
	if refusal != nil {
		return nil, refusal
	}
	if name == "min" || name == "max" || moments[name] {
		f = bind.Filtered(f)
	}
	switch {
	case selections[name]:
		return g.selected(name, f)
	case hypothetical[name] && f.AggWithinGroup:
		return g.among(name, f)
	case !addsUp(name) || f.AggWithinGroup:
		return nil, g.doesNotAddUp(name, f)
	}
	t := g.Below("FILTER")
	where, refusal := bind.FilterOf(f, t)
	if refusal != nil {
		return nil, refusal
	}
	t.Place = "an aggregate"
	switch {
	case digitAggregates[name]:
		return g.digits(name, f, where, t)
	case boolAggregates[name]:
		return g.boolean(name, f, where, t)
	case f.AggDistinct:
		return g.different(name, f, where, t)
	case name == "count" && f.AggStar:
		return g.counted(where, policy.Int8), nil
	case pairs[name] && len(f.Args) == 2 && !f.FuncVariadic:
		y, refusal := t.Expr(f.Args[0])
		if refusal != nil {
			return nil, refusal
		}
		x, refusal := t.Expr(f.Args[1])
		if refusal != nil {
			return nil, refusal
		}
		return g.pair(name, y, x, where, pos)
	case len(f.Args) != 1 || f.FuncVariadic || pairs[name]:
		return nil, refuse.UnknownFunction.At(pos, name)
	case name == "count" && g.Rows.Whole(f.Args[0]) != nil:
		if present := g.Rows.Whole(f.Args[0]); !present.IsConstant() {
			where = append(where, present)
		}
		return g.counted(where, policy.Int8), nil
	case name == "count" && g.Rows.IsKeyOnly(f.Args[0]):
		return g.countKeys(f.Args[0], where), nil
	case name == "count":
		return g.countValues(f.Args[0], where, t)
	case name == "sum":
		return g.sum(f.Args[0], where, t, pos)
	}
	return g.momentOf(name, f.Args[0], where, t, pos)
}

// addsUp tells the aggregates that are arithmetic over counters.
func addsUp(name string) bool {
	return name == "count" || name == "sum" || moments[name] || pairs[name] || digitAggregates[name] || boolAggregates[name]
}

// doesNotAddUp refuses an aggregate that is none.
func (g *Grouping) doesNotAddUp(name string, f *pg.FuncCall) *refuse.Refusal {
	switch {
	case listing[name]:
		return g.listed(name, f)
	case name == "any_value":
		return g.anyOf(name, f)
	case !ast.Aggregates[name] && !semantics.EngineFunctions[name]:
		return refuse.UnknownFunction.At(int(f.Location), name)
	}
	return bind.NoAggregate.At(int(f.Location), name)
}

// counted is a counter of rows, as a value of a type.
func (g *Grouping) counted(where []*semantics.Expr, typ policy.Type) *Found {
	return &Found{Key: -1, Counter: g.Question.CounterFor(where), Type: typ}
}

// countKeys is count of a join key: of the rows that have one.
func (g *Grouping) countKeys(n *pg.Node, where []*semantics.Expr) *Found {
	k, _ := g.Rows.KeyNode(n)
	g.b.SaysPartner(g.Rows, k)
	if !g.Rows.KeyColumn(k).Unit && k.Present == 0 {
		where = append(where, g.b.Known(g.Rows, k, ast.Location(n)))
	}
	if present := g.Rows.Present(k, ast.Location(n)); !present.IsConstant() {
		where = append(where, present)
	}
	return g.counted(where, policy.Int8)
}

// countValues is count of an expression: of the rows where it is not NULL.
func (g *Grouping) countValues(n *pg.Node, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	arg, refusal := t.Expr(n)
	if refusal != nil {
		return nil, refusal
	}
	arg = t.Settler.Settled(arg)
	present, refusal := t.Not(semantics.Node(semantics.FormIsNull, "isnull", scalar.IsNull(arg.Expr), arg.Pos, arg))
	if refusal != nil {
		return nil, refusal
	}
	if !(arg.IsConstant() && !g.b.Params.Describing && semantics.MustConstant(arg) != nil) {
		where = append(where, present)
	}
	return g.counted(where, policy.Int8), nil
}

// sum is that of an expression: a count of rows where it is 1 in some and 0 in the others.
func (g *Grouping) sum(n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	if arg, refusal := t.Expr(n); refusal == nil && addedAsInterval(arg.Type()) {
		return g.totalInterval("sum", n, arg.Type(), where, t, pos)
	}
	holds, typ, refusal := t.Indicator(n)
	if refusal != nil {
		return nil, refusal
	}
	if holds == nil {
		return g.summed(n, where, t, pos)
	}
	if !holds.IsConstant() || semantics.MustConstant(holds) != true {
		where = append(where, holds)
	}
	if whole, refusal := t.Expr(n); refusal == nil && typ == policy.NumericType { // sum(1.00) is 2.00 over two rows
		if digits := semantics.DecimalsIn(whole, g.Rows.Table); digits > 0 {
			w := g.formula("numeric")
			return g.found(fmt.Sprintf("round(%s::numeric, %d)", w.Counter(g.Question.CounterFor(where)), digits), typ)
		}
	}
	return g.counted(where, typ), nil
}

// summed is the sum of values. CASE WHEN p THEN x ELSE 0 END adds up x where p holds, and so does coalesce(x, 0) where
// x is not NULL.
func (g *Grouping) summed(n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	if c := n.GetCoalesceExpr(); len(c.GetArgs()) == 2 && t.AddsNothing(c.Args[1]) {
		whole, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		if arg, refusal := t.Expr(c.Args[0]); refusal == nil && arg.Type() == whole.Type() {
			return g.summed(c.Args[0], where, t, pos)
		}
	}
	if c := n.GetCaseExpr(); len(c.GetArgs()) == 1 && c.Arg == nil && t.AddsNothing(c.Defresult) {
		if found, refusal := g.summedWhere(c.Args[0].GetCaseWhen(), where, t, pos); found != nil || refusal != nil {
			return found, refusal
		}
	}
	if product := signed(n); product != nil {
		whole, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		if arg, refusal := t.Expr(product); refusal == nil && arg.Type() == whole.Type() {
			return g.momentOf("sum", product, where, t, pos)
		}
	}
	return g.momentOf("sum", n, where, t, pos)
}

// signed writes a column that is counted with its sign, CASE WHEN kind = 'refund' THEN -total ELSE total END, as
// total * CASE WHEN kind = 'refund' THEN -1 ELSE 1 END; nil means the expression is another.
func signed(n *pg.Node) *pg.Node {
	c := n.GetCaseExpr()
	if c == nil || c.Arg != nil || c.Defresult == nil {
		return nil
	}
	base, last := unsigned(c.Defresult)
	factor := &pg.CaseExpr{Defresult: pg.MakeAConstIntNode(last, c.Location), Location: c.Location}
	for _, arm := range c.Args {
		w := arm.GetCaseWhen()
		column, sign := unsigned(w.Result)
		if column == nil || base == nil || !slices.Equal(ast.Strings(column.Fields), ast.Strings(base.Fields)) {
			return nil
		}
		factor.Args = append(factor.Args, &pg.Node{Node: &pg.Node_CaseWhen{CaseWhen: &pg.CaseWhen{Expr: w.Expr, Result: pg.MakeAConstIntNode(sign, c.Location), Location: w.Location}}})
	}
	column := &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: base}}
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("*")}, column, &pg.Node{Node: &pg.Node_CaseExpr{CaseExpr: factor}}, c.Location)
}

// unsigned is the column of x and of -x, and 1 or -1.
func unsigned(n *pg.Node) (*pg.ColumnRef, int64) {
	if e := n.GetAExpr(); e != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && e.Lexpr == nil && slices.Equal(ast.Strings(e.Name), []string{"-"}) {
		return e.Rexpr.GetColumnRef(), -1
	}
	return n.GetColumnRef(), 1
}

// summedWhere is the sum of CASE WHEN p THEN x END, over the rows where p holds; nil means of x there is no sum.
func (g *Grouping) summedWhere(w *pg.CaseWhen, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	holds, refusal := t.Condition(w.Expr, "CASE/WHEN")
	if refusal != nil {
		return nil, refusal
	}
	arg, refusal := t.Expr(w.Result)
	if refusal != nil || !semantics.Numeric(arg) {
		return nil, nil
	}
	if arg, refusal = g.inColumns(arg); refusal != nil {
		return nil, refusal
	}
	if arg.Form != semantics.FormColumn && semantics.LinearOf(arg) == nil {
		return nil, nil
	}
	return g.moment("sum", arg, append(slices.Clone(where), linear.Conjuncts([]*semantics.Expr{holds})...), nil, pos)
}

// momentOf binds an aggregate of one argument about its values.
func (g *Grouping) momentOf(name string, n *pg.Node, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	arg, refusal := t.Expr(n)
	if refusal != nil {
		return nil, refusal
	}
	if name == "avg" && addedAsInterval(arg.Type()) {
		return g.totalInterval(name, n, arg.Type(), where, t, pos)
	}
	if arg, refusal = g.b.Tested(g.Rows, t.Place, n, arg, false); refusal != nil {
		return nil, refusal
	}
	return g.moment(name, arg, where, nil, pos)
}

// bit_and and bit_or. SELECT bit_or(flags) FROM people is read digit by digit: a digit of the result is 1 where clearly
// more rows than noise makes have it, so each digit that the domain leaves open has a counter.

// bit_and and bit_or of a column of whole numbers are read off a counter for each binary digit that the domain leaves
// open: of the rows that have it (bit_or), or do not have it (bit_and). With values from 8 to 15 those are three, and
//
//	bit_or(x) = 8 + 1·[some row has digit 0] + 2·[… digit 1] + 4·[… digit 2]
//
// A digit is set where its noisy count is above twice its own half-width: post-processing of released counters, whose
// sensitivity is all that the privacy rests on. Equal values are counted each, which DISTINCT does not change.
var digitAggregates = semantics.WordSet("bit_and bit_or")

func (g *Grouping) digits(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if len(f.Args) != 1 || f.FuncVariadic {
		return nil, refuse.UnknownFunction.At(pos, name)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	switch arg.Type() {
	case policy.Int2, policy.Int4, policy.Int8:
	default:
		return nil, refuse.UnknownFunction.At(pos, name+"("+arg.Type().Name()+")")
	}
	if arg.Form != semantics.FormColumn || len(arg.Cols) != 1 {
		return nil, bind.NoAggregate.At(pos, name+" of what is no column")
	}
	least, most, ok := semantics.WholeRange(g.Rows.Table.Columns[arg.Cols[0]].Domain)
	if !ok {
		return nil, bind.NoAggregate.At(pos, name+" of a column whose domain is no range of all whole numbers between its ends")
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return nil, refusal
	}
	w := g.formula("numeric")
	common, open := semantics.OpenDigits(least, most)
	terms := []string{fmt.Sprintf("'%s'::int8", common)}
	for _, d := range open {
		holds, refusal := d.Holds(f.Args[0], name == "bit_or", t, pos)
		if refusal != nil {
			return nil, refusal
		}
		counter := g.Question.CounterFor(append(present[:len(present):len(present)], linear.Conjuncts([]*semantics.Expr{holds})...))
		seen, unseen := d.Worth.String(), "0"
		if name == "bit_and" {
			seen, unseen = unseen, seen
		}
		width := w.Counter(g.Question.WidthOf(counter, linear.OfMeans))
		terms = append(terms, fmt.Sprintf("CASE WHEN %s > 2 * %s THEN '%s'::int8 ELSE '%s'::int8 END",
			w.Counter(counter), width, seen, unseen))
	}
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	g.b.Notes.Add("bit_and and bit_or are told digit by digit, by counts above twice their own error: a digit that few rows have, or few have not, goes unseen")
	return g.found(fmt.Sprintf("CASE WHEN %s THEN (%s)::%s END", w.Clear(g.Question.CounterFor(present), 0), strings.Join(terms, " + "), ast.InternalNames[arg.Type()]), arg.Type())
}

// boolean binds bool_or, bool_and and every: whether some row has it, or none has it not. SELECT bool_or(late) FROM
// trips is that clearly more rows than noise makes are late: a digit of bit_or, without its column. With SET dp.alarms
// they may be alarms instead (topk.go), which cost less and are asked alone.
func (g *Grouping) boolean(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if len(f.Args) != 1 || f.FuncVariadic || f.AggStar {
		return nil, refuse.UnknownFunction.At(pos, name)
	}
	arg, refusal := t.Expr(f.Args[0])
	if refusal != nil {
		return nil, refusal
	}
	if arg, refusal = t.Typed(arg, policy.Bool); refusal != nil { // bool_or('f')
		return nil, refusal
	}
	if arg.Type() != policy.Bool {
		return nil, refuse.UnknownFunction.At(pos, name+"("+arg.Type().Name()+")")
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return nil, refusal
	}
	told := ""
	if name != "bool_or" {
		if arg, refusal = t.Not(arg); refusal != nil {
			return nil, refusal
		}
		told = "NOT "
	}
	w := g.formula("")
	n := g.Question.CounterFor(append(present[:len(present):len(present)], linear.Conjuncts([]*semantics.Expr{arg})...))
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	g.b.Notes.Add("bool_or, bool_and and every are told by counts above twice their own error: a few rows go unseen")
	return g.found(fmt.Sprintf("CASE WHEN %s THEN %s(%s > 2 * %s) END", w.Clear(g.Question.CounterFor(present), 0), told, w.Counter(n), w.Counter(g.Question.WidthOf(n, linear.OfMeans))), policy.Bool)
}
