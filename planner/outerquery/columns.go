package outerquery

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Names and types of the columns of a query for an engine, and which of them depend on released counts: of SELECT ward, sum(n) OVER () FROM
// (SELECT ward, count(*) AS n FROM visits GROUP BY ward) t the second does, and is shown as noisy.

// outputs tells the columns of a query that goes to the engine, and which of them depend on released counts. It follows
// sub-queries, WITH and set operations; where some type is not known here it tells nothing, and the sandbox says the rest.
type outputs struct {
	b     *Query
	known []relationOut // of FROM, the innermost query's last
	with  []relationOut
	noisy []bool // by position of a column in the expressions
	cte   *bind.Scope

	merged bool // FROM has a USING, of which * shows each column once
}

// outColumn is a column of an answer, of the type that an expression has there.
func outColumn(name string, e *semantics.Expr, noisy bool) plans.OutColumn {
	t, typmod := e.Shown()
	return plans.OutColumn{Name: name, Type: t, Typmod: typmod, Noisy: noisy}
}

// relationOut is a relation as FROM sees it. Its rows are noisy when released counts decide which ones are there.
type relationOut struct {
	alias     string
	columns   []plans.OutColumn // nil: not known
	first     int               // position of its first column
	noisyRows bool
}

// noisyMark is the position that stands for released counts in an expression.
const noisyMark = 1 << 30

// outColumns are the columns of the statement, nil where they are not known. Of public rows alone the engine says them, but where the answer is part of another
// statement, which is planned before it is there: WHERE product_id IN (SELECT p.product_id FROM products p JOIN categories c ON c.id = p.category).
func (b *Query) outColumns(sel *pg.SelectStmt) []plans.OutColumn {
	if len(b.Questions) == 0 && !b.Inside {
		return nil
	}
	binder := *b.Binder
	quiet := Query{Binder: &binder}
	quiet.Params = &semantics.Parameters{Values: b.Params.Values, Types: slices.Clone(b.Params.Types), Describing: b.Params.Describing}
	out, ok := (&outputs{b: &quiet}).query(sel)
	if !ok {
		return nil
	}
	return out.columns
}

// query tells the columns of one SELECT; what it sees around it stays in sight.
func (o *outputs) query(sel *pg.SelectStmt) (out relationOut, ok bool) {
	in := &outputs{b: o.b, known: slices.Clone(o.known), with: slices.Clone(o.with), noisy: o.noisy, cte: o.cte}
	defer func() { o.noisy = in.noisy }()
	if sel == nil || len(sel.ValuesLists) > 0 || !in.withQueries(sel) {
		return out, false
	}
	if sel.Larg != nil {
		return in.setOperation(sel)
	}
	if g := o.b.Groups[sel]; g != nil {
		columns, _ := o.b.treeColumns(sel)
		having := sel.HavingClause != nil && ast.HasAggregate(sel.HavingClause)
		return relationOut{columns: columns, noisyRows: having || isCut(sel)}, columns != nil
	}
	for _, n := range sel.FromClause {
		noisyRows, ok := in.from(n)
		if !ok {
			return out, false
		}
		out.noisyRows = out.noisyRows || noisyRows
	}
	return in.selected(sel, out)
}

// isCut tells clauses by which values decide about rows.
func isCut(sel *pg.SelectStmt) bool {
	return sel.LimitCount != nil || sel.LimitOffset != nil || len(sel.DistinctClause) > 0
}

// withQueries puts the WITH queries that are released tables in sight.
func (o *outputs) withQueries(sel *pg.SelectStmt) bool {
	w := sel.WithClause
	if w == nil {
		return true
	}
	if w.Recursive {
		return false
	}
	for _, n := range w.Ctes {
		c := n.GetCommonTableExpr()
		scope, refusal := o.b.With(&pg.SelectStmt{WithClause: &pg.WithClause{Ctes: []*pg.Node{n}}}, o.cte)
		if refusal != nil {
			return false
		}
		if scope.Rows == nil {
			r, ok := o.query(c.Ctequery.GetSelectStmt())
			if !ok {
				return false
			}
			o.with = append(o.with, r.named(c.Ctename, c.Aliascolnames))
		}
		o.cte = scope
	}
	return true
}

// named gives a relation its alias and the column names that the alias lists.
func (r relationOut) named(alias string, names []*pg.Node) relationOut {
	r.alias, r.columns = alias, slices.Clone(r.columns)
	for i, name := range ast.Strings(names) {
		if i < len(r.columns) {
			r.columns[i].Name = name
		}
	}
	return r
}

func (o *outputs) setOperation(sel *pg.SelectStmt) (relationOut, bool) {
	left, ok := o.query(sel.Larg)
	right, also := o.query(sel.Rarg)
	if !ok || !also || len(left.columns) != len(right.columns) {
		return relationOut{}, false
	}
	out := relationOut{columns: slices.Clone(left.columns), noisyRows: left.noisyRows || right.noisyRows || !sel.All || isCut(sel)}
	for i, c := range right.columns {
		if out.columns[i].Type != c.Type {
			return relationOut{}, false
		}
		if out.columns[i].Noisy = out.columns[i].Noisy || c.Noisy; out.columns[i].Typmod != c.Typmod {
			out.columns[i].Typmod = -1
		}
	}
	return out, true
}

