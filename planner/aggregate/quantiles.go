package aggregate

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/formula"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Quantiles and the most frequent value do not add up: they are chosen among the cells of their argument, in each
// group. A grouping asks for them by choiceSets, one for each argument and condition, which are solved as questions of
// their own (package choose); the leaf shows them in the places of counters.

// selections are the aggregates that are choices.
var selections = semantics.WordSet("percentile_cont percentile_disc median mode min max")

// selected binds percentile_cont, percentile_disc, median, mode, min and max.
func (g *Grouping) selected(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	if name == "median" {
		written, refusal := medianWritten(f)
		if refusal != nil {
			return nil, refusal
		}
		name, f = "percentile_cont", written
	}
	if same, refusal := g.sameInAll(name, f); same != nil || refusal != nil {
		return same, refusal
	}
	if end, refusal := g.declaredEnd(name, f); end != nil || refusal != nil {
		return end, refusal
	}
	if between, refusal := g.chosenInterval(name, f); between != nil || refusal != nil {
		return between, refusal
	}
	arg, descending, refusal := g.selectedArgument(name, f)
	if refusal != nil {
		return nil, refusal
	}
	if g.Question.UnknownError == nil {
		g.Question.UnknownError = &linear.UnknownError{Name: name, Pos: pos}
	}
	where, refusal := bind.FilterOf(f, g.Below("FILTER"))
	if refusal == nil {
		where, refusal = g.present(arg, where)
	}
	if refusal != nil {
		return nil, refusal
	}
	if name == "mode" {
		typ := arg.Type()
		return g.selectionFor(mechanisms.Largest, arg, where, mechanisms.Share{}, typ, false), nil
	}
	if refusal := rankable(name, arg, pos); refusal != nil {
		return nil, refusal
	}
	typ, between := arg.Type(), false
	if name == "percentile_cont" {
		typ, between = policy.Float8, true
	}
	shares, array, refusal := g.shares(name, f)
	if refusal != nil {
		return nil, refusal
	}
	var columns []string
	var last *Found
	for _, share := range shares {
		if descending {
			share.Num = share.Den - share.Num
		}
		if share.Num == 0 || share.Num == share.Den {
			if refusal := g.permitted(name, f, arg); refusal != nil {
				return nil, refusal
			}
		}
		last = g.selectionFor(mechanisms.Quantiles, arg, where, share, typ, between)
		columns = append(columns, g.formula("").Counter(last.Counter))
	}
	if !array {
		return last, nil
	}
	tree, refusal := formula.Parsed("ARRAY[" + strings.Join(columns, ", ") + "]")
	if refusal != nil {
		return nil, refusal
	}
	return &Found{Key: -1, Counter: -1, Type: typ, Formula: tree}, nil
}

// medianWritten is median(x), which other databases have, as PostgreSQL writes it: percentile_cont(0.5) WITHIN GROUP
// (ORDER BY x).
func medianWritten(f *pg.FuncCall) (*pg.FuncCall, *refuse.Refusal) {
	if len(f.Args) != 1 || f.AggStar || f.AggDistinct || f.AggWithinGroup || f.FuncVariadic || len(f.AggOrder) > 0 {
		return nil, refuse.UnknownFunction.At(int(f.Location), "median").Hinting("The median of x is median(x), or percentile_cont(0.5) WITHIN GROUP (ORDER BY x).")
	}
	half := &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: &pg.A_Const_Fval{Fval: &pg.Float{Fval: "0.5"}}, Location: f.Location}}}
	by := &pg.Node{Node: &pg.Node_SortBy{SortBy: &pg.SortBy{Node: f.Args[0], SortbyDir: pg.SortByDir_SORTBY_DEFAULT, SortbyNulls: pg.SortByNulls_SORTBY_NULLS_DEFAULT, Location: f.Location}}}
	return &pg.FuncCall{Args: []*pg.Node{half}, AggOrder: []*pg.Node{by}, AggFilter: f.AggFilter, AggWithinGroup: true, Location: f.Location}, nil
}

// sameInAll is the least or largest of a number that is the same in all rows of a group: a constant, or what the rows
// are grouped by. Nil: the argument is none.
func (g *Grouping) sameInAll(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	if name != "min" && name != "max" || len(f.Args) != 1 || f.AggFilter != nil || f.AggStar || f.AggWithinGroup {
		return nil, nil
	}
	arg, refusal := g.Below("an aggregate").Expr(f.Args[0])
	if refusal != nil {
		return nil, nil
	}
	if k, known := g.keyAt[arg.Canon]; known && (arg.Type().Textual() || rankable(name, arg, 0) == nil) && !slices.ContainsFunc(g.Question.Sets, func(s linear.Set) bool { return !slices.Contains(s, k) }) {
		return &Found{Key: k, Counter: -1, Type: arg.Type()}, nil
	}
	return g.constant(arg)
}

