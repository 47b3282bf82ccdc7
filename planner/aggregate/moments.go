package aggregate

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/formula"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates other than counts are expressions over counters of the leaf (docs/adr/0013), written as SQL over its
// columns, which the direct path and the engine both read. With n rows, S the sum of k and Q of k², where a value is x
// = g·(c + k), g a power of ten and c the centre:
//
//	sum = g·(S + c·n)    avg = g·(c + S/n)    variance = g²·(Q − S²/n)/(n − 1)    covariance likewise
//
// Products are added up on a coarser grid than sums. A square is computed on a fine grid and then rounded: the square
// of a rounded value would be off by as much as its distance from the middle times the step, for which the sum, which
// is not rounded, has no counterpart. What is divided by n is NULL where n is within its own error: at the session's
// confidence noise alone may have made it. An average is moved into its column's domain, a variance to at least 0, a
// correlation into [−1, 1]: post-processing.
//
// Numeric results end with one division of exact numbers, as PostgreSQL's own aggregates do, so that they show as many
// digits as there: that number follows from the dividend and the divisor, which are computed from the released counters
// alone, and so it tells no more of the rows than they do.

// moments are the aggregates that are about distances from a mean.
var moments = semantics.WordSet("avg stddev stddev_samp stddev_pop variance var_samp var_pop")

// pairs are those over two arguments, the dependent one first.
var pairs = semantics.WordSet("corr covar_pop covar_samp regr_slope regr_intercept regr_r2 regr_count regr_avgx regr_avgy regr_sxx regr_syy regr_sxy")

// byRows reports whether sums are by rows, those of moments about the middle of a domain then; totals of units have
// clamps of their own, which suit what lies near 0.
func (g *Grouping) byRows() bool {
	t := g.Question.Table
	return g.b.Context.Settings.Contribution.ByRows(t) || !derived.CanLadder(t)
}

// known is a condition, and that sums are not NULL, which those of totals are where too few units show: LEAST and
// GREATEST would take the end of a domain for them.
func known(g *Grouping, condition string, sums ...string) string {
	if g.byRows() {
		return condition
	}
	slices.Sort(sums)
	for _, s := range slices.Compact(sums) {
		condition += " AND " + s + " IS NOT NULL"
	}
	return condition
}

