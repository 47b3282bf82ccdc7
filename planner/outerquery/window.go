package outerquery

import (
	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The columns of one aggregation that needs an engine, and the types of window functions: in SELECT ward, count(*), rank() OVER (ORDER BY
// count(*) DESC) FROM visits GROUP BY ward the third is a bigint that depends on the counts, the second a count as it is.

// Shown says which output columns are counts of one leaf as they are.
type Shown struct {
	Leaf   int
	Counts []int // by output column: the leaf's count column, or −1
	Linear [][]WeighedCount
}

// windowTypes are the types of window functions that do not depend on their arguments.
var windowTypes = map[string]policy.Type{
	"count": policy.Int8, "row_number": policy.Int8, "rank": policy.Int8, "dense_rank": policy.Int8, "ntile": policy.Int4,
	"percent_rank": policy.Float8, "cume_dist": policy.Float8,
}

// treeColumns tells the columns of an aggregation that goes to the engine for its window functions or DISTINCT, where all
// types can be told here; nil otherwise.
func (b *Query) treeColumns(sel *pg.SelectStmt) ([]plans.OutColumn, *Shown) {
	g := b.Groups[sel]
	if g == nil {
		return nil, nil
	}
	t := &semantics.Translator{Env: b.Env, Params: b.Params, Place: "SELECT"}
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if f := n.GetFuncCall(); f != nil && f.Over != nil {
			return windowCall(g, t, f)
		}
		if s := n.GetSubLink(); s != nil && s.Testexpr == nil {
			return (&outputs{b: b}).subLink(s, t)
		}
		return g.Hook(n)
	}
	columns, from := make([]plans.OutColumn, len(g.Targets)), &Shown{Leaf: g.Leaf}
	for i, tg := range g.Targets {
		e, refusal := t.Output(tg.Node)
		if refusal != nil {
			return nil, nil
		}
		columns[i] = outColumn(tg.Label, e, b.isNoisy(g.Leaf, e))
		from.Counts, from.Linear = append(from.Counts, b.countShown(g.Leaf, e)), append(from.Linear, b.linearShown(g.Leaf, e))
	}
	return columns, from
}

// windowCall stands for a window function: an expression of its type that reads the counts where its operands do.
func windowCall(g *aggregate.Grouping, t *semantics.Translator, f *pg.FuncCall) (*semantics.Expr, *refuse.Refusal) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, refusal
	}
	typ := windowTypes[name]
	if len(f.Args) > 0 && typ == 0 {
		arg, refusal := t.Output(f.Args[0])
		if refusal != nil {
			return nil, refusal
		}
		of, _ := arg.Shown()
		typ = windowResult(name, of)
	}
	if typ == 0 {
		return nil, semantics.NoForm.At(int(f.Location), name)
	}
	out := *nullOf(typ)
	out.Form = semantics.FormOther
	named := f.Over.Name != "" || f.Over.Refname != "" // defined in WINDOW
	if named || ast.HasAggregate(&pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}) || ast.HasAggregate(g.Sel.HavingClause) {
		out.Cols = []int{len(g.Question.Keys)}
	}
	return &out, nil
}

// windowResult is the type of a window function over an argument.
func windowResult(name string, arg policy.Type) policy.Type {
	switch name {
	case "min", "max", "first_value", "last_value", "nth_value", "lag", "lead":
		return arg
	case "sum":
		switch arg {
		case policy.Int2, policy.Int4:
			return policy.Int8
		case policy.Int8:
			return policy.NumericType
		}
		return arg
	case "bool_and", "bool_or", "every":
		return policy.Bool
	case "string_agg":
		return policy.Text
	case "avg", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp":
		if arg.Floating() {
			return policy.Float8
		}
		return policy.NumericType
	}
	return 0
}
