package semantics

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
)

// EngineFunctions are the functions that an outer query may call: they read their arguments, the session, or the
// sandbox's own catalogs, and change nothing. Nothing that runs SQL from text, reads files or the network, sleeps, or
// touches settings, sequences, locks or other sessions is among them.
var EngineFunctions = WordSet(`
abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees div erf erfc
exp factorial floor gcd lcm ln log log10 min_scale mod pi power pow radians random round scale sign sin sind sinh sqrt tan tand
tanh trim_scale trunc width_bucket float4 float8 int2 int4 int8 numeric text varchar bpchar char bool date timestamp timestamptz
interval name oid time
ascii btrim char_length character_length chr concat concat_ws decode encode format initcap left length like_escape lower lpad
ltrim md5 normalize octet_length bit_length overlay position quote_ident quote_literal quote_nullable regexp_count regexp_instr
regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr repeat replace
reverse right rpad rtrim similar_to_escape similar_escape split_part starts_with string_to_array string_to_table strpos substr
substring to_ascii to_hex translate unistr upper trim sha224 sha256 sha384 sha512 textlen
age clock_timestamp date_bin date_part date_trunc extract isfinite justify_days justify_hours justify_interval localtime
localtimestamp make_date make_interval make_time make_timestamp make_timestamptz now statement_timestamp timeofday timezone
to_char to_date to_number to_timestamp transaction_timestamp overlaps
coalesce greatest least nullif num_nonnulls num_nulls
array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend
array_remove array_replace array_to_string array_upper cardinality trim_array unnest generate_series generate_subscripts
array_to_json row_to_json to_json to_jsonb json_build_array json_build_object jsonb_build_array jsonb_build_object json_object
json_array_length jsonb_array_length json_each json_each_text jsonb_each jsonb_each_text json_extract_path json_extract_path_text
jsonb_extract_path jsonb_extract_path_text json_object_keys jsonb_object_keys json_typeof jsonb_typeof json_array_elements
jsonb_array_elements json_array_elements_text jsonb_array_elements_text jsonb_set jsonb_pretty jsonb_strip_nulls
count sum avg min max stddev stddev_pop stddev_samp variance var_pop var_samp bool_and bool_or every bit_and bit_or bit_xor
array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg percentile_cont percentile_disc mode corr covar_pop
covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy any_value grouping
row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
version current_database current_catalog current_schema current_schemas current_user session_user user current_role
current_setting pg_backend_pid pg_postmaster_start_time pg_conf_load_time inet_client_addr inet_client_port inet_server_addr
inet_server_port pg_is_in_recovery pg_is_other_temp_schema pg_my_temp_schema txid_current_if_assigned getdatabaseencoding
pg_client_encoding pg_typeof pg_collation_for pg_column_size pg_jit_available pg_advisory_unlock_all
col_description obj_description shobj_description format_type pg_char_to_encoding pg_encoding_to_char pg_encoding_max_length
pg_get_constraintdef pg_get_expr pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments
pg_get_function_result pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef pg_get_keywords pg_get_partition_constraintdef
pg_get_partkeydef pg_get_ruledef pg_get_serial_sequence pg_get_statisticsobjdef pg_get_statisticsobjdef_columns
pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_get_userbyid pg_get_viewdef pg_index_column_has_property
pg_index_has_property pg_indexam_has_property pg_options_to_table pg_partition_ancestors pg_partition_root pg_partition_tree
pg_relation_is_publishable pg_relation_is_updatable pg_column_is_updatable pg_tablespace_location pg_describe_object
pg_identify_object pg_table_is_visible pg_type_is_visible pg_function_is_visible pg_operator_is_visible pg_opclass_is_visible
pg_opfamily_is_visible pg_conversion_is_visible pg_statistics_obj_is_visible pg_ts_config_is_visible pg_ts_dict_is_visible
pg_ts_parser_is_visible pg_ts_template_is_visible pg_collation_is_visible pg_relation_size pg_table_size pg_total_relation_size
pg_indexes_size pg_database_size pg_tablespace_size pg_size_pretty pg_size_bytes pg_stat_get_numscans
pg_timezone_names pg_has_role has_any_column_privilege has_column_privilege has_database_privilege has_foreign_data_wrapper_privilege
has_function_privilege has_language_privilege has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege
has_tablespace_privilege has_type_privilege to_regclass to_regcollation to_regnamespace to_regoper to_regoperator to_regproc
to_regprocedure to_regrole to_regtype parse_ident aclexplode acldefault makeaclitem aclitemeq _pg_expandarray _pg_char_max_length _pg_char_octet_length
_pg_numeric_precision _pg_numeric_precision_radix _pg_numeric_scale _pg_datetime_precision _pg_interval_type _pg_truetypid
_pg_truetypmod _pg_index_position array_in regclassin hashtext nameconcatoid row_security_active has_parameter_privilege pg_wal_lsn_diff
pg_get_replica_identity_index pg_column_compression pg_trigger_depth oidvectortypes ts_token_type
`)

// EngineFunction checks the function of an outer query.
func EngineFunction(f *pg.FuncCall) *refuse.Refusal {
	name, refusal := ast.FunctionName(f)
	if refusal != nil || EngineFunctions[name] || pgcatalog.Silent(name) != nil || pgcatalog.RowsOf(name) != "" {
		return refusal
	}
	if serverFunction(name) {
		return notPermitted(name, int(f.Location))
	}
	return refuse.UnknownFunction.At(int(f.Location), name)
}

// notPermitted refuses a function that reaches beyond its arguments, and says where it is answered all the same.
func notPermitted(name string, pos int) *refuse.Refusal {
	r := NotAllowed.At(pos, name)
	if form := parse.FormOfAct(name); form != "" {
		r.Hint = form
	} else if strings.HasPrefix(name, "pg_") {
		r.Hint = "Of the functions of the catalogs those are answered that describe what the policy declares; this one reaches files, settings or sessions of the server."
	}
	return r
}

// serverFunction tells a function that PostgreSQL has and that no query may call: it reaches beyond its arguments.
func serverFunction(name string) bool {
	return slices.ContainsFunc([]string{"pg_", "lo_", "dblink", "query_to", "table_to", "schema_to", "database_to", "cursor_to", "set_", "nextval", "currval",
		"lastval", "setval", "setseed", "gen_random_uuid", "ts_stat", "xpath", "txid_", "binary_", "read_"},
		func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// notOverRows refuses a function that PostgreSQL has and package scalar has not, which does not make it unknown; nil
// for others. A query over released counts may still call it, where the engine knows it.
func notOverRows(env scalar.Env, name string, pos int) *refuse.Refusal {
	for n := range 8 {
		if env.Exists(name, n) {
			return nil // but not with these arguments
		}
	}
	if !EngineFunctions[name] && !serverFunction(name) {
		return nil
	}
	if parse.FormOfAct(name) != "" {
		return notPermitted(name, pos)
	}
	return NotAllowed.At(pos, name+"() over private rows").Hinting("PostgreSQL has it, but here only functions are answered that give one value for each declared value: arithmetic, casts, CASE, date_trunc, EXTRACT and the usual functions of numbers, texts and times.")
}

// WordSet is the set of the words of a text.
func WordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}