// moment binds sum, avg, variance and stddev of an argument, of its different values where there are some: each row and
// sum is then one of values, which changes the counters and nothing above them.
func (g *Grouping) moment(name string, arg *semantics.Expr, where []*semantics.Expr, once *linear.DistinctValues, pos int) (*Found, *refuse.Refusal) {
	if arg.Type() == policy.IntervalT && (name == "avg" || name == "sum") {
		return nil, bind.NoAggregate.At(pos, name+" of an interval").Hinting(name + "(extract(epoch FROM x)) is in seconds, and times interval '1 second' an interval.")
	}
	if !semantics.Numeric(arg) {
		return nil, refuse.UnknownFunction.At(pos, name+"("+arg.Type().Name()+")")
	}
	centred := (moments[name] || g.centred[arg.Canon]) && g.byRows()
	arg, refusal := g.inColumns(arg)
	if refusal != nil {
		return nil, refusal
	}
	present, refusal := g.present(arg, where)
	if refusal != nil {
		return nil, refusal
	}
	x, refusal := g.value(arg, centred, once != nil, semantics.Alone, pos)
	if refusal != nil {
		return nil, refusal
	}
	typ := semantics.AggregateType(name, arg.Type())
	number := "numeric"
	if arg.Type().Floating() {
		number = "float8"
	}
	w := g.formula(number)
	if x.IsConstant() {
		return g.ofConstant(name, x, w, present, once, typ)
	}
	counter := func(sum *linear.Summand) int {
		return g.Question.Add(linear.Counter{Where: present, Sum: sum, Values: once})
	}
	s := w.Counter(counter(x.Sum()))
	if name != "sum" && g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	if name == "sum" {
		n := ""
		if x.Grid.Centre != 0 || x.Plus != nil {
			n = w.Counter(g.Question.Add(linear.Counter{Where: present, Values: once, Worth: x.Added()}))
		}
		return g.found(w.Sum(x, s, n), typ)
	}
	rows := counter(nil)
	n, clear := w.Counter(rows), known(g, w.Clear(rows, 0), s)
	if name == "avg" && number == "numeric" {
		total := w.Total(x, s, n)
		return g.found(fmt.Sprintf("CASE WHEN %[5]s THEN LEAST(%[2]s * %[1]s, GREATEST(%[3]s * %[1]s, %[4]s)) / %[1]s END", n, w.Constant(x.Most), w.Constant(x.Least), total, clear), typ)
	}
	if name == "avg" {
		return g.found(fmt.Sprintf("CASE WHEN %s THEN LEAST(%s, GREATEST(%s, %s)) END", clear, w.Constant(x.Most), w.Constant(x.Least), w.Mean(x, s, n)), typ)
	}
	fine, refusal := g.value(arg, g.byRows(), once != nil, semantics.Rounded, pos)
	if refusal != nil {
		return nil, refusal
	}
	square, exponent := fine.Square(semantics.Squared.Largest(g.Rows.Table))
	if square.Over > 1 && number == "numeric" {
		of := "an aggregate's argument"
		if fine.Times != nil {
			of += " / " + fine.Times.FloatString(6)
		}
		g.b.Notes.Add("the squares of " + of + " are rounded to " + semantics.Literal10(exponent) + " where they are added up: ± does not cover that")
	}
	q := w.Counter(counter(square))
	over := n
	if !strings.HasSuffix(name, "_pop") {
		clear, over = known(g, w.Clear(rows, 1), s), fmt.Sprintf("(%s - 1)", n)
	}
	clear = known(g, clear, q)
	if number == "numeric" {
		squares := w.Times(w.Times(w.Scaled(fmt.Sprintf("(%s::numeric * %s)", q, n), exponent), fine), fine)
		away := fmt.Sprintf("(%s - %s * %s)", w.Total(x, s, n), w.Constant(fine.Middle()), n)
		variance := fmt.Sprintf("GREATEST(0::numeric, (%s - %s * %[2]s) / (%[3]s::numeric * %[4]s))", squares, away, n, over)
		return g.found(fmt.Sprintf("CASE WHEN %s THEN %s END", clear, w.Variance(name, variance)), typ)
	}
	// Both grids are around the middle; what lies between their centres is known.
	away := fmt.Sprintf("(%s - %s)", w.Mean(x, s, n), w.Constant(fine.Middle()))
	squares := w.Times(w.Times(w.Scaled(fmt.Sprintf("(%s::%s)", q, number), exponent), fine), fine)
	variance := fmt.Sprintf("GREATEST(0::%s, (%s - %s * %[3]s * %[4]s) / %[5]s)", number, squares, away, n, over)
	return g.found(fmt.Sprintf("CASE WHEN %s THEN %s END", clear, w.Variance(name, variance)), typ)
}

// ofConstant binds an aggregate of an argument that is the same number c in each of n rows: sum(c) is c times count(*),
// avg(c) is c, and there is no variance. The sensitivity is a count's, and so is the noise, times c.
func (g *Grouping) ofConstant(name string, x *linear.Argument, w *formula.Writer, present []*semantics.Expr, once *linear.DistinctValues, typ policy.Type) (*Found, *refuse.Refusal) {
	if name == "sum" {
		rows := g.Question.Add(linear.Counter{Where: present, Values: once, Worth: new(big.Rat).Abs(x.Most)})
		n, c := w.Counter(rows), w.Written(x)
		return g.found(fmt.Sprintf("(%s::%s * %s)", n, w.Number, c), typ)
	}
	rows, least := g.Question.Add(linear.Counter{Where: present, Values: once}), 1
	if name == "avg" {
		return g.found(fmt.Sprintf("CASE WHEN %[4]s THEN (%[1]s::%[2]s * %[3]s) / %[1]s END", w.Counter(rows), w.Number, w.Written(x), w.Clear(rows, 0)), typ)
	}
	if strings.HasSuffix(name, "_pop") {
		least = 0
	}
	return g.found(fmt.Sprintf("CASE WHEN %s THEN 0::%s END", w.Clear(rows, least), w.Number), typ)
}

