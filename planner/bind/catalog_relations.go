package bind

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// catalogRelations are the relations of pg_catalog that outer queries may read: the sandbox has an empty or generated one
// of each. What shows other sessions' or the server's own secrets is not among them.
var catalogRelations = semantics.WordSet(`
pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute pg_auth_members pg_available_extension_versions pg_available_extensions
pg_cast pg_class pg_collation pg_constraint pg_conversion pg_cursors pg_database pg_db_role_setting pg_default_acl pg_depend
pg_description pg_enum pg_event_trigger pg_extension pg_foreign_data_wrapper pg_foreign_server pg_foreign_table pg_group pg_index
pg_indexes pg_inherits pg_init_privs pg_language pg_largeobject_metadata pg_matviews pg_namespace pg_opclass pg_operator
pg_opfamily pg_parameter_acl pg_partitioned_table pg_policies pg_policy pg_prepared_statements pg_prepared_xacts pg_proc
pg_publication pg_publication_namespace pg_publication_rel pg_publication_tables pg_range pg_replication_origin pg_rewrite
pg_roles pg_rules pg_seclabel pg_seclabels pg_sequence pg_sequences pg_settings pg_shdepend pg_shdescription pg_shseclabel
pg_stat_activity pg_stat_user_tables pg_statio_all_tables pg_statistic_ext pg_subscription pg_subscription_rel pg_tables
pg_tablespace pg_timezone_abbrevs pg_timezone_names pg_transform pg_trigger pg_ts_config pg_ts_config_map pg_ts_dict
pg_ts_parser pg_ts_template pg_type pg_user pg_views`)

var schemaRelations = semantics.WordSet(`
administrable_role_authorizations applicable_roles attributes character_sets check_constraint_routine_usage check_constraints
collation_character_set_applicability collations column_column_usage column_domain_usage column_options column_privileges
column_udt_usage columns constraint_column_usage constraint_table_usage data_type_privileges domain_constraints
domain_udt_usage domains element_types enabled_roles foreign_data_wrapper_options foreign_data_wrappers foreign_server_options
foreign_servers foreign_table_options foreign_tables information_schema_catalog_name key_column_usage parameters
referential_constraints role_column_grants role_routine_grants role_table_grants role_udt_grants role_usage_grants
routine_column_usage routine_privileges routine_routine_usage routine_sequence_usage routine_table_usage routines schemata
sequences sql_features sql_implementation_info sql_parts sql_sizing table_constraints table_privileges tables transforms
triggered_update_columns triggers udt_privileges usage_privileges user_defined_types view_column_usage view_routine_usage
view_table_usage views`)

var ownRelations = semantics.WordSet(`budget charges releases tables columns last`)

// resolve finds what a name in FROM means: a private table, or a relation of the sandbox.
func (b *Binder) resolve(v *pg.RangeVar) (private *policy.Table, other plans.Relation, refusal *refuse.Refusal) {
	pos := int(v.Location)
	d := b.Context.Dataset
	if v.Catalogname != "" && (d == nil || v.Catalogname != d.ID) {
		return nil, other, unknownDatabase.At(pos, v.Catalogname+"."+v.Schemaname+"."+v.Relname)
	}
	if v.Schemaname != "" {
		return b.resolveIn(v.Schemaname, v.Relname, pos)
	}
	path := b.Context.Settings.SearchPath
	if !slices.Contains(path, "pg_catalog") {
		path = append([]string{"pg_catalog"}, path...)
	}
	if len(b.Context.Settings.SearchPath) == 0 {
		path = append(path, "public")
	}
	for _, schema := range path {
		if private, other, refusal = b.resolveIn(schema, v.Relname, pos); refusal == nil {
			return private, other, nil
		}
	}
	if d != nil && slices.Contains(path, "public") {
		if t := d.Table("", v.Relname); t != nil {
			return b.table(t)
		}
	}
	if refusal = unknownTable.At(pos, v.Relname); d != nil {
		names := make([]string, len(d.Tables))
		for i, t := range d.Tables {
			names[i] = t.Name
		}
		if near := nearest(v.Relname, names); near != "" {
			if t := d.Table("", near); t != nil && !slices.Contains(path, t.Schema) {
				near = t.Schema + "." + near
			}
			refusal.Hint = `Perhaps you meant "` + near + `".`
		}
	}
	return nil, other, refusal
}

func (b *Binder) resolveIn(schema, name string, pos int) (*policy.Table, plans.Relation, *refuse.Refusal) {
	known := map[string]map[string]bool{"pg_catalog": catalogRelations, "information_schema": schemaRelations, "dp": ownRelations}[schema]
	switch {
	case known[name]:
		return nil, plans.Relation{Schema: schema, Name: name}, nil
	case schema == "dp" && b.releaseNamed(name) != nil:
		return nil, plans.Relation{Schema: schema, Name: name, Release: b.releaseNamed(name)}, nil
	case schema == "pg_catalog" && strings.HasPrefix(name, "pg_"):
		return nil, plans.Relation{}, ownCatalogue.At(pos, schema+"."+name)
	case known == nil && b.Context.Dataset != nil:
		if t := b.Context.Dataset.Table(schema, name); t != nil && t.Schema == schema {
			return b.table(t)
		}
	}
	return nil, plans.Relation{}, unknownTable.At(pos, schema+"."+name)
}

func (b *Binder) table(t *policy.Table) (*policy.Table, plans.Relation, *refuse.Refusal) {
	if t.Public {
		return nil, plans.Relation{Schema: t.Schema, Name: t.Name, Public: t}, nil
	}
	return b.Open.table(t), plans.Relation{}, nil
}