// from puts an item of FROM in sight.
func (o *outputs) from(n *pg.Node) (noisyRows, ok bool) {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeSubselect:
		r, ok := o.query(v.RangeSubselect.Subquery.GetSelectStmt())
		if !ok {
			return false, false
		}
		o.see(r.named(v.RangeSubselect.GetAlias().GetAliasname(), v.RangeSubselect.GetAlias().GetColnames()))
		return r.noisyRows, true
	case *pg.Node_RangeVar:
		r := o.named(v.RangeVar)
		if v.RangeVar.Alias != nil {
			r = r.named(v.RangeVar.Alias.Aliasname, v.RangeVar.Alias.Colnames)
		}
		o.see(r)
		return r.noisyRows, true
	case *pg.Node_RangeFunction:
		alias, columns := o.b.Series(n)
		o.see(relationOut{alias: alias, columns: columns})
		return false, columns != nil
	case *pg.Node_JoinExpr:
		if v.JoinExpr.IsNatural || v.JoinExpr.Alias != nil {
			return false, false
		}
		first := len(o.known)
		left, ok := o.from(v.JoinExpr.Larg)
		right, also := o.from(v.JoinExpr.Rarg)
		if !ok || !also || !o.merges(ast.Strings(v.JoinExpr.UsingClause), o.known[first:]) {
			return false, false
		}
		return left || right || o.isNoisyNode(v.JoinExpr.Quals), true
	}
	return false, false
}

// merges tells whether the columns of USING have one type on both sides of a join, and so what they are merged into.
func (o *outputs) merges(using []string, sides []relationOut) bool {
	for _, name := range using {
		var merged *plans.OutColumn
		for _, r := range sides {
			for i, c := range r.columns {
				if c.Name != name {
					continue
				}
				if merged != nil && (c.Type != merged.Type || c.Typmod != merged.Typmod) {
					return false
				}
				merged = &r.columns[i]
			}
		}
		if merged == nil {
			return false
		}
		o.merged = true
	}
	return true
}

// named finds a WITH query or a public table; of other relations nothing is known.
func (o *outputs) named(v *pg.RangeVar) relationOut {
	if v.Schemaname == "" {
		for i := len(o.with) - 1; i >= 0; i-- {
			if o.with[i].alias == v.Relname {
				return o.with[i]
			}
		}
	}
	out := relationOut{alias: v.Relname}
	if _, other, refusal := o.b.Resolve(v); refusal == nil && other.Public != nil {
		for _, c := range other.Public.Columns {
			t, typmod := c.DescribedType()
			out.columns = append(out.columns, plans.OutColumn{Name: c.Name, Type: t, Typmod: typmod})
		}
	}
	return out
}

func (o *outputs) see(r relationOut) {
	r.first = len(o.noisy)
	for _, c := range r.columns {
		o.noisy = append(o.noisy, c.Noisy)
	}
	o.known = append(o.known, r)
}

// selected tells the columns of a SELECT over the relations in sight.
func (o *outputs) selected(sel *pg.SelectStmt, out relationOut) (relationOut, bool) {
	out.noisyRows = out.noisyRows || o.isNoisyNode(sel.WhereClause)
	for _, n := range sel.GroupClause {
		out.noisyRows = out.noisyRows || o.isNoisyNode(o.groupItem(n, sel))
	}
	t := o.translator(out.noisyRows)
	for _, n := range sel.TargetList {
		target := n.GetResTarget()
		if columns, isStar := o.star(target.Val.GetColumnRef()); isStar {
			if columns == nil {
				return out, false
			}
			out.columns = append(out.columns, columns...)
			continue
		}
		e, refusal := t.Output(target.Val)
		if refusal != nil {
			return out, false
		}
		out.columns = append(out.columns, outColumn(ast.Label(target), e, o.isNoisy(e)))
	}
	out.noisyRows = out.noisyRows || o.isNoisyNode(sel.HavingClause) || isCut(sel)
	return out, len(out.columns) > 0
}

// groupItem is the expression that a position or an output name in GROUP BY stands for.
func (o *outputs) groupItem(n *pg.Node, sel *pg.SelectStmt) *pg.Node {
	if c := n.GetAConst(); c != nil && c.GetIval() != nil {
		if i := int(c.GetIval().Ival); i >= 1 && i <= len(sel.TargetList) {
			return sel.TargetList[i-1].GetResTarget().GetVal()
		}
	}
	if names := ast.Strings(n.GetColumnRef().GetFields()); len(names) == 1 {
		if _, refusal := o.column(names, -1); refusal != nil {
			for _, t := range sel.TargetList {
				if ast.Label(t.GetResTarget()) == names[0] {
					return t.GetResTarget().GetVal()
				}
			}
		}
	}
	return n
}

