package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// Which columns of an answer are columns of a table. PostgreSQL tells clients so in each RowDescription: of
//
//	SELECT sex, count(*) FROM (SELECT sex FROM people) p GROUP BY sex
//
// the first is people.sex, through the sub-query, and the second is of no table. JDBC's ResultSetMetaData.getTableName and psycopg's
// Column.table_oid are made of it. It is read from the statement and the policy alone.

// outputs lists the columns of a Select's answer; nil where not all of them are known by their names.
func outputs(b *aggregate.Binder, sel *pg.SelectStmt) []plans.Output {
	out, known := (&origins{b}).query(sel, nil)
	if !known {
		return nil
	}
	return out
}

type origins struct{ b *aggregate.Binder }

// sight is what an item of FROM, or several, show: relations by their names, and what * is.
type sight struct {
	items []shown
	star  []plans.Output
	known bool // star is all there is
}

// shown is a relation under its name.
type shown struct {
	alias   string
	columns []plans.Output
	known   bool
}

// query tells the columns of one SELECT; with are the WITH queries in sight, the nearest last.
func (o *origins) query(sel *pg.SelectStmt, with []shown) (out []plans.Output, known bool) {
	with = slices.Clip(with)
	for _, n := range sel.GetWithClause().GetCtes() {
		c := n.GetCommonTableExpr()
		columns, known := []plans.Output(nil), false
		if q := c.GetCtequery().GetSelectStmt(); q != nil {
			columns, known = o.query(q, with)
		}
		with = append(with, shown{c.GetCtename(), renamed(columns, c.GetAliascolnames()), known})
	}
	switch {
	case sel.GetLarg() != nil: // a set operation's columns are of no table
		columns, known := o.query(sel.GetLarg(), with)
		return computed(columns), known
	case len(sel.GetValuesLists()) > 0:
		return make([]plans.Output, len(sel.GetValuesLists()[0].GetList().GetItems())), true
	}
	from := sight{known: true}
	for _, n := range sel.GetFromClause() {
		from = from.beside(o.item(n, with))
	}
	for _, n := range sel.GetTargetList() {
		r := n.GetResTarget()
		ref := r.GetVal().GetColumnRef()
		fields := ref.GetFields()
		switch {
		case len(fields) > 0 && fields[len(fields)-1].GetAStar() != nil:
			columns, known := from.star, from.known
			if len(fields) > 1 {
				columns, known = from.named(ast.Strings(fields[:len(fields)-1]))
			}
			if !known {
				return nil, false
			}
			out = append(out, columns...)
		case ref != nil:
			out = append(out, plans.Output{Name: ast.Label(r), Of: from.column(ast.Strings(fields))})
		case holdsStar(r.GetVal()):
			return nil, false
		default:
			out = append(out, plans.Output{Name: ast.Label(r)})
		}
	}
	return out, true
}

// holdsStar tells (row).*, which is as many columns as the row has.
func holdsStar(n *pg.Node) bool {
	list := n.GetAIndirection().GetIndirection()
	return len(list) > 0 && list[len(list)-1].GetAStar() != nil
}

// item tells what an item of FROM shows.
func (o *origins) item(n *pg.Node, with []shown) sight {
	switch v := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		return o.relation(v.RangeVar, with)
	case *pg.Node_RangeSubselect:
		columns, known := []plans.Output(nil), false
		if q := v.RangeSubselect.GetSubquery().GetSelectStmt(); q != nil {
			columns, known = o.query(q, with)
		}
		return aliased(columns, known, "", v.RangeSubselect.GetAlias())
	case *pg.Node_JoinExpr:
		return o.join(v.JoinExpr, with)
	case *pg.Node_RangeFunction:
		return aliased(nil, false, "", v.RangeFunction.GetAlias())
	}
	return sight{}
}

// relation tells what a name in FROM shows.
func (o *origins) relation(v *pg.RangeVar, with []shown) sight {
	for i := len(with) - 1; i >= 0 && v.GetSchemaname() == ""; i-- {
		if with[i].alias == v.GetRelname() {
			return aliased(with[i].columns, with[i].known, v.GetRelname(), v.GetAlias())
		}
	}
	schema, name, names := o.b.Named(v)
	var columns []plans.Output
	for _, column := range names {
		columns = append(columns, plans.Output{Name: column, Of: pgcatalog.Origin{Schema: schema, Relation: name, Column: column}})
	}
	return aliased(columns, names != nil, v.GetRelname(), v.GetAlias())
}

// aliased is one relation under its name, or the one that its alias gives it.
func aliased(columns []plans.Output, known bool, name string, alias *pg.Alias) sight {
	if alias != nil {
		name, columns = alias.GetAliasname(), renamed(columns, alias.GetColnames())
	}
	return sight{[]shown{{name, columns, known}}, columns, known}
}

// renamed gives the first columns other names.
func renamed(columns []plans.Output, names []*pg.Node) []plans.Output {
	out := slices.Clone(columns)
	for i, name := range ast.Strings(names) {
		if i < len(out) {
			out[i].Name = name
		}
	}
	return out
}

// computed are columns of no table.
func computed(columns []plans.Output) []plans.Output {
	out := slices.Clone(columns)
	for i := range out {
		out[i].Of = pgcatalog.Origin{}
	}
	return out
}

// join tells what a join shows. A column of USING is the left side's, a right join's the right side's, and a full join's is computed.
func (o *origins) join(j *pg.JoinExpr, with []shown) sight {
	left, right := o.item(j.GetLarg(), with), o.item(j.GetRarg(), with)
	names := ast.Strings(j.GetUsingClause())
	if j.GetIsNatural() {
		for _, c := range left.star {
			if slices.ContainsFunc(right.star, func(r plans.Output) bool { return r.Name == c.Name }) {
				names = append(names, c.Name)
			}
		}
	}
	both := left.beside(right)
	if len(names) > 0 {
		merged := make([]plans.Output, 0, len(names))
		for _, name := range names {
			of := left.column([]string{name})
			switch j.GetJointype() {
			case pg.JoinType_JOIN_RIGHT:
				of = right.column([]string{name})
			case pg.JoinType_JOIN_FULL:
				of = pgcatalog.Origin{}
			}
			merged = append(merged, plans.Output{Name: name, Of: of})
		}
		both.star = append(merged, slices.DeleteFunc(slices.Clone(both.star), func(c plans.Output) bool { return slices.Contains(names, c.Name) })...)
	}
	if alias := j.GetAlias(); alias != nil {
		return aliased(both.star, both.known, "", alias)
	}
	return both
}

// beside are two items of FROM.
func (s sight) beside(other sight) sight {
	return sight{slices.Concat(s.items, other.items), slices.Concat(s.star, other.star), s.known && other.known}
}

// named are the columns of a relation, by its name.
func (s sight) named(name []string) ([]plans.Output, bool) {
	for _, i := range s.items {
		if len(name) > 0 && i.alias == name[len(name)-1] {
			return i.columns, i.known
		}
	}
	return nil, false
}

// column finds the column that a name means, if it is a table's.
func (s sight) column(fields []string) (of pgcatalog.Origin) {
	if len(fields) == 0 {
		return of
	}
	columns, known := s.star, s.known
	if len(fields) > 1 {
		columns, known = s.named(fields[:len(fields)-1])
	}
	found := 0
	for _, c := range columns {
		if c.Name == fields[len(fields)-1] {
			of = c.Of
			found++
		}
	}
	if found != 1 || !known { // ambiguous, a row, or perhaps of what is not known
		return pgcatalog.Origin{}
	}
	return of
}
