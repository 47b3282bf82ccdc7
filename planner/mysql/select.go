package mysql

import (
	"cmp"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/sqlc-dev/marino/ast"

	"github.com/dpproxy/dpproxy/policy"
)

// translator makes PostgreSQL's nodes of the parser's. Its methods leave by bail where they refuse.
type translator struct {
	text    string // as it was written
	dataset *policy.Dataset
	with    []relation // the WITH queries that may be named here, the innermost last
	depth   int
}

// enter bounds the depth of what is translated; the caller defers leave.
func (t *translator) enter() {
	if t.depth++; t.depth > maxDepth {
		panic(tooDeep(-1))
	}
}

func (t *translator) leave() { t.depth-- }

// maxLabel is the longest name that PostgreSQL keeps.
const maxLabel = 63

// query translates a SELECT or a set operation and returns its columns. The columns of the first are named as MySQL
// names them.
func (t *translator) query(n ast.Node, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	t.enter()
	defer t.leave()
	switch n := n.(type) {
	case *ast.SelectStmt:
		return t.selects(n, outer, first)
	case *ast.SetOprStmt:
		list := &ast.SetOprSelectList{Selects: n.SelectList.Selects, With: n.With, OrderBy: n.OrderBy, Limit: n.Limit}
		return t.sets(list, outer, first)
	case *ast.SetOprSelectList:
		return t.sets(n, outer, first)
	}
	bail(Construct, "this statement", "Only SELECT is read in MySQL's dialect.")
	return nil, nil
}

// withs translates WITH, and makes its queries known until the caller's query ends.
func (t *translator) withs(w *ast.WithClause) *pg.WithClause {
	if w == nil {
		return nil
	}
	if w.IsRecursive {
		bail(Construct, "WITH RECURSIVE", "Leave RECURSIVE out where no query reads itself.")
	}
	out := &pg.WithClause{Location: -1}
	for _, c := range w.CTEs {
		query, items := t.query(c.Query.Query, nil, false)
		r, names := derived(c.Name.L, items, c.ColNameList)
		t.with = append(t.with, r)
		with := &pg.CommonTableExpr{Ctename: r.ref, Aliascolnames: names, Ctequery: statementNode(query),
			Ctematerialized: pg.CTEMaterialize_CTEMaterializeDefault, Location: -1}
		out.Ctes = append(out.Ctes, &pg.Node{Node: &pg.Node_CommonTableExpr{CommonTableExpr: with}})
	}
	return out
}

// defined is the WITH query of a name, or nil.
func (t *translator) defined(name string) *relation {
	for i := len(t.with) - 1; i >= 0; i-- {
		if t.with[i].alias == name {
			return &t.with[i]
		}
	}
	return nil
}

// operations are the set operations by the parser's names.
var operations = map[ast.SetOprType]struct {
	op  pg.SetOperation
	all bool
}{
	ast.Union: {pg.SetOperation_SETOP_UNION, false}, ast.UnionAll: {pg.SetOperation_SETOP_UNION, true},
	ast.Except: {pg.SetOperation_SETOP_EXCEPT, false}, ast.ExceptAll: {pg.SetOperation_SETOP_EXCEPT, true},
	ast.Intersect: {pg.SetOperation_SETOP_INTERSECT, false}, ast.IntersectAll: {pg.SetOperation_SETOP_INTERSECT, true},
}

// operation is the one before an operand of a set operation; nil before the first.
func operation(n ast.Node) *ast.SetOprType {
	if s, ok := n.(*ast.SelectStmt); ok {
		return s.AfterSetOperator
	}
	return n.(*ast.SetOprSelectList).AfterSetOperator
}

