package sandbox

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/pgcatalog"
)

// catalogTables are the rows of the catalogs that the policy gives a dataset: its schemas, tables and columns, and
// dp.tables and dp.columns. Nothing in them comes from the private database.
func catalogTables(p *policy.Policy, dataset string) []table {
	d := datasetOf(p, dataset)
	if d == nil {
		return nil
	}
	oids := numbers{used: map[int64]bool{}}
	var all description
	schemas := map[string]int64{"public": oidPublic}
	all.schema(d.ID, "public", oidPublic)
	for _, t := range d.Tables {
		if _, ok := schemas[t.Schema]; !ok {
			schemas[t.Schema] = oids.of("schema " + d.ID + "." + t.Schema)
			all.schema(d.ID, t.Schema, schemas[t.Schema])
		}
		r := relation{database: d.ID, schema: t.Schema, namespace: schemas[t.Schema], name: t.Name, kind: "r",
			oid: oids.of("table " + d.ID + "." + t.Schema + "." + t.Name), comment: tableComment(t)}
		for _, c := range t.Columns {
			r.columns = append(r.columns, attribute{name: c.Name, oid: c.Type, typmod: c.Typmod, comment: columnComment(c),
				notNull: c.Nulls == policy.NullExclude})
		}
		all.add(r)
	}
	for name, oid := range schemas {
		all.put("pg_catalog", "pg_description", record{"objoid": oid, "classoid": int64(2615), "objsubid": int64(0),
			"description": "tables of dataset " + d.ID + " in schema " + name})
	}
	return append(all.tables(), dpTables(d), dpColumns(d))
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

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// publicComment begins the comments of public tables.
const publicComment = "public table: "

func tableComment(t *policy.Table) string {
	if t.Public {
		return publicComment + "queries over it alone are exact and free"
	}
	if t.Analysed() {
		return "private table: a SELECT over other tables; aggregates are answered with noise"
	}
	unit := "each row is protected"
	if t.Dataset != nil && !t.Dataset.Unit.Row {
		unit = "each " + t.Dataset.Unit.Name + " is protected, with at most " + itoa(t.MaxRowsPerUnit) + " rows"
		if t.MaxGroups > 0 {
			unit += " (in " + itoa(t.MaxGroups) + " groups, " + itoa(t.MaxPerGroup) + " in each)"
		}
	}
	return "private table: " + unit + "; aggregates are answered with noise"
}

// columnComment says what an analyst needs to know of a column: its domain, and how to group by it.
func columnComment(c *policy.Column) string {
	var parts []string
	if c.Comment != "" {
		parts = append(parts, c.Comment)
	}
	if c.Domain != nil {
		parts = append(parts, domainText(c.Domain))
		if !c.Domain.Ordered() || c.Domain.Single() {
			parts = append(parts, "GROUP BY "+c.Name)
		} else {
			parts = append(parts, "GROUP BY width_bucket or ranges of "+c.Name)
		}
		switch c.Outside {
		case policy.OutsideClamp:
			parts = append(parts, "values outside count as the nearest end")
		case policy.OutsideExclude:
			parts = append(parts, "rows outside are left out")
		}
	}
	return strings.Join(parts, "; ")
}

// domainText writes a domain in words.
func domainText(d *policy.Domain) string {
	if !d.Ordered() && len(d.Values) == 0 {
		return "open: = and IN count any value; GROUP BY shows the keys that enough units have"
	}
	if !d.Ordered() {
		shown := d.Values
		more := ""
		if len(shown) > 20 {
			shown, more = shown[:20], fmt.Sprintf(", … (%d values)", len(d.Values))
		}
		return "one of " + strings.Join(shown, ", ") + more
	}
	env := scalar.Env{Zone: time.UTC}
	text := env.FormatText(d.Type, d.Min) + " to " + env.FormatText(d.Type, d.Max)
	switch {
	case d.Type.Integer() && d.Step.Whole != 1:
		text += ", step " + itoa(d.Step.Whole)
	case d.Type == policy.DateType && d.Step.Whole != 1:
		text += ", step " + itoa(d.Step.Whole) + " days"
	case d.Type == policy.TimestampT || d.Type == policy.TimestampTZ:
		text += ", step " + spanText(d.Step.Whole)
	case d.Type == policy.NumericType || d.Type.Floating():
		text += ", step " + d.Step.Decimal.String()
	}
	return text
}

// spanText writes microseconds as the policy file may: in the largest unit that divides them.
func spanText(micros int64) string {
	for _, u := range []struct {
		name   string
		micros int64
	}{{"day", 86_400_000_000}, {"hour", 3_600_000_000}, {"minute", 60_000_000}} {
		switch n := micros / u.micros; {
		case micros == u.micros:
			return "1 " + u.name
		case micros%u.micros == 0:
			return itoa(n) + " " + u.name + "s"
		}
	}
	return (time.Duration(micros) * time.Microsecond).String()
}

// DPTables are the columns of the tables of schema dp. The rows of budget, charges and releases come with a query; those
// of tables and columns are made here.
func DPTables() map[string][]Column {
	all := map[string][]Column{}
	for _, rel := range pgcatalog.Relations() {
		if rel.Schema == "dp" {
			all[rel.Name] = catalogTable(rel.Schema, rel.Name).rows.Columns
		}
	}
	return all
}

func dpTables(d *policy.Dataset) table {
	var records []record
	for _, t := range d.Tables {
		r := record{"table_schema": t.Schema, "table_name": t.Name, "public": t.Public, "trusted": t.View.Trusted}
		if !t.Public {
			if r["unit"] = "row"; !t.Analysed() {
				r["expected_rows"], r["max_rows_per_unit"] = t.ExpectedRows, t.MaxRowsPerUnit
			}
			if !d.Unit.Row {
				r["unit"] = d.Unit.Name
			}
		}
		records = append(records, r)
	}
	return catalogTable("dp", "tables", records...)
}

func dpColumns(d *policy.Dataset) table {
	var records []record
	for _, t := range d.Tables {
		for _, c := range t.Columns {
			r := record{"table_schema": t.Schema, "table_name": t.Name, "column_name": c.Name, "data_type": c.Type.Format(c.Typmod)}
			if c.Domain != nil {
				r["domain"], r["cells"] = domainText(c.Domain), int64(c.Domain.Size())
				r["nulls"], r["outside"] = "cell", "other"
				if c.Nulls == policy.NullExclude {
					r["nulls"] = "exclude"
				}
				switch c.Outside {
				case policy.OutsideClamp:
					r["outside"] = "clamp"
				case policy.OutsideExclude:
					r["outside"] = "exclude"
				}
			}
			records = append(records, r)
		}
	}
	return catalogTable("dp", "columns", records...)
}

// sessionRows are the rows of the catalog relations that differ between sessions: an analyst sees herself, the owner, the
// datasets in which she has a budget, and her own connection.
func sessionRows(p *policy.Policy, s Session, name string) (Rows, bool) {
	schema, relation, _ := strings.Cut(name, ".")
	var records []record
	user := roleOid(s.User)
	switch name {
	case "pg_catalog.pg_roles":
		records = []record{role("rol", ownerName, oidOwner, false), role("rol", s.User, user, true)}
	case "pg_catalog.pg_user":
		records = []record{{"usename": ownerName, "usesysid": oidOwner, "usecreatedb": false, "usesuper": false, "userepl": false, "usebypassrls": false},
			{"usename": s.User, "usesysid": user, "usecreatedb": false, "usesuper": false, "userepl": false, "usebypassrls": false}}
	case "pg_catalog.pg_database":
		records = databases(p, s)
	case "pg_catalog.pg_settings":
		for _, k := range sortedKeys(s.Settings) {
			v := s.Settings[k]
			records = append(records, record{"name": k, "setting": v, "category": "Session", "short_desc": "", "context": "user",
				"vartype": "string", "source": "session", "boot_val": v, "reset_val": v, "pending_restart": false})
		}
	case "pg_catalog.pg_stat_activity":
		records = activity(s)
	default:
		return openedRows(s, strings.TrimPrefix(name, "pg_catalog."))
	}
	return catalogTable(schema, relation, records...).rows, true
}

func role(prefix, name string, oid int64, login bool) record {
	return record{prefix + "name": name, prefix + "super": false, prefix + "inherit": true, prefix + "createrole": false,
		prefix + "createdb": false, prefix + "canlogin": login, prefix + "replication": false, prefix + "connlimit": int64(-1),
		prefix + "password": "********", prefix + "bypassrls": false, "oid": oid}
}

// databases are the datasets in which the user has a budget.
func databases(p *policy.Policy, s Session) []record {
	ids := []string{}
	if p != nil {
		for _, d := range p.Datasets {
			if _, ok := d.Budget(s.User); ok {
				ids = append(ids, d.ID)
			}
		}
	}
	if !slices.Contains(ids, s.Database) && datasetOf(p, s.Database) == nil {
		ids = append(ids, s.Database)
	}
	var records []record
	for _, id := range ids {
		records = append(records, record{"oid": databaseOid(id), "datname": id, "datdba": oidOwner, "encoding": int64(6),
			"datlocprovider": "c", "datistemplate": false, "datallowconn": true, "datconnlimit": int64(-1),
			"dattablespace": oidTablespace, "datcollate": "C", "datctype": "C"})
	}
	return records
}

func roleOid(user string) int64 { return numbers{used: map[int64]bool{}}.of("role " + user) }

func databaseOid(id string) int64 { return numbers{used: map[int64]bool{}}.of("database " + id) }

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
