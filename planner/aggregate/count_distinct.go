package aggregate

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The number of different values of a column with few declared ones is lost in its own noise: of five regions ε 0.1
// makes 1, or
// 30. The rows of each value, which GROUP BY counts at the same cost, are not. So
//
//	SELECT count(DISTINCT region) FROM people
//
// is answered as the number of regions whose count is above a threshold, twice its half-width, which is public: noise
// alone hardly ever makes a value of no rows that large, and a value of more rows than twice the threshold is hardly
// ever missed. One with fewer rows than the threshold may be, and a notice says so. The values are those that the
// policy declares, so what is done with their released counts is post-processing. Where noise vanishes the number
// itself is counted, as for columns of many values (docs/adr/0074).

// What is made of the different values, sum, avg, variance and stddev (DISTINCT rating), is made of those that are
// present so. With N of them, S their sum and Q that of their squares:
//
//	sum = S    avg = S/N    variance = (N·Q − S²)/(N·(N − 1))

// maxPresent bounds the cells of a column whose values are counted one by one: a leaf plan splits by so many
// conditions.
const maxPresent = 64

// presence counts the values of a column that enough rows have; nil means their number is to be counted as it is.
func (g *Grouping) presence(arg *pg.Node, e *semantics.Expr, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	present, refusal := g.presentValues(arg, e, where, t, func(d *policy.Domain) int { return d.Regular })
	if present == nil || refusal != nil {
		return nil, refusal
	}
	d := g.Rows.Table.Columns[e.Cols[0]].Domain
	if len(present) > d.Regular {
		g.b.Notes.Add("values of " + g.Rows.Table.Columns[e.Cols[0]].Name + " outside its domain count as one")
	}
	return g.found(added(present, func(int) string { return "1" }), policy.Int8)
}

// added adds up a number for each value that is present, by its cell.
func added(present []string, number func(cell int) string) string {
	terms := make([]string, len(present))
	for cell, is := range present {
		terms[cell] = "CASE WHEN " + is + " THEN " + number(cell) + " ELSE 0 END"
	}
	return strings.Join(terms, " + ")
}

// presentMoment is sum, avg, variance or stddev of the different numbers of a column that enough rows have; nil means
// see presence.
func (g *Grouping) presentMoment(name string, arg *pg.Node, e *semantics.Expr, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	if !semantics.Numeric(e) {
		return nil, nil
	}
	present, refusal := g.presentValues(arg, e, where, t, largestValues)
	if present == nil || refusal != nil {
		return nil, refusal
	}
	c := g.Rows.Table.Columns[e.Cols[0]]
	w := g.formula("numeric")
	if e.Type().Floating() {
		w.Number = "float8"
	}
	number := func(cell int) string { return "'" + policy.FormatValue(c.Type, c.Domain.Low(cell)) + "'::" + w.Number }
	present = present[:c.Domain.Regular] // what is outside the domain is no number
	n := added(present, func(int) string { return "1" })
	s := added(present, number)
	typ := semantics.AggregateType(name, e.Type())
	switch name {
	case "sum":
		return g.found(s, typ)
	case "avg":
		return g.found(fmt.Sprintf("(%s)::%s / NULLIF(%s, 0)", s, w.Number, n), typ)
	}
	over := n
	if !strings.HasSuffix(name, "_pop") {
		over += " - 1"
	}
	q := added(present, func(cell int) string { return number(cell) + " * " + number(cell) })
	variance := fmt.Sprintf("(((%[1]s) * (%[2]s) - (%[3]s) * (%[3]s))::%[5]s / NULLIF((%[1]s) * (%[4]s), 0))", n, q, s, over, w.Number)
	return g.found(w.Variance(name, variance), typ)
}

// largestValues is how many of a domain's largest numbers are as much as all of them together: what the noise of their
// sum, which is made for the largest, is held against.
func largestValues(d *policy.Domain) int {
	all, most := new(big.Rat), new(big.Rat)
	for cell := range d.Regular {
		if x, ok := derived.RatOf(d.Low(cell)); ok {
			all.Add(all, x.Abs(x))
			if x.Cmp(most) > 0 {
				most = x
			}
		}
	}
	if most.Sign() == 0 {
		return 0
	}
	n := new(big.Rat).Quo(all, most)
	return int(new(big.Int).Quo(n.Num(), n.Denom()).Int64())
}

