package outer

import (
	"encoding/json"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A function is an aggregate, one that returns rows, one of the tables here and in builtin.go, or else left to package scalar,
// which knows PostgreSQL's overloads and refuses what it does not compute.
//
//	SELECT concat(k, n), upper(k) FROM leaf_1
//	⇒ SELECT "c1" AS "c1", "c2" AS "c2" FROM (SELECT (coalesce("t1"."k", '') || coalesce(CAST("t1"."n" AS VARCHAR), '') ||
//	  '') AS "c1", pg_call('{"f":"upper","a":[{"t":25,"m":-1}]}', "t1"."k") AS "c2" FROM "leaf_1" AS "t1") AS "q2"

// function binds a call: of an aggregate, a window function, a series, or a function of values.
func (b *binder) function(n *pg.FuncCall, sc *scope) expr {
	names := identifiers(n.GetFuncname())
	name := names[len(names)-1]
	if len(names) > 1 && names[0] != "pg_catalog" && names[0] != "information_schema" {
		wrong("42883", "function "+strings.Join(names, ".")+" does not exist", n.GetLocation())
	}
	if n.GetFuncVariadic() {
		cannot("VARIADIC")
	}
	if argument := ast.NamedArgument(n); argument != "" { // package parse has put those into their places that a function has
		wrong("42883", "function "+name+" with an argument "+argument+" does not exist", n.GetLocation())
	}
	if n.GetOver() != nil || n.GetAggWithinGroup() || slices.Contains(aggregates, name) {
		return b.aggregate(name, n, sc)
	}
	if n.GetAggDistinct() || n.GetAggFilter() != nil || len(n.GetAggOrder()) > 0 || n.GetAggStar() {
		wrong("42809", name+" is not an aggregate function", n.GetLocation())
	}
	if series, ok := b.series(name, n, sc); ok {
		return expr{sql: "unnest(" + series.sql + ")", typed: series.typed, series: true}
	}
	if name == "width_bucket" && len(n.GetArgs()) == 2 {
		if elements, ok := ast.ArrayElements(n.GetArgs()[1]); ok {
			args := b.exprs(append([]*pg.Node{n.GetArgs()[0]}, elements...), sc)
			if slices.ContainsFunc(args, func(e expr) bool { return e.oid == policy.Bpchar }) { // which are compared without their blanks
				cannot("width_bucket of a char")
			}
			if n.GetArgs()[1].GetAArrayExpr() != nil {
				b.elementsAsTexts(args[1:])
			}
			return b.call(scalar.WidthBucketOf, args...)
		}
		cannot("width_bucket of an array that is not written out")
	}
	return b.ofValues(name, b.exprs(n.GetArgs(), sc))
}

// ofValues calls a function of values: one with words of its own here, or PostgreSQL's.
func (b *binder) ofValues(name string, args []expr) expr {
	b.toldByCall(name, args...)
	if name == "parse_ident" && len(args) == 2 {
		cannot("parse_ident that is not strict")
	}
	if name == "octet_length" && len(args) == 1 && args[0].oid == policy.Bpchar { // which has one of its own, that counts the blanks too
		filled(args[0])
		args[0].typed = textType
	}
	if name == "pg_size_pretty" && len(args) == 1 && ranks[args[0].oid] > ranks[policy.Int8] {
		if args[0].whole { // a sum of whole numbers, as psql's lists of partitions have it
			return expr{sql: "pg_pretty(CAST(" + b.cast(args[0], textType).sql + " AS HUGEINT))", typed: textType}
		}
		cannot("pg_size_pretty of a numeric") // which keeps its digits below ten kilobytes
	}
	if f, ok := builtins[name]; ok {
		return b.builtin(name, f, args)
	}
	if e, ok := b.regexpFunction(name, args); ok {
		return e
	}
	if known := pgcatalog.Silent(name); known != nil {
		return b.silent(name, known, args)
	}
	switch name {
	case "now", "transaction_timestamp", "statement_timestamp", "clock_timestamp":
		return b.now()
	case "array_to_string":
		return b.arrayToString(args)
	case "array_length", "array_upper", "array_lower":
		return b.arrayBound(name, args)
	case "array_append", "array_prepend":
		takes(name, args, 2, 2)
		return b.concat(args[0], args[1])
	case "array_position":
		return b.arrayPosition(args)
	case "json_build_object":
		return b.jsonObject(args)
	case "json_build_array":
		return b.jsonArray(args)
	case "row_to_json", "to_json":
		switch {
		case len(args) == 1 && args[0].fields != nil:
			return b.jsonRow(args[0])
		case name == "to_json" && len(args) == 1 && args[0].oid != policy.Unknown:
			return expr{sql: "(CASE WHEN " + args[0].sql + " IS NOT NULL THEN " + b.json(args[0]) + " END)", typed: of(typeJSON)}
		}
	case "substring":
		if len(args) == 2 && (args[1].null || args[1].literal != nil || textLike(args[1].oid)) {
			return expr{sql: b.regexp("part", b.plainly(args[0]), args[1], untyped("")), typed: textType}
		}
	case "bpchar", "text", "varchar", "name": // a type's name calls its cast
		if len(args) == 1 {
			return b.cast(args[0], of(typeOids[name]))
		}
	case "pg_typeof":
		return b.keeping(expr{sql: b.oidOf(args[0].oid), typed: of(typeRegtype)}, args[0])
	case "_pg_truetypid", "_pg_truetypmod":
		return b.trueType(name, args)
	case "concat_ws":
		for i := range args {
			args[i] = b.sent(args[i])
		}
		return b.call(name, args...)
	case "concat":
		var parts []string
		for _, a := range args {
			parts = append(parts, "coalesce("+b.sent(a).sql+", '')")
		}
		return expr{sql: "(" + strings.Join(append(parts, "''"), " || ") + ")", typed: textType}
	case "format":
		return b.format(args)
	case "round":
		return b.round(args)
	}
	return b.call(name, args...)
}

// sent is the text that a value is sent as, which of a boolean is another one than that of its cast.
func (b *binder) sent(e expr) expr {
	if e.oid == policy.Bool {
		return expr{sql: "(CASE WHEN " + e.sql + " THEN 't' WHEN NOT " + e.sql + " THEN 'f' END)", typed: textType}
	}
	if e.oid == policy.Bpchar {
		return expr{sql: filled(e).sql, typed: textType}
	}
	return b.cast(e, textType)
}

// keeping is an expression that does not depend on an argument and is evaluated with it all the same: an aggregate in it
// makes the query an aggregation, an error in it is one.
func (b *binder) keeping(e expr, dropped expr) expr {
	if dropped.literal != nil || dropped.null || dropped.oid == typeRecord {
		return e
	}
	if dropped.series {
		cannot("a set as the argument of this function")
	}
	e.sql = "(CASE WHEN (" + dropped.sql + ") IS NULL THEN " + e.sql + " ELSE " + e.sql + " END)"
	return e
}

// format binds format() with a constant format of plain %s, %I and %L.
func (b *binder) format(args []expr) expr {
	if len(args) == 0 || args[0].literal == nil {
		cannot("format with a format that is not a constant")
	}
	parts, next := []string{"''"}, 1
	rest := *args[0].literal
	for rest != "" {
		i := strings.IndexByte(rest, '%')
		if i >= 0 && i+1 == len(rest) {
			wrong("22023", "unterminated format() type specifier", 0)
		}
		if i < 0 {
			parts = append(parts, dialect.QuoteText(rest))
			break
		}
		parts = append(parts, dialect.QuoteText(rest[:i]))
		verb := rest[i+1]
		rest = rest[i+2:]
		if verb == '%' {
			parts = append(parts, "'%'")
			continue
		}
		macro := map[byte]string{'s': "coalesce(%, '')", 'I': "coalesce(pg_quote_ident(%), CAST(" + raise("22004", "null values cannot be formatted as an SQL identifier") + " AS VARCHAR))", 'L': "coalesce(pg_quote_literal(%), 'NULL')"}[verb]
		if macro == "" || next >= len(args) {
			cannot("this format")
		}
		parts = append(parts, strings.Replace(macro, "%", b.sent(args[next]).sql, 1))
		next++
	}
	return expr{sql: "(" + strings.Join(parts, " || ") + ")", typed: textType}
}

// round by a constant gives all values one scale.
func (b *binder) round(args []expr) expr {
	fixed := len(args) == 1 || args[1].literal == nil && strings.HasPrefix(args[1].sql, "CAST(") && strings.HasSuffix(args[1].sql, " AS INTEGER)") &&
		strings.Count(args[1].sql, "(") == 1
	out := b.call("round", args...)
	out.even = fixed && out.oid == policy.NumericType
	return out
}

func (b *binder) oidOf(t policy.Type) string {
	return valueText(typeOid, int64(t))
}

// jsonObject writes a JSON object as PostgreSQL's json_build_object spaces it.
func (b *binder) jsonObject(args []expr) expr {
	if len(args)%2 != 0 {
		wrong("22023", "argument list must have even number of elements", 0)
	}
	parts := []string{"'{'"}
	for i := 0; i < len(args); i += 2 {
		if i > 0 {
			parts = append(parts, "', '")
		}
		parts = append(parts, "CAST(to_json("+b.jsonKey(args[i])+") AS VARCHAR)", "' : '", b.json(args[i+1]))
	}
	return expr{sql: "(" + strings.Join(append(parts, "'}'"), " || ") + ")", typed: of(typeJSON)}
}

// jsonKey is the text of a key, of a char with its blanks.
func (b *binder) jsonKey(e expr) string {
	if e.oid == policy.Bpchar {
		return b.sent(e).sql
	}
	return b.cast(e, textType).sql
}

// jsonArray writes a JSON array as PostgreSQL's json_build_array spaces it.
func (b *binder) jsonArray(args []expr) expr {
	parts := []string{"'['"}
	for i, a := range args {
		if i > 0 {
			parts = append(parts, "', '")
		}
		parts = append(parts, b.json(a))
	}
	return expr{sql: "(" + strings.Join(append(parts, "']'"), " || ") + ")", typed: of(typeJSON)}
}

// jsonRow writes a row as PostgreSQL's row_to_json does.
func (b *binder) jsonRow(e expr) expr {
	parts := []string{"'{'"}
	for i, f := range e.fields {
		separator := ""
		if i > 0 {
			separator = ","
		}
		name, err := json.Marshal(f.name)
		if err != nil || strings.ContainsAny(f.name, "<>&\u2028\u2029") {
			cannot("JSON of a column of this name")
		}
		parts = append(parts, dialect.QuoteText(separator+string(name)+":"), b.json(expr{sql: "(" + e.sql + ")." + f.sql, typed: f.typed}))
	}
	return expr{sql: "(" + strings.Join(append(parts, "'}'"), " || ") + ")", typed: of(typeJSON)}
}

func (b *binder) json(e expr) string {
	var text string
	switch {
	case e.oid.Integer() || e.oid == policy.Bool:
		text = "CAST(" + e.sql + " AS VARCHAR)"
	case e.oid == policy.NumericType:
		text = b.cast(e, textType).sql
	case e.oid.Floating(): // what is no number is a string
		text = b.cast(e, textType).sql
		text = "(CASE WHEN isfinite(" + e.sql + ") THEN " + text + " ELSE '\"' || " + text + " || '\"' END)"
	case e.oid == policy.TimestampT, e.oid == policy.TimestampTZ:
		text = "regexp_replace(" + b.cast(e, textType).sql + ", ' ', 'T')"
		if e.oid == policy.TimestampTZ {
			text = "regexp_replace(" + text + ", '([+-][0-9][0-9])( BC)?$', '\\1:00\\2')"
		}
		text = "'\"' || " + text + " || '\"'"
	case elements[e.oid] != 0 || e.oid == typeRecord || e.oid == typeBytea:
		cannot("JSON of type " + typeNameOf(e.oid))
	case e.oid == typeJSON:
		text = e.sql
	default:
		text = "CAST(to_json(" + b.sent(e).sql + ") AS VARCHAR)"
	}
	return "coalesce(" + text + ", 'null')"
}
