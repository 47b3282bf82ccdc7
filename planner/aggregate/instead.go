package aggregate

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// What to write instead. SELECT any_value(city) FROM people WHERE age > 30 is refused, and its hint is the SELECT that
// is answered: SELECT mode() WITHIN GROUP (ORDER BY city) FROM people WHERE age > 30. A hint that holds a statement
// works when it is pasted, so it is made of the statement that was refused, or, where that has no one answer, names no
// statement.

// written is an expression over the rows as text; empty means it cannot be, or is refused for a reason of its own.
func (g *Grouping) written(n *pg.Node) string {
	if e, refusal := g.Below("an aggregate").Expr(n); refusal != nil || e.IsConstant() {
		return ""
	}
	return sqlOf(n)
}

func sqlOf(n *pg.Node) string {
	sel := &pg.SelectStmt{TargetList: []*pg.Node{pg.MakeResTargetNodeWithVal(n, -1)}, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	return strings.TrimPrefix(ast.Deparsed(sel), "SELECT ")
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