// presentValues are conditions by cell of a column: that enough rows have its value. Nil: there are too many values, or
// so many, size, that the noise of their number matters less.
func (g *Grouping) presentValues(arg *pg.Node, e *semantics.Expr, where []*semantics.Expr, t *semantics.Translator, size func(*policy.Domain) int) ([]string, *refuse.Refusal) {
	if e.Form != semantics.FormColumn {
		return nil, nil
	}
	c := g.Rows.Table.Columns[e.Cols[0]]
	d := c.Domain
	if c.Open != nil || d == nil || !d.Single() || d.Size() > maxPresent || !g.b.Context.LostInNoise(g.Rows.Table, size(d)) {
		return nil, nil
	}
	cells := d.Regular
	if d.Other >= d.Regular && !c.Hide {
		cells++
	}
	w := g.formula("")
	terms := make([]string, cells)
	for cell := range cells {
		literal := pg.MakeAConstStrNode(policy.FormatValue(c.Type, d.Low(cell)), int32(e.Pos))
		is, refusal := t.Condition(pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, arg, literal, int32(e.Pos)), "count")
		if refusal != nil {
			return nil, refusal
		}
		n := g.Question.Add(linear.Counter{Where: append(where[:len(where):len(where)], is)})
		g.Question.Counters[n].Presence = e.Canon
		terms[cell] = w.Counter(n) + " > " + w.Counter(g.Question.WidthOf(n, linear.OfValues))
	}
	return terms, nil
}

// Present has a group be a row only where more rows are in it than their error, or twice the error, is: a set operation
// over groups, which no count is shown beside, would else be one of those that are declared, as would their number.
func (g *Grouping) Present(by linear.WidthUse) {
	above(g, g.Question.CounterFor(nil), by)
}

// above has a group be a row only where a counter is above its half-width, as a use has it.
func above(g *Grouping, n int, by linear.WidthUse) {
	w := g.formula("")
	is, refusal := g.found(w.Counter(n)+" > "+w.Counter(g.Question.WidthOf(n, by)), policy.Bool)
	if refusal == nil { // the text is ours
		condition := pg.MakeAConstStrNode("true", -1) // of which given says what it is
		g.given[condition], g.occupied = is, append(g.occupied, condition)
	}
}

// declaredEnd is the least or the largest value of a column whose ends the policy gives for those of its rows,
// which are not looked at; nil means it is another's.
func (g *Grouping) declaredEnd(name string, f *pg.FuncCall) (*Found, *refuse.Refusal) {
	if name != "min" && name != "max" || len(f.Args) != 1 || f.AggStar || f.AggWithinGroup || f.FuncVariadic {
		return nil, nil
	}
	e, refusal := g.Below("an aggregate").Expr(f.Args[0])
	if refusal != nil || e.Form != semantics.FormColumn {
		return nil, nil // what is wrong with it is reported when it is bound
	}
	c := g.Rows.Table.Columns[e.Cols[0]]
	if !c.Ends || c.Domain == nil || !c.Domain.Ordered() {
		return nil, nil
	}
	end := c.Domain.Min
	if name == "max" {
		end = c.Domain.Max
	}
	g.b.Notes.Add("min and max of " + c.Name + " are the ends of the domain that the policy declares, whatever rows there are")
	return g.found("'"+policy.FormatValue(c.Type, end)+"'::"+c.Type.Format(c.Typmod), c.Type)
}

// Aggregates of different values. SELECT count(DISTINCT person_id) FROM visits counts units, of which each is in one
// row of a derived table; SELECT count(DISTINCT city) FROM people counts those of the declared values that have rows,
// and SELECT sum(DISTINCT age) FROM people adds them up.

