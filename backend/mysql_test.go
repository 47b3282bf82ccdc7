package backend

import (
	"testing"

	"github.com/dpproxy/dpproxy/backend/mariadbtest"
)

// mariaSQL is rowsSQL for MariaDB.
var mariaSQL = []string{
	"CREATE TABLE people (person_id bigint PRIMARY KEY, age int, sex text, income decimal(10,2), note text)",
	"INSERT INTO people SELECT seq, seq * 3 % 130, CASE WHEN seq % 5 = 0 THEN NULL WHEN seq % 2 = 0 THEN 'Female' WHEN seq % 7 = 0 THEN '" + canary + "' ELSE 'Male' END, seq * 1000.5, '" + canary + "' FROM seq_1_to_40",
	"CREATE TABLE visits (person_id bigint, clinic text, minutes int)",
	"INSERT INTO visits SELECT CASE WHEN seq % 11 = 0 THEN NULL ELSE seq % 10 END, CASE WHEN seq % 3 = 0 THEN 'north' ELSE 'south' END, seq % 60 FROM seq_1_to_100",
	"CREATE TABLE regions (code text, area int, share double, since date, opened timestamp(6) NULL, ratio decimal(5,2), open boolean)",
	"INSERT INTO regions VALUES ('north', 61000, 0.5, '2001-02-03', '2020-01-01 10:00:00.5', 1.50, true), ('it''s', -1, NULL, NULL, NULL, NULL, NULL)",
}

// mariaHouse is a snapshot of the same rows in MariaDB.
func mariaHouse(t *testing.T) *house { return ofSnapshots(t, mariaHouseOf(t, mariadbtest.Shared(t))) }

// mariaHouseOf is one of which no snapshot is in force.
func mariaHouseOf(t *testing.T, server *mariadbtest.Server) *house {
	t.Helper()
	database := server.Database(t)
	role := server.Role(t, database)
	change := func(statement string) { server.ExecIn(t, database, statement) }
	for _, s := range mariaSQL {
		change(s)
	}
	p := testPolicy(t, server.URL(role, database))
	p.Backend.Snapshot = testSnapshot(t)
	for _, table := range p.Datasets[0].Tables {
		table.Source.Schema = database
	}
	h := open(t, p)
	h.source, h.role = change, role
	h.gone = func() { // no connection is let in any more
		server.Exec(t, "ALTER USER "+role+"@'127.0.0.1' ACCOUNT LOCK")
	}
	return h
}
