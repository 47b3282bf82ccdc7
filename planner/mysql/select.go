package mysql

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/xwb1989/sqlparser"

	"github.com/dpproxy/dpproxy/policy"
)

// translator makes PostgreSQL's nodes of the parser's. Its methods leave by bail where they refuse.
type translator struct {
	dataset *policy.Dataset
	labels  []string // of the first SELECT's items
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

// query translates a SELECT or UNION and returns its columns. The columns of the first are named as MySQL names them.
func (t *translator) query(s sqlparser.SelectStatement, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	t.enter()
	defer t.leave()
	switch n := s.(type) {
	case *sqlparser.Select:
		return t.selects(n, outer, first)
	case *sqlparser.ParenSelect:
		return t.query(n.Select, outer, first)
	case *sqlparser.Union:
		return t.union(n, outer, first)
	}
	bail(Construct, "this statement", "Only SELECT is read in MySQL's dialect.")
	return nil, nil
}

func (t *translator) union(u *sqlparser.Union, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	if u.Lock != "" {
		bail(Construct, strings.TrimSpace(strings.ToUpper(u.Lock)), "Leave it out: nothing is locked here.")
	}
	loose := func(order sqlparser.OrderBy, limit *sqlparser.Limit) {
		if len(order) > 0 || limit != nil {
			bail(Construct, "ORDER BY or LIMIT before UNION", "Put that SELECT into parentheses.")
		}
	}
	switch left := u.Left.(type) {
	case *sqlparser.Select:
		loose(left.OrderBy, left.Limit)
	case *sqlparser.Union:
		loose(left.OrderBy, left.Limit)
	}
	out := &pg.SelectStmt{Op: pg.SetOperation_SETOP_UNION, All: u.Type == sqlparser.UnionAllStr, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
	var left, right []*item
	out.Larg, left = t.query(u.Left, outer, first)
	out.Rarg, right = t.query(u.Right, outer, false)
	items := make([]*item, len(left))
	sc := &scope{aliases: map[string]*item{}}
	for i, l := range left {
		c := *l
		if i < len(right) {
			c.kind = l.kind.joined(right[i].kind)
		}
		if !out.All {
			distinctTexts(c.value)
		}
		c.bare = false
		items[i] = &c
		sc.aliases[strings.ToLower(c.name)] = &c
	}
	for _, o := range u.OrderBy {
		out.SortClause = append(out.SortClause, t.sorted(t.ordinal(o.Expr, sc, items), o))
	}
	t.limit(out, u.Limit)
	return out, items
}

// ordinal is an ORDER BY item of a UNION: a position, or the name of a column.
func (t *translator) ordinal(e sqlparser.Expr, sc *scope, items []*item) value {
	at := 0
	switch n := e.(type) {
	case *sqlparser.SQLVal:
		at, _ = strconv.Atoi(string(n.Val))
	case *sqlparser.ColName:
		if it := sc.aliases[n.Name.Lowered()]; it != nil && n.Qualifier.IsEmpty() {
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

func (t *translator) selects(s *sqlparser.Select, outer *scope, first bool) (*pg.SelectStmt, []*item) {
	if s.Lock != "" {
		bail(Construct, strings.TrimSpace(strings.ToUpper(s.Lock)), "Leave it out: nothing is locked here.")
	}
	out := &pg.SelectStmt{Op: pg.SetOperation_SETOP_NONE, LimitOption: pg.LimitOption_LIMIT_OPTION_DEFAULT}
	sc := &scope{outer: outer, aliases: map[string]*item{}}
	out.FromClause = t.from(s.From, sc)
	if s.Where != nil {
		out.WhereClause = t.condition(s.Where.Expr, sc)
	}
	items := t.items(out, s, sc, first)
	if s.Distinct != "" {
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
	for _, o := range s.OrderBy {
		out.SortClause = append(out.SortClause, t.sorted(t.orderKey(o.Expr, sc), o))
	}
	t.limit(out, s.Limit)
	return out, items
}

// items translates the SELECT list.
func (t *translator) items(out *pg.SelectStmt, s *sqlparser.Select, sc *scope, first bool) []*item {
	var items []*item
	for i, e := range s.SelectExprs {
		switch n := e.(type) {
		case *sqlparser.StarExpr:
			fields, columns := t.star(n, sc)
			out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithVal(pg.MakeColumnRefNode(fields, -1), -1))
			for _, c := range columns {
				items = append(items, &item{value: value{kind: c.kind}, at: len(items) + 1, name: c.name, bare: true})
			}
		case *sqlparser.AliasedExpr:
			it := t.item(n, sc)
			it.at = len(items) + 1
			label := it.name
			if first && len(t.labels) == len(s.SelectExprs) {
				label = t.labels[i]
			}
			switch e := n.Expr.(type) {
			case *sqlparser.ColName:
				label = e.Name.String()
			case *sqlparser.SQLVal:
				if e.Type == sqlparser.StrVal {
					label = string(e.Val)
				}
			}
			if !n.As.IsEmpty() {
				label = n.As.String()
			}
			if !first {
				label = strings.ToLower(label)
			}
			it.name = label
			if len(label) > maxLabel && n.As.IsEmpty() || label == ownName(it.node) {
				label = ""
			}
			out.TargetList = append(out.TargetList, pg.MakeResTargetNodeWithNameAndVal(label, it.node, -1))
			items = append(items, it)
		default:
			bail(Construct, "this item of the SELECT list", "List columns and expressions.")
		}
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

func (t *translator) item(n *sqlparser.AliasedExpr, sc *scope) *item {
	v := t.expr(n.Expr, sc)
	it := &item{value: shown(v), name: sqlparser.String(n.Expr)}
	if c, ok := n.Expr.(*sqlparser.ColName); ok {
		it.bare = n.As.IsEmpty() || n.As.EqualString(c.Name.String())
	}
	return it
}

func (t *translator) star(n *sqlparser.StarExpr, sc *scope) ([]*pg.Node, []column) {
	var fields []*pg.Node
	qualifier := strings.ToLower(n.TableName.Name.String())
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
func (t *translator) groupBy(out *pg.SelectStmt, list sqlparser.GroupBy, sc *scope, items []*item) {
	var keys []*pg.Node
	rolled := false
	for i, e := range list {
		if f, ok := e.(*sqlparser.FuncExpr); ok && f.Name.String() == rollup && i == len(list)-1 {
			rolled = true
			continue
		}
		v, at := t.groupKey(e, sc, items)
		distinctTexts(v)
		if at > 0 && rolls(list) {
			v.node = items[at-1].node // a position has no meaning inside ROLLUP
		} else if at > 0 {
			v.node = intNode(at)
		}
		keys = append(keys, v.node)
	}
	if out.GroupClause = keys; rolled {
		out.GroupClause = []*pg.Node{{Node: &pg.Node_GroupingSet{GroupingSet: &pg.GroupingSet{Kind: pg.GroupingSetKind_GROUPING_SET_ROLLUP, Content: keys, Location: -1}}}}
	}
}

func rolls(list sqlparser.GroupBy) bool {
	f, ok := list[len(list)-1].(*sqlparser.FuncExpr)
	return ok && f.Name.String() == rollup
}

// groupKey is one GROUP BY item, and the position in the SELECT list that it names, if it does.
func (t *translator) groupKey(e sqlparser.Expr, sc *scope, items []*item) (value, int) {
	switch n := e.(type) {
	case *sqlparser.SQLVal:
		at, err := strconv.Atoi(string(n.Val))
		if n.Type != sqlparser.IntVal || err != nil || at < 1 || at > len(items) || items[at-1].node == nil {
			bail(Construct, "this constant in GROUP BY", "Group by a column, an expression, or a position of the SELECT list.")
		}
		return items[at-1].value, at
	case *sqlparser.ColName:
		it := sc.aliases[n.Name.Lowered()]
		if !n.Qualifier.IsEmpty() || it == nil || it.bare {
			break
		}
		if _, also := sc.find("", n.Name.Lowered()); also {
			bail(Ambiguous, `"`+n.Name.String()+`"`, "It names a column and an alias of something else: give the alias another name.")
		}
		return it.value, it.at
	}
	return shown(t.expr(e, sc)), 0
}

// orderKey is one ORDER BY item: a position, an alias, or an expression, in which aliases may stand.
func (t *translator) orderKey(e sqlparser.Expr, sc *scope) value {
	if n, ok := e.(*sqlparser.SQLVal); ok && n.Type == sqlparser.IntVal {
		at, _ := strconv.Atoi(string(n.Val))
		for _, it := range sc.aliases {
			if it.at == at && it.node != nil {
				return ordered(value{node: intNode(at), kind: it.kind}, it.node)
			}
		}
		bail(Construct, "this position in ORDER BY", "Count the columns of the SELECT from 1, or name the column.")
	}
	if n, ok := e.(*sqlparser.ColName); ok && n.Qualifier.IsEmpty() {
		if it := sc.aliases[n.Name.Lowered()]; it != nil && it.node != nil {
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
func (t *translator) sorted(v value, o *sqlparser.Order) *pg.Node {
	if o.Direction == sqlparser.DescScr {
		return pg.MakeSortByNode(v.node, pg.SortByDir_SORTBY_DESC, pg.SortByNulls_SORTBY_NULLS_LAST, -1)
	}
	return pg.MakeSortByNode(v.node, pg.SortByDir_SORTBY_ASC, pg.SortByNulls_SORTBY_NULLS_FIRST, -1)
}

func (t *translator) limit(out *pg.SelectStmt, l *sqlparser.Limit) {
	if l == nil {
		return
	}
	whole := func(e sqlparser.Expr) *pg.Node {
		n, ok := e.(*sqlparser.SQLVal)
		if !ok || n.Type != sqlparser.IntVal && n.Type != sqlparser.ValArg {
			bail(Construct, "this LIMIT", "Write a whole number.")
		}
		return t.literal(n).node
	}
	out.LimitOption = pg.LimitOption_LIMIT_OPTION_COUNT
	out.LimitCount = whole(l.Rowcount)
	if l.Offset != nil {
		out.LimitOffset = whole(l.Offset)
	}
}
