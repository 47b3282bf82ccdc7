package bind

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// What a name in FROM means. FROM people is a private table, FROM regions a public one, FROM pg_class and FROM
// dp.tables are relations of the sandbox, and FROM dp.people_made_up the made-up rows of a release.

// Resolve finds what a name in FROM means: a private table, or a relation of the sandbox.
func (b *Binder) Resolve(v *pg.RangeVar) (private *policy.Table, other plans.Relation, refusal *refuse.Refusal) {
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
	if b.Context.Settings.SearchPath == nil {
		path = append(path, "public")
	}
	for _, schema := range path {
		if private, other, refusal = b.resolveIn(schema, v.Relname, pos); refusal == nil || refusal.ID == ownCatalogue.ID {
			return private, other, refusal
		}
	}
	if d != nil && slices.Contains(path, "public") {
		if t := d.Table("", v.Relname); t != nil {
			return b.table(t)
		}
	}
	if refusal = unknownTable.At(pos, v.Relname); d != nil {
		if near := nearestTable(d, v.Relname, path); near != "" {
			refusal.Hint = `Perhaps you meant "` + near + `".`
		}
	}
	return nil, other, refusal
}

// nearestTable is the table of a name that is spelled much like another, or empty. It has its schema where no path leads
// to that.
func nearestTable(d *policy.Dataset, name string, path []string) string {
	names := make([]string, len(d.Tables))
	for i, t := range d.Tables {
		names[i] = t.Name
	}
	near := refuse.Nearest(name, names)
	if t := d.Table("", near); near != "" && t != nil && !slices.Contains(path, t.Schema) {
		return t.Schema + "." + near
	}
	return near
}

func (b *Binder) resolveIn(schema, name string, pos int) (*policy.Table, plans.Relation, *refuse.Refusal) {
	catalog := schema == "pg_catalog" || schema == "information_schema" || schema == "dp"
	known := pgcatalog.Lookup(schema, name)
	switch {
	case known != nil && known.Readable:
		return nil, plans.Relation{Schema: schema, Name: name}, nil
	case known != nil:
		return nil, plans.Relation{}, ownCatalogue.At(pos, schema+"."+name)
	case schema == "dp" && b.Context.Dataset != nil && b.Context.Dataset.MadeUp(name) != nil:
		return nil, plans.Relation{Schema: schema, Name: name, Release: b.Context.Dataset.MadeUp(name)}, nil
	case catalog:
		return nil, plans.Relation{}, unknownTable.At(pos, schema+"."+name).Hinting("The catalogs are those of PostgreSQL 15; SELECT relname FROM pg_class lists them.")
	case b.Context.Dataset != nil:
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
	return b.Open.Table(t), plans.Relation{}, nil
}
