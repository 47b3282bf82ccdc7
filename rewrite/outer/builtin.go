package outer

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
)

// Functions of the catalogs, of the session and of arrays are templates in a table. Some call macros that the embedded sandbox
// makes in its engine over the catalogs that it holds there.
//
//	SELECT format_type(23, -1)
//	⇒ SELECT "c1" AS "c1" FROM (SELECT pg_format_type((CAST(CAST(23 AS INTEGER) AS BIGINT)), (CAST(-1 AS INTEGER))) AS "c1")
//	  AS "q1"

// builtin is a function that the embedded sandbox has itself: of the catalogs, of the session, of arrays. In its text,
// %1, %2 … are the arguments; $name is what the session gives.
type builtin struct {
	least, most int
	args        []policy.Type // what arguments are cast to; 0: left as they are
	result      policy.Type
	sql         string
	reads       string // the catalog relation that it looks into
}

const (
	none   policy.Type = 0
	always             = "(%1 IS NOT NULL)"
	absent             = "CAST(NULL AS VARCHAR)"
	zero               = "CAST(0 AS BIGINT)"
)

// schemaFunctions are the functions over which information_schema describes a column's type, of its oid and modifier.
var schemaFunctions = map[string]string{
	"_pg_char_max_length": "(CASE WHEN %2 = -1 THEN NULL WHEN %1 IN (1042, 1043) THEN %2 - 4 WHEN %1 IN (1560, 1562) THEN %2 END)",
	"_pg_char_octet_length": `(CASE WHEN %1 NOT IN (25, 1042, 1043) THEN NULL WHEN %2 = -1 THEN 1073741824 WHEN %1 = 25 THEN NULL
		ELSE (%2 - 4) * 4 END)`,
	"_pg_numeric_precision": `(CASE %1 WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701 THEN 53
		WHEN 1700 THEN (CASE WHEN %2 <> -1 THEN ((%2 - 4) >> 16) & 65535 END) END)`,
	"_pg_numeric_precision_radix": "(CASE WHEN %1 IN (20, 21, 23, 700, 701) THEN 2 WHEN %1 = 1700 THEN 10 END)",
	"_pg_numeric_scale":           "(CASE WHEN %1 IN (20, 21, 23) THEN 0 WHEN %1 = 1700 AND %2 <> -1 THEN (%2 - 4) & 65535 END)",
	"_pg_datetime_precision": `(CASE WHEN %1 = 1082 THEN 0 WHEN %1 IN (1083, 1114, 1184, 1266) THEN (CASE WHEN %2 < 0 THEN 6 ELSE %2 END)
		WHEN %1 = 1186 THEN (CASE WHEN %2 < 0 OR %2 & 65535 = 65535 THEN 6 ELSE %2 & 65535 END) END)`,
}

