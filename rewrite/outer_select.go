package rewrite

import (
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/policy"
)

// target is an item of a select list.
type target struct {
	name string
	expr expr
}

// selection binds a plain SELECT.
func (b *binder) selection(s *pg.SelectStmt, sc *scope) relation {
	from := b.from(s.GetFromClause(), sc)
	where := b.condition(s.GetWhereClause(), sc)
	sc.windows = map[string]*pg.WindowDef{}
	for _, w := range s.GetWindowClause() {
		sc.windows[w.GetWindowDef().GetName()] = w.GetWindowDef()
	}
	targets := b.targets(s.GetTargetList(), sc)
	group := b.groupBy(s, sc, targets)
	if having := b.condition(s.GetHavingClause(), sc); having != "" {
		group += " HAVING " + having
	}
	q := relation{}
	series := false
	var items []string
	for i, t := range targets {
		name := `"c` + strconv.Itoa(i+1) + `"`
		q.columns = append(q.columns, column{name: t.name, sql: name, typed: t.expr.typed})
		items = append(items, t.expr.sql+" AS "+name)
		series = series || t.expr.series
	}
	tail := from
	if where != "" {
		tail += " WHERE " + where
	}
	tail += group
	if len(s.GetDistinctClause()) > 0 {
		return b.distinct(s, sc, targets, q, items, tail)
	}
	if series {
		q.sql = "SELECT " + orTrue(items) + tail
		return b.sorted(s, q, sc)
	}
	order, keys := b.orderBy(s, sc, targets)
	items = append(items, keys...)
	q.sql = "SELECT " + orTrue(items) + tail
	q.orderBy = order + b.limits(s, sc)
	return q
}

func orTrue(items []string) string {
	if len(items) == 0 {
		return "true AS c0"
	}
	return strings.Join(items, ", ")
}

// distinct binds SELECT DISTINCT and DISTINCT ON.
func (b *binder) distinct(s *pg.SelectStmt, sc *scope, targets []target, q relation, items []string, tail string) relation {
	on := s.GetDistinctClause()
	if len(on) == 1 && on[0].GetNode() == nil {
		for _, t := range targets {
			comparable(t.expr, "DISTINCT")
		}
		q.sql = "SELECT DISTINCT " + orTrue(items) + tail
		return b.sorted(s, q, sc)
	}
	order, keys := b.orderBy(s, sc, targets)
	var names []string
	for i, node := range on {
		name := `"d` + strconv.Itoa(i+1) + `"`
		keys = append(keys, b.keyOf(b.output(node, sc, targets, "DISTINCT ON"))+" AS "+name)
		names = append(names, name)
	}
	inner := "SELECT " + orTrue(append(items, keys...)) + tail
	q.sql = "SELECT DISTINCT ON (" + strings.Join(names, ", ") + ") * FROM (" + inner + ") AS " + b.fresh("q") + order
	q.orderBy = order + b.limits(s, sc)
	return q
}

// comparable refuses what cannot be compared for equality by its stored form.
func comparable(e expr, where string) {
	if e.oid == policy.NumericType && !e.even {
		cannot(where + " over computed numeric values")
	}
	if e.oid == typeRecord {
		cannot(where + " over rows")
	}
}

// sorted puts ORDER BY and LIMIT around a finished query: its sort keys may only be columns of the answer, or, where a
// set-returning function stands in the select list, nothing else either.
func (b *binder) sorted(s *pg.SelectStmt, q relation, sc *scope) relation {
	if len(s.GetSortClause()) == 0 {
		q.orderBy = b.limits(s, sc)
		return q
	}
	alias := b.fresh("q")
	var targets []target
	for _, c := range q.columns {
		targets = append(targets, target{c.name, expr{sql: alias + "." + c.sql, typed: c.typed}})
	}
	order, keys := b.orderBy(s, &scope{entries: nil, parent: nil}, targets)
	q.sql = "SELECT " + alias + ".*, " + strings.Join(keys, ", ") + " FROM (" + q.sql + ") AS " + alias
	q.orderBy = order + b.limits(s, sc)
	return q
}