// constant is the value of a constant, or nil where the expression is none that is known.
func (g *Grouping) constant(arg *semantics.Expr) (*Found, *refuse.Refusal) {
	if !arg.IsConstant() || arg.Parameter > 0 {
		return nil, nil // what is wrong with it is reported when it is bound
	}
	v, refusal := arg.Value(nil)
	if refusal != nil {
		return nil, refusal
	}
	if t := arg.Type(); v != nil && (t.Moment() || t == policy.TimeT) {
		return g.found("'"+policy.FormatValue(t, v)+"'::"+t.Format(-1), t)
	}
	x, ok := derived.RatOf(v)
	if !ok {
		return nil, nil
	}
	w := g.formula("numeric")
	return g.found(w.Constant(x), arg.Type())
}

// selectedArgument is what is ordered, and whether from the largest on.
func (g *Grouping) selectedArgument(name string, f *pg.FuncCall) (arg *semantics.Expr, descending bool, refusal *refuse.Refusal) {
	pos := int(f.Location)
	t := g.Below("an aggregate")
	if name == "min" || name == "max" {
		if len(f.Args) != 1 || f.AggWithinGroup || f.AggStar || f.FuncVariadic {
			return nil, false, refuse.UnknownFunction.At(pos, name)
		}
		arg, refusal = t.Expr(f.Args[0])
	} else {
		direct := 1
		if name == "mode" {
			direct = 0
		}
		if !f.AggWithinGroup || len(f.Args) != direct || len(f.AggOrder) != 1 || f.FuncVariadic {
			return nil, false, refuse.UnknownFunction.At(pos, name).Hinting(name + " is written with WITHIN GROUP: percentile_cont(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x).")
		}
		by := f.AggOrder[0].GetSortBy()
		if len(by.UseOp) > 0 {
			return nil, false, refuse.Construct.At(pos, "ORDER BY USING")
		}
		descending = by.SortbyDir == pg.SortByDir_SORTBY_DESC
		arg, refusal = t.Expr(by.Node)
	}
	if refusal != nil {
		return nil, false, refusal
	}
	if arg = t.Settler.Settled(arg); arg.IsConstant() {
		return nil, false, bind.NoAggregate.At(pos, name+" of a constant")
	}
	return arg, descending, nil
}

// rankable refuses arguments whose values are not declared in an order that PostgreSQL has too.
func rankable(name string, arg *semantics.Expr, pos int) *refuse.Refusal {
	switch t := arg.Type(); {
	case semantics.Numeric(arg):
		return nil
	case name == "percentile_cont" && t == policy.TimeT:
		return notRanked.At(pos, name, t.Name()).Hinting("percentile_disc takes times too: percentile_disc(0.5) WITHIN GROUP (ORDER BY date_trunc('hour', at)::time).")
	case name == "percentile_cont" && t != policy.IntervalT:
		return refuse.UnknownFunction.At(pos, "percentile_cont(double precision, "+t.Name()+")").Hinting("percentile_disc takes dates and times too.")
	case t.Moment() || t == policy.TimeT:
		return nil
	default:
		return notRanked.At(pos, name, t.Name())
	}
}

// permitted refuses extremes that the policy does not permit. A column is called as the statement calls it: that of a
// sub-query has another name below.
func (g *Grouping) permitted(name string, f *pg.FuncCall, arg *semantics.Expr) *refuse.Refusal {
	for _, at := range arg.Cols {
		if c := g.Rows.Table.Columns[at]; !c.Extreme {
			called := c.Name
			if fields := ast.Strings(FirstColumn(f)); len(fields) > 0 {
				called = strings.Join(fields, ".")
			}
			return noExtremes.At(int(f.Location), name, called)
		}
	}
	g.b.Notes.Add("min and max are extreme quantiles here: about where the outermost rows lie, never an outermost row itself")
	return nil
}

