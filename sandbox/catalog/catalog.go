// Package catalog generates what analysts see in pg_catalog, information_schema and schema dp: rows that the policy,
// the session and PostgreSQL itself give, and none from a database. The twin has catalogs of its own, of which it hides
// what tells of its server: SELECT usename FROM pg_stat_activity reads Overlay, the sessions of who asks.
package catalog

import (
	"hash/fnv"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// OwnerOid is the number of the role that owns everything, whose name is pgcatalog.OwnerName.
const OwnerOid = int64(10)

const oidTablespace = int64(1663)

// record is a row of a catalog relation by column names; columns that it leaves out are NULL, or the zero of their type
// where the relation does not allow NULL.
type record map[string]policy.Value

// rowsOf are the rows of a catalog relation made of records.
func rowsOf(schema, name string, records ...record) (rows sandbox.Rows) {
	rel := pgcatalog.Lookup(schema, name)
	for _, c := range rel.Columns {
		rows.Columns = append(rows.Columns, sandbox.Column{Name: c.Name, Type: c.Type, Typmod: -1})
	}
	for _, r := range records {
		row := make([]policy.Value, len(rel.Columns))
		for i, c := range rel.Columns {
			v, ok := r[c.Name]
			if !ok && c.NotNull {
				v = zeroOf(c.Type)
			}
			row[i] = v
		}
		rows.Data = append(rows.Data, row)
	}
	return rows
}

// zeroOf is the zero of a type.
func zeroOf(t policy.Type) policy.Value {
	_, array := Element(t)
	switch {
	case array:
		return []policy.Value{}
	case t == policy.Bool:
		return false
	case t.Floating():
		return float64(0)
	case t.Integer() || oidLike(t):
		return int64(0)
	case t == policy.NumericType || t == policy.DateType || t == policy.TimestampT || t == policy.TimestampTZ || t == policy.TimeT || t == policy.IntervalT:
		return nil
	}
	return ""
}

func datasetOf(p *policy.Policy, id string) *policy.Dataset {
	if p == nil {
		return nil
	}
	return p.Dataset(id)
}

// Oid is the number by which catalogs know what has no table: a role, a database. It depends on the name alone.
func Oid(name string) int64 {
	const firstUserOid = 16384
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return firstUserOid + int64(h.Sum32()>>2)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func roleOid(user string) int64 { return Oid("role " + user) }

func databaseOid(id string) int64 { return Oid("database " + id) }