// star expands * and alias.*; no columns: they are not known.
func (o *outputs) star(ref *pg.ColumnRef) (columns []plans.OutColumn, isStar bool) {
	if ref == nil || len(ref.Fields) == 0 || ref.Fields[len(ref.Fields)-1].GetAStar() == nil {
		return nil, false
	}
	words := ast.Strings(ref.Fields)
	if len(words) == 0 && o.merged {
		return nil, true
	}
	for _, r := range o.known {
		if len(words) > 0 && words[len(words)-1] != r.alias {
			continue
		}
		if r.columns == nil {
			return nil, true
		}
		columns = append(columns, r.columns...)
	}
	return columns, true
}

// translator types expressions over the relations in sight.
func (o *outputs) translator(noisyRows bool) *semantics.Translator {
	t := &semantics.Translator{Env: o.b.Env, Params: o.b.Params, Columns: o.column, Place: "SELECT"}
	t.Hook = func(n *pg.Node) (*semantics.Expr, *refuse.Refusal) {
		if s := n.GetSubLink(); s != nil {
			return o.subLink(s, t)
		}
		if f := n.GetFuncCall(); f != nil && (f.Over != nil || ast.IsAggregate(f)) {
			return o.call(f, t, noisyRows)
		}
		return nil, nil
	}
	return t
}

// column finds a column, in the innermost query first.
func (o *outputs) column(fields []string, pos int) (*semantics.Expr, *refuse.Refusal) {
	name, words := fields[len(fields)-1], fields[:len(fields)-1]
	for i := len(o.known) - 1; i >= 0; i-- {
		r := o.known[i]
		if len(words) > 0 && words[len(words)-1] != r.alias {
			continue
		}
		for k, c := range r.columns {
			if c.Name == name {
				return semantics.ColumnExpr(r.first+k, c.Type, c.Typmod, pos), nil
			}
		}
	}
	return nil, semantics.UnknownColumn.At(pos, strings.Join(fields, "."))
}

// subLink is a sub-query of an expression: a value, EXISTS, or a comparison with its rows.
func (o *outputs) subLink(s *pg.SubLink, t *semantics.Translator) (*semantics.Expr, *refuse.Refusal) {
	pos := int(s.Location)
	r, ok := o.query(s.Subselect.GetSelectStmt())
	if !ok {
		return nil, semantics.RowSubquery.At(pos)
	}
	noisy := r.noisyRows
	for _, c := range r.columns {
		noisy = noisy || c.Noisy && s.SubLinkType != pg.SubLinkType_EXISTS_SUBLINK
	}
	if s.Testexpr != nil {
		e, refusal := t.Expr(s.Testexpr)
		if refusal != nil {
			return nil, refusal
		}
		noisy = noisy || o.isNoisy(e)
	}
	switch s.SubLinkType {
	case pg.SubLinkType_EXPR_SUBLINK:
		return standIn(r.columns[0].Type, noisy), nil
	case pg.SubLinkType_EXISTS_SUBLINK, pg.SubLinkType_ANY_SUBLINK, pg.SubLinkType_ALL_SUBLINK:
		return standIn(policy.Bool, noisy), nil
	}
	return nil, semantics.RowSubquery.At(pos)
}

// call is an aggregate or a window function. It depends on counts where its operands do, or the rows that it sees.
func (o *outputs) call(f *pg.FuncCall, t *semantics.Translator, noisyRows bool) (*semantics.Expr, *refuse.Refusal) {
	name, refusal := ast.FunctionName(f)
	if refusal != nil {
		return nil, refusal
	}
	typ, noisy := windowTypes[name], noisyRows
	for i, n := range ast.Children(&pg.Node{Node: &pg.Node_FuncCall{FuncCall: f}}) {
		if s := n.GetSortBy(); s != nil {
			n = s.Node
		}
		if n.GetNode() == nil {
			continue
		}
		e, refusal := t.Output(n)
		if refusal != nil {
			return nil, refusal
		}
		if noisy = noisy || o.isNoisy(e); typ == 0 && i == 1 { // the first argument, after FILTER
			of, _ := e.Shown()
			typ = windowResult(name, of)
		}
	}
	if typ == 0 || f.AggWithinGroup || f.GetOver().GetName()+f.GetOver().GetRefname() != "" {
		return nil, semantics.NoForm.At(int(f.Location), name)
	}
	return standIn(typ, noisy), nil
}

// standIn is an expression of a type of which only its dependence on counts is known.
func standIn(t policy.Type, noisy bool) *semantics.Expr {
	out := *nullOf(t)
	out.Form = semantics.FormOther
	if noisy {
		out.Cols = []int{noisyMark}
	}
	return &out
}

func (o *outputs) isNoisy(e *semantics.Expr) bool {
	return slices.ContainsFunc(e.Cols, func(c int) bool { return c == noisyMark || o.noisy[c] })
}

// isNoisyNode tells whether a condition depends on counts.
func (o *outputs) isNoisyNode(n *pg.Node) bool {
	if n.GetNode() == nil {
		return false
	}
	e, refusal := o.translator(false).Output(n)
	return refusal != nil || o.isNoisy(e) // what is not known here may
}