func (g *Grouping) different(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	pos := int(f.Location)
	switch {
	case pairs[name] && len(f.Args) == 2 && !f.FuncVariadic:
		return nil, noDistinct.At(pos, name)
	case name == "count" && len(f.Args) > 1:
		return nil, refuse.UnknownFunction.At(pos, name).Hinting("Count different rows of columns: count(DISTINCT (a, b)).")
	case len(f.Args) != 1 || f.FuncVariadic:
		return nil, refuse.UnknownFunction.At(pos, name)
	case name != "count":
		return g.differentNumbers(name, f, where, t)
	}
	arg, where, refusal := g.taken(f.Args[0], where, t)
	if refusal != nil {
		return nil, refusal
	}
	if k, _ := g.Rows.KeyNode(arg); k != nil && g.Rows.IsKeyOnly(arg) {
		return g.differentKeys(k, where, pos)
	}
	v := &linear.DistinctValues{}
	list := []*pg.Node{arg}
	if r := arg.GetRowExpr(); r != nil {
		list, v.Row = r.Args, true
	}
	for _, n := range list {
		if k, _ := g.Rows.KeyNode(n); k != nil && v.Row && g.Rows.IsKeyOnly(n) {
			return nil, distinctRow.At(ast.Location(n), k.Name)
		}
		e, refusal := t.Expr(n)
		if refusal != nil {
			return nil, refusal
		}
		v.Of = append(v.Of, t.Settler.Settled(e))
	}
	if !v.Row {
		if found, refusal := g.presence(arg, v.Of[0], where, t); found != nil || refusal != nil {
			return found, refusal
		}
	}
	if !v.Row && v.Of[0].IsConstant() {
		if _, refusal := v.Of[0].Value(nil); refusal != nil {
			return nil, refusal
		}
	}
	if !v.Row && v.Of[0].IsConstant() && !g.b.Params.Describing && semantics.MustConstant(v.Of[0]) == nil {
		where = append(where, semantics.ConstantExpr(false, policy.Bool, pos))
	}
	return &Found{Key: -1, Counter: g.Question.Add(linear.Counter{Where: where, Values: v}), Type: policy.Int8}, nil
}

// differentNumbers binds sum, avg, variance and stddev of different values.
func (g *Grouping) differentNumbers(name string, f *pg.FuncCall, where []*semantics.Expr, t *semantics.Translator) (*Found, *refuse.Refusal) {
	arg, where, refusal := g.taken(f.Args[0], where, t)
	if refusal != nil {
		return nil, refusal
	}
	e, refusal := t.Expr(arg)
	if refusal != nil {
		return nil, refusal
	}
	if found, refusal := g.presentMoment(name, arg, e, where, t); found != nil || refusal != nil {
		return found, refusal
	}
	return g.moment(name, e, where, &linear.DistinctValues{Of: []*semantics.Expr{t.Settler.Settled(e)}}, int(f.Location))
}

// taken reads count(DISTINCT CASE WHEN p THEN x END), which is count(DISTINCT x) FILTER (WHERE p).
func (g *Grouping) taken(n *pg.Node, where []*semantics.Expr, t *semantics.Translator) (*pg.Node, []*semantics.Expr, *refuse.Refusal) {
	c := n.GetCaseExpr()
	if c == nil || c.Arg != nil || len(c.Args) != 1 || c.Defresult != nil && !c.Defresult.GetAConst().GetIsnull() {
		return n, where, nil
	}
	w := c.Args[0].GetCaseWhen()
	e, refusal := t.Condition(w.Expr, "CASE/WHEN")
	if refusal != nil {
		return nil, nil, refusal
	}
	return w.Result, append(slices.Clone(where), linear.Conjuncts([]*semantics.Expr{e})...), nil
}

// differentKeys counts different units, or values of another join key within each. Where a unit has one row they are
// rows.
func (g *Grouping) differentKeys(k *linear.Key, where []*semantics.Expr, pos int) (*Found, *refuse.Refusal) {
	if present := g.Rows.Present(k, pos); !present.IsConstant() {
		where = append(where, present)
	}
	c := linear.Counter{Where: where, Units: &linear.Units{}}
	switch {
	case g.Rows.KeyColumn(k).Unit && g.Rows.Table.MaxRowsPerUnit == 1:
		c.Units = nil
	case !g.Rows.KeyColumn(k).Unit:
		g.b.LeavesOut(g.Rows.Table, "different "+k.Name+" are counted")
		c.Units.Key = k
	}
	return &Found{Key: -1, Counter: g.Question.Add(c), Type: policy.Int8}, nil
}
