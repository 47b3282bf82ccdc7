package outer

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/policy"
)

// Aggregates are bound to those of DuckDB where they mean the same, and computed exactly in Go where not: PostgreSQL's sum of
// bigint is numeric, and its average of integers the quotient of two numerics. num_in reads a numeric, pg_call calls package
// scalar (scalar.go).
//
//	SELECT avg(n) FROM leaf_1
//	⇒ SELECT "c1" AS "c1" FROM (SELECT pg_call('{"f":"/","a":[{"t":1700,"m":-1},{"t":20,"m":-1}]}', num_in(CAST(sum("t1"."n")
//	  AS VARCHAR)), CAST(count("t1"."n") AS VARCHAR)) AS "c1" FROM "leaf_1" AS "t1") AS "q2"

// aggregates are the aggregate functions of PostgreSQL that are known by name; some of them are then refused.
var aggregates = strings.Fields(`count sum avg min max bool_and bool_or every array_agg string_agg percentile_cont
	percentile_disc mode stddev stddev_pop stddev_samp variance var_pop var_samp corr covar_pop covar_samp regr_slope regr_sxx regr_sxy regr_syy
	regr_intercept regr_r2 regr_count regr_avgx regr_avgy bit_and bit_or bit_xor json_agg jsonb_agg json_object_agg
	jsonb_object_agg xmlagg range_agg any_value`)

// aggregate binds an aggregate or window function.
func (b *binder) aggregate(name string, n *pg.FuncCall, sc *scope) expr {
	args := b.exprs(n.GetArgs(), sc)
	if n.GetAggWithinGroup() {
		return b.orderedSet(name, args, n, sc)
	}
	b.toldByCall(name, args...)
	for i := range args {
		switch {
		case args[i].oid != policy.Unknown || i == 2 && (name == "lag" || name == "lead"): // whose default has the type of what it stands for
		case i == 1 && (name == "lag" || name == "lead"):
			args[i] = b.cast(args[i], int4Type)
		case name == "bool_and" || name == "bool_or" || name == "every": // which are of booleans alone
			args[i] = b.cast(args[i], boolType)
		default:
			args[i] = b.cast(args[i], textType)
		}
	}
	tail := ""
	if n.GetAggFilter() != nil {
		tail = " FILTER (WHERE " + b.condition(n.GetAggFilter(), sc) + ")"
	}
	if n.GetOver() != nil {
		tail += " OVER (" + b.window(n.GetOver(), sc) + ")"
	}
	if n.GetOver() != nil && !slices.Contains(aggregates, name) {
		return b.windowFunction(name, args, tail)
	}
	a := call{b: b, tail: tail, distinct: n.GetAggDistinct()}
	if len(n.GetAggOrder()) > 0 {
		a.order = " ORDER BY " + b.ordering(n.GetAggOrder(), sc)
	}
	if name == "count" && (n.GetAggStar() || len(args) == 0) {
		return expr{sql: "count(*)" + tail, typed: int8Type}
	}
	if len(args) == 0 {
		wrong("42883", "function "+name+"() does not exist", n.GetLocation())
	}
	return a.bind(name, args)
}

// call is how an aggregate is called: DISTINCT, ORDER BY, FILTER, OVER.
type call struct {
	b           *binder
	order, tail string
	distinct    bool
}

// sql writes the call of one of DuckDB's aggregates.
func (a call) sql(name string, args ...string) string {
	return name + "(" + map[bool]string{true: "DISTINCT "}[a.distinct] + strings.Join(args, ", ") + a.order + ")" + a.tail
}

func (a call) bind(name string, args []expr) expr {
	x := args[0]
	switch name {
	case "count":
		return expr{sql: a.sql("count", a.b.keyOf(x)), typed: int8Type}
	case "sum":
		return a.sum(x)
	case "avg":
		return a.average(x)
	case "min", "max":
		return a.end(name, x)
	case "bool_and", "every":
		return expr{sql: a.sql("bool_and", a.b.boolean(x).sql), typed: boolType}
	case "bool_or":
		return expr{sql: a.sql("bool_or", a.b.boolean(x).sql), typed: boolType}
	case "array_agg":
		array := arrayOf(filled(x).oid, "array_agg of this type")
		if a.distinct && a.b.keyOf(x) != x.sql {
			return cannot("array_agg of this type with DISTINCT")
		}
		if a.distinct && a.order == "" { // PostgreSQL finds what is distinct by sorting
			a.order = " ORDER BY " + x.sql + " ASC NULLS LAST"
		}
		return expr{sql: a.sql("list", x.sql), typed: array}
	case "string_agg":
		takes(name, args, 2, 2)
		for i := range args {
			if args[i].oid == policy.Bpchar {
				args[i] = a.b.cast(args[i], textType)
			}
		}
		if separator := a.b.text(args[1]); !constantSQL(separator) {
			cannot("string_agg with a separator that is not a constant")
		} else if isNull(separator) {
			args[1] = a.b.cast(untyped(""), textType)
		}
		return expr{sql: a.sql("string_agg", a.b.text(args[0]).sql, a.b.text(args[1]).sql), typed: textType}
	}
	if strings.HasPrefix(name, "json_") {
		return a.json(name, args)
	}
	if kind := spreads[name]; kind != "" {
		return a.spread(kind, x)
	}
	return cannot("aggregate " + name)
}

