package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Functions that return rows are lists: in a select list their elements are unnested, in FROM they are a table of one column for
// each list.
//
//	SELECT i FROM generate_series(1, 3) AS i
//	⇒ SELECT "c1" AS "c1" FROM (SELECT "t1"."c1" AS "c1" FROM (SELECT unnest(CAST(generate_series(CAST(CAST(1 AS INTEGER) AS
//	  BIGINT), CAST(CAST(3 AS INTEGER) AS BIGINT), CAST(1 AS BIGINT)) AS INTEGER[])) AS "c1") AS "t1") AS "q2"

// series binds a set-returning function as a DuckDB list; the type is that of its elements.
func (b *binder) series(name string, n *pg.FuncCall, sc *scope) (expr, bool) {
	if columns := emptySetOf(name, len(n.GetArgs())); columns != nil {
		return b.noneOf(columns, b.exprs(n.GetArgs(), sc)), true
	}
	if !slices.Contains(strings.Fields("unnest generate_series generate_subscripts _pg_expandarray pg_get_keywords regexp_split_to_table regexp_matches string_to_table"), name) {
		return expr{}, false
	}
	args := b.exprs(n.GetArgs(), sc)
	b.toldByCall(name, args...)
	switch name {
	case "unnest":
		element, ok := elements[args[0].oid]
		if !ok || len(args) != 1 {
			wrong("42883", "function unnest is for one array", n.GetLocation())
		}
		return expr{sql: args[0].sql, typed: of(element)}, true
	case "generate_series":
		return b.generated(args), true
	case "generate_subscripts":
		low, high := b.arrayBound("array_lower", args[:2]), b.arrayBound("array_upper", slices.Clone(args[:2]))
		return expr{sql: integers(low.sql, high.sql, "1", policy.Int4), typed: int4Type}, true
	case "_pg_expandarray":
		element := elementOf(args[0], "42883", "function _pg_expandarray is for an array")
		t := typed{oid: typeRecord, mod: -1, fields: []column{{"x", `"x"`, of(element), nil}, {"n", `"n"`, int4Type, nil}}}
		return expr{sql: "list_transform(" + args[0].sql + `, lambda x, i : {"x": x, "n": CAST(i AS INTEGER)})`, typed: t}, true
	case "pg_get_keywords":
		takes(name, args, 0, 0)
		return keywords(), true
	case "regexp_split_to_table", "regexp_matches":
		takes(name, args, 2, 3)
		args[0] = b.plainly(args[0])
		flags := untyped("")
		if len(args) > 2 {
			flags = args[2]
		}
		if name == "regexp_split_to_table" {
			return expr{sql: b.listOf(b.regexp("split", args[0], args[1], flags)), typed: textType}, true
		}
		x := b.fresh("x")
		return expr{sql: "list_transform(list_filter(string_split(" + b.regexp("matches", args[0], args[1], flags) + ", chr(30)), lambda " + x + " : " + x +
			" <> ''), lambda " + x + " : " + b.listOf(x) + ")", typed: of(typeTextArr)}, true
	case "string_to_table":
		f := builtins["string_to_array"]
		return expr{sql: b.builtin("string_to_array", f, args).sql, typed: textType}, true
	}
	cannot(name)
	return expr{}, true
}

func integers(low, high, step string, t policy.Type) string {
	by := "CAST(" + step + " AS BIGINT)"
	if step != "1" {
		by = "(CASE WHEN " + by + " = 0 THEN CAST(" + raise("22023", "step size cannot equal zero") + " AS BIGINT) ELSE " + by + " END)"
	}
	return "CAST(generate_series(CAST(" + low + " AS BIGINT), CAST(" + high + " AS BIGINT), " + by + ") AS " + Storage(t) + "[])"
}