// pair binds corr, covar_* and regr_* of y and x.
func (g *Grouping) pair(name string, y, x *semantics.Expr, where []*semantics.Expr, pos int) (*Found, *refuse.Refusal) {
	for _, e := range []*semantics.Expr{y, x} {
		switch {
		case e.Form != semantics.FormColumn, g.Rows.Table.Columns[e.Cols[0]].Listed():
			return nil, notColumns.At(pos, name)
		case !semantics.Numeric(e):
			return nil, refuse.UnknownFunction.At(pos, name+"("+y.Type().Name()+", "+x.Type().Name()+")")
		}
	}
	present, refusal := g.present(y, where)
	if refusal == nil {
		present, refusal = g.present(x, present)
	}
	if refusal != nil {
		return nil, refusal
	}
	vy, refusal := g.value(y, g.byRows(), false, semantics.Squared, pos)
	if refusal != nil {
		return nil, refusal
	}
	vx, refusal := g.value(x, g.byRows(), false, semantics.Squared, pos)
	if refusal != nil {
		return nil, refusal
	}
	w := g.formula("float8")
	rows := g.Question.CounterFor(present)
	n := w.Counter(rows)
	if name == "regr_count" {
		return g.found(n, policy.Int8)
	}
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	var sums []string
	sum := func(s *linear.Summand) string {
		sums = append(sums, w.Counter(g.Question.SumFor(present, s)))
		return sums[len(sums)-1]
	}
	mean := func(v *linear.Argument) string { return sum(v.Sum()) + "::float8" }
	about := func(q, a, b string, exponent int) string {
		return w.Scaled(fmt.Sprintf("(%s::float8 - %s * %s / %s)", q, a, b, n), exponent)
	}
	sy, sx := mean(vy), mean(vx)
	sxx := "GREATEST(0::float8, " + about(sum(vx.OwnSquare()), sx, sx, 2*vx.Grid.Exponent) + ")"
	sxy := about(sum(linear.Product2(vy, vx)), sy, sx, vy.Grid.Exponent+vx.Grid.Exponent)
	syy := func() string {
		return "GREATEST(0::float8, " + about(sum(vy.OwnSquare()), sy, sy, 2*vy.Grid.Exponent) + ")"
	}
	avg := func(v *linear.Argument, s string) string {
		return w.Scaled(fmt.Sprintf("(%d::float8 + %s / %s)", v.Grid.Centre, s, n), v.Grid.Exponent)
	}
	slope := fmt.Sprintf("%s / NULLIF(%s, 0)", sxy, sxx)
	text, least := "", 0
	switch name {
	case "corr":
		text = fmt.Sprintf("CASE WHEN %[2]s > 0 AND %[3]s > 0 THEN LEAST(1::float8, GREATEST(-1::float8, "+
			"%[1]s / (sqrt(%[2]s) * sqrt(%[3]s)))) END", sxy, sxx, syy())
	case "regr_r2":
		text = fmt.Sprintf("CASE WHEN %[2]s > 0 AND %[3]s > 0 THEN LEAST(1::float8, %[1]s * %[1]s / (%[2]s * %[3]s)) "+
			"WHEN %[2]s > 0 THEN 1::float8 END", sxy, sxx, syy())
	case "covar_pop":
		text = fmt.Sprintf("%s / %s", sxy, n)
	case "covar_samp":
		text, least = fmt.Sprintf("%s / (%s - 1)", sxy, n), 1
	case "regr_slope":
		text = slope
	case "regr_intercept":
		text = fmt.Sprintf("%s - (%s) * %s", avg(vy, sy), slope, avg(vx, sx))
	case "regr_avgx":
		text = avg(vx, sx)
	case "regr_avgy":
		text = avg(vy, sy)
	case "regr_sxx":
		text = sxx
	case "regr_syy":
		text = syy()
	case "regr_sxy":
		text = sxy
	}
	clear := known(g, w.Clear(rows, least), sums...)
	return g.found(fmt.Sprintf("CASE WHEN %s THEN %s END", clear, text), policy.Float8)
}

