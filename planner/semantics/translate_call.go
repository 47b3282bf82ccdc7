package semantics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// call translates a function call that is not an aggregate.
func (t *Translator) call(f *pg.FuncCall) (*Expr, *refuse.Refusal) {
	pos := int(f.Location)
	name, r := ast.FunctionName(f)
	if r != nil {
		return nil, r
	}
	if f.Over != nil {
		return nil, WindowIn.At(pos, t.Place)
	}
	if ast.Aggregates[name] || ast.HasAggregateClause(f) {
		return nil, refuse.AggregateIn.At(pos, t.Place)
	}
	if argument := ast.NamedArgument(f); argument != "" {
		return nil, noArgument(name, argument, pos)
	}
	if name == "width_bucket" && len(f.Args) == 2 {
		return t.thresholds(f, pos)
	}
	if e, r := t.rewritten(name, f); e != nil || r != nil {
		return e, r
	}
	args, _, r := t.All(f.Args)
	if r != nil {
		return nil, r
	}
	if len(args) > 0 && (name == "extract" || name == "date_part" || name == "date_trunc") {
		t.Params.Note(args[0], policy.Text)
	}
	t.noteArguments(name, args)
	if e := toTime(t.Env, name, args, pos); e != nil {
		return e, nil
	}
	if t.anyCoalesces(args) {
		if e, r := t.coalesced(args, func(args []*Expr) (*Expr, *refuse.Refusal) { return t.named(name, pos, args) }); e != nil || r != nil {
			return e, r
		}
	}
	e, r := t.named(name, pos, args)
	if r != nil || e.Op != name {
		return e, r
	}
	e.order(t.Env, name)
	if (name == "extract" || name == "date_part") && len(args) == 2 && args[0].Form == formConstant {
		field := strings.ToLower(predicate.Text(MustConstant(args[0])))
		elapsed := args[1].Type() == policy.IntervalT // between two moments: whole days, and the rest of one
		if e.Monotone = args[1].Monotone && (field == "epoch" || field == "year" || field == "day" && elapsed); e.Monotone && args[1].Type() == policy.TimestampTZ {
			e.setClock(t.Env.Zone, args[1])
		}
		if field == "epoch" && args[1].Type() == policy.TimeT {
			e.within = args[1].within
		}
		if granules[field] != "" && (args[1].Monotone || args[1].within != nil) {
			e.Form, e.Want = formExtract, granules[field]
		}
	}
	if name == "to_char" && len(args) == 2 && (args[0].Monotone && args[0].Type().Moment() ||
		args[0].Type() == policy.TimeT && isDayTime(args[0])) && args[1].Form == formConstant &&
		MustConstant(args[1]) != nil {
		if unit := scalar.TemplateUnit(predicate.Text(MustConstant(args[1]))); unit != "" {
			e.Form, e.Want = formExtract, unit
		}
	}
	return e, nil
}

// thresholds are width_bucket(age, ARRAY[18, 30, 65]): in order, they are a step at each, as CASE is.
func (t *Translator) thresholds(f *pg.FuncCall, pos int) (*Expr, *refuse.Refusal) {
	nodes, ok := ast.ArrayElements(f.Args[1])
	if !ok {
		return nil, NoForm.At(pos, "width_bucket of an array that is not written out")
	}
	args, _, r := t.All(append([]*pg.Node{f.Args[0]}, nodes...))
	if r != nil {
		return nil, r
	}
	if slices.ContainsFunc(args, func(e *Expr) bool { return e.Type() == policy.Bpchar }) { // chars would be compared without their blanks, and texts are not
		return nil, NoForm.At(pos, "width_bucket of a char").Hinting("width_bucket(x::text, ARRAY[…]) compares as text.")
	}
	plain := scalars(args)
	if f.Args[1].GetAArrayExpr() != nil {
		plain = append(plain[:1:1], t.Env.Elements(plain[1:])...)
	}
	s, err := t.Env.Call(scalar.WidthBucketOf, plain...)
	if err != nil {
		return nil, ScalarRefusal(err, pos)
	}
	e, r := t.reading(Node(FormOther, "width_bucket", s, pos, args...))
	if r != nil {
		return nil, r
	}
	ordered := true
	for i := 2; i < len(args) && ordered; i++ {
		step, err := t.Env.Call("<=", args[i-1].Expr, args[i].Expr)
		ordered = err == nil && args[i-1].IsConstant() && args[i].IsConstant()
		if ordered {
			v, err := step.Eval(nil)
			ordered = err == nil && v == true
		}
	}
	if ordered {
		e.order(t.Env, "width_bucket")
	}
	return e, nil
}

// noArgument refuses an argument that no form of the function has; package parse has put the others into their places.
func noArgument(function, argument string, pos int) *refuse.Refusal {
	r := refuse.UnknownFunction.At(pos, function+" with an argument "+argument)
	for _, form := range scalar.Arguments(function) {
		var names []string
		for _, a := range form {
			names = append(names, a.Name)
		}
		r.Hint = "The arguments of " + function + " are " + strings.Join(names, ", ") + "."
	}
	return r
}

// noteArguments gives parameters the types that a function takes them as.
func (t *Translator) noteArguments(name string, args []*Expr) {
	in := make([]policy.Type, len(args))
	any := false
	for i, a := range args {
		in[i] = a.Type()
		any = any || a.Parameter > 0 && in[i] == policy.Unknown
	}
	if !any {
		return
	}
	for i, want := range t.Env.Wants(name, in...) {
		t.Params.Note(args[i], want)
	}
}