// json binds json_agg and json_object_agg over the types whose JSON is the same text in both.
func (a call) json(name string, args []expr) expr {
	value, separator := args[len(args)-1], "', '"
	if value.fields != nil && name == "json_agg" { // PostgreSQL begins a line with each row
		value, separator = a.b.jsonRow(value), "', ' || chr(10) || ' '"
	}
	switch {
	case value.oid.Integer(), value.oid == policy.Bool, value.oid == policy.NumericType, textLike(value.oid), value.oid == policy.DateType, value.oid == typeJSON:
	default:
		cannot(name + " of type " + typeNameOf(value.oid))
	}
	if a.distinct {
		cannot(name + " with DISTINCT")
	}
	if name == "json_agg" && len(args) == 1 {
		return expr{sql: "('[' || " + a.sql("string_agg", a.b.json(value), separator) + " || ']')", typed: of(typeJSON)}
	}
	if name != "json_object_agg" || len(args) != 2 || strings.Contains(a.tail, "FILTER") {
		cannot("this use of " + name)
	}
	key := a.b.jsonKey(args[0])
	key = "CASE WHEN " + key + " IS NULL THEN CAST(" + raise("22023", "field name must not be null") + " AS VARCHAR) ELSE CAST(to_json(" + key + ") AS VARCHAR) END"
	return expr{sql: "('{ ' || " + a.sql("string_agg", "("+key+" || ' : ' || "+a.b.json(value)+")", "', '") + " || ' }')", typed: of(typeJSON)}
}

// spreads are the names of variance and standard deviation.
var spreads = map[string]string{"variance": "var_samp", "var_samp": "var_samp", "var_pop": "var_pop", "stddev": "stddev_samp",
	"stddev_samp": "stddev_samp", "stddev_pop": "stddev_pop"}

// spread is computed exactly, as PostgreSQL does for integers and numerics.
func (a call) spread(kind string, x expr) expr {
	if a.distinct || !x.oid.Integer() && x.oid != policy.NumericType {
		cannot(kind + " of this type")
	}
	value := a.b.cast(x, of(policy.NumericType)).sql
	return expr{sql: "num_spread('" + kind + "', " + a.sql("list", value) + ")", typed: of(policy.NumericType)}
}

// whole reads a DuckDB integer of any size as a numeric without decimals.
func whole(sql string) expr {
	return expr{sql: "num_in(CAST(" + sql + " AS VARCHAR))", typed: typed{oid: policy.NumericType, mod: -1, even: true, whole: true}}
}

func (a call) sum(x expr) expr {
	switch x.oid {
	case policy.Int2, policy.Int4:
		return expr{sql: "CAST(" + a.sql("sum", x.sql) + " AS BIGINT)", typed: int8Type}
	case policy.Int8:
		return whole(a.sql("sum", x.sql))
	case policy.Float8:
		return expr{sql: a.finite(a.sql("sum", x.sql), x), typed: of(policy.Float8)}
	case policy.NumericType:
		if d := x.decimal; d != nil && !a.distinct && fits(d.digits+digitsOfRows, d.scale) {
			sum := &decimal{sql: a.sql("sum", d.sql), digits: d.digits + digitsOfRows, scale: d.scale}
			return evenNumeric(sum.wide(sum.digits, sum.scale), sum, x)
		}
		if !a.distinct {
			return expr{sql: "num_sum(" + a.sql("list", x.sql) + ")", typed: typed{oid: policy.NumericType, mod: -1, even: x.even}}
		}
	}
	return cannot("sum of this type")
}

// finite is a sum or an average of floats, which fails where it is infinite and none of them is, as 1e308 and 1e308 make it.
func (a call) finite(sum string, x expr) string {
	return "(CASE WHEN isinf(" + sum + ") AND NOT " + a.sql("bool_or", "isinf("+x.sql+")") + " THEN CAST(" + raise("22003", "value out of range: overflow") + " AS DOUBLE) ELSE " + sum + " END)"
}