// sets translates a list of SELECTs, which the parser keeps in the order in which they were written, an operand in
// parentheses as a list of its own.
func (t *translator) sets(u *ast.SetOprSelectList, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	if len(u.Selects) == 1 {
		return t.bracketed(u, outer, first)
	}
	known := len(t.with)
	defer func() { t.with = t.with[:known] }()
	with := t.withs(u.With)
	var out *pg.SelectStmt
	var items []*item
	var sc *scope
	for i, n := range u.Selects {
		if s, ok := n.(*ast.SelectStmt); ok && (s.OrderBy != nil || s.Limit != nil) {
			bail(Construct, "ORDER BY or LIMIT before UNION", "Put that SELECT into parentheses.")
		}
		if t.depth+i > maxDepth {
			panic(tooDeep(-1))
		}
		query, columns := t.query(n, outer, first && i == 0)
		if i == 0 {
			out, items = query, columns
			continue
		}
		op := operations[*operation(n)]
		if i > 1 && (op.op == pg.SetOperation_SETOP_INTERSECT) != (out.Op == pg.SetOperation_SETOP_INTERSECT) {
			bail(Construct, "INTERSECT beside UNION or EXCEPT", "Put what comes first into parentheses.")
		}
		out = &pg.SelectStmt{Op: op.op, All: op.all, Larg: out, Rarg: query,
			LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
		items, sc = both(items, columns, op.op == pg.SetOperation_SETOP_UNION && op.all)
	}
	out.WithClause = with
	for _, o := range ordersOf(u.OrderBy) {
		out.SortClause = append(out.SortClause, t.sorted(t.ordinal(o.Expr, sc, items), o))
	}
	t.limit(out, u.Limit)
	return out, items
}

// bracketed translates one SELECT in parentheses, which may be followed by an order or limit that it lacks.
func (t *translator) bracketed(u *ast.SetOprSelectList, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	s, ok := u.Selects[0].(*ast.SelectStmt)
	if !ok {
		list := u.Selects[0].(*ast.SetOprSelectList)
		if u.OrderBy == nil && u.Limit == nil && u.With == nil {
			return t.query(list, outer, first)
		}
		if len(list.Selects) == 1 && list.OrderBy == nil && list.Limit == nil {
			s, _ = list.Selects[0].(*ast.SelectStmt)
		}
	}
	if s == nil || u.With != nil && u.With != s.With ||
		s.OrderBy != nil && u.OrderBy != nil || s.Limit != nil && (u.OrderBy != nil || u.Limit != nil) {
		bail(Construct, "ORDER BY, LIMIT or WITH outside these parentheses", "Write it inside, or SELECT from a sub-query.")
	}
	c := *s
	c.OrderBy, c.Limit = cmp.Or(u.OrderBy, c.OrderBy), cmp.Or(u.Limit, c.Limit)
	return t.selects(&c, outer, first)
}

// both are the columns of a set operation over two queries. kept: no rows of theirs are compared.
func both(left, right []*item, kept bool) ([]*item, *scope) {
	items := make([]*item, len(left))
	sc := &scope{aliases: map[string]*item{}}
	for i, l := range left {
		c := *l
		if i < len(right) {
			c.kind = l.kind.joined(right[i].kind)
		}
		if !kept {
			distinctTexts(c.value)
		}
		c.bare = false
		items[i] = &c
		sc.aliases[strings.ToLower(c.name)] = &c
	}
	return items, sc
}

func ordersOf(o *ast.OrderByClause) []*ast.ByItem {
	if o == nil {
		return nil
	}
	return o.Items
}

// ordinal is an ORDER BY item of a set operation: a position, or the name of a column.
func (t *translator) ordinal(e ast.ExprNode, sc *scope, items []*item) value {
	at := 0
	switch n := e.(type) {
	case *ast.PositionExpr:
		at = n.N
	case *ast.ColumnNameExpr:
		if it := sc.aliases[n.Name.Name.L]; it != nil && n.Name.Table.L == "" {
			at = it.at
		}
	}
	if at < 1 || at > len(items) {
		bail(Construct, "this ORDER BY of a UNION", "Order by a column's name or position.")
	}
	if it := items[at-1]; it.class == text && !inByteOrder(it.values) || it.class == unknown {
		bail(Collation, "the order of these texts", "Order in an outer SELECT by BINARY column, which is the order of the bytes.")
	}
	return value{node: intNode(at)}
}

func (t *translator) selects(s *ast.SelectStmt, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	switch {
	case s.LockInfo != nil:
		bail(Construct, "FOR UPDATE or FOR SHARE", "Leave it out: nothing is locked here.")
	case s.SelectIntoOpt != nil || s.Kind != ast.SelectStmtKindSelect:
		bail(Construct, "INTO, TABLE or VALUES", "Only SELECT is read in MySQL's dialect.")
	}
	known := len(t.with)
	defer func() { t.with = t.with[:known] }()
	out := &pg.SelectStmt{Op: pg.SetOperation_SETOP_NONE, WithClause: t.withs(s.With),
		LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
	sc := &scope{outer: outer, aliases: map[string]*item{}}
	out.FromClause = t.from(s.From, sc)
	if s.Where != nil {
		out.WhereClause = t.condition(s.Where, sc)
	}
	items := t.items(out, s, sc, first)
	if s.Distinct {
		out.DistinctClause = []*pg.Node{{}}
		for _, it := range items {
			distinctTexts(it.value)
		}
	}
	for _, it := range items {
		if low := strings.ToLower(it.name); it.name != "" && sc.aliases[low] == nil {
			sc.aliases[low] = it
		}
	}
	t.groupBy(out, s.GroupBy, sc, items)
	if s.Having != nil {
		out.HavingClause = t.condition(s.Having.Expr, sc.withAliases())
	}
	for i := range s.WindowSpecs {
		window := t.over(&s.WindowSpecs[i], sc)
		out.WindowClause = append(out.WindowClause, &pg.Node{Node: &pg.Node_WindowDef{WindowDef: window}})
	}
	for _, o := range ordersOf(s.OrderBy) {
		out.SortClause = append(out.SortClause, t.sorted(t.orderKey(o.Expr, sc), o))
	}
	t.limit(out, s.Limit)
	return out, items
}

// items translates the SELECT list.
func (t *translator) items(out *pg.SelectStmt, s *ast.SelectStmt, sc *scope, first bool) []*item {
	var items []*item
	for _, f := range s.Fields.Fields {
		if f.WildCard != nil {
			t.schemaOf(f.WildCard.Schema.O)
			fields, columns := t.star(f.WildCard.Table.L, sc)
			out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithVal(pg.MakeColumnRefNode(fields, -1), -1))
			for _, c := range columns {
				items = append(items, &item{value: value{kind: c.kind}, at: len(items) + 1, name: c.name, bare: true})
			}
			continue
		}
		it := t.item(f, sc)
		it.at = len(items) + 1
		if !first {
			it.name = strings.ToLower(it.name)
		}
		label := it.name
		if len(label) > maxLabel && f.AsName.O == "" || label == ownName(it.node) {
			label = ""
		}
		out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal(label, it.node, -1))
		items = append(items, it)
	}
	return items
}

