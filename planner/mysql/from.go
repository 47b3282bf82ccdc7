package mysql

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"github.com/xwb1989/sqlparser"
)

// from translates FROM and enters its tables into the scope. FROM dual is none.
func (t *translator) from(list sqlparser.TableExprs, sc *scope) []*pg.Node {
	if len(list) == 1 {
		if a, ok := list[0].(*sqlparser.AliasedTableExpr); ok && a.As.IsEmpty() {
			if n, ok := a.Expr.(sqlparser.TableName); ok && n.Qualifier.IsEmpty() && strings.EqualFold(n.Name.String(), "dual") {
				return nil
			}
		}
	}
	var out []*pg.Node
	for _, e := range list {
		out = append(out, t.table(e, sc))
	}
	return out
}

func (t *translator) table(e sqlparser.TableExpr, sc *scope) *pg.Node {
	t.enter()
	defer t.leave()
	switch n := e.(type) {
	case *sqlparser.AliasedTableExpr:
		return t.aliased(n, sc)
	case *sqlparser.ParenTableExpr: // (a, b) is a CROSS JOIN b
		node := t.table(n.Exprs[0], sc)
		for _, next := range n.Exprs[1:] {
			node = pg.MakeJoinExprNode(pg.JoinType_JOIN_INNER, node, t.table(next, sc), nil)
		}
		return node
	case *sqlparser.JoinTableExpr:
		return t.join(n, sc)
	}
	bail(Construct, "this item of FROM", "Name tables, joins and sub-queries.")
	return nil
}

func (t *translator) join(n *sqlparser.JoinTableExpr, sc *scope) *pg.Node {
	kind := pg.JoinType_JOIN_INNER
	natural := false
	switch n.Join {
	case sqlparser.JoinStr, sqlparser.StraightJoinStr:
	case sqlparser.LeftJoinStr:
		kind = pg.JoinType_JOIN_LEFT
	case sqlparser.RightJoinStr:
		kind = pg.JoinType_JOIN_RIGHT
	case sqlparser.NaturalJoinStr, sqlparser.NaturalLeftJoinStr, sqlparser.NaturalRightJoinStr:
		natural = true
	}
	if natural {
		bail(Construct, "NATURAL JOIN", "Name the columns: JOIN … ON a.x = b.x.")
	}
	left := t.table(n.LeftExpr, sc)
	right := t.table(n.RightExpr, sc)
	out := &pg.JoinExpr{Jointype: kind, Larg: left, Rarg: right}
	if n.Condition.On != nil {
		out.Quals = t.condition(n.Condition.On, sc)
	}
	for _, c := range n.Condition.Using {
		found, _ := sc.find("", c.Lowered())
		if !found.kind.key && (found.kind.class == text || found.kind.class == unknown) {
			bail(Collation, "USING ("+c.String()+")", "Write ON BINARY a.x = b.x, which compares the texts by their bytes.")
		}
		out.UsingClause = append(out.UsingClause, pg.MakeStrNode(found.name))
	}
	return &pg.Node{Node: &pg.Node_JoinExpr{JoinExpr: out}}
}

func (t *translator) aliased(n *sqlparser.AliasedTableExpr, sc *scope) *pg.Node {
	if len(n.Partitions) > 0 {
		bail(Construct, "PARTITION", "Leave it out: partitions are not seen here.")
	}
	alias := strings.ToLower(n.As.String())
	if alias == "full" {
		bail(Ambiguous, "FULL", "MySQL has no FULL JOIN and takes the word for an alias: choose another alias, or write the statement for PostgreSQL and RESET dp.dialect.")
	}
	if sub, ok := n.Expr.(*sqlparser.Subquery); ok {
		query, items := t.query(sub.Select, nil, false)
		r := relation{alias: alias, ref: alias, columns: map[string]column{}}
		for _, it := range items {
			k := it.kind
			k.literal, k.quotient, k.column = nil, false, false
			if it.literal != nil {
				k.values = []string{*it.literal}
			}
			r.columns[strings.ToLower(it.name)] = column{it.name, k}
		}
		r.open = len(items) == 0
		sc.relations = append(sc.relations, r)
		return &pg.Node{Node: &pg.Node_RangeSubselect{RangeSubselect: &pg.RangeSubselect{
			Subquery: &pg.Node{Node: &pg.Node_SelectStmt{SelectStmt: query}}, Alias: &pg.Alias{Aliasname: alias}}}}
	}
	name, ok := n.Expr.(sqlparser.TableName)
	if !ok {
		bail(Construct, "this item of FROM", "Name tables, joins and sub-queries.")
	}
	schema, table := t.schemaOf(name), name.Name.String()
	r := relation{alias: strings.ToLower(table), open: true}
	if known, ok := t.named(schema, table); ok {
		table, r.columns, r.open = known.Name, columnsOf(known), false
	} else {
		table = strings.ToLower(table)
	}
	if r.ref = table; alias != "" {
		r.alias, r.ref = alias, alias
	}
	sc.relations = append(sc.relations, r)
	v := &pg.RangeVar{Schemaname: schema, Relname: table, Inh: true, Relpersistence: "p", Location: -1}
	if alias != "" {
		v.Alias = &pg.Alias{Aliasname: alias}
	}
	return &pg.Node{Node: &pg.Node_RangeVar{RangeVar: v}}
}

// schemaOf is the schema of a table's name. MySQL's qualifier is a database, which is a dataset here.
func (t *translator) schemaOf(name sqlparser.TableName) string {
	if name.Qualifier.IsEmpty() {
		return ""
	}
	q := name.Qualifier.String()
	if t.dataset != nil {
		if q == t.dataset.ID {
			return ""
		}
		for _, table := range t.dataset.Tables {
			if strings.EqualFold(table.Schema, q) {
				return table.Schema
			}
		}
	}
	if strings.EqualFold(q, "dp") {
		return "dp"
	}
	bail(Construct, "the database "+q, "Only the dataset that this connection is open on is seen; for catalogs, write for PostgreSQL and RESET dp.dialect.")
	return ""
}