// orderBy returns the ORDER BY over hidden columns s1, s2, … and the select items that make them.
func (b *binder) orderBy(s *pg.SelectStmt, sc *scope, targets []target) (string, []string) {
	var keys, terms []string
	for i, node := range s.GetSortClause() {
		by := node.GetSortBy()
		name := `"s` + strconv.Itoa(i+1) + `"`
		keys = append(keys, b.keyOf(b.output(by.GetNode(), sc, targets, "ORDER BY"))+" AS "+name)
		terms = append(terms, name+direction(by))
	}
	if terms == nil {
		return "", nil
	}
	return " ORDER BY " + strings.Join(terms, ", "), keys
}

// direction writes ASC or DESC and where NULLs go: PostgreSQL sorts them as larger than everything.
func direction(by *pg.SortBy) string {
	if len(by.GetUseOp()) > 0 {
		cannot("ORDER BY … USING")
	}
	descending := by.GetSortbyDir() == pg.SortByDir_SORTBY_DESC
	first := descending
	switch by.GetSortbyNulls() {
	case pg.SortByNulls_SORTBY_NULLS_FIRST:
		first = true
	case pg.SortByNulls_SORTBY_NULLS_LAST:
		first = false
	}
	text := " ASC"
	if descending {
		text = " DESC"
	}
	if first {
		return text + " NULLS FIRST"
	}
	return text + " NULLS LAST"
}

// output binds an item of ORDER BY or DISTINCT ON: the number or name of an output column, or an expression.
func (b *binder) output(node *pg.Node, sc *scope, targets []target, where string) expr {
	if t := numbered(node, targets, where); t != nil {
		return t.expr
	}
	if t := called(simpleName(node), targets, where); t != nil {
		return t.expr
	}
	return b.expr(node, sc)
}

// called returns the output column of that name, nil when there is none.
func called(name string, targets []target, where string) *target {
	var found *target
	for i := range targets {
		if name == "" || targets[i].name != name {
			continue
		}
		if found != nil && found.expr.sql != targets[i].expr.sql {
			wrong("42702", where+` "`+name+`" is ambiguous`, 0)
		}
		found = &targets[i]
	}
	return found
}

// numbered returns the output column that an integer constant names.
func numbered(node *pg.Node, targets []target, where string) *target {
	c := node.GetAConst()
	if c == nil {
		return nil
	}
	if _, ok := c.GetVal().(*pg.A_Const_Ival); !ok {
		wrong("42601", "non-integer constant in "+where, 0)
	}
	n := int(c.GetIval().GetIval())
	if n < 1 || n > len(targets) {
		wrong("42P10", where+" position "+strconv.Itoa(n)+" is not in select list", 0)
	}
	return &targets[n-1]
}

func simpleName(node *pg.Node) string {
	ref := node.GetColumnRef()
	if ref == nil || len(ref.GetFields()) != 1 {
		return ""
	}
	return ref.GetFields()[0].GetString_().GetSval()
}

// keyOf is the text that sorts and compares as a value does.
func (b *binder) keyOf(e expr) string {
	switch {
	case e.oid == policy.NumericType:
		return numericKey(e.sql)
	case e.oid == typeRecord:
		cannot("ordering by rows")
	}
	return e.sql
}

func numericKey(sql string) string { return "split_part(" + sql + ", '|', 1)" }

// limits writes LIMIT and OFFSET.
func (b *binder) limits(s *pg.SelectStmt, sc *scope) string {
	if s.GetLimitOption() == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		cannot("FETCH … WITH TIES")
	}
	outer := &scope{parent: sc.parent, with: sc.with}
	text := ""
	if node := s.GetLimitCount(); node != nil && !isNull(node) {
		text += " LIMIT " + b.cast(b.expr(node, outer), typed{oid: policy.Int8, mod: -1}, false).sql
	}
	if node := s.GetLimitOffset(); node != nil && !isNull(node) {
		text += " OFFSET " + b.cast(b.expr(node, outer), typed{oid: policy.Int8, mod: -1}, false).sql
	}
	return text
}

func isNull(node *pg.Node) bool { return node.GetAConst() != nil && node.GetAConst().GetIsnull() }