// ownName is the name that PostgreSQL gives a plain column; empty for other expressions.
func ownName(n *pg.Node) string {
	fields := n.GetColumnRef().GetFields()
	if len(fields) == 0 {
		return ""
	}
	return fields[len(fields)-1].GetString_().GetSval()
}

// item is one item of a SELECT list, under the name that MySQL gives it: the text that was written.
func (t *translator) item(f *ast.SelectField, sc *scope) *item {
	it := &item{value: shown(t.expr(f.Expr, sc)), name: f.AsName.O}
	if it.name == "" {
		it.name = strings.TrimSpace(t.text[f.Offset:min(f.Offset+len(f.OriginalText()), len(t.text))])
	}
	switch e := f.Expr.(type) {
	case *ast.ColumnNameExpr:
		it.bare = f.AsName.O == "" || f.AsName.L == e.Name.Name.L
		if f.AsName.O == "" {
			it.name = e.Name.Name.O
		}
	case *ast.ValueExprBase:
		if f.AsName.O == "" && e.Kind() == ast.KindString {
			it.name = e.GetString()
		}
	}
	return it
}

func (t *translator) star(qualifier string, sc *scope) ([]*pg.Node, []column) {
	var fields []*pg.Node
	var columns []column
	for _, r := range sc.relations {
		if qualifier != "" && r.alias != qualifier {
			continue
		}
		if qualifier != "" {
			fields = []*pg.Node{pg.MakeStrNode(r.ref)}
		}
		for _, c := range r.columns {
			columns = append(columns, c)
		}
	}
	if qualifier != "" && fields == nil {
		fields = []*pg.Node{pg.MakeStrNode(qualifier)}
	}
	return append(fields, pg.MakeAStarNode()), columns
}

// groupBy translates GROUP BY. Where a name could be a column or an alias of another thing, MySQL warns; here it is
// refused.
func (t *translator) groupBy(out *pg.SelectStmt, g *ast.GroupByClause, sc *scope, items []*item) {
	if g == nil {
		return
	}
	var keys []*pg.Node
	for _, o := range g.Items {
		if o.Desc || !o.NullOrder {
			bail(Construct, "ASC or DESC in GROUP BY", "Order by ORDER BY.")
		}
		v, at := t.groupKey(o.Expr, sc, items)
		distinctTexts(v)
		if at > 0 && g.Rollup {
			v.node = items[at-1].node // a position has no meaning inside ROLLUP
		} else if at > 0 {
			v.node = intNode(at)
		}
		keys = append(keys, v.node)
	}
	if out.GroupClause = keys; g.Rollup {
		out.GroupClause = []*pg.Node{{Node: &pg.Node_GroupingSet{GroupingSet: &pg.GroupingSet{Kind: pg.GroupingSetKind_GROUPING_SET_ROLLUP, Content: keys, Location: -1}}}}
	}
}

