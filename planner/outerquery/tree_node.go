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

// The nodes that may reach an engine, each rebuilt by itself; a node that is not listed here is refused. n + 1 becomes a new node with two
// new operands, count(*) a column of the leaf.

func (t *tree) nodes(list []*pg.Node) ([]*pg.Node, *refuse.Refusal) {
	if list == nil {
		return nil, nil
	}
	out := make([]*pg.Node, len(list))
	for i, n := range list {
		var refusal *refuse.Refusal
		if out[i], refusal = t.node(n); refusal != nil {
			return nil, refusal
		}
		if out[i] == nil {
			out[i] = &pg.Node{} // the empty node of DISTINCT
		}
	}
	return out, nil
}

// node rebuilds one node of an expression or a FROM clause.
func (t *tree) node(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	if n.GetNode() == nil {
		return nil, nil
	}
	if t.g != nil {
		f, refusal := t.g.Look(n, "")
		if refusal != nil {
			return nil, refusal
		}
		if f != nil {
			return t.leafColumn(f), nil
		}
	}
	switch v := n.Node.(type) {
	case *pg.Node_AConst:
		return &pg.Node{Node: &pg.Node_AConst{AConst: &pg.A_Const{Val: v.AConst.Val, Isnull: v.AConst.Isnull, Location: -1}}}, nil
	case *pg.Node_String_:
		return pg.MakeStrNode(v.String_.Sval), nil
	case *pg.Node_AStar:
		return pg.MakeAStarNode(), nil
	case *pg.Node_ColumnRef:
		fields, refusal := t.bare(t.unqualified(v.ColumnRef.Fields))
		return pg.MakeColumnRefNode(fields, v.ColumnRef.Location), refusal // whose place an unknown name is told with
	case *pg.Node_ParamRef:
		return t.parameter(v.ParamRef)
	case *pg.Node_List:
		items, refusal := t.nodes(v.List.Items)
		return pg.MakeListNode(items), refusal
	case *pg.Node_FuncCall:
		return t.call(v.FuncCall)
	case *pg.Node_TypeCast:
		arg, refusal := t.node(v.TypeCast.Arg)
		if refusal != nil {
			return nil, refusal
		}
		name, refusal := typeNameCopy(v.TypeCast.TypeName)
		return &pg.Node{Node: &pg.Node_TypeCast{TypeCast: &pg.TypeCast{Arg: arg, TypeName: name, Location: -1}}}, refusal
	case *pg.Node_SubLink:
		return t.subLink(v.SubLink)
	case *pg.Node_SqlvalueFunction:
		return &pg.Node{Node: &pg.Node_SqlvalueFunction{SqlvalueFunction: &pg.SQLValueFunction{Op: v.SqlvalueFunction.Op, Typmod: v.SqlvalueFunction.Typmod, Location: -1}}}, nil
	case *pg.Node_RangeVar, *pg.Node_RangeSubselect, *pg.Node_RangeFunction, *pg.Node_JoinExpr:
		return t.fromItem(n)
	}
	return t.compound(n)
}

