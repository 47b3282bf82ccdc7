package pgcatalog

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// shown are the relations of pg_catalog whose rows are those of the database itself: its schema, which is the policy's,
// and what is the same in every database. All others tell of the cluster, of other sessions, or of how many rows there
// are: the sandbox shows rows of its own in their place, or none.
var shown = words(`pg_aggregate pg_am pg_amop pg_amproc pg_attrdef pg_attribute
	pg_cast pg_class pg_collation pg_constraint pg_conversion pg_default_acl pg_depend pg_description pg_enum pg_event_trigger pg_extension
	pg_foreign_data_wrapper pg_foreign_server pg_foreign_table pg_index pg_indexes pg_inherits pg_init_privs pg_language
	pg_largeobject_metadata pg_matviews pg_namespace pg_opclass pg_operator pg_opfamily pg_partitioned_table pg_policies pg_policy pg_proc
	pg_publication pg_publication_namespace pg_publication_rel pg_publication_tables pg_range pg_rewrite pg_rules pg_seclabel pg_sequence
	pg_sequences pg_statistic_ext pg_tables pg_timezone_abbrevs pg_timezone_names pg_transform pg_trigger pg_ts_config pg_ts_config_map
	pg_ts_dict pg_ts_parser pg_ts_template pg_type pg_views`)

// counted are columns of other relations that tell of sizes, of numbers that the whole cluster counts, or of roles.
var counted = words(`relpages reltuples relallvisible relfilenode reltoastrelid relfrozenxid relminmxid tableowner viewowner matviewowner
	sequenceowner last_value`)

// Types of values that tell of roles and transactions.
const (
	typeOid policy.Type = 26
	typeXid policy.Type = 28
	typeACL policy.Type = 1034 // aclitem[]
)

// OwnerName is the role that owns all objects, as analysts see it; its number is 10.
const OwnerName = "dpproxy"

// Overlaid reports whether a PostgreSQL sandbox reads a relation through a table expression named schema.name instead
// of as it is: all of dp and information_schema, and the relations of pg_catalog that show the cluster, its roles or
// its counters.
func Overlaid(schema, name string) bool {
	switch schema {
	case "dp", "information_schema":
		return true
	case "pg_catalog":
		return !shown[name] || slices.ContainsFunc(columnsOf(schema, name), func(c Column) bool { return Masked(c.Name, c.Type) })
	}
	return false
}

// Replaced reports whether the rows of an overlaid relation are the sandbox's own, rather than the twin's with some
// columns masked.
func Replaced(schema, name string) bool {
	rel := Lookup(schema, name)
	if schema == "information_schema" && ofKeys[name] {
		return true
	}
	return schema == "dp" || schema == "pg_catalog" && !shown[name] || rel != nil && strings.HasPrefix(name, "_pg_")
}

// ofKeys are the relations of information_schema that a server shows of the tables that a role owns or may change, and
// dpproxy of those that an analyst sees: keys say how tables are joined.
var ofKeys = words(`table_constraints referential_constraints key_column_usage constraint_column_usage constraint_table_usage`)

// Masked reports whether a column of pg_catalog is not shown as it is.
func Masked(column string, t policy.Type) bool {
	return counted[column] || t == typeACL || t == typeXid || t == typeOid && strings.HasSuffix(column, "owner")
}

func columnsOf(schema, name string) []Column {
	if rel := Lookup(schema, name); rel != nil {
		return rel.Columns
	}
	return nil
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		set[w] = true
	}
	return set
}
