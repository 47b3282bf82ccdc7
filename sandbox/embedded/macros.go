package embedded

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// Functions of the catalogs, as macros over the generated tables. pg_get_userbyid(relowner) becomes pg_role_name(relowner, $1);
// 'people'::regclass looks its number up in pg_class.

// macros are the functions of the catalogs that rewritten queries call. Names inside them begin with m_, which no
// rewritten query uses.
func macros() []string {
	keywords := "'" + strings.Join(catalog.Keywords(), "', '") + "'"
	missing := func(state, what string) string {
		return "CAST(error('" + outer.FaultMark + state + "|" + what + outer.FaultMark + "') AS BIGINT)"
	}
	name := func(macro, relation, column, id string) string {
		return "CREATE MACRO " + macro + `(o) AS CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT m_1."` + column + `" FROM "` + relation +
			`" AS m_1 WHERE m_1."` + id + `" = o LIMIT 1), CAST(o AS VARCHAR)) END`
	}
	find := func(macro, or, relation, column, what string) []string {
		return []string{
			"CREATE MACRO " + or + `(n) AS (SELECT m_2.oid FROM "` + relation + `" AS m_2 WHERE m_2."` + column + `" = n ORDER BY m_2.oid LIMIT 1)`,
			"CREATE MACRO " + macro + "(n) AS CASE WHEN n IS NULL THEN NULL ELSE coalesce(" + or + "(n), " + or + "(pg_last_name(n)), " + missing("42704", what+" does not exist") + ") END",
		}
	}
	const class = `"pg_catalog.pg_class" AS m_c JOIN "pg_catalog.pg_namespace" AS m_n ON m_n.oid = m_c.relnamespace`
	const part = `("[^"]+"|[^".]+)`
	all := []string{
		`CREATE MACRO pg_last_name(n) AS CASE WHEN regexp_full_match(n, '(` + part + `\.)?` + part + `')
			THEN replace(regexp_extract(n, '` + part + `$'), '"', '') END`,
		`CREATE MACRO pg_quote_ident(x) AS CASE WHEN regexp_full_match(x, '[a-z_][a-z0-9_]*') AND x NOT IN (` + keywords + `) THEN x
			ELSE '"' || replace(x, '"', '""') || '"' END`,
		`CREATE MACRO pg_quote_literal(x) AS CASE WHEN contains(x, '\') THEN 'E' ELSE '' END || '''' ||
			replace(replace(x, '''', ''''''), '\', '\\') || ''''`,
		`CREATE MACRO pg_class_visible(o) AS (SELECT m_n.nspname IN ('pg_catalog', 'public') FROM ` + class + ` WHERE m_c.oid = o LIMIT 1)`,
		`CREATE MACRO pg_class_name(o) AS CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT CASE WHEN m_n.nspname IN ('pg_catalog', 'public')
			THEN '' ELSE pg_quote_ident(m_n.nspname) || '.' END || pg_quote_ident(m_c.relname) FROM ` + class + ` WHERE m_c.oid = o LIMIT 1),
			CAST(o AS VARCHAR)) END`,
		`CREATE MACRO pg_class_or_null(n) AS (SELECT m_c.oid FROM ` + class + ` WHERE m_n.nspname IN ('pg_catalog', 'public') AND m_c.relname = n
			OR m_n.nspname || '.' || m_c.relname = n ORDER BY m_n.nspname LIMIT 1)`,
		// A name put together of a row's columns may have its parts quoted, and the database before them, which is this one.
		`CREATE MACRO pg_unquoted_name(n) AS CASE WHEN regexp_full_match(n, '` + part + `(\.` + part + `){0,2}')
			THEN replace(regexp_extract(n, '(` + part + `\.)?` + part + `$'), '"', '') END`,
		`CREATE MACRO pg_find_class_of(n) AS CASE WHEN n IS NULL THEN NULL WHEN regexp_full_match(n, '[0-9]+') THEN CAST(n AS BIGINT)
			ELSE coalesce(pg_class_or_null(n), pg_class_or_null(pg_unquoted_name(n)), ` + missing("42P01", "relation does not exist") + `) END`,
		`CREATE MACRO pg_find_class(s, n) AS pg_find_class_of(CASE WHEN s = '' THEN n ELSE s || '.' || n END)`,
		`CREATE MACRO pg_role_name(o, u) AS CASE o WHEN 10 THEN '` + pgcatalog.OwnerName + `' WHEN 0 THEN 'unknown (OID=0)' ELSE u END`,
		`CREATE MACRO pg_format_type(o, m) AS CASE WHEN o IS NULL THEN NULL WHEN o = 0 THEN '-'
			WHEN o = 1043 AND m >= 4 THEN 'character varying(' || (m - 4) || ')'
			WHEN o = 1042 AND m >= 4 THEN 'character(' || (m - 4) || ')'
			WHEN o = 1700 AND m >= 4 THEN 'numeric(' || ((m - 4) >> 16) || ',' || ((m - 4) & 65535) || ')'
			WHEN o = 1083 AND m >= 0 THEN 'time(' || m || ') without time zone'
			WHEN o = 1114 AND m >= 0 THEN 'timestamp(' || m || ') without time zone'
			WHEN o = 1184 AND m >= 0 THEN 'timestamp(' || m || ') with time zone'
			ELSE coalesce((SELECT m_t.name FROM "` + catalog.TypeNames + `" AS m_t WHERE m_t.oid = o LIMIT 1), '???') END`,
		"CREATE MACRO pg_operator_name(o) AS CAST(o AS VARCHAR)", // no operator is listed
		`CREATE MACRO pg_type_name(o) AS pg_format_type(o, -1)`,
		`CREATE MACRO pg_description_of(o, c) AS (SELECT m_d.description FROM "pg_catalog.pg_description" AS m_d
			WHERE m_d.objoid = o AND m_d.objsubid = 0 AND (c IS NULL OR m_d.classoid =
			(SELECT m_c.oid FROM "pg_catalog.pg_class" AS m_c WHERE m_c.relname = c AND m_c.relnamespace = 11 LIMIT 1)) LIMIT 1)`,
		`CREATE MACRO pg_column_description(o, k) AS (SELECT m_d.description FROM "pg_catalog.pg_description" AS m_d
			WHERE m_d.objoid = o AND m_d.objsubid = k AND m_d.classoid = 1259 LIMIT 1)`,
		`CREATE MACRO pg_view_definition(o) AS (SELECT m_v.definition FROM ` + class + ` JOIN "pg_catalog.pg_views" AS m_v
			ON m_v.viewname = m_c.relname AND m_v.schemaname = m_n.nspname WHERE m_c.oid = o LIMIT 1)`,
		`CREATE MACRO pg_key_definition(o) AS (SELECT m_k.plain FROM "` + catalog.Definitions + `" AS m_k WHERE m_k.oid = o AND len(m_k.columns) = 0 LIMIT 1)`,
		`CREATE MACRO pg_index_definition(o, k, p) AS (SELECT CASE WHEN coalesce(k, 0) > 0 THEN coalesce(list_extract(m_k.columns, CAST(k AS BIGINT)), '')
			WHEN p THEN m_k.pretty ELSE m_k.plain END FROM "` + catalog.Definitions + `" AS m_k WHERE m_k.oid = o AND len(m_k.columns) > 0 LIMIT 1)`,
		`CREATE MACRO pg_rule_definition(o) AS (SELECT 'CREATE RULE "_RETURN" AS' || chr(10) || '    ON SELECT TO ' || pg_quote_ident(m_n.nspname) || '.' ||
			pg_quote_ident(m_c.relname) || ' DO INSTEAD ' || pg_view_definition(m_c.oid)
			FROM "pg_catalog.pg_rewrite" AS m_r JOIN ` + class + ` ON m_c.oid = m_r.ev_class WHERE m_r.oid = o LIMIT 1)`,
		`CREATE MACRO pg_any(x, l) AS CASE WHEN l IS NULL THEN NULL WHEN len(l) = 0 THEN false WHEN x IS NULL THEN NULL
			WHEN list_contains(l, x) THEN true WHEN len(list_filter(l, lambda m_e : m_e IS NULL)) > 0 THEN NULL ELSE false END`,
		`CREATE MACRO pg_pretty_size(b) AS CASE WHEN b < 10240 THEN b || ' bytes' WHEN b // 512 < 20479 THEN ((b // 512 + 1) // 2) || ' kB'
			WHEN b // 524288 < 20479 THEN ((b // 524288 + 1) // 2) || ' MB' WHEN b // 536870912 < 20479 THEN ((b // 536870912 + 1) // 2) || ' GB'
			WHEN b // 549755813888 < 20479 THEN ((b // 549755813888 + 1) // 2) || ' TB' ELSE ((b // 562949953421312 + 1) // 2) || ' PB' END`,
		`CREATE MACRO pg_pretty(b) AS CASE WHEN b < 0 THEN '-' || pg_pretty_size(-CAST(b AS HUGEINT)) ELSE pg_pretty_size(CAST(b AS HUGEINT)) END`,
		`CREATE MACRO pg_allowed(p) AS regexp_matches(p, 'select|usage|connect|execute', 'i')`,
		`CREATE MACRO pg_setting(n, lenient) AS CASE WHEN n IS NULL THEN NULL ELSE coalesce(
			(SELECT m_s.setting FROM "pg_catalog.pg_settings" AS m_s WHERE lower(m_s.name) = lower(n) LIMIT 1),
			CASE WHEN lenient THEN NULL ELSE CAST(error('` + outer.FaultMark + `42704|unrecognized configuration parameter` + outer.FaultMark + `') AS VARCHAR) END) END`,
		name("pg_proc_name", "pg_catalog.pg_proc", "proname", "oid"),
		name("pg_namespace_name", "pg_catalog.pg_namespace", "nspname", "oid"),
	}
	all = append(all, find("pg_find_type", "pg_type_or_null", "pg_catalog.pg_type", "typname", "type")...)
	all = append(all, find("pg_find_proc", "pg_proc_or_null", "pg_catalog.pg_proc", "proname", "function")...)
	return append(all, find("pg_find_namespace", "pg_namespace_or_null", "pg_catalog.pg_namespace", "nspname", "schema")...)
}