// builtins are found by name, then by number of arguments.
var builtins = func() map[string]builtin {
	m := map[string]builtin{
		"current_database": {0, 0, nil, typeName, "$database", ""},
		"current_catalog":  {0, 0, nil, typeName, "$database", ""},
		"current_schema":   {0, 0, nil, typeName, "CAST('public' AS VARCHAR)", ""},
		"current_schemas":  {1, 1, []policy.Type{policy.Bool}, 1003, "(CASE WHEN %1 THEN ['pg_catalog', 'public'] ELSE ['public'] END)", ""},
		"version":          {0, 0, nil, policy.Text, "$version", ""},
		"pg_backend_pid":   {0, 0, nil, policy.Int4, "CAST($pid AS INTEGER)", ""},
		"current_setting": {1, 2, []policy.Type{policy.Text, policy.Bool}, policy.Text, "pg_setting(%1, coalesce(%2, false))",
			"pg_catalog.pg_settings"},
		"set_config":          {3, 3, []policy.Type{policy.Text, policy.Text, policy.Bool}, policy.Text, "%2", ""},
		"pg_is_in_recovery":   {0, 0, nil, policy.Bool, "false", ""},
		"pg_my_temp_schema":   {0, 0, nil, typeOid, zero, ""},
		"getdatabaseencoding": {0, 0, nil, typeName, "CAST('UTF8' AS VARCHAR)", ""},
		"pg_client_encoding":  {0, 0, nil, typeName, "pg_setting('client_encoding', false)", "pg_catalog.pg_settings"},
		"pg_encoding_to_char": {1, 1, []policy.Type{policy.Int4}, typeName, "(CASE %1 WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END)", ""},
		"pg_char_to_encoding": {1, 1, []policy.Type{typeName}, policy.Int4, "(CASE WHEN upper(%1) IN ('UTF8', 'UNICODE') THEN 6 ELSE -1 END)", ""},
		"pg_get_userbyid":     {1, 1, []policy.Type{typeOid}, typeName, "pg_role_name(%1, $user)", ""},
		"format_type":         {2, 2, []policy.Type{typeOid, policy.Int4}, policy.Text, "pg_format_type(%1, %2)", "pg_catalog.pg_type"},
		"obj_description":     {1, 2, []policy.Type{typeOid, typeName}, policy.Text, "pg_description_of(%1, %2)", "pg_catalog.pg_description"},
		"col_description":     {2, 2, []policy.Type{typeOid, policy.Int4}, policy.Text, "pg_column_description(%1, %2)", "pg_catalog.pg_description"},
		"pg_get_viewdef":      {1, 2, []policy.Type{typeOid, policy.Bool}, policy.Text, "pg_view_definition(%1)", "pg_catalog.pg_views"},
		"pg_get_ruledef":      {1, 2, []policy.Type{typeOid, policy.Bool}, policy.Text, "pg_rule_definition(%1)", "pg_catalog.pg_views"},
		"shobj_description":   {2, 2, []policy.Type{typeOid, typeName}, policy.Text, absent, ""},
		"pg_size_pretty":      {1, 1, []policy.Type{policy.Int8}, policy.Text, "pg_pretty(%1)", ""},
		"quote_ident":         {1, 1, []policy.Type{policy.Text}, policy.Text, "pg_quote_ident(%1)", "pg_catalog.pg_class"},
		"quote_literal":       {1, 1, []policy.Type{policy.Text}, policy.Text, "pg_quote_literal(%1)", ""},
		"quote_nullable":      {1, 1, []policy.Type{policy.Text}, policy.Text, "coalesce(pg_quote_literal(%1), 'NULL')", ""},
		"parse_ident":         {1, 1, []policy.Type{policy.Text}, typeTextArr, "string_split(pg_ident(%1), chr(31))", ""},
		"to_regclass":         {1, 1, []policy.Type{policy.Text}, typeRegclass, "pg_class_or_null(%1)", "pg_catalog.pg_class"},
		"to_regtype":          {1, 1, []policy.Type{policy.Text}, typeRegtype, "pg_type_or_null(%1)", ""},
		"to_regproc":          {1, 1, []policy.Type{policy.Text}, typeRegproc, "pg_proc_or_null(%1)", ""},
		"to_regnamespace":     {1, 1, []policy.Type{policy.Text}, typeRegNS, "pg_namespace_or_null(%1)", ""},
		"array_remove":        {2, 2, nil, none, "list_filter(%1, lambda x : x IS DISTINCT FROM %2)", ""},
		"array_cat":           {2, 2, nil, none, "(CASE WHEN %1 IS NULL THEN %2 WHEN %2 IS NULL THEN %1 ELSE list_concat(%1, %2) END)", ""},
		"cardinality":         {1, 1, nil, policy.Int4, "CAST(len(%1) AS INTEGER)", ""},
		"array_ndims":         {1, 1, nil, policy.Int4, "(CASE WHEN len(%1) > 0 THEN 1 END)", ""},
		"string_to_array": {2, 3, []policy.Type{policy.Text, policy.Text, policy.Text}, typeTextArr,
			`list_transform((CASE WHEN %1 IS NULL THEN NULL WHEN %1 = '' THEN [] WHEN %2 IS NULL THEN regexp_extract_all(%1, '(?s:.)') WHEN %2 = '' THEN [%1]
			ELSE string_split(%1, %2) END), lambda x : nullif(x, %3))`, ""},
		"acldefault":                          {2, 2, nil, 1034, "CAST(NULL AS VARCHAR[])", ""},
		"pg_index_column_has_property":        {3, 3, nil, policy.Bool, "CAST(NULL AS BOOLEAN)", ""},
		"pg_indexam_has_property":             {2, 2, nil, policy.Bool, "CAST(NULL AS BOOLEAN)", ""},
		"pg_tablespace_location":              {1, 1, nil, policy.Text, "CAST('' AS VARCHAR)", ""},
		"pg_describe_object":                  {3, 3, nil, policy.Text, absent, ""},
		"pg_collation_for":                    {1, 1, nil, policy.Text, absent, ""},
		"pg_relation_is_publishable":          {1, 1, nil, policy.Bool, "false", ""},
		"pg_column_is_updatable":              {3, 3, nil, policy.Bool, "false", ""},
		"pg_relation_is_updatable":            {2, 2, nil, policy.Int4, "CAST(0 AS INTEGER)", ""},
		"pg_is_other_temp_schema":             {1, 1, nil, policy.Bool, "false", ""},
		"pg_has_role":                         {2, 3, nil, policy.Bool, "false", ""},
		"row_security_active":                 {1, 1, nil, policy.Bool, "false", ""},
		"pg_get_serial_sequence":              {2, 2, nil, policy.Text, absent, ""},
		"pg_table_is_visible":                 {1, 1, []policy.Type{typeOid}, policy.Bool, "pg_class_visible(%1)", "pg_catalog.pg_class"},
		"pg_get_statisticsobjdef_expressions": {1, 1, nil, typeTextArr, "CAST(NULL AS VARCHAR[])", ""},
		"pg_get_replica_identity_index":       {1, 1, nil, typeRegclass, "CAST(NULL AS BIGINT)", ""},
		"pg_trigger_depth":                    {0, 0, nil, policy.Int4, "CAST(0 AS INTEGER)", ""},
		"oidvectortypes": {1, 1, []policy.Type{typeOidVec}, policy.Text, "(CASE WHEN %1 IS NOT NULL THEN array_to_string(ARRAY(" +
			"SELECT pg_format_type(m_v.v, NULL) FROM (SELECT unnest(%1) AS v) AS m_v), ', ') END)", "pg_catalog.pg_type"},
		// No bytea that is held here has a value: what is never there is encoded, anything else is refused.
		"encode": {2, 2, []policy.Type{typeBytea, policy.Text}, policy.Text, "(CASE WHEN %1 IS NOT NULL AND %2 IS NOT NULL THEN CAST(" +
			raise("0A000", "encode of a value cannot be run by the sandbox") + " AS VARCHAR) END)", ""},
		"pg_advisory_unlock_all": {0, 0, nil, typeVoid, "CAST('' AS VARCHAR)", ""},
	}
	add := func(names string, f builtin) {
		for name := range strings.FieldsSeq(names) {
			m[name] = f
		}
	}
	add(`pg_type_is_visible pg_function_is_visible pg_operator_is_visible pg_opclass_is_visible pg_opfamily_is_visible
		pg_collation_is_visible pg_conversion_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible
		pg_ts_template_is_visible pg_statistics_obj_is_visible`, builtin{1, 1, nil, policy.Bool, always, ""})
	add(`pg_table_size pg_relation_size pg_total_relation_size pg_indexes_size pg_database_size pg_tablespace_size`, builtin{1, 2, nil, policy.Int8, zero, ""})
	m["pg_get_constraintdef"] = builtin{1, 2, []policy.Type{typeOid, policy.Bool}, policy.Text, "pg_key_definition(%1)", "pg_catalog.pg_constraint"}
	m["pg_get_indexdef"] = builtin{1, 3, []policy.Type{typeOid, policy.Int4, policy.Bool}, policy.Text, "pg_index_definition(%1, %2, %3)", "pg_catalog.pg_index"}
	add(`pg_get_expr pg_get_triggerdef pg_get_functiondef
		pg_get_partkeydef pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result
		pg_get_function_sqlbody pg_get_statisticsobjdef_columns pg_get_statisticsobjdef
		pg_get_partition_constraintdef pg_get_function_arg_default`, builtin{1, 3, nil, policy.Text, absent, ""})
	for name, sql := range schemaFunctions {
		m[name] = builtin{2, 2, []policy.Type{typeOid, policy.Int4}, policy.Int4, sql, ""}
	}
	m["_pg_interval_type"] = builtin{2, 2, []policy.Type{typeOid, policy.Int4}, policy.Text, absent, ""}
	m["_pg_index_position"] = builtin{2, 2, []policy.Type{typeOid, policy.Int2}, policy.Int4, "CAST(NULL AS INTEGER)", ""}
	m["nameconcatoid"] = builtin{2, 2, []policy.Type{typeName, typeOid}, typeName, "(left(%1, 62 - length(CAST(%2 AS VARCHAR))) || '_' || CAST(%2 AS VARCHAR))", ""}
	// The last argument names the privilege: what is here can be read and used, and nothing else.
	add(`has_table_privilege has_schema_privilege has_database_privilege has_function_privilege has_any_column_privilege
		has_type_privilege has_sequence_privilege has_language_privilege has_tablespace_privilege has_server_privilege
		has_foreign_data_wrapper_privilege has_parameter_privilege`,
		builtin{2, 3, nil, policy.Bool, "pg_allowed(%last)", ""})
	add("has_column_privilege", builtin{3, 4, nil, policy.Bool, "pg_allowed(%last)", ""})
	return m
}()

