package outer

import (
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// Sort keys are hidden columns (s1, s2, …), because the order may be by what is not in the answer. NULL is larger than everything,
// as in PostgreSQL.
//
//	SELECT k FROM leaf_1 ORDER BY n DESC LIMIT 3
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."k" AS "c1", "t1"."n" AS "s1" FROM "leaf_1" AS "t1") AS "q2" ORDER BY "s1" DESC
//	  NULLS FIRST LIMIT CAST(CAST(3 AS INTEGER) AS BIGINT)

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
		targets = append(targets, target{c.name, c.of(alias).value()})
	}
	order, keys := b.orderBy(s, &scope{entries: nil, parent: nil}, targets)
	q.sql = "SELECT " + alias + ".*, " + strings.Join(keys, ", ") + " FROM (" + q.sql + ") AS " + alias
	q.orderBy = order + b.limits(s, sc)
	return q
}

// sortedByTargets numbers the sort keys of a SELECT DISTINCT that are expressions of its select list, as all must be.
func (b *binder) sortedByTargets(s *pg.SelectStmt, sc *scope, targets []target) *pg.SelectStmt {
	out := &pg.SelectStmt{LimitOption: s.GetLimitOption(), LimitCount: s.GetLimitCount(), LimitOffset: s.GetLimitOffset()}
	for _, node := range s.GetSortClause() {
		by := node.GetSortBy()
		if numbered(by.GetNode(), targets, "ORDER BY") == nil && called(simpleName(by.GetNode()), targets, "ORDER BY") == nil {
			key := b.expr(by.GetNode(), sc).sql
			i := slices.IndexFunc(targets, func(t target) bool { return t.expr.sql == key })
			if i < 0 {
				wrong("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list", 0)
			}
			by = &pg.SortBy{Node: pg.MakeAConstIntNode(int64(i+1), -1), SortbyDir: by.GetSortbyDir(), SortbyNulls: by.GetSortbyNulls(), UseOp: by.GetUseOp()}
		}
		out.SortClause = append(out.SortClause, &pg.Node{Node: &pg.Node_SortBy{SortBy: by}})
	}
	return out
}

// orderBy returns the ORDER BY over hidden columns s1, s2, … and the select items that make them.
func (b *binder) orderBy(s *pg.SelectStmt, sc *scope, targets []target) (string, []string) {
	var keys, terms []string
	for i, node := range s.GetSortClause() {
		by := node.GetSortBy()
		name := columnName("s", i)
		keys = append(keys, b.keyOf(b.output(by.GetNode(), sc, targets, "ORDER BY"))+" AS "+name)
		terms = append(terms, name+direction(by))
	}
	if terms == nil {
		return "", nil
	}
	return " ORDER BY " + strings.Join(terms, ", "), keys
}

// ordering writes the ORDER BY of a window or an aggregate, where numbers and names of output columns mean nothing.
func (b *binder) ordering(nodes []*pg.Node, sc *scope) string {
	var parts []string
	for _, node := range nodes {
		parts = append(parts, b.orderKey(b.expr(node.GetSortBy().GetNode(), sc))+direction(node.GetSortBy()))
	}
	return strings.Join(parts, ", ")
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
	return map[bool]string{false: " ASC", true: " DESC"}[descending] + map[bool]string{false: " NULLS LAST", true: " NULLS FIRST"}[first]
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

// keyOf is what sorts as a value does, and is equal where values are.
func (b *binder) keyOf(e expr) string {
	if one := aligned(e); one != nil {
		return one[0]
	}
	return b.textKey(e)
}

// textKey is what sorts and compares as a value does, of a numeric a text.
func (b *binder) textKey(e expr) string {
	switch {
	case e.oid == policy.NumericType:
		return numericKey(e.sql)
	case e.oid == policy.Bpchar: // blanks at its end say nothing
		return "rtrim(" + e.sql + ", ' ')"
	case e.oid == typeRecord:
		cannot("ordering by rows")
	case elements[e.oid] == policy.Bpchar:
		x := b.fresh("x")
		return "list_transform(" + e.sql + ", lambda " + x + " : rtrim(" + x + ", ' '))"
	case elements[e.oid] == policy.NumericType:
		x := b.fresh("x")
		return "list_transform(" + e.sql + ", lambda " + x + " : " + numericKey(x) + ")"
	}
	return e.sql
}

// orderKey is keyOf in a window or an aggregate: DuckDB takes a value back from the key that it sorts by, which knows no −0.
func (b *binder) orderKey(e expr) string {
	if e.oid.Floating() {
		return "(CASE WHEN " + e.sql + " = 0 THEN 0 ELSE " + e.sql + " END)"
	}
	return b.keyOf(e)
}

func numericKey(sql string) string { return "split_part(" + sql + ", '|', 1)" }

// limits writes LIMIT and OFFSET.
func (b *binder) limits(s *pg.SelectStmt, sc *scope) string {
	if s.GetLimitOption() == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		cannot("FETCH … WITH TIES")
	}
	outer := &scope{parent: sc.parent, with: sc.with}
	limit := func(word string, node *pg.Node) string {
		if node == nil || node.GetAConst().GetIsnull() {
			return ""
		}
		if node.GetAConst().GetIval().GetIval() < 0 {
			wrong(map[string]string{" LIMIT ": "2201W", " OFFSET ": "2201X"}[word], strings.TrimSpace(word)+" must not be negative", 0)
		}
		return word + b.cast(b.expr(node, outer), int8Type).sql
	}
	return limit(" LIMIT ", s.GetLimitCount()) + limit(" OFFSET ", s.GetLimitOffset())
}