// condition binds a WHERE or HAVING clause.
func (b *binder) condition(node *pg.Node, sc *scope) string {
	if node == nil {
		return ""
	}
	return b.boolean(b.expr(node, sc)).sql
}

// groupBy binds GROUP BY.
func (b *binder) groupBy(s *pg.SelectStmt, sc *scope, targets []target) string {
	if s.GetGroupDistinct() {
		cannot("GROUP BY DISTINCT")
	}
	var terms []string
	for _, node := range s.GetGroupClause() {
		terms = append(terms, b.groupTerm(node, sc, targets))
	}
	if terms == nil {
		return ""
	}
	return " GROUP BY " + strings.Join(terms, ", ")
}

func (b *binder) groupTerm(node *pg.Node, sc *scope, targets []target) string {
	if set := node.GetGroupingSet(); set != nil {
		var parts []string
		for _, n := range set.GetContent() {
			parts = append(parts, b.groupTerm(n, sc, targets))
		}
		list := "(" + strings.Join(parts, ", ") + ")"
		switch set.GetKind() {
		case pg.GroupingSetKind_GROUPING_SET_ROLLUP:
			return "ROLLUP " + list
		case pg.GroupingSetKind_GROUPING_SET_CUBE:
			return "CUBE " + list
		case pg.GroupingSetKind_GROUPING_SET_SETS:
			return "GROUPING SETS " + list
		}
		return list
	}
	if row := node.GetRowExpr(); row != nil {
		var parts []string
		for _, n := range row.GetArgs() {
			parts = append(parts, b.groupTerm(n, sc, targets))
		}
		return "(" + strings.Join(parts, ", ") + ")"
	}
	e := b.groupExpr(node, sc, targets)
	comparable(e, "GROUP BY")
	return e.sql
}

func (b *binder) groupExpr(node *pg.Node, sc *scope, targets []target) expr {
	if t := numbered(node, targets, "GROUP BY"); t != nil {
		return t.expr
	}
	if name := simpleName(node); !b.known(name, sc) {
		if t := called(name, targets, "GROUP BY"); t != nil {
			return t.expr
		}
	}
	return b.expr(node, sc)
}

// known tells whether the query's own FROM has a column of that name.
func (b *binder) known(name string, sc *scope) bool {
	for _, c := range sc.visible {
		if c.name == name {
			return true
		}
	}
	return false
}

// targets binds a select list.
func (b *binder) targets(list []*pg.Node, sc *scope) []target {
	var out []target
	for _, node := range list {
		item := node.GetResTarget()
		if columns, star := b.star(item.GetVal(), sc); star {
			for _, c := range columns {
				out = append(out, target{c.name, expr{sql: c.sql, typed: c.typed}})
			}
			continue
		}
		name := item.GetName()
		if name == "" {
			name, _ = ast.ColumnName(item.GetVal())
		}
		if name == "" {
			name = ast.Unnamed
		}
		out = append(out, target{name, b.expr(item.GetVal(), sc)})
	}
	return out
}

// star expands *, t.* and (row).*.
func (b *binder) star(node *pg.Node, sc *scope) ([]column, bool) {
	if ind := node.GetAIndirection(); ind != nil {
		last := ind.GetIndirection()[len(ind.GetIndirection())-1]
		if last.GetAStar() == nil || len(ind.GetIndirection()) > 1 {
			return nil, false
		}
		row := b.expr(ind.GetArg(), sc)
		var out []column
		for _, f := range row.fields {
			out = append(out, column{name: f.name, sql: "(" + row.sql + ")." + f.sql, typed: f.typed})
		}
		return out, true
	}
	ref := node.GetColumnRef()
	if ref == nil || ref.GetFields()[len(ref.GetFields())-1].GetAStar() == nil {
		return nil, false
	}
	names := identifiers(ref.GetFields()[:len(ref.GetFields())-1])
	if len(names) == 0 {
		return sc.visible, true
	}
	e := b.entry(names, sc)
	if e == nil {
		wrong("42P01", `missing FROM-clause entry for table "`+names[len(names)-1]+`"`, ref.GetLocation())
	}
	return e.columns, true
}

func identifiers(nodes []*pg.Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.GetString_().GetSval()
	}
	return out
}