// trueType binds _pg_truetypid and _pg_truetypmod of a row of pg_attribute and one of pg_type: what a domain stands for, but
// there are no domains.
func (b *binder) trueType(name string, args []expr) expr {
	takes(name, args, 2, 2)
	t, column := of(typeOid), "atttypid"
	if name == "_pg_truetypmod" {
		t, column = int4Type, "atttypmod"
	}
	if args[0].fields == nil {
		return b.cast(expr{null: true}, t)
	}
	return field(args[0], column)
}

// silent binds a function that tells nothing, but still is evaluated with its arguments.
func (b *binder) silent(name string, known []pgcatalog.Function, args []expr) expr {
	for _, f := range known {
		if len(f.Args) != len(args) {
			continue
		}
		if f.Rows {
			cannot("function " + name + " outside FROM")
		}
		out := expr{sql: "CAST(NULL AS " + Storage(f.Result) + ")", typed: of(f.Result)}
		for i := range args {
			if args[i].oid == policy.Unknown {
				args[i] = b.cast(args[i], of(f.Args[i]))
			}
			out = b.keeping(out, args[i])
		}
		return out
	}
	return wrong("42883", "function "+name+" does not exist with this number of arguments", 0)
}

// builtin binds a function of the table above.
func (b *binder) builtin(name string, f builtin, args []expr) expr {
	takes(name, args, f.least, f.most)
	t := of(f.result)
	for i := range args {
		switch {
		case i < len(f.args) && f.args[i] != none:
			args[i] = b.cast(args[i], of(f.args[i]))
		case args[i].oid == policy.Unknown:
			args[i] = b.cast(args[i], textType)
		}
	}
	if f.result == none {
		t = args[0].typed
	}
	if f.reads != "" {
		b.reads(f.reads)
	}
	for _, a := range args {
		if strings.Contains(f.sql, "lambda") && strings.Contains(a.sql, "SELECT ") { // which DuckDB has no sub-query in
			cannot(name + " of a sub-query")
		}
	}
	if name == "array_remove" && elements[args[0].oid] == policy.Bpchar {
		cannot(name + " of chars")
	}
	out := expr{sql: b.expand(f.sql, args), typed: t}
	if schemaFunctions[name] != "" {
		out.sql = "CAST(" + out.sql + " AS INTEGER)"
	}
	for i := range args {
		if !strings.Contains(f.sql, "%"+strconv.Itoa(i+1)) && !(i == len(args)-1 && strings.Contains(f.sql, "%last")) {
			out = b.keeping(out, args[i])
		}
	}
	return out
}

// slot is what a template leaves open.
var slot = regexp.MustCompile(`%last|%[1-9]|\$[a-z]+`)

// expand puts arguments and session parameters into a template.
func (b *binder) expand(template string, args []expr) string {
	return slot.ReplaceAllStringFunc(template, func(name string) string {
		switch {
		case name[0] == '$':
			return b.param(name[1:])
		case name == "%last":
			return args[len(args)-1].sql
		case int(name[1]-'1') < len(args):
			return "(" + args[name[1]-'1'].sql + ")"
		}
		return "NULL"
	})
}
