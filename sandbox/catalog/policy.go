package catalog

import (
	"hash/fnv"
	"strconv"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
)

// What the policy gives the catalogs: schemas, tables and columns, under numbers that stay when the policy grows.

// Dataset are the rows of the catalogs that the policy gives a dataset: its schemas, tables and columns, and dp.tables
// and dp.columns. Nothing in them comes from the private database.
func Dataset(p *policy.Policy, dataset string) []Table {
	d := datasetOf(p, dataset)
	if d == nil {
		return nil
	}
	var all description
	schemas, relations, keys := relationsOf(d)
	told := map[string]bool{"public": true}
	all.schema(d.ID, "public", oidPublic)
	for _, r := range relations {
		if !told[r.schema] {
			all.schema(d.ID, r.schema, r.namespace)
			told[r.schema] = true
		}
		all.add(r)
	}
	all.constraints(d.ID, keys, relations)
	for name, oid := range schemas {
		all.put("pg_catalog", "pg_description", record{"objoid": oid, "classoid": int64(2615), "objsubid": int64(0),
			"description": "tables of dataset " + d.ID + " in schema " + name})
	}
	return append(all.tables(), dpTables(d), dpColumns(d))
}

// relationsOf are a dataset's tables, the numbers of their schemas, and their keys.
func relationsOf(d *policy.Dataset) (schemas map[string]int64, relations []relation, keys []constraint) {
	oids := numbers{used: map[int64]bool{}}
	schemas = map[string]int64{"public": oidPublic}
	for _, t := range d.Tables {
		if _, ok := schemas[t.Schema]; !ok {
			schemas[t.Schema] = oids.of("schema " + d.ID + "." + t.Schema)
		}
		r := relation{database: d.ID, schema: t.Schema, namespace: schemas[t.Schema], name: t.Name, kind: "r",
			oid: oids.of("table " + d.ID + "." + t.Schema + "." + t.Name), comment: TableComment(t),
			rowType: oids.pair("type " + d.ID + "." + t.Schema + "." + t.Name)}
		for _, c := range t.Described() {
			typ, typmod := c.DescribedType()
			r.columns = append(r.columns, attribute{name: c.Name, oid: typ, typmod: typmod, comment: ColumnComment(c), notNull: t.Always(c)})
		}
		relations = append(relations, r)
	}
	keys = constraintsOf(d, oids)
	for i, t := range d.Tables {
		for _, k := range keys {
			relations[i].keyed = relations[i].keyed || k.To == nil && k.Of == t
			relations[i].led = relations[i].led || k.To != nil && (k.Of == t || k.To.Of == t)
		}
	}
	return schemas, relations, keys
}

// Numbers are those by which the catalogs of a dataset know the columns of its tables, and their own.
func Numbers(p *policy.Policy, dataset string) pgcatalog.Numbers {
	all := pgcatalog.Numbers{}
	for _, r := range pgcatalog.Relations() {
		for i, c := range r.Columns {
			all[pgcatalog.Origin{Schema: r.Schema, Relation: r.Name, Column: c.Name}] = pgcatalog.Number{Table: uint32(r.Oid), Attribute: int16(i + 1)}
		}
	}
	if d := datasetOf(p, dataset); d != nil {
		_, relations, _ := relationsOf(d)
		for _, r := range relations {
			for i, c := range r.columns {
				all[pgcatalog.Origin{Schema: r.schema, Relation: r.name, Column: c.name}] = pgcatalog.Number{Table: uint32(r.oid), Attribute: int16(i + 1)}
			}
		}
	}
	return all
}

func datasetOf(p *policy.Policy, id string) *policy.Dataset {
	if p == nil {
		return nil
	}
	return p.Dataset(id)
}

// numbers gives objects oids that depend on their names, so that they stay when the policy grows.
type numbers struct{ used map[int64]bool }

func (n numbers) of(name string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	oid := firstUserOid + int64(h.Sum32()>>2)
	for n.used[oid] {
		oid++
	}
	n.used[oid] = true
	return oid
}

// pair gives two objects that come together a number each, and returns the second.
func (n numbers) pair(name string) int64 {
	for oid := n.of(name); ; oid = n.of(name) {
		if !n.used[oid+1] {
			n.used[oid+1] = true
			return oid + 1
		}
	}
}

// Oid is the number by which catalogs know what has no table: a role, a database. It depends on the name alone.
func Oid(name string) int64 { return numbers{used: map[int64]bool{}}.of(name) }

func roleOid(user string) int64 { return Oid("role " + user) }

func databaseOid(id string) int64 { return Oid("database " + id) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