// present adds the condition that an argument is not NULL.
func (g *Grouping) present(arg *semantics.Expr, where []*semantics.Expr) ([]*semantics.Expr, *refuse.Refusal) {
	if arg.IsConstant() && arg.Parameter == 0 && semantics.MustConstant(arg) != nil {
		return where, nil
	}
	if needed, filled := semantics.Needed(semantics.LinearOf(arg)); arg.Form != semantics.FormColumn && (len(needed) > 0 || filled) { // NULL where one of these columns is
		for _, at := range needed {
			var refusal *refuse.Refusal
			c := g.Rows.Table.Columns[at]
			if where, refusal = g.present(semantics.ColumnExpr(at, c.Type, c.Typmod, arg.Pos), where); refusal != nil {
				return nil, refusal
			}
		}
		return where, nil
	}
	e, refusal := (&semantics.Translator{}).Not(semantics.Node(semantics.FormIsNull, "isnull", scalar.IsNull(arg.Expr), arg.Pos, arg))
	if refusal != nil {
		return nil, refusal
	}
	return append(slices.Clone(where), e), nil
}

// formula writes SQL over the columns of the grouping's leaf.
func (g *Grouping) formula(number string) *formula.Writer {
	return &formula.Writer{Leaf: g.Leaf, Question: g.Question, Number: number}
}

// found is what such SQL says.
func (g *Grouping) found(text string, typ policy.Type) (*Found, *refuse.Refusal) {
	if g.b.Params != nil && text != "" {
		text = "(" + text + ")::" + ast.InternalNames[typ]
	}
	tree, refusal := formula.Parsed(text)
	if refusal != nil {
		return nil, refusal
	}
	return &Found{Key: -1, Counter: -1, Type: typ, Formula: tree}, nil
}

// Aggregates of intervals are arithmetic over those of numbers. Of
//
//	SELECT avg(now() - visited_at) FROM visits
//
// what is added up are seconds, and of age(now(), hired), which has months of no fixed length, months and the seconds
// beside them. PostgreSQL adds up days and times of a day apart, so that its average of 1 day 20:00 and 2 days 20:00 is
// 1 day 32:00:00; here it is 2 days 08:00:00, which is equal to it, and errs less than two sums would.

// intervalForm says how they are written.
const intervalForm = "intervals are added up by their seconds (and months), in which ± is told, and shown in days and less than a day: PostgreSQL's sums and averages are equal, and may have more than a day beside their days"

// mostOfInterval is how many months, or days, an interval can have.
const mostOfInterval = 1<<31 - 1

// addedAsInterval tells the types whose sums and averages are intervals: of times too, since midnight.
func addedAsInterval(t policy.Type) bool { return t == policy.IntervalT || t == policy.TimeT }