// generated binds generate_series over integers and timestamps.
func (b *binder) generated(args []expr) expr {
	takes("generate_series", args, 2, 3)
	t := common([]typed{args[0].typed, args[1].typed}, "generate_series")
	if len(args) == 3 && (numberLike(t.oid) || t.oid == policy.Unknown) && numberLike(args[2].oid) {
		t = common([]typed{t, args[2].typed}, "generate_series")
	}
	if t.oid == policy.Unknown || t.oid == policy.Int2 {
		t = int4Type
	}
	if t.oid == policy.DateType && len(args) == 3 { // of dates there is none, and timestamptz is preferred to what else they may be
		t = of(policy.TimestampTZ)
	}
	if len(args) != 3 && (t.oid == policy.TimestampT || t.oid == policy.TimestampTZ) {
		wrong("42883", "function generate_series over timestamps needs a step", 0)
	}
	switch t.oid {
	case policy.Int4, policy.Int8:
		step := expr{sql: "1", typed: int4Type}
		if len(args) == 3 {
			step = b.cast(args[2], of(policy.Int8))
		}
		low, high := b.cast(args[0], bare(t)), b.cast(args[1], bare(t))
		return expr{sql: integers(low.sql, high.sql, step.sql, t.oid), typed: bare(t)}
	case policy.TimestampTZ:
		low, high, step := b.cast(args[0], bare(t)), b.cast(args[1], bare(t)), b.cast(args[2], of(policy.IntervalT))
		text, x, l := "pg_instants("+asArgument(low)+", "+asArgument(high)+", "+asArgument(step)+")", b.fresh("x"), b.fresh("l")
		return expr{sql: "(SELECT CASE WHEN " + l + ".v = '' THEN [] ELSE list_transform(string_split(" + l + ".v, ','), lambda " + x + " : " +
			fromResult(x, t.oid) + ") END FROM (SELECT " + text + " AS v) AS " + l + ")", typed: bare(t)}
	case policy.TimestampT:
		low, high := b.cast(args[0], bare(t)), b.cast(args[1], bare(t))
		step := b.cast(args[2], of(policy.IntervalT)).sql
		step = "(CASE WHEN " + step + " = INTERVAL '0 days' THEN CAST(" + raise("22023", "step size cannot equal zero") + " AS INTERVAL) ELSE " + step + " END)"
		return expr{sql: "generate_series(" + low.sql + ", " + high.sql + ", " + step + ")", typed: bare(t)}
	}
	if t.oid == policy.Float8 || t.oid == policy.Float4 { // generate_series(1, 10^12): ^ makes double precision of integers
		wrong("42883", "function generate_series("+typeNameOf(args[0].oid)+", "+typeNameOf(args[1].oid)+") does not exist", 0)
	}
	return cannot("generate_series over type " + typeNameOf(t.oid))
}

// KeywordTable is a table of the embedded sandbox's own: the words of PostgreSQL's grammar, as pg_get_keywords lists them.
const KeywordTable = "dpproxy.keywords"

// keywords is the list of the grammar's words.
func keywords() expr {
	row := typed{oid: typeRecord, mod: -1}
	var fields []string
	for i, c := range []column{{"word", "", textType, nil}, {"catcode", "", of(typeChar), nil}, {"barelabel", "", boolType, nil}, {"catdesc", "", textType, nil}, {"baredesc", "", textType, nil}} {
		c.sql = columnName("f", i)
		row.fields = append(row.fields, c)
		fields = append(fields, c.sql+` := m_w."`+c.name+`"`)
	}
	return expr{sql: "(SELECT list(struct_pack(" + strings.Join(fields, ", ") + `) ORDER BY m_w."word") FROM "` + KeywordTable + `" AS m_w)`, typed: row}
}

// setFunctions are the functions of the catalogs that return rows; here they return what the sandbox can say: nothing,
// or the rows of a table of its own.
var setFunctions = map[string][]column{
	"pg_available_extensions": {{"name", "", of(typeName), nil}, {"default_version", "", textType, nil}, {"comment", "", textType, nil}},
	"pg_options_to_table":     {{"option_name", "", textType, nil}, {"option_value", "", textType, nil}},
	"pg_partition_ancestors":  {{"relid", "", of(typeRegclass), nil}},
	"pg_partition_tree":       {{"relid", "", of(typeRegclass), nil}, {"parentrelid", "", of(typeRegclass), nil}, {"isleaf", "", boolType, nil}, {"level", "", int4Type, nil}},
	"aclexplode":              {{"grantor", "", of(typeOid), nil}, {"grantee", "", of(typeOid), nil}, {"privilege_type", "", textType, nil}, {"is_grantable", "", boolType, nil}},
}

// emptySetOf are the columns of a function that returns no rows here; nil for others.
func emptySetOf(name string, arguments int) []column {
	for _, f := range pgcatalog.Silent(name) {
		if f.Rows && len(f.Args) == arguments {
			return catalogColumns(f.Columns)
		}
	}
	return slices.Clone(setFunctions[name])
}

// noneOf is the empty list of rows of those columns, whatever the arguments are.
func (b *binder) noneOf(columns []column, args []expr) expr {
	row := typed{oid: typeRecord, mod: -1}
	var fields []string
	for i, c := range columns {
		c.sql = columnName("f", i)
		row.fields = append(row.fields, c)
		fields = append(fields, c.sql+" "+Storage(c.oid))
	}
	out := expr{sql: "CAST([] AS STRUCT(" + strings.Join(fields, ", ") + ")[])", typed: row}
	if len(columns) == 1 {
		out = expr{sql: "CAST([] AS " + Storage(columns[0].oid) + "[])", typed: columns[0].typed}
	}
	for _, a := range args {
		out = b.keeping(out, a)
	}
	return out
}

