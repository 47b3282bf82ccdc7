package aggregate

import (
	"fmt"

	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// The argument of a sum. sum(income) adds up whole numbers of a column's grid in the database; of sum(2 * income + 3)
// the values are computed here, on each cell. One argument is placed on a grid once, however many aggregates of it a
// SELECT has.

// inColumns is an argument as a sum of products of columns, where it is not one of their cells that can be looked at
// together: what it looks up, or makes of few columns, is listed (lookup/tabulated.go). Any other is as it is.
func (g *Grouping) inColumns(arg *semantics.Expr) (*semantics.Expr, *refuse.Refusal) {
	r := g.Rows
	if len(arg.Cols) < 2 || r.MeetsList() || g.b.AsWritten || semantics.LinearOf(arg) != nil || semantics.Seen(r.Table, arg.Cols) {
		return arg, nil
	}
	x := g.lists.Again(g.b.Env, r.Table)
	e, refusal := x.Sum(arg)
	if e == nil || refusal != nil || semantics.LinearOf(e) == nil {
		return arg, refusal
	}
	if g.lists = x; x.Table != r.Table {
		r.Become(x.Table)
	}
	return e, nil
}

// value puts an argument on its grid: a bare column on one that the database computes, an expression on that of its
// cells. What is averaged is added up from its middle, be it a column, a product or a sum: avg(2 * a + 3) errs by twice
// what avg(a) does. Different values are distinguished by cells, so theirs are the cells' values: byCells.
func (g *Grouping) value(arg *semantics.Expr, centred, byCells bool, u semantics.Use, pos int) (*linear.Argument, *refuse.Refusal) {
	largest := u.Largest(g.Rows.Table)
	key := fmt.Sprint(centred, byCells, u, largest, arg.Canon)
	if v := g.values[key]; v != nil {
		return v, nil
	}
	v := &linear.Argument{Arg: arg, Digits: semantics.DecimalsIn(arg, g.Rows.Table), Centred: centred, Use: u, Largest: largest, ByCells: byCells}
	if refusal := v.Place(g.Rows.Table, g.b.Env, pos, &g.b.Notes); refusal != nil {
		return nil, refusal
	}
	if g.values == nil {
		g.values = map[string]*linear.Argument{}
	}
	g.values[key] = v
	return v, nil
}
