package outer

import (
	"cmp"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Tables of a FROM clause are those of WITH, released leaves, public tables and the catalogs, looked for in this order; each gets
// an alias of its own, and columns that USING merges come first.
//
//	SELECT k, a.n FROM leaf_1 AS a LEFT JOIN leaf_1 AS b USING (k)
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT "t1"."k" AS "c1", "t1"."n" AS "c2" FROM ("leaf_1" AS "t1" LEFT JOIN
//	  "leaf_1" AS "t2" ON (("t1"."k" = "t2"."k")))) AS "q3"

// item is a bound item of a FROM clause.
type item struct {
	sql     string
	entries []*entry
	visible []column
	certain
}

// from binds a FROM clause; an item that may look sideways sees the items before it.
func (b *binder) from(list []*pg.Node, sc *scope) string {
	var parts []string
	known := certain{rows: true}
	for _, node := range list {
		it := b.fromItem(node, sc)
		known = known.both(it.certain)
		parts = append(parts, it.sql)
		sc.entries = append(sc.entries, it.entries...)
		sc.visible = append(sc.visible, it.visible...)
	}
	sc.certain = known
	if parts == nil {
		return ""
	}
	return " FROM " + strings.Join(parts, ", ")
}

func (b *binder) fromItem(node *pg.Node, sc *scope) (it item) {
	if b.parameters == nil {
		return b.boundItem(node, sc)
	}
	b.attempt(func() { it = b.boundItem(node, sc) }) // one that cannot be bound has no columns that are known
	return it
}

func (b *binder) boundItem(node *pg.Node, sc *scope) item {
	switch n := node.GetNode().(type) {
	case *pg.Node_RangeVar:
		return b.table(n.RangeVar, sc)
	case *pg.Node_RangeSubselect:
		r := n.RangeSubselect
		outer := sc
		if !r.GetLateral() {
			outer = &scope{parent: sc.parent, with: sc.with}
		}
		q := b.nested(r.GetSubquery().GetSelectStmt(), outer)
		return b.tabled(b.derived("("+q.sql+")", "", "", q.columns, r.GetAlias()), q.certain)
	case *pg.Node_RangeFunction:
		return b.rangeFunction(n.RangeFunction, sc)
	case *pg.Node_JoinExpr:
		return b.join(n.JoinExpr, sc)
	}
	cannot("this kind of table in FROM")
	return item{}
}

// derived gives a table expression an alias.
func (b *binder) derived(sql, schema, name string, columns []column, alias *pg.Alias) item {
	t := b.fresh("t")
	e := &entry{schema: schema, alias: name}
	if alias != nil {
		e.schema, e.alias = "", alias.GetAliasname()
		columns = renamed(columns, alias.GetColnames())
	}
	e.columns = slices.Clone(columns)
	for i := range e.columns {
		e.columns[i] = e.columns[i].of(t)
	}
	return item{sql: sql + " AS " + t, entries: []*entry{e}, visible: e.columns}
}

// table binds a named table: of a WITH clause, a leaf, a public table, or one of the catalogs.
func (b *binder) table(r *pg.RangeVar, sc *scope) item {
	schema, name := r.GetSchemaname(), r.GetRelname()
	if schema == "" {
		for s := sc; s != nil; s = s.parent {
			for i := len(s.with) - 1; i >= 0; i-- {
				if s.with[i].name == name {
					return b.tabled(b.derived(s.with[i].sql, "", name, s.with[i].columns, r.GetAlias()), s.with[i].certain)
				}
			}
		}
		if columns := b.leaf(name); columns != nil {
			return b.tabled(b.derived(dialect.QuoteName(name), "", name, columns, r.GetAlias()), b.ofLeaf(name))
		}
	}
	for _, rel := range b.plan.Outer.Relations {
		if rel.Public != nil && rel.Name == name && (schema == "" || schema == rel.Schema) {
			var columns []column
			held := make([]Column, len(rel.Public.Columns))
			for i, c := range rel.Public.Columns {
				t, mod := c.DescribedType()
				held[i] = Column{Name: c.Name, Type: t, Typmod: mod}
				columns = append(columns, column{c.Name, dialect.QuoteName(c.Name), typed{oid: t, mod: mod, even: mod >= 0}, nil})
			}
			for _, d := range DecimalsOf(held) {
				columns[d.Of].decimal = &decimal{sql: dialect.QuoteName(d.Name), digits: int(d.Digits), scale: int(d.Scale), typ: d.Type}
			}
			b.reads(rel.Schema + "." + name)
			return b.derived(dialect.QuoteName(rel.Schema+"."+name), rel.Schema, name, columns, r.GetAlias())
		}
	}
	if schema == "" {
		schema = "pg_catalog"
	}
	rel := pgcatalog.Lookup(schema, name)
	if rel == nil {
		wrong("42P01", `relation "`+name+`" does not exist`, r.GetLocation())
	}
	columns, table := catalogColumns(rel.Columns), dialect.QuoteName(schema+"."+name)
	if pgcatalog.Filled(schema, name) {
		b.reads(schema + "." + name)
	} else {
		table = noRows(columns)
	}
	it := b.derived(table, schema, name, columns, r.GetAlias())
	it.entries[0].oid = rel.Oid
	return it
}

// noRows is a table expression of those columns.
func noRows(columns []column) string {
	var items []string
	for _, c := range columns {
		items = append(items, "CAST(NULL AS "+Storage(c.oid)+") AS "+c.sql)
	}
	return "(SELECT " + strings.Join(items, ", ") + " WHERE false)"
}

func catalogColumns(given []pgcatalog.Column) []column {
	columns := make([]column, len(given))
	for i, c := range given {
		columns[i] = column{c.Name, dialect.QuoteName(c.Name), typed{oid: c.Type, mod: c.Typmod}, nil}
	}
	return columns
}

// leaf returns the columns of a released table, nil when there is none of that name.
func (b *binder) leaf(name string) []column {
	for _, l := range b.plan.Leaves {
		if l.Name != name {
			continue
		}
		columns := []column{}
		for _, k := range l.Keys {
			columns = append(columns, column{k.Name, dialect.QuoteName(k.Name), typed{oid: k.Type, mod: k.Typmod, even: oneScale(k.Values), ragged: k.Type == policy.Bpchar && k.Typmod < 4}, nil})
		}
		for _, c := range l.Counts {
			t := of(cmp.Or(c.Type, policy.Int8))
			if t.oid == policy.Bpchar {
				t = typed{oid: t.oid, mod: c.Typmod, even: true, ragged: c.Typmod < 4}
			}
			columns = append(columns, column{c.Name, dialect.QuoteName(c.Name), t, nil})
		}
		return columns
	}
	return nil
}

// ragged tells a leaf of which a key is a choice among chars, whose blanks are not known.
func ragged(l *plans.Leaf) bool {
	return slices.ContainsFunc(l.Keys, func(k plans.KeyColumn) bool { return k.Type == policy.Bpchar && k.Typmod < 4 }) ||
		slices.ContainsFunc(l.Counts, func(c plans.CountColumn) bool { return c.Type == policy.Bpchar && c.Typmod < 4 })
}

// oneScale tells whether all numerics have one scale.
func oneScale(values []policy.Value) bool {
	scale := int32(-1)
	for _, v := range values {
		if n, ok := v.(policy.Numeric); ok {
			if scale >= 0 && n.Scale != scale {
				return false
			}
			scale = n.Scale
		}
	}
	return true
}

// join binds a JOIN. Its ON clause sees both sides and what stands outside.
func (b *binder) join(j *pg.JoinExpr, sc *scope) item {
	if j.GetAlias() != nil || j.GetJoinUsingAlias() != nil {
		cannot("an alias of a JOIN")
	}
	left := b.fromItem(j.GetLarg(), sc)
	side := &scope{parent: sc.parent, with: sc.with, entries: append(slices.Clone(sc.entries), left.entries...),
		visible: append(slices.Clone(sc.visible), left.visible...)}
	right := b.fromItem(j.GetRarg(), side)
	words := map[pg.JoinType]string{pg.JoinType_JOIN_INNER: " JOIN ", pg.JoinType_JOIN_LEFT: " LEFT JOIN ",
		pg.JoinType_JOIN_RIGHT: " RIGHT JOIN ", pg.JoinType_JOIN_FULL: " FULL JOIN "}
	word, ok := words[j.GetJointype()]
	if !ok {
		cannot("this kind of JOIN")
	}
	out := item{entries: append(slices.Clone(left.entries), right.entries...)}
	using := identifiers(j.GetUsingClause())
	if j.GetIsNatural() {
		for _, c := range left.visible {
			if named(right.visible, c.name) != nil {
				using = append(using, c.name)
			}
		}
	}
	on := "true"
	switch {
	case j.GetQuals() != nil:
		both := &scope{parent: sc.parent, with: sc.with, entries: append(slices.Clone(sc.entries), out.entries...),
			visible: append(append(slices.Clone(sc.visible), left.visible...), right.visible...)}
		on = b.joined(j, left, right, both)
	case len(using) > 0:
		on, out.visible = b.using(using, left, right, j.GetJointype())
	}
	if len(using) == 0 {
		out.visible = append(slices.Clone(left.visible), right.visible...)
	}
	condition := on
	if on == "true" && word == " JOIN " {
		word, on = " CROSS JOIN ", ""
	} else {
		on = " ON (" + condition + ")"
	}
	if word != " JOIN " && word != " CROSS JOIN " && strings.Contains(on, "(SELECT ") {
		// DuckDB does not run these, and would say so only after the leaves were paid for.
		alias, single := strings.CutPrefix(right.sql[strings.LastIndex(right.sql, " AS ")+1:], "AS ")
		if word != " LEFT JOIN " || !single || len(right.entries) != 1 || strings.Contains(alias, " ") {
			cannot("an outer join on a condition with a sub-query")
		}
		word, on = " LEFT JOIN LATERAL ", " ON true"
		right.sql = "(SELECT " + alias + ".* FROM " + right.sql + " WHERE " + condition + ") AS " + alias
	}
	out.sql = "(" + left.sql + word + right.sql + on + ")"
	out.certain = b.joinedRows(j, left, right)
	return out
}

// joined binds an ON clause. Where a part of an outer join's reads the rows alone that may be left without a partner, DuckDB evaluates it on each of them before
// it looks at the others, and fails where PostgreSQL, which finds no others, does not evaluate it:
//
//	SELECT … FROM parts p LEFT JOIN codes c ON chr(c.code) = 'x' WHERE p.name = 'nobody'
//
// A careful text (Query.Careful) has it read a pair of rows: CASE WHEN p.name IS NULL THEN chr(c.code) = 'x' ELSE chr(c.code) = 'x' END. It takes each with each, and is for
// where the other one has failed.
func (b *binder) joined(j *pg.JoinExpr, left, right item, sc *scope) string {
	kept := left
	switch j.GetJointype() {
	case pg.JoinType_JOIN_LEFT:
	case pg.JoinType_JOIN_RIGHT:
		kept = right
	default:
		return b.condition(j.GetQuals(), sc)
	}
	tie := kept.first()
	if tie == "" {
		return b.condition(j.GetQuals(), sc)
	}
	list := []*pg.Node{j.GetQuals()}
	if all := j.GetQuals().GetBoolExpr(); all.GetBoolop() == pg.BoolExprType_AND_EXPR {
		list = all.GetArgs()
	}
	var parts []string
	for _, n := range list {
		part := b.condition(n, sc)
		if !kept.in(part) && part != "true" && part != "false" {
			if b.hasty = true; b.careful {
				part = "(CASE WHEN " + tie + " IS NULL THEN " + part + " ELSE " + part + " END)"
			}
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, " AND ") + ")"
}

// first is a column of an item; empty: it has none.
func (it item) first() string {
	for _, e := range it.entries {
		for _, c := range e.columns {
			return c.sql
		}
	}
	return ""
}

// in tells whether a text reads a column of the item, whose tables have names of their own.
func (it item) in(text string) bool {
	return slices.ContainsFunc(it.entries, func(e *entry) bool {
		return slices.ContainsFunc(e.columns, func(c column) bool {
			alias, _, named := strings.Cut(c.sql, ".")
			return !named || strings.Contains(text, alias+".")
		})
	})
}

// using binds USING: the merged columns come first.
func (b *binder) using(names []string, left, right item, kind pg.JoinType) (string, []column) {
	var conditions []string
	var merged []column
	for _, name := range names {
		l, r := only(left.visible, name), only(right.visible, name)
		conditions = append(conditions, b.compare("=", l.value(), r.value()).sql)
		typ, ofRight := scalar.Merged(scalar.Column(0, l.oid, l.mod), scalar.Column(0, r.oid, r.mod))
		c := l
		switch kind {
		case pg.JoinType_JOIN_INNER:
			if ofRight {
				c = r
			}
		case pg.JoinType_JOIN_RIGHT:
			c = r
		case pg.JoinType_JOIN_FULL:
			sides := []expr{l.value(), r.value()}
			t := b.unify(sides, "JOIN/USING")
			c = column{name, "coalesce(" + joined(sides) + ")", t, nil}
		}
		if c.oid != typ {
			e := b.cast(c.value(), typed{oid: typ, mod: -1})
			c = column{name, e.sql, e.typed, e.decimal}
		}
		merged = append(merged, c)
	}
	for _, c := range append(slices.Clone(left.visible), right.visible...) {
		if !slices.Contains(names, c.name) {
			merged = append(merged, c)
		}
	}
	return strings.Join(conditions, " AND "), merged
}

func only(columns []column, name string) column {
	found := named(columns, name)
	if len(found) != 1 {
		wrong("42703", `column "`+name+`" of USING must be once in each table`, 0)
	}
	return found[0]
}
