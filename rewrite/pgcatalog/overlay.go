package pgcatalog

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
)

// overlays are the relations of pg_catalog whose rows are the cluster's or other sessions'. The sandbox shows rows of its
// own in their place, or none.
var overlays = words(`pg_auth_members pg_cursors pg_database pg_db_role_setting pg_group pg_parameter_acl pg_prepared_statements
	pg_prepared_xacts pg_replication_origin pg_roles pg_seclabels pg_settings pg_shdepend pg_shdescription pg_shseclabel
	pg_stat_activity pg_stat_user_tables pg_statio_all_tables pg_subscription pg_subscription_rel pg_tablespace pg_user`)

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

// Overlaid tells whether a PostgreSQL sandbox reads a relation through a table expression named schema.name instead of
// as it is: all of dp and information_schema, and the relations of pg_catalog that show the cluster, its roles or its
// counters.
func Overlaid(schema, name string) bool {
	switch schema {
	case "dp", "information_schema":
		return true
	case "pg_catalog":
		return overlays[name] || slices.ContainsFunc(columnsOf(schema, name), func(c Column) bool { return Masked(c.Name, c.Type) })
	}
	return false
}

// Replaced tells whether the rows of an overlaid relation are the sandbox's own, rather than the twin's with some columns
// masked.
func Replaced(schema, name string) bool {
	return schema == "dp" || schema == "pg_catalog" && overlays[name]
}

// Masked tells whether a column of pg_catalog is not shown as it is.
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