// totalInterval binds sum and avg of n, an interval or a time.
func (g *Grouping) totalInterval(name string, n *pg.Node, typ policy.Type, where []*semantics.Expr, t *semantics.Translator, pos int) (*Found, *refuse.Refusal) {
	of := func(value *pg.Node) (string, *refuse.Refusal) {
		found, refusal := g.momentOf(name, value, where, t, pos)
		if refusal != nil {
			return "", refusal
		}
		return g.textOf(found), nil
	}
	months, rest := partsOf(n)
	if seconds := g.secondsOf(n); seconds != nil {
		months, rest = nil, seconds
	} else if typ == policy.TimeT {
		months, rest = nil, field("epoch", n)
	}
	seconds, refusal := of(rest)
	if refusal != nil {
		return nil, refusal
	}
	g.b.Notes.Add(intervalForm)
	if name == "avg" {
		text := seconds + " * interval '1 second'"
		if months != nil {
			m, refusal := of(months)
			if refusal != nil {
				return nil, refusal
			}
			text = m + " * interval '1 month' + " + text
		}
		return g.found("justify_hours("+text+")", policy.IntervalT)
	}
	// What an interval cannot have, where PostgreSQL's sum fails, is NULL: it has been paid for.
	text := fmt.Sprintf("div(%[1]s, 86400) * interval '1 day' + mod(%[1]s, 86400) * interval '1 second'", seconds)
	fits := fmt.Sprintf("abs(div(%s, 86400)) <= %d", seconds, mostOfInterval)
	if months != nil {
		m, refusal := of(months)
		if refusal != nil {
			return nil, refusal
		}
		text, fits = m+" * interval '1 month' + "+text, fmt.Sprintf("%s AND abs(%s) <= %d", fits, m, mostOfInterval)
	}
	return g.found(fmt.Sprintf("CASE WHEN %s THEN %s END", fits, text), policy.IntervalT)
}

// chosenInterval binds a quantile, an extreme or the most frequent one of intervals between two moments, as that of
// their seconds, which have the same order. PostgreSQL writes such an interval in days and less than a day too. Nil:
// the argument is another.
func (g *Grouping) chosenInterval(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	seconds := &pg.FuncCall{Funcname: f.Funcname, Args: f.Args, AggOrder: f.AggOrder, AggFilter: f.AggFilter, AggWithinGroup: f.AggWithinGroup, Location: f.Location}
	switch {
	case f.AggWithinGroup && len(f.AggOrder) == 1:
		by := f.AggOrder[0].GetSortBy()
		own := &pg.SortBy{Node: g.secondsOf(by.Node), SortbyDir: by.SortbyDir, SortbyNulls: by.SortbyNulls, UseOp: by.UseOp, Location: by.Location}
		if own.Node == nil {
			return nil, nil
		}
		seconds.AggOrder = []*pg.Node{{Node: &pg.Node_SortBy{SortBy: own}}}
	case !f.AggWithinGroup && len(f.Args) == 1:
		own := g.secondsOf(f.Args[0])
		if own == nil {
			return nil, nil
		}
		seconds.Args = []*pg.Node{own}
	default:
		return nil, nil
	}
	chosen, refusal := g.selected(name, seconds)
	if refusal != nil {
		return nil, refusal
	}
	if chosen.Counter < 0 {
		return nil, bind.NoAggregate.At(int(f.Location), name+" of intervals, with several shares at once,")
	}
	return g.found("justify_hours("+g.formula("").Counter(chosen.Counter)+" * interval '1 second')", policy.IntervalT)
}

// secondsOf is an interval as its seconds, where it is what lies between two moments, or is made of such: of
// coalesce(2 * (returned - rented), '1 day') it is coalesce(2 * extract(epoch FROM returned - rented), extract(epoch
// FROM interval '1 day')). Nil: it may have months.
func (g *Grouping) secondsOf(n *pg.Node) *pg.Node {
	if seconds, elapsed := g.inSeconds(n); elapsed {
		return seconds
	}
	return nil
}

// inSeconds is an interval as its seconds, and whether something in it lies between two moments: a constant does not.
func (g *Grouping) inSeconds(n *pg.Node) (seconds *pg.Node, elapsed bool) {
	e, refusal := g.Below("an aggregate").Expr(n)
	switch {
	case refusal != nil:
		return nil, false
	case semantics.Elapsed(e):
		return field("epoch", n), true
	case e.IsConstant() && e.Parameter == 0:
		return g.constantSeconds(e, n), false
	case n.GetAExpr().GetKind() == pg.A_Expr_Kind_AEXPR_OP:
		return g.operatedSeconds(n.GetAExpr())
	case n.GetCoalesceExpr() != nil:
		args, elapsed := g.allInSeconds(n.GetCoalesceExpr().Args)
		if args == nil {
			return nil, false
		}
		return &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: args, Location: n.GetCoalesceExpr().Location}}}, elapsed
	}
	return nil, false
}

