package encoding

import "github.com/dpproxy/dpproxy/policy"

// nameTables list the objects of each type that is written as a name in text and as an oid in binary.
var nameTables = map[policy.Type]string{
	oidRegclass: "SELECT oid, oid::pg_catalog.regclass::text FROM pg_catalog.pg_class",
	oidRegtype:  "SELECT oid, oid::pg_catalog.regtype::text FROM pg_catalog.pg_type",
	oidRegproc:  "SELECT oid, oid::pg_catalog.regproc::text FROM pg_catalog.pg_proc",
	oidRegNS:    "SELECT oid, oid::pg_catalog.regnamespace::text FROM pg_catalog.pg_namespace",
	oidRegRole:  "SELECT oid, oid::pg_catalog.regrole::text FROM pg_catalog.pg_roles",
}

// NamesQuery lists the objects of a type with their oids; it is empty for a type whose values are no names.
func NamesQuery(t policy.Type) string { return nameTables[t] }

// ObjectNames are the oids of catalog objects by type and name.
type ObjectNames map[policy.Type]map[string]int64

// oid is the number of a named object.
func (n ObjectNames) oid(t policy.Type, name string) (int64, bool) {
	if name == "-" && nameTables[t] != "" {
		return 0, true // how the absence of an object is written
	}
	oid, ok := n[t][name]
	return oid, ok
}
