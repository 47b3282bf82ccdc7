package outerquery

import (
	"cmp"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// The nodes that may reach an engine, each made anew; a node that is not listed here is refused. n + 1 becomes a new
// node with two new operands, count(*) a column of the leaf.

func (t *tree) nodes(list []*pg.Node) ([]*pg.Node, *refuse.Refusal) {
	return ast.CopiedList(list, t.node)
}

// node rebuilds one node of an expression or a FROM clause.
func (t *tree) node(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	switch v := n.GetNode().(type) {
	case nil:
		return nil, nil
	case *pg.Node_SelectStmt:
		query, refusal := t.query(v.SelectStmt)
		return ast.Select(query), refusal
	}
	if column, refusal := t.ofLeaf(n); column != nil || refusal != nil {
		return column, refusal
	}
	var refusal *refuse.Refusal
	switch v := n.Node.(type) {
	case *pg.Node_ColumnRef:
		out, refusal := ast.Copied(n, t.node)
		ref := out.GetColumnRef()
		ref.Fields, ref.Location = t.unqualified(ref.Fields), v.ColumnRef.Location // the place of an unknown name
		return out, refusal
	case *pg.Node_ParamRef:
		return t.parameter(v.ParamRef)
	case *pg.Node_FuncCall:
		refusal = t.callable(v.FuncCall)
	case *pg.Node_TypeCast:
		refusal = ownType(v.TypeCast.TypeName)
	case *pg.Node_SubLink:
		return t.subLink(n)
	case *pg.Node_RangeVar:
		return t.relation(n)
	case *pg.Node_RangeFunction:
		if len(v.RangeFunction.Coldeflist) > 0 {
			refusal = refuse.Construct.At(-1, "a column definition list")
		}
	case *pg.Node_ResTarget:
		return t.target(n)
	case *pg.Node_AConst, *pg.Node_List, *pg.Node_SqlvalueFunction, *pg.Node_RangeSubselect, *pg.Node_JoinExpr, *pg.Node_AExpr, *pg.Node_BoolExpr, *pg.Node_NullTest,
		*pg.Node_BooleanTest, *pg.Node_CaseExpr, *pg.Node_CaseWhen, *pg.Node_CoalesceExpr, *pg.Node_MinMaxExpr, *pg.Node_CollateClause, *pg.Node_RowExpr, *pg.Node_AArrayExpr,
		*pg.Node_AIndirection, *pg.Node_AIndices, *pg.Node_NamedArgExpr, *pg.Node_SortBy, *pg.Node_WindowDef, *pg.Node_GroupingSet, *pg.Node_GroupingFunc:
	default:
		refusal = refuse.Construct.At(ast.Location(n), "this construct")
	}
	if refusal != nil {
		return nil, refusal
	}
	return ast.Copied(n, t.node)
}

// target rebuilds a column of the answer, which keeps the name that it has in the statement.
func (t *tree) target(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	if len(n.GetResTarget().Indirection) > 0 {
		return nil, refuse.Construct.At(ast.Location(n), "this target")
	}
	out, refusal := ast.Copied(n, t.node)
	if refusal != nil {
		return nil, refusal
	}
	made := out.GetResTarget()
	if written, _ := ast.ColumnName(n.GetResTarget().Val); made.Name == "" {
		// SELECT $1 is ?column?, also where $1 is written as a text, and (SELECT count(*) …) is count, also where it is
		// looked up.
		if now, _ := ast.ColumnName(made.Val); now != written {
			made.Name = cmp.Or(written, ast.Unnamed)
		}
	}
	return out, nil
}

// unqualified leaves out the schema of a table whose rows are made up: the leaf in its place has none.
func (t *tree) unqualified(fields []*pg.Node) []*pg.Node {
	if p := t.preview; p != nil && len(fields) == 3 && fields[0].GetString_().GetSval() == p.table.Schema && fields[1].GetString_().GetSval() == p.table.Name {
		return fields[1:]
	}
	return fields
}

// ofLeaf returns the column of the leaf that a node denotes, or nil if there is none.
func (t *tree) ofLeaf(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	if t.g == nil {
		return nil, nil
	}
	f, refusal := t.g.Look(n)
	if f == nil || refusal != nil {
		return nil, refusal
	}
	return t.leafColumn(f), nil
}

// leafColumn refers to a key or count of the leaf.
func (t *tree) leafColumn(f *aggregate.Found) *pg.Node {
	if f.Formula != nil {
		return f.Formula
	}
	name := ""
	if f.Key >= 0 {
		name = plans.KeyName(f.Key)
	} else {
		name = t.g.Question.ColumnName(f.Counter)
	}
	ref := pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(plans.LeafName(t.g.Leaf)), pg.MakeStrNode(name)}, -1)
	if f.Counter >= 0 && f.Type != policy.Int8 && f.Type != policy.Bpchar {
		return ast.Cast(ref, f.Type)
	}
	return ref
}