func (g *Grouping) allInSeconds(nodes []*pg.Node) (out []*pg.Node, elapsed bool) {
	for _, n := range nodes {
		seconds, between := g.inSeconds(n)
		if seconds == nil {
			return nil, false
		}
		out, elapsed = append(out, seconds), elapsed || between
	}
	return out, elapsed
}

// constantSeconds are those of an interval without months; nil means it is another constant.
func (g *Grouping) constantSeconds(e *semantics.Expr, n *pg.Node) *pg.Node {
	interval, err := g.b.Env.Coerce(e.Expr, policy.IntervalT)
	if err != nil {
		return nil
	}
	if v, err := interval.Eval(nil); err != nil || v != nil && v.(policy.Interval).Months != 0 {
		return nil
	}
	return field("epoch", ast.CastTo(n, policy.IntervalT, -1))
}

// operatedSeconds are those of -x, x + y, x - y, and of x times a constant number, or parted by one.
func (g *Grouping) operatedSeconds(a *pg.A_Expr) (*pg.Node, bool) {
	op := ast.Strings(a.Name)[len(a.Name)-1]
	if a.Lexpr == nil && op == "-" {
		x, elapsed := g.inSeconds(a.Rexpr)
		if x == nil {
			return nil, false
		}
		return operator(op, nil, x), elapsed
	}
	if op == "+" || op == "-" {
		parts, elapsed := g.allInSeconds([]*pg.Node{a.Lexpr, a.Rexpr})
		if parts == nil {
			return nil, false
		}
		return operator(op, parts[0], parts[1]), elapsed
	}
	x, by := a.Lexpr, a.Rexpr
	if op == "*" && g.isNumber(x) {
		x, by = by, x
	}
	if op != "*" && op != "/" || !g.isNumber(by) {
		return nil, false
	}
	seconds, elapsed := g.inSeconds(x)
	if seconds == nil {
		return nil, false
	}
	return operator(op, seconds, by), elapsed
}

// isNumber tells a constant number.
func (g *Grouping) isNumber(n *pg.Node) bool {
	e, refusal := g.Below("an aggregate").Expr(n)
	return refusal == nil && e.IsConstant() && e.Parameter == 0 && (e.Type().Integer() || e.Type() == policy.NumericType)
}

// partsOf are the months of an interval, and the seconds beside them.
func partsOf(n *pg.Node) (months, seconds *pg.Node) {
	months = sumOf(times(field("year", n), 12), field("month", n))
	hours := sumOf(times(field("day", n), 24), field("hour", n))
	return months, sumOf(times(sumOf(times(hours, 60), field("minute", n)), 60), field("second", n))
}

// field is extract(name FROM n).
func field(name string, n *pg.Node) *pg.Node {
	at := int32(ast.Location(n))
	return pg.MakeFuncCallNode([]*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("extract")}, []*pg.Node{pg.MakeAConstStrNode(name, at), n}, at)
}

func times(n *pg.Node, by int64) *pg.Node { return operator("*", n, pg.MakeAConstIntNode(by, -1)) }

func sumOf(a, b *pg.Node) *pg.Node { return operator("+", a, b) }

func operator(name string, left, right *pg.Node) *pg.Node {
	return pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode(name)}, left, right, -1)
}

// textOf is the SQL of what was found, in parentheses.
func (g *Grouping) textOf(f *Found) string {
	if f.Counter >= 0 {
		return g.formula("").Counter(f.Counter)
	}
	return "(" + ast.DeparsedExpr(f.Formula) + ")"
}