// rangeFunction binds a function in FROM.
func (b *binder) rangeFunction(r *pg.RangeFunction, sc *scope) item {
	if len(r.GetFunctions()) != 1 || len(r.GetColdeflist()) > 0 {
		cannot("ROWS FROM")
	}
	parts := r.GetFunctions()[0].GetList().GetItems()
	name, _ := ast.ColumnName(parts[0])
	call := parts[0].GetFuncCall()
	if call != nil {
		if rel := pgcatalog.RowsOf(name); rel != "" && len(call.GetArgs()) == 0 {
			alias := r.GetAlias()
			if alias == nil {
				alias = &pg.Alias{Aliasname: name}
			}
			return b.table(&pg.RangeVar{Schemaname: "pg_catalog", Relname: rel, Alias: alias}, sc)
		}
		if columns := emptySetOf(name, len(call.GetArgs())); columns != nil {
			return b.emptySet(name, columns, r)
		}
	}
	var lists []expr
	switch {
	case call != nil && name == "unnest" && len(call.GetArgs()) > 1:
		for _, a := range call.GetArgs() {
			one, _ := b.series("unnest", &pg.FuncCall{Args: []*pg.Node{a}}, sc)
			lists = append(lists, one)
		}
	case call != nil:
		if list, ok := b.series(name, call, sc); ok {
			lists = []expr{list}
			if b.finding != nil {
				it := b.lists(name, lists, r)
				if means := b.failsAs(name, call, list, sc); means != nil {
					it.fails = scalar.Fails(means)
				}
				it.rows = b.counts(name, call)
				return it
			}
			break
		}
		fallthrough
	default:
		one := b.expr(parts[0], sc)
		lists = []expr{{sql: "[" + one.sql + "]", typed: one.typed}}
	}
	return b.lists(name, lists, r)
}

// counts tells a series of whole numbers that has one at least.
func (b *binder) counts(name string, n *pg.FuncCall) bool {
	if name != "generate_series" || len(n.GetArgs()) != 2 {
		return false
	}
	low, known := b.constantAs(n.GetArgs()[0], policy.Int8)
	high, also := b.constantAs(n.GetArgs()[1], policy.Int8)
	return known && also && low != nil && high != nil && low.(int64) <= high.(int64)
}

// lists makes a table of one or more lists of one length or NULL beyond their ends.
func (b *binder) lists(name string, lists []expr, r *pg.RangeFunction) item {
	var items []string
	var columns []column
	for i, l := range lists {
		c := columnName("c", i)
		items = append(items, "unnest("+l.sql+") AS "+c)
		columns = append(columns, column{name: name, sql: c, typed: l.typed})
	}
	if r.GetOrdinality() {
		items = append(items, "unnest(generate_series(1, "+longest(lists)+`)) AS "n"`)
		columns = append(columns, column{name: "ordinality", sql: `"n"`, typed: int8Type})
	}
	sql := "(SELECT " + strings.Join(items, ", ") + ")"
	if fields := lists[0].fields; fields != nil {
		var outer []string
		row := b.fresh("r")
		rest := columns[1:]
		columns = nil
		for _, f := range fields {
			outer = append(outer, row+`."c1".`+f.sql+" AS "+f.sql)
			columns = append(columns, f)
		}
		for _, c := range rest {
			outer = append(outer, row+"."+c.sql)
			columns = append(columns, c)
		}
		sql = "(SELECT " + strings.Join(outer, ", ") + " FROM " + sql + " AS " + row + ")"
	} else if alias := r.GetAlias(); alias != nil && len(lists) == 1 {
		// A function of one column takes the alias as the column's name too.
		columns[0].name = alias.GetAliasname()
	}
	return b.derived(sql, "", name, columns, r.GetAlias())
}

func longest(lists []expr) string {
	var parts []string
	for _, l := range lists {
		parts = append(parts, "len("+l.sql+")")
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "greatest(" + strings.Join(parts, ", ") + ")"
}

func (b *binder) emptySet(name string, columns []column, r *pg.RangeFunction) item {
	columns = slices.Clone(columns)
	if r.GetOrdinality() {
		columns = append(columns, column{name: "ordinality", typed: int8Type})
	}
	if alias := r.GetAlias(); alias != nil && len(columns) == 1 {
		columns[0].name = alias.GetAliasname()
	}
	for i := range columns {
		columns[i].sql = columnName("c", i)
	}
	return b.derived(noRows(columns), "", name, columns, r.GetAlias())
}