// compound rebuilds the nodes that are made of expressions alone.
func (t *tree) compound(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	switch v := n.Node.(type) {
	case *pg.Node_AExpr:
		parts, refusal := t.fixed(v.AExpr.Lexpr, v.AExpr.Rexpr)
		if refusal != nil {
			return nil, refusal
		}
		return pg.MakeAExprNode(v.AExpr.Kind, ast.StringNodes(v.AExpr.Name), parts[0], parts[1], -1), nil
	case *pg.Node_BoolExpr:
		args, refusal := t.nodes(v.BoolExpr.Args)
		return pg.MakeBoolExprNode(v.BoolExpr.Boolop, args, -1), refusal
	case *pg.Node_NullTest:
		arg, refusal := t.node(v.NullTest.Arg)
		return &pg.Node{Node: &pg.Node_NullTest{NullTest: &pg.NullTest{Arg: arg, Nulltesttype: v.NullTest.Nulltesttype, Location: -1}}}, refusal
	case *pg.Node_BooleanTest:
		arg, refusal := t.node(v.BooleanTest.Arg)
		return &pg.Node{Node: &pg.Node_BooleanTest{BooleanTest: &pg.BooleanTest{Arg: arg, Booltesttype: v.BooleanTest.Booltesttype, Location: -1}}}, refusal
	case *pg.Node_CaseExpr:
		args, refusal := t.nodes(v.CaseExpr.Args)
		if refusal != nil {
			return nil, refusal
		}
		parts, refusal := t.fixed(v.CaseExpr.Arg, v.CaseExpr.Defresult)
		if refusal != nil {
			return nil, refusal
		}
		return &pg.Node{Node: &pg.Node_CaseExpr{CaseExpr: &pg.CaseExpr{Arg: parts[0], Args: args, Defresult: parts[1], Location: -1}}}, nil
	case *pg.Node_CaseWhen:
		parts, refusal := t.fixed(v.CaseWhen.Expr, v.CaseWhen.Result)
		if refusal != nil {
			return nil, refusal
		}
		return &pg.Node{Node: &pg.Node_CaseWhen{CaseWhen: &pg.CaseWhen{Expr: parts[0], Result: parts[1], Location: -1}}}, nil
	case *pg.Node_CoalesceExpr:
		args, refusal := t.nodes(v.CoalesceExpr.Args)
		return &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: args, Location: -1}}}, refusal
	case *pg.Node_MinMaxExpr:
		args, refusal := t.nodes(v.MinMaxExpr.Args)
		return &pg.Node{Node: &pg.Node_MinMaxExpr{MinMaxExpr: &pg.MinMaxExpr{Op: v.MinMaxExpr.Op, Args: args, Location: -1}}}, refusal
	case *pg.Node_CollateClause:
		arg, refusal := t.node(v.CollateClause.Arg)
		return &pg.Node{Node: &pg.Node_CollateClause{CollateClause: &pg.CollateClause{Arg: arg, Collname: ast.StringNodes(v.CollateClause.Collname), Location: -1}}}, refusal
	case *pg.Node_RowExpr:
		args, refusal := t.nodes(v.RowExpr.Args)
		return &pg.Node{Node: &pg.Node_RowExpr{RowExpr: &pg.RowExpr{Args: args, RowFormat: v.RowExpr.RowFormat, Location: -1}}}, refusal
	case *pg.Node_AArrayExpr:
		elements, refusal := t.nodes(v.AArrayExpr.Elements)
		return &pg.Node{Node: &pg.Node_AArrayExpr{AArrayExpr: &pg.A_ArrayExpr{Elements: elements, Location: -1}}}, refusal
	case *pg.Node_AIndirection:
		arg, refusal := t.node(v.AIndirection.Arg)
		if refusal != nil {
			return nil, refusal
		}
		path, refusal := t.nodes(v.AIndirection.Indirection)
		return &pg.Node{Node: &pg.Node_AIndirection{AIndirection: &pg.A_Indirection{Arg: arg, Indirection: path}}}, refusal
	case *pg.Node_AIndices:
		parts, refusal := t.fixed(v.AIndices.Lidx, v.AIndices.Uidx)
		if refusal != nil {
			return nil, refusal
		}
		return &pg.Node{Node: &pg.Node_AIndices{AIndices: &pg.A_Indices{IsSlice: v.AIndices.IsSlice, Lidx: parts[0], Uidx: parts[1]}}}, nil
	case *pg.Node_NamedArgExpr:
		arg, refusal := t.node(v.NamedArgExpr.Arg)
		return &pg.Node{Node: &pg.Node_NamedArgExpr{NamedArgExpr: &pg.NamedArgExpr{Arg: arg, Name: v.NamedArgExpr.Name, Argnumber: v.NamedArgExpr.Argnumber, Location: -1}}}, refusal
	}
	return t.clause(n)
}

// clause rebuilds the nodes of clauses.
func (t *tree) clause(n *pg.Node) (*pg.Node, *refuse.Refusal) {
	switch v := n.Node.(type) {
	case *pg.Node_ResTarget:
		if len(v.ResTarget.Indirection) > 0 {
			return nil, refuse.Construct.At(ast.Location(n), "this target")
		}
		val, refusal := t.node(v.ResTarget.Val)
		if refusal != nil {
			return nil, refusal
		}
		name := v.ResTarget.Name
		if written, _ := ast.ColumnName(v.ResTarget.Val); name == "" {
			// SELECT $1 is ?column?, also where $1 is written as a text, and (SELECT count(*) …) is count, also where it is looked up.
			if now, _ := ast.ColumnName(val); now != written {
				name = cmp.Or(written, ast.Unnamed)
			}
		}
		return pg.MakeResTargetNodeWithNameAndVal(name, val, -1), nil
	case *pg.Node_SortBy:
		by, refusal := t.node(v.SortBy.Node)
		out := pg.MakeSortByNode(by, v.SortBy.SortbyDir, v.SortBy.SortbyNulls, -1)
		out.GetSortBy().UseOp = ast.StringNodes(v.SortBy.UseOp)
		return out, refusal
	case *pg.Node_WindowDef:
		w, refusal := t.window(v.WindowDef)
		return &pg.Node{Node: &pg.Node_WindowDef{WindowDef: w}}, refusal
	case *pg.Node_GroupingSet:
		content, refusal := t.nodes(v.GroupingSet.Content)
		return &pg.Node{Node: &pg.Node_GroupingSet{GroupingSet: &pg.GroupingSet{Kind: v.GroupingSet.Kind, Content: content, Location: -1}}}, refusal
	case *pg.Node_GroupingFunc:
		args, refusal := t.nodes(v.GroupingFunc.Args)
		return &pg.Node{Node: &pg.Node_GroupingFunc{GroupingFunc: &pg.GroupingFunc{Args: args, Location: -1}}}, refusal
	}
	return nil, refuse.Construct.At(ast.Location(n), "this construct")
}

// fixed rebuilds operands that may be absent.
func (t *tree) fixed(list ...*pg.Node) ([]*pg.Node, *refuse.Refusal) {
	out := make([]*pg.Node, len(list))
	for i, n := range list {
		var refusal *refuse.Refusal
		if out[i], refusal = t.node(n); refusal != nil {
			return nil, refusal
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

// bare rebuilds the fields of a column reference.
func (t *tree) bare(fields []*pg.Node) ([]*pg.Node, *refuse.Refusal) {
	return (&tree{b: t.b, scope: t.scope}).nodes(fields)
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