// groupKey is one GROUP BY item, and the position in the SELECT list that it names, if it does.
func (t *translator) groupKey(e ast.ExprNode, sc *scope, items []*item) (value, int) {
	switch n := e.(type) {
	case *ast.PositionExpr:
		if n.N < 1 || n.N > len(items) || items[n.N-1].node == nil {
			bail(Construct, "this constant in GROUP BY", "Group by a column, an expression, or a position of the SELECT list.")
		}
		return items[n.N-1].value, n.N
	case *ast.ValueExprBase:
		bail(Construct, "this constant in GROUP BY", "Group by a column, an expression, or a position of the SELECT list.")
	case *ast.ColumnNameExpr:
		it := sc.aliases[n.Name.Name.L]
		if n.Name.Table.L != "" || it == nil || it.bare {
			break
		}
		if _, also := sc.find("", n.Name.Name.L); also {
			bail(Ambiguous, `"`+n.Name.Name.O+`"`, anotherName)
		}
		return it.value, it.at
	}
	return shown(t.expr(e, sc)), 0
}

// orderKey is one ORDER BY item: a position, an alias, or an expression, in which aliases may be used.
func (t *translator) orderKey(e ast.ExprNode, sc *scope) value {
	switch n := e.(type) {
	case *ast.PositionExpr:
		for _, it := range sc.aliases {
			if it.at == n.N && it.node != nil {
				return ordered(value{node: intNode(n.N), kind: it.kind}, it.node)
			}
		}
		bail(Construct, "this position in ORDER BY", "Count the columns of the SELECT from 1, or name the column.")
	case *ast.ColumnNameExpr:
		if it := sc.aliases[n.Name.Name.L]; n.Name.Table.L == "" && it != nil && it.node != nil {
			return ordered(value{node: intNode(it.at), kind: it.kind}, it.node)
		}
	}
	v := t.expr(e, sc.withAliases())
	return ordered(v, v.node)
}

// ordered sees to it that texts sort as MySQL sorts them.
func ordered(v value, node *pg.Node) value {
	switch {
	case v.class == text && (v.binary || v.caseless || inByteOrder(v.values)):
	case v.class == text && inFoldedOrder(v.values):
		v.node = call("lower", node)
	case v.class == text:
		bail(Collation, "the order of these texts", "ORDER BY BINARY column is the order of the bytes.")
	case v.class == unknown && !v.param:
		bail(Untyped, "ORDER BY", "ORDER BY BINARY column is the order of the bytes, if the column holds texts; or RESET dp.dialect.")
	}
	return v
}

// sorted gives NULL its place in MySQL's order: before everything else.
func (t *translator) sorted(v value, o *ast.ByItem) *pg.Node {
	if o.Desc {
		return pg.MakeSortByNode(v.node, pg.SortByDir_SORTBY_DESC, pg.SortByNulls_SORTBY_NULLS_LAST, -1)
	}
	return pg.MakeSortByNode(v.node, pg.SortByDir_SORTBY_ASC, pg.SortByNulls_SORTBY_NULLS_FIRST, -1)
}

func (t *translator) limit(out *pg.SelectStmt, l *ast.Limit) {
	if l == nil {
		return
	}
	out.LimitOption = pg.LimitOption_LIMIT_OPTION_COUNT
	out.LimitCount = t.whole(l.Count)
	if l.Offset != nil {
		out.LimitOffset = t.whole(l.Offset)
	}
}

// whole is a number of rows.
func (t *translator) whole(e ast.ExprNode) *pg.Node {
	switch n := e.(type) {
	case *ast.ParamMarkerExprBase:
		return t.param(n).node
	case *ast.ValueExprBase:
		if n.Kind() == ast.KindUint64 || n.Kind() == ast.KindInt64 {
			return numberNode(strconv.FormatUint(n.GetUint64(), 10))
		}
	}
	bail(Construct, "this number of rows", "Write a whole number.")
	return nil
}