func (t *Translator) named(name string, pos int, args []*Expr) (*Expr, *refuse.Refusal) {
	if refusal := caseOfCollated(name, pos, args); refusal != nil {
		return nil, refusal
	}
	if fills[name] {
		args = slices.Clone(args)
		for i := range args {
			var r *refuse.Refusal
			if args[i], r = t.Filled(args[i]); r != nil {
				return nil, r
			}
		}
	}
	s, err := t.Env.Call(name, scalars(args)...)
	if err != nil {
		if r := notOverRows(t.Env, name, pos); r != nil {
			return nil, r
		}
		return nil, ScalarRefusal(err, pos)
	}
	return t.reading(Node(FormOther, name, s, pos, args...))
}

// MustConstant is the value of a constant, which cannot fail.
func MustConstant(e *Expr) policy.Value {
	v, _ := e.Eval(nil)
	return v
}

func (t *Translator) sqlValue(f *pg.SQLValueFunction) (*Expr, *refuse.Refusal) {
	pos := int(f.Location)
	now := ConstantExpr(policy.Timestamptz(t.Env.Clock().UnixMicro()), policy.TimestampTZ, pos)
	target, typmod := policy.TimestampTZ, int32(-1)
	switch f.Op {
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, pg.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
		return now, nil
	case pg.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
		target = policy.DateType
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, pg.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
		target = policy.TimestampT
	case pg.SQLValueFunctionOp_SVFOP_LOCALTIME, pg.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
		target, typmod = policy.TimeT, f.Typmod
	default:
		return nil, NoForm.At(pos, "a function of the session")
	}
	s, err := t.Env.Cast(now.Expr, target, typmod)
	return Made(FormOther, "now:"+target.Name()+":"+strconv.Itoa(int(typmod)), s, err, pos, now)
}

// subLink takes (SELECT constant) for its constant; any other sub-query is not a function of one row.
func (t *Translator) subLink(s *pg.SubLink) (*Expr, *refuse.Refusal) {
	sel := s.Subselect.GetSelectStmt()
	if s.SubLinkType == pg.SubLinkType_EXPR_SUBLINK && IsBareSelect(sel) && len(sel.TargetList) == 1 {
		return t.Expr(sel.TargetList[0].GetResTarget().Val)
	}
	return nil, RowSubquery.At(int(s.Location))
}

// IsBareSelect tells SELECT expressions without anything else.
func IsBareSelect(s *pg.SelectStmt) bool {
	return s != nil && len(s.FromClause)+len(s.WindowClause) == 0 && s.WhereClause == nil && ast.IsRowByRow(s)
}

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
int4range int8range numrange daterange tsrange tstzrange isempty lower_inc upper_inc lower_inf upper_inf
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

// timeFields are the parts of a template that to_timestamp and to_date read here, each with its number of digits. BI
// tools write their time filters with them.
var timeFields = []struct {
	name   string
	digits int
}{{"YYYY", 4}, {"HH24", 2}, {"MM", 2}, {"DD", 2}, {"MI", 2}, {"SS", 2}, {"US", 6}, {"MS", 3}}

// toTime folds to_timestamp(text, template) and to_date(text, template) over constants; nil for any other call, and for
// templates with other fields.
func toTime(env scalar.Env, name string, args []*Expr, pos int) *Expr {
	if name != "to_timestamp" && name != "to_date" || len(args) != 2 || args[0].Form != formConstant || args[1].Form != formConstant {
		return nil
	}
	text, ok := MustConstant(args[0]).(string)
	template, known := MustConstant(args[1]).(string)
	if !ok || !known {
		return nil
	}
	at, ok := readTime(env, text, strings.ToUpper(template))
	if !ok {
		return nil
	}
	if name == "to_date" {
		_, offset := at.Zone()
		return ConstantExpr(policy.Date((at.Unix()+int64(offset))/86400), policy.DateType, pos)
	}
	return ConstantExpr(policy.Timestamptz(at.UnixMicro()), policy.TimestampTZ, pos)
}

// readTime reads text by a template of fixed-width fields and separators that both have in the same places.
func readTime(env scalar.Env, text, template string) (time.Time, bool) {
	values := map[string]int{"YYYY": 1, "MM": 1, "DD": 1}
	for template != "" {
		field := ""
		for _, f := range timeFields {
			if !strings.HasPrefix(template, f.name) {
				continue
			}
			n, ok := digitsOf(text, f.digits)
			if !ok {
				return time.Time{}, false
			}
			field, values[f.name], text = f.name, n, text[f.digits:]
			break
		}
		if field == "" {
			if text == "" || template[0] != text[0] || parse.IsWordStart(template[0]) && template[0] != 'T' {
				return time.Time{}, false
			}
			template, text = template[1:], text[1:]
			continue
		}
		template = template[len(field):]
	}
	zone := env.Zone
	if zone == nil {
		zone = time.UTC
	}
	at := time.Date(values["YYYY"], time.Month(values["MM"]), values["DD"], values["HH24"], values["MI"], values["SS"], values["US"]*1000+values["MS"]*1_000_000, zone)
	year, month, day := at.Date()
	exists := [3]int{year, int(month), day} == [3]int{values["YYYY"], values["MM"], values["DD"]}
	return at, text == "" && exists && values["HH24"] < 24 && values["MI"] < 60 && values["SS"] < 60 && year > 1900
}

// digitsOf reads exactly n digits.
func digitsOf(text string, n int) (value int, ok bool) {
	if len(text) < n {
		return 0, false
	}
	for i := 0; i < n; i++ {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		value = value*10 + int(text[i]-'0')
	}
	return value, true
}
