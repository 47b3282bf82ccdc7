package catalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What the catalogs show of the session itself. SELECT name FROM pg_prepared_statements reads what the session has
// prepared; SELECT datname FROM pg_database the datasets in which its user has a budget.

// sessionRows are the rows of the catalog relations that differ between sessions: an analyst sees herself, the owner,
// the datasets in which she has a budget, and her own connection.
func sessionRows(p *policy.Policy, s sandbox.Session, name string) (sandbox.Rows, bool) {
	schema, relation, _ := strings.Cut(name, ".")
	var records []record
	user := roleOid(s.User)
	switch name {
	case "pg_catalog.pg_roles":
		records = []record{role("rol", pgcatalog.OwnerName, OwnerOid, false), role("rol", s.User, user, true)}
	case "pg_catalog.pg_user":
		records = []record{{"usename": pgcatalog.OwnerName, "usesysid": OwnerOid, "usecreatedb": false, "usesuper": false, "userepl": false, "usebypassrls": false},
			{"usename": s.User, "usesysid": user, "usecreatedb": false, "usesuper": false, "userepl": false, "usebypassrls": false}}
	case "pg_catalog.pg_database":
		records = databases(p, s)
	case "pg_catalog.pg_shdescription":
		for _, d := range databases(p, s) {
			r := record{"objoid": d["oid"], "classoid": int64(outer.OidDatabases), "description": Asking}
			records = append(records, r)
		}
	case "pg_catalog.pg_settings":
		for _, v := range s.Variables() {
			r := record{"name": v.Name, "setting": v.Value, "unit": given(v.Unit), "category": "Session", "short_desc": v.About, "context": "user",
				"vartype": v.Kind, "source": "session", "min_val": given(v.Low), "max_val": given(v.High), "boot_val": v.Boot, "reset_val": v.Reset,
				"pending_restart": false}
			if v.Fixed {
				r["context"] = "internal"
			}
			if v.Value == v.Boot {
				r["source"] = "default"
			}
			if v.Choices != nil {
				list := make([]policy.Value, len(v.Choices))
				for i, c := range v.Choices {
					list[i] = c
				}
				r["enumvals"] = list
			}
			records = append(records, r)
		}
	case "pg_catalog.pg_stat_activity":
		records = activity(s)
	default:
		return openedRows(s, strings.TrimPrefix(name, "pg_catalog."))
	}
	return rowsOf(schema, relation, records...), true
}

// given is a text, and NULL where it is empty.
func given(text string) policy.Value {
	if text == "" {
		return nil
	}
	return text
}

func role(prefix, name string, oid int64, login bool) record {
	return record{prefix + "name": name, prefix + "super": false, prefix + "inherit": true, prefix + "createrole": false,
		prefix + "createdb": false, prefix + "canlogin": login, prefix + "replication": false, prefix + "connlimit": int64(-1),
		prefix + "password": "********", prefix + "bypassrls": false, "oid": oid}
}

// databases are the datasets in which the user has a budget.
func databases(p *policy.Policy, s sandbox.Session) []record {
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
		records = append(records, record{"oid": databaseOid(id), "datname": id, "datdba": OwnerOid, "encoding": int64(6),
			"datlocprovider": "c", "datistemplate": false, "datallowconn": true, "datconnlimit": int64(-1),
			"dattablespace": oidTablespace, "datcollate": "C", "datctype": "C"})
	}
	return records
}

// activity are the rows of pg_stat_activity: the sessions of the user who asks, and nobody else's.
func activity(s sandbox.Session) []record {
	var clients []sandbox.Client
	if s.Clients == nil {
		clients = []sandbox.Client{{PID: s.PID, Database: s.Database, Application: s.Setting("application_name", ""), Active: true}}
	} else {
		clients = s.Clients()
	}
	var records []record
	for _, c := range clients {
		r := record{"datid": databaseOid(c.Database), "datname": c.Database, "pid": int64(c.PID), "usesysid": roleOid(s.User), "usename": s.User,
			"application_name": c.Application, "state": "idle", "backend_type": "client backend"}
		if c.Active {
			r["state"] = "active"
		}
		if c.Started != 0 {
			r["backend_start"] = c.Started
		}
		records = append(records, r)
	}
	return records
}

// openedRows are the rows of the relations that list what the session itself has opened. The statements are her own
// words.
func openedRows(s sandbox.Session, relation string) (sandbox.Rows, bool) {
	switch relation {
	case "pg_cursors":
		var records []record
		for _, c := range s.Cursors {
			records = append(records, record{"name": c.Name, "statement": c.Statement, "is_holdable": c.Hold, "is_binary": c.Binary,
				"is_scrollable": c.Scroll, "creation_time": c.Created})
		}
		return rowsOf("pg_catalog", relation, records...), true
	case "pg_prepared_statements":
		var records []record
		for _, p := range s.Prepared {
			records = append(records, record{"name": p.Name, "statement": p.Statement, "prepare_time": p.Created,
				"parameter_types": typeList(p.Params), "from_sql": p.FromSQL, "generic_plans": p.Generic.Load(), "custom_plans": p.Custom.Load()})
		}
		return rowsOf("pg_catalog", relation, records...), true
	}
	return sandbox.Rows{}, false
}

func typeList(types []policy.Type) policy.Value {
	list := make([]policy.Value, len(types))
	for i, t := range types {
		list[i] = int64(t)
	}
	return list
}

// Parameter is the value of a session parameter of an outer query; now is in microseconds since 1970.
func Parameter(s sandbox.Session, name string, now int64) string {
	if text, ok := outer.GivenText(name); ok {
		return text
	}
	switch name {
	case "user":
		return s.User
	case "database":
		return s.Database
	case "useroid":
		return itoa(roleOid(s.User))
	case "pid":
		return strconv.FormatUint(uint64(s.PID), 10)
	case "now":
		return strconv.FormatInt(now, 10)
	case "zone":
		return s.Setting("timezone", "UTC")
	case "version":
		return "PostgreSQL " + s.Setting("server_version", "15.0 (dpproxy)")
	}
	return s.Setting(name, "")
}