// average divides the sum by the count, as PostgreSQL does.
func (a call) average(x expr) expr {
	if x.oid == policy.Float8 {
		return expr{sql: a.finite(a.sql("avg", x.sql), x), typed: of(policy.Float8)}
	}
	if x.oid == policy.Float4 {
		cannot("avg of type real")
	}
	total := a.sum(x)
	if x.oid.Integer() {
		total = whole(a.sql("sum", x.sql))
	}
	return a.b.call("/", total, expr{sql: a.sql("count", x.sql), typed: int8Type})
}

// end binds min and max.
func (a call) end(name string, x expr) expr {
	switch {
	case x.oid == policy.NumericType && x.decimal != nil:
		d := *x.decimal
		return evenNumeric(a.sql(name, d.sql), &d, x)
	case x.oid == policy.NumericType:
		side := "num_" + name
		plain := a
		plain.distinct = false
		return expr{sql: side + "(" + plain.sql("list", x.sql) + ")", typed: typed{oid: policy.NumericType, mod: -1, even: x.even}}
	case x.oid == policy.Bpchar && !looksAlike(x.typed):
		cannot(name + " of type character(n)") // of two that differ in their blanks alone, which one is not said
	case x.oid == policy.Bpchar:
		return expr{sql: a.sql("arg_"+name, x.sql, a.b.textKey(x)), typed: typed{oid: policy.Bpchar, mod: -1, even: true, ragged: x.ragged}}
	case x.oid == policy.IntervalT:
		plain := a
		plain.distinct = false
		return expr{sql: fromResult("pg_interval_"+name+"("+plain.sql("list", asArgument(x))+")", x.oid), typed: x.typed}
	case elements[x.oid] != 0:
		cannot(name + " of arrays")
	case textLike(x.oid):
		return expr{sql: a.sql(name, x.sql), typed: textType}
	case x.oid == policy.Bool || x.oid == policy.UUID || x.oid == typeJSON || x.oid == typeRecord:
		wrong("42883", "function "+name+" does not exist for this type", 0)
	}
	return expr{sql: a.sql(name, x.sql), typed: of(x.oid)}
}

// orderedSet binds … WITHIN GROUP (ORDER BY …).
func (b *binder) orderedSet(name string, args []expr, n *pg.FuncCall, sc *scope) expr {
	var by []expr
	for _, s := range n.GetAggOrder() {
		by = append(by, b.expr(s.GetSortBy().GetNode(), sc))
	}
	b.toldByCall(name, append(slices.Clone(args), by...)...)
	if len(args) == len(by) && slices.Contains([]string{"rank", "dense_rank", "percent_rank", "cume_dist"}, name) { // of a row that there would be
		for i := range args {
			b.toldBeside(args[i].typed, by[i].typed)
		}
	}
	if len(args) != 1 || len(n.GetAggOrder()) != 1 || direction(n.GetAggOrder()[0].GetSortBy()) != " ASC NULLS LAST" || n.GetOver() != nil {
		cannot("this ordered-set aggregate")
	}
	x := by[0]
	condition := x.sql + " IS NOT NULL"
	if n.GetAggFilter() != nil {
		condition += " AND " + b.condition(n.GetAggFilter(), sc)
	}
	fraction := b.cast(args[0], of(policy.Float8))
	switch name {
	case "percentile_cont":
		if !numberLike(x.oid) {
			cannot("percentile_cont of this type")
		}
		value := asArgument(b.cast(x, of(policy.Float8)))
		sql := "pg_percentile_cont(" + asArgument(fraction) + ", list(" + value + ") FILTER (WHERE " + condition + "))"
		return expr{sql: fromResult(sql, policy.Float8), typed: of(policy.Float8)}
	case "percentile_disc":
		if x.oid == policy.NumericType && !x.even {
			cannot("percentile_disc of computed numeric values")
		}
		list := "list(" + x.sql + ") FILTER (WHERE " + condition + ")"
		at := "(CASE WHEN " + fraction.sql + " IS NULL THEN NULL WHEN " + fraction.sql + " BETWEEN 0 AND 1 THEN greatest(1, CAST(ceil(" + fraction.sql + " * len(" + list + ")) AS BIGINT)) ELSE CAST(" +
			raise("22003", "percentile value is not between 0 and 1") + " AS BIGINT) END)"
		return expr{sql: "(list_sort(" + list + "))[" + at + "]", typed: x.typed}
	}
	return cannot("aggregate " + name)
}
