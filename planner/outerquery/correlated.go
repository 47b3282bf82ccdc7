package outerquery

import (
	"cmp"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Names that only an enclosing query has. In SELECT (SELECT count(*) FROM visits v WHERE v.person_id = p.person_id)
// FROM people p the sub-query would be counted for each row of people, which is no single question: it is refused as
// that, and not for an unknown name.

// around says of a name that is not found whether the query around has it: the sub-query is then counted for each row
// of that query, which is no single question, and what is wrong is not the name.
func (b *Query) around(refusal *refuse.Refusal) *refuse.Refusal {
	if refusal == nil {
		return nil
	}
	usual := func(of *refuse.Reason) bool { return refusal.ID == of.ID && refusal.Hint == of.Hint }
	switch {
	case usual(refuse.UnknownFunction):
		return b.otherwiseNamed(refusal)
	case usual(semantics.UnknownColumn):
		b.otherwiseNamed(refusal)
	}
	if refusal.Position == 0 || refusal.ID != bind.UnknownAlias.ID && refusal.ID != semantics.UnknownColumn.ID {
		return refusal
	}
	place := int32(refusal.Position - 1)
	words, enclosing := reference(b.Top.ProtoReflect(), place)
	if len(words) == 0 {
		return refusal
	}
	w := walkOf(b.Binder, false)
	w.without = func(sel *pg.SelectStmt) bool { return holdsPlace(sel, place) }
	for i, sel := range enclosing {
		w = w.inside(sel)
		for _, n := range sel.FromClause {
			w.item(n)
		}
		switch last := i == len(enclosing)-1; {
		case !last && w.shows(words):
			return bind.CountedAround.At(refusal.Position-1, words[len(words)-1])
		case last && len(words) == 1 && w.names(words[0]):
			return semantics.NoForm.At(refusal.Position-1, "a whole row")
		}
	}
	return refusal
}

// names reports whether a relation in sight has an alias, of those whose columns may be named.
func (s *sight) names(alias string) bool {
	return slices.ContainsFunc(s.relations, func(r relation) bool { return r.alias == alias && (r.known || len(r.columns) > 0) })
}

// shows reports whether a relation in sight answers to a name.
func (s *sight) shows(words []string) bool {
	if len(words) > 1 {
		return s.names(words[len(words)-2])
	}
	return s.find(words) != nil
}

// reference is the column reference at a place, and the SELECTs that it is in, the outermost first.
func reference(m protoreflect.Message, place int32) (words []string, enclosing []*pg.SelectStmt) {
	ast.Each(m, func(m protoreflect.Message) {
		switch v := m.Interface().(type) {
		case *pg.ColumnRef:
			if v.Location == place && len(v.Fields) > 0 && v.Fields[len(v.Fields)-1].GetAStar() == nil {
				words = ast.Strings(v.Fields)
			}
		case *pg.SelectStmt:
			if holdsPlace(v, place) {
				enclosing = append(enclosing, v)
			}
		}
	})
	return words, enclosing
}

func holdsPlace(sel *pg.SelectStmt, place int32) (held bool) {
	ast.Each(sel.ProtoReflect(), func(m protoreflect.Message) {
		if c, ok := m.Interface().(*pg.ColumnRef); ok {
			held = held || c.Location == place
		}
	})
	return held
}

// otherNames are what PostgreSQL calls functions of other databases.
var otherNames = map[string]string{
	"var": "var_samp(x), which variance(x) is too, or var_pop(x)", "std": "stddev_samp(x) or stddev_pop(x)", "stdev": "stddev_samp(x)",
	"stdevp": "stddev_pop(x)", "varp": "var_pop(x)", "mean": "avg(x)", "countif": "count(*) FILTER (WHERE …)",
	"count_if": "count(*) FILTER (WHERE …)", "sumif": "sum(x) FILTER (WHERE …)", "ifnull": "coalesce(x, y)", "nvl": "coalesce(x, y)",
	"isnull": "coalesce(x, y)", "iif": "CASE WHEN … THEN x ELSE y END", "if": "CASE WHEN … THEN x ELSE y END", "len": "length(x)",
	"ucase": "upper(x)", "lcase": "lower(x)", "getdate": "now()", "year": "extract(year FROM x)", "month": "extract(month FROM x)",
	"day": "extract(day FROM x)", "quarter": "extract(quarter FROM x)", "week": "extract(week FROM x)", "hour": "extract(hour FROM x)",
	"datediff": "y - x, the days between two dates, or extract(epoch FROM y - x) / 3600, the hours between two moments", "dateadd": "x + interval '1 day'",
	"convert": "CAST(x AS integer), or x::integer", "approx_distinct": "count(DISTINCT x)", "approx_count_distinct": "count(DISTINCT x)", "percentile": "percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
}

// otherwiseNamed says what PostgreSQL calls a function that it does not know by the name of another database, or whose
// first argument is no column but a word there.
func (b *Query) otherwiseNamed(refusal *refuse.Refusal) *refuse.Refusal {
	ast.Each(b.Top.ProtoReflect(), func(m protoreflect.Message) {
		f, ok := m.Interface().(*pg.FuncCall)
		if !ok || len(f.Funcname) != 1 {
			return
		}
		// DATEADD(day, 1, placed) is no column day.
		word := len(f.Args) > 1 && f.Args[0].GetColumnRef() != nil && ast.Location(f.Args[0]) == refusal.Position-1
		if int(f.Location) != refusal.Position-1 && !word {
			return
		}
		if name := otherNames[f.Funcname[0].GetString_().GetSval()]; name != "" {
			refusal.Hint = "PostgreSQL's is " + name + "."
		}
	})
	return refusal
}

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

// lookedUp is a sub-query that is counted for each row of a public table, as what it is among its groups (ADR 119):
// (SELECT t.value FROM (SELECT v.ward AS key_1, count(*) AS value FROM visits v GROUP BY v.ward) t WHERE t.key_1 =
// r.code).
func lookedUp(each *bind.EachOf) *pg.Node {
	column := func(name string) *pg.Node {
		return pg.MakeColumnRefNode([]*pg.Node{pg.MakeStrNode(bind.GroupsOfEach), pg.MakeStrNode(name)}, -1)
	}
	var equal []*pg.Node
	for i, n := range each.Around {
		equal = append(equal, pg.MakeAExprNode(pg.A_Expr_Kind_AEXPR_OP, []*pg.Node{pg.MakeStrNode("=")}, column(bind.KeyOfEach(i)), n, -1))
	}
	read := &pg.SelectStmt{LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT, Op: pg.SetOperation_SETOP_NONE}
	read.FromClause = []*pg.Node{{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{Subquery: ast.Select(each.Groups), Alias: &pg.Alias{Aliasname: bind.GroupsOfEach}}}}}
	read.TargetList, read.WhereClause = []*pg.Node{pg.MakeResTargetNodeWithVal(column(bind.ValueOfEach), -1)}, bind.AllOf(equal)
	out := &pg.Node{Node: &pg.Node_SubLink{SubLink: &pg.SubLink{SubLinkType: pg.SubLinkType_EXPR_SUBLINK, Subselect: ast.Select(read), Location: -1}}}
	if each.Else != nil {
		out = &pg.Node{Node: &pg.Node_CoalesceExpr{CoalesceExpr: &pg.CoalesceExpr{Args: []*pg.Node{out, each.Else}, Location: -1}}}
	}
	return out
}
