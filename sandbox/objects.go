package sandbox

import (
	"sync/atomic"

	"github.com/dpproxy/dpproxy/policy"
)

// typeRegtypes is regtype[].
const typeRegtypes policy.Type = 2211

// Cursor is an open cursor of a session, for pg_cursors.
type Cursor struct {
	Name, Statement      string
	Hold, Binary, Scroll bool
	Created              policy.Timestamptz
}

// Prepared is a prepared statement of a session, for pg_prepared_statements.
type Prepared struct {
	Name, Statement string
	Created         policy.Timestamptz
	Params, Results []policy.Type // Results is nil for a statement without rows
	FromSQL         bool
	Generic, Custom atomic.Int64 // how often it ran, without parameters and with some
}

// Client is a session of the user who asks, for pg_stat_activity.
type Client struct {
	PID                   uint32
	Database, Application string
	Started               policy.Timestamptz
	Active                bool
}

// activity are the rows of pg_stat_activity: the sessions of the user who asks, and nobody else's.
func activity(s Session) []record {
	var clients []Client
	if s.Clients == nil {
		clients = []Client{{PID: s.PID, Database: s.Database, Application: setting(s, "application_name", ""), Active: true}}
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

// openedRows are the rows of the relations that list what the session itself has opened. The statements are her own words.
func openedRows(s Session, relation string) (Rows, bool) {
	switch relation {
	case "pg_cursors":
		var records []record
		for _, c := range s.Cursors {
			records = append(records, record{"name": c.Name, "statement": c.Statement, "is_holdable": c.Hold, "is_binary": c.Binary,
				"is_scrollable": c.Scroll, "creation_time": c.Created})
		}
		return catalogTable("pg_catalog", relation, records...).rows, true
	case "pg_prepared_statements":
		var records []record
		for _, p := range s.Prepared {
			records = append(records, record{"name": p.Name, "statement": p.Statement, "prepare_time": p.Created,
				"parameter_types": typeList(p.Params), "from_sql": p.FromSQL, "generic_plans": p.Generic.Load(), "custom_plans": p.Custom.Load()})
		}
		return catalogTable("pg_catalog", relation, records...).rows, true
	}
	return Rows{}, false
}

// withResultTypes adds the column that pg_prepared_statements has from version 16 on, for a twin of such a version.
func withResultTypes(s Session, rows Rows) Rows {
	rows.Columns = append(rows.Columns, Column{Name: "result_types", Type: typeRegtypes, Typmod: -1})
	for i, p := range s.Prepared {
		var types policy.Value
		if p.Results != nil {
			types = typeList(p.Results)
		}
		rows.Data[i] = append(rows.Data[i], types)
	}
	return rows
}

func typeList(types []policy.Type) policy.Value {
	list := make([]policy.Value, len(types))
	for i, t := range types {
		list[i] = int64(t)
	}
	return list
}