// shares reads the direct argument: a constant, or an array of constants.
func (g *Grouping) shares(name string, f *pg.FuncCall) (shares []mechanisms.Share, array bool, refusal *refuse.Refusal) {
	switch name {
	case "min":
		return []mechanisms.Share{{Num: 0, Den: 1}}, false, nil
	case "max":
		return []mechanisms.Share{{Num: 1, Den: 1}}, false, nil
	}
	n := f.Args[0]
	pos := ast.Location(n)
	if cast := n.GetTypeCast(); cast != nil && (cast.Arg.GetAArrayExpr() != nil || len(cast.TypeName.GetArrayBounds()) > 0) {
		n = cast.Arg
	}
	items := []*pg.Node{n}
	if list := n.GetAArrayExpr(); list != nil {
		items, array = list.Elements, true
	} else if c := n.GetAConst(); c != nil && strings.HasPrefix(strings.TrimSpace(c.GetSval().GetSval()), "{") {
		values, ok := ast.SplitArray(c.GetSval().GetSval())
		if !ok {
			return nil, false, notShare.At(pos)
		}
		items, array = nil, true
		for _, v := range values {
			text, _ := v.(string)
			items = append(items, pg.MakeAConstStrNode(text, int32(pos)))
		}
	}
	for _, item := range items {
		share, refusal := g.share(item)
		if refusal != nil {
			return nil, false, refusal
		}
		shares = append(shares, share)
	}
	if len(shares) == 0 {
		return nil, false, notShare.At(pos)
	}
	return shares, array, nil
}

// share reads a constant from 0 to 1.
func (g *Grouping) share(n *pg.Node) (mechanisms.Share, *refuse.Refusal) {
	var none mechanisms.Share
	e, refusal := (&semantics.Translator{Env: g.b.Env, Params: g.b.Params, Place: "a quantile"}).Expr(n)
	if refusal != nil || !e.IsConstant() {
		return none, notShare.At(ast.Location(n))
	}
	g.b.Params.Note(e, policy.Float8)
	if e.Parameter > 0 {
		return mechanisms.Share{Num: 1, Den: 2}, nil // its value is not there yet
	}
	v, refusal := bind.ConstantAs(g.b.Env, e, policy.Float8, ast.Location(n))
	if refusal != nil {
		return none, refusal
	}
	x, ok := v.(float64)
	r, whole := new(big.Rat), false
	if ok {
		r, whole = r.SetString(strconv.FormatFloat(x, 'f', -1, 64))
	}
	if !ok || !whole {
		return none, notShare.At(ast.Location(n))
	}
	if r.Sign() < 0 || r.Cmp(big.NewRat(1, 1)) > 0 {
		return none, shareRange.At(ast.Location(n), strconv.FormatFloat(x, 'g', -1, 64))
	}
	if r.Denom().Cmp(big.NewInt(mechanisms.MaxShare)) > 0 {
		return none, notShare.At(ast.Location(n))
	}
	return mechanisms.Share{Num: r.Num().Int64(), Den: r.Denom().Int64()}, nil
}

// selectionFor returns the leaf's column of a choice, adding it at first use.
func (g *Grouping) selectionFor(kind mechanisms.ChoiceKind, arg *semantics.Expr, where []*semantics.Expr, share mechanisms.Share, typ policy.Type, between bool) *Found {
	canon := fmt.Sprintf("choice %d of %s where %s", kind, arg.Canon, linear.WhereText(where))
	set := slices.IndexFunc(g.Question.Choices, func(s *linear.ChoiceSet) bool { return s.Canon == canon })
	if set < 0 {
		set = len(g.Question.Choices)
		g.Question.Choices = append(g.Question.Choices, &linear.ChoiceSet{Kind: kind, Arg: arg, Where: where, Canon: canon})
	}
	own := &linear.Choice{Set: set, Between: between, Typ: typ, Typmod: -1}
	if typ == policy.Bpchar {
		own.Typmod = arg.Typmod()
	}
	if s := g.Question.Choices[set]; kind == mechanisms.Quantiles {
		if own.At = slices.Index(s.Shares, share); own.At < 0 {
			own.At, s.Shares = len(s.Shares), append(s.Shares, share)
		}
	}
	canon = fmt.Sprintf("%s at %d %t", canon, own.At, between)
	at := slices.IndexFunc(g.Question.Counters, func(c linear.Counter) bool { return c.Canon == canon })
	if at < 0 {
		at = len(g.Question.Counters)
		g.Question.Counters = append(g.Question.Counters, linear.Counter{Choice: own, Canon: canon})
	}
	return &Found{Key: -1, Counter: at, Type: typ, typmod: own.Typmod, choice: true}
}

// FirstColumn are the words of the column that is an aggregate's only argument; none where it is another expression.
func FirstColumn(f *pg.FuncCall) []*pg.Node {
	if len(f.Args) != 1 {
		return nil
	}
	return f.Args[0].GetColumnRef().GetFields()
}
