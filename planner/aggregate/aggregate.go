// Package aggregate binds the SELECTs that aggregate private rows: the items of GROUP BY become keys, and aggregates
// become counters, of a question (package linear). The rows are package bind's, and what is above the question is
// package outerquery's. Of
//
//	SELECT age / 10, avg(income) FROM people WHERE active GROUP BY 1 HAVING count(*) > 5
//
// the question has the key age / 10 (group.go) and two counters, of rows and of their incomes added up; avg(income) is
// SQL over both (moments.go), which HAVING and the SELECT around it read as columns of leaf_1.
package aggregate

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Binder binds the SELECTs of one statement that aggregate private rows; Questions are what they ask.
type Binder struct {
	bind.Binder // of the rows
	Questions   []*linear.Question
	Groups      map[*pg.SelectStmt]*Grouping // each is bound once
	Occupied    map[*pg.SelectStmt]bool      // groups of these are rows only where somebody seems to be in them
}

func NewBinder(c reuse.Context, params *semantics.Parameters) *Binder {
	return &Binder{Binder: bind.NewBinder(c, params), Groups: map[*pg.SelectStmt]*Grouping{}}
}

// AnswerNothingFirst is for a statement of a batch, all of which is asked at once: WHERE income > (SELECT avg(income)
// FROM people) is refused in it.
func (b *Binder) AnswerNothingFirst() {
	b.Inner = func(_ *pg.SelectStmt, use bind.Use) (*plans.Answer, *refuse.Refusal) {
		if use == bind.Explored {
			return nil, nil
		}
		return nil, refuse.Construct.At(-1, "a sub-query that is answered before its statement")
	}
}

// Forget drops the questions from a number on, which what was refused has asked.
func (b *Binder) Forget(from int) {
	b.Questions = b.Questions[:from]
	for sel, g := range b.Groups {
		if g.Leaf >= from {
			delete(b.Groups, sel)
		}
	}
}

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

// What to write instead. SELECT any_value(city) FROM people WHERE age > 30 is refused, and its hint is the SELECT that
// is answered: SELECT mode() WITHIN GROUP (ORDER BY city) FROM people WHERE age > 30. A hint that holds a statement
// works when it is pasted, so it is made of the statement that was refused, or, where that has no one answer, names no
// statement.

// written is an expression over the rows as text; empty means it cannot be, or is refused for a reason of its own.
func (g *Grouping) written(n *pg.Node) string {
	if e, refusal := g.Below("an aggregate").Expr(n); refusal != nil || e.IsConstant() {
		return ""
	}
	return ast.DeparsedExpr(n)
}

// instead are other columns over the rows of this SELECT, grouped by the first of them, so many; empty means they
// cannot be written.
func (g *Grouping) instead(columns string, keys int) string {
	tree, err := pg.Parse("SELECT " + columns)
	if err != nil || g.Sel == nil || len(tree.Stmts) != 1 {
		return ""
	}
	sel := &pg.SelectStmt{TargetList: tree.Stmts[0].Stmt.GetSelectStmt().TargetList, FromClause: g.Sel.FromClause, WhereClause: g.Sel.WhereClause, WithClause: g.Sel.WithClause,
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	if ast.Holds(ast.Select(sel), func(n *pg.Node) bool { return n.GetParamRef() != nil }) {
		return "" // whoever pastes it has no value for it
	}
	if g.Sel != g.b.Top && g.b.Top.GetWithClause() != nil {
		return "" // it may read a WITH query of the statement around it
	}
	sel = proto.Clone(sel).(*pg.SelectStmt)
	for k := range keys {
		sel.GroupClause = append(sel.GroupClause, pg.MakeAConstIntNode(int64(k+1), -1))
	}
	return ast.Deparsed(sel)
}

// listed refuses an aggregate that shows each row's value: the values and how often they are is what can be shown.
func (g *Grouping) listed(name string, f *pg.FuncCall) *refuse.Refusal {
	r := noList.At(int(f.Location), name)
	if len(f.Args) == 0 {
		return r
	}
	x := g.written(f.Args[0])
	if counted := g.instead(x+" AS value, count(*) AS n", 1); x != "" && counted != "" {
		r.Hinting("Group by the column and count: " + counted + ". Above that, array_agg is plain SQL over the keys whose counts are clearly above their error: SELECT array_agg(value) FROM (" + counted + ") t WHERE n > 100.")
	}
	return r
}

func (g *Grouping) anyOf(name string, f *pg.FuncCall) *refuse.Refusal {
	r := noAnyValue.At(int(f.Location), name)
	if len(f.Args) != 1 {
		return r
	}
	x := g.written(f.Args[0])
	if mode := g.instead("mode() WITHIN GROUP (ORDER BY "+x+")", 0); x != "" && mode != "" {
		r.Hinting("Ask for the value that most rows have: " + mode + ".")
	}
	return r
}
