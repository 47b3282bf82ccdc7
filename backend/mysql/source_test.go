package mysql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/snapshot"
)

// maria is a policy over a MariaDB database with these tables, and the database's name; TABLES is what the policy says
// of them.
func maria(t *testing.T, unit, tables string, statements ...string) (h *backendtest.House, database string) {
	t.Helper()
	server := mariadbtest.Shared(t)
	database = server.Database(t)
	role := server.Role(t, database)
	server.ExecIn(t, database, statements...)
	h = backendtest.MariaPolicy(t, server.URL(role, database), unit, tables)
	h.Source, h.Role = func(statement string) { server.ExecIn(t, database, statement) }, role
	return h, database
}

// stored lists what a snapshot holds in a column, in the order of its text.
func stored(t *testing.T, h *backendtest.House, table, column string) (list []string) {
	t.Helper()
	b := h.Backend.(*snapshot.Snapshots)
	c := b.Enter()
	if c == nil {
		t.Fatal("no snapshot")
	}
	defer b.Leave(c)
	for name := range c.Names {
		if !strings.HasPrefix(name, table+"@") || isMarginal(name) {
			continue
		}
		err := c.EachRow(t.Context(), fmt.Sprintf("SELECT CAST(COLUMNS('^[0-9]+:%s$') AS VARCHAR) FROM private.%q ORDER BY 1 NULLS FIRST", column, name), func(row []*string) error {
			text := "NULL"
			if row[0] != nil {
				text = *row[0]
			}
			list = append(list, text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// isMarginal tells the counts that lie beside a table's rows (visits@1f…#1) from these.
func isMarginal(name string) bool { return strings.Contains(name, "#") }

// TestMySQLCells: each type, with rows that other readers fail at. Domains are wide enough to show what a value became.
func TestMySQLCells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		column, domain, values string // of MariaDB, of the policy, inserted
		want                   string
	}{
		"tinyint as boolean": {"tinyint(1)", "type: boolean, domain: {values: [false, true]}", "(0), (1), (2), (-128), (NULL)", "NULL 0 1 1 1"},
		"bit as boolean":     {"bit(8)", "type: boolean, domain: {values: [false, true]}", "(b'0'), (b'1'), (b'10000000'), (NULL)", "NULL 0 1 1"},
		"integer":            {"int", "type: integer, domain: {min: -2147483648, max: 2147483647, step: 16}", "(-2147483648), (2147483647), (0), (NULL)", "NULL -2147483648 0 2147483647"},
		"bigint unsigned":    {"bigint unsigned", "type: bigint, domain: {min: 0, max: 100, step: 1}, outside: clamp", "(0), (18446744073709551615), (9223372036854775808), (7)", "0 100 100 7"},
		"unsigned as other":  {"bigint unsigned", "type: bigint, domain: {min: 0, max: 100, step: 1}", "(18446744073709551615), (7)", "NULL 7"},
		"smallint of an int": {"int", "type: smallint, domain: {min: 0, max: 100, step: 1}, outside: clamp", "(70000), (-70000), (3)", "0 100 3"},
		"zerofill":           {"int(8) unsigned zerofill", "type: integer, domain: {min: 0, max: 100, step: 1}", "(42)", "42"},
		"year":               {"year", "type: integer, domain: {min: 1900, max: 2155, step: 1}", "(1901), (2155), (0)", "NULL 1901 2155"},
		"decimal(65,30) in a numeric": {"decimal(65,9)", "type: numeric, domain: {min: 0, max: 1000, step: 1}, outside: clamp",
			"(99999999999999999999999999999999999999999999999999999999.999999999), (-99999999999999999999999999999999999999999999999999999999.999999999), (1.000000001), (-0.0)",
			"0.000000000 0.000000000 1.000000001 1000.000000000"},
		"decimal(65,30)": {"decimal(65,30)", `type: "numeric(38,30)", domain: {min: 0, max: 1000, step: 1}, outside: clamp`, "(1), (999.5), (12345678901234567890123456789012345), (-1), (NULL)",
			"NULL 0.000000000000000000000000000000 1.000000000000000000000000000000 1000.000000000000000000000000000000 999.500000000000000000000000000000"},
		"decimal": {"decimal(10,2)", `type: "numeric(10,2)", domain: {min: -1, max: 1, step: 0.01}`, "(-0.01), (0.99), (1.01), (99999999.99), (NULL)", "NULL NULL NULL -0.01 0.99"},
		"float":   {"float", "type: real, domain: {min: 0, max: 100, step: 1}, outside: clamp", "(0.1), (16777216), (3.4e38), (-1e-38)", "0.0 0.10000000149011612 100.0 100.0"},
		"double":  {"double", "type: double precision, domain: {min: 0, max: 1, step: 0.1}, outside: clamp", "(0.1), (1.7976931348623157e308), (-1e300), (2.2250738585072014e-308)", "0.0 0.1 1.0 2.2250738585072014e-308"},
		"date": {"date", "type: date, domain: {min: 2000-01-01, max: 2029-12-31, step: 1 day}, outside: clamp",
			"('0000-00-00'), ('2021-02-31'), ('2021-00-10'), ('0000-01-01'), ('9999-12-31'), ('2024-02-29'), (NULL)", "NULL NULL NULL NULL 2000-01-01 2024-02-29 2029-12-31"},
		"datetime": {"datetime(6)", "type: timestamp, domain: {min: 2020-01-01, below: 2030-01-01, step: 1 hour}",
			"('0000-00-00 00:00:00'), ('2024-02-30 01:02:03'), ('2024-02-29 23:59:59.999999'), ('9999-12-31 23:59:59.999999'), ('2024-02-29 23:59:59')", "NULL NULL NULL 2024-02-29 23:59:59 2024-02-29 23:59:59.999999"},
		"timestamp": {"timestamp(3) NULL", "type: timestamptz, domain: {min: 2000-01-01, below: 2030-01-01, step: 1 hour}",
			"('2024-07-01 12:00:00.125'), ('0000-00-00 00:00:00'), (NULL)", "NULL NULL 2024-07-01 11:00:00.125+00"},
		"text":                 {"text", "type: text, domain: {values: [f, m, ä]}", "('f'), ('F'), ('f '), (''), ('ä'), (repeat('x', 1000000)), (NULL)", "NULL 0 2 3 3 3 3"},
		"char":                 {"char(8)", "type: text, domain: {values: [f, m]}", "('f'), ('f   '), ('M')", "0 0 2"},
		"enum":                 {"enum('f', 'm', '')", "type: text, domain: {values: [f, m]}", "('f'), ('M'), (''), (77)", "0 1 2 2"},
		"set":                  {"set('a', 'b')", "type: text, domain: {values: ['', 'a', 'a,b']}", "(''), ('b,a'), ('b'), (NULL)", "NULL 0 2 3"},
		"other character sets": {"varchar(20) CHARACTER SET latin1", "type: text, domain: {values: [ä, ö]}", "(_latin1 x'e4'), (_latin1 x'f6'), (_latin1 x'00')", "0 1 2"},
		"bytes":                {"varbinary(20)", "type: text, domain: {values: [f]}", "('f'), (x'ff00'), (x'c3')", "0 1 1"},
		"json":                 {"json", "type: text, domain: {values: ['{}']}", "('{}'), ('{\"a\": 1}'), ('null')", "0 1 1"},
		"open text":            {"longtext", "type: text, keys: discover", "(repeat('ä', 200)), ('A'), ('a'), (_binary x'fffe'), (concat('n', char(0))), (NULL)", "NULL ?? A a n\x00 " + strings.Repeat("ä", 128)},
		"uuid":                 {"uuid", "type: uuid, domain: {values: [6ba7b810-9dad-11d1-80b4-00c04fd430c8]}", "('6BA7B810-9dad-11d1-80b4-00c04fd430c8'), ('6ba7b810-9dad-11d1-80b4-00c04fd430c9')", "NULL 0"},
		"uuid as text":         {"char(36)", "type: uuid, domain: {values: [6ba7b810-9dad-11d1-80b4-00c04fd430c8]}", "('6BA7B810-9dad-11d1-80b4-00c04fd430c8'), ('no uuid'), ('6ba7b810-9dad-11d1-80b4-00c04fd430cX')", "NULL NULL 0"},
		"uuid as bytes":        {"binary(16)", "type: uuid, domain: {values: [6ba7b810-9dad-11d1-80b4-00c04fd430c8]}", "(x'6ba7b8109dad11d180b400c04fd430c8'), ('f')", "NULL 0"},
		"stored":               {"int AS (1 + 1) STORED", "type: integer, domain: {min: 0, max: 9, step: 1}", "(DEFAULT)", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := maria(t, "{name: cell, key: cells.id}", "      - {name: cells, max_rows_per_unit: 1, columns: [{name: v, "+c.domain+"}]}\n",
				"SET SESSION sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION', time_zone = '+01:00'",
				"CREATE TABLE cells (id int AUTO_INCREMENT PRIMARY KEY, v "+c.column+") CHARACTER SET utf8mb4", "INSERT IGNORE INTO cells (v) VALUES "+c.values)
			backendtest.Prepare(t, h)
			if got := strings.Join(stored(t, h, "cells", "v"), " "); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestMySQLKeys: keys are one unit here where MariaDB takes them for equal, and only there; where it is not known, they
// are refused.
func TestMySQLKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ column, values, refused string }{
		"bigint":            {"bigint", "(-9223372036854775808), (9223372036854775807), (0)", ""},
		"bigint unsigned":   {"bigint unsigned", "(18446744073709551615), (9223372036854775808), (9223372036854775807), (0)", ""},
		"whole, unsigned":   {"bigint unsigned", "(18446744073709551615), (9223372036854775808), (9223372036854775807), (0)", ""},
		"whole":             {"bigint", "(-9223372036854775808), (9223372036854775807), (0)", ""},
		"decimal":           {"decimal(10,2)", "(0), (-0.00), (1.5), (1.50), (-1.5)", ""},
		"zerofill":          {"decimal(10,2) zerofill", "(0), (1.5), (100)", ""},
		"bytes of a text":   {"varchar(40) COLLATE utf8mb4_bin", "('a'), ('A'), ('a  '), ('ä'), (concat('a', char(0))), (concat(char(0), '61')), ('')", ""},
		"text, not padded":  {"varchar(40) COLLATE utf8mb4_nopad_bin", "('a'), ('A'), ('a  '), ('a '), ('')", ""},
		"latin1":            {"varchar(40) CHARACTER SET latin1 COLLATE latin1_bin", "(_latin1 x'e4'), (_latin1 x'c4'), (_latin1 x'81'), ('?')", ""},
		"long text":         {"varchar(3000) COLLATE utf8mb4_bin", "(concat(repeat('x', 2999), 'a')), (concat(repeat('x', 2999), 'b')), (repeat('x', 1000))", ""},
		"varbinary":         {"varbinary(40)", "('a'), ('A'), ('a '), (x'ff'), (x'c3'), (x'00')", ""},
		"binary":            {"binary(3)", "('a'), ('A'), (x'ff')", ""},
		"enum":              {"enum('a', 'b') COLLATE utf8mb4_bin", "('a'), ('b')", ""},
		"date":              {"date", "('0000-00-00'), ('2024-02-29'), ('2024-00-00')", ""},
		"datetime":          {"datetime(2)", "('2024-02-29 00:00:00'), ('2024-02-29 00:00:00.1'), ('0000-00-00')", ""},
		"uuid":              {"uuid", "('6ba7b810-9dad-11d1-80b4-00c04fd430c8'), ('6BA7B810-9DAD-11D1-80B4-00C04FD430C8')", ""},
		"no regard to case": {"varchar(40) COLLATE utf8mb4_general_ci", "('a')", "in a _bin collation"},
		"enum, no regard":   {"enum('a', 'b') COLLATE utf8mb4_general_ci", "('a')", "in a _bin collation"},
		"gbk":               {"varchar(40) CHARACTER SET gbk COLLATE gbk_bin", "('a')", "in a _bin collation"},
		"double":            {"double", "(1)", "is double, of which equal values may have different texts"},
		"longtext":          {"longtext COLLATE utf8mb4_bin", "('a')", "in a _bin collation"},
	} {
		t.Run(name, func(t *testing.T) {
			unit := "{name: person, key: people.id}"
			if strings.HasPrefix(name, "whole") {
				unit = "{name: person, key: people.id, type: bigint}"
			}
			h, database := maria(t, unit, `
      - {name: people, max_rows_per_unit: 1, columns: [{name: age, type: integer, domain: {min: 0, max: 9, step: 1}}]}
      - {name: visits, unit: visits.who = people.id, max_rows_per_unit: 2, columns: [{name: n, type: integer, domain: {min: 0, max: 9, step: 1}}]}
`, "SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION'",
				"CREATE TABLE people (id "+c.column+", age int DEFAULT 1) CHARACTER SET utf8mb4", "INSERT INTO people (id) VALUES "+c.values+", (NULL)",
				"CREATE TABLE visits (who "+c.column+", n int DEFAULT 1) CHARACTER SET utf8mb4", "INSERT INTO visits (who) VALUES "+c.values+", "+c.values+", "+c.values+", (NULL)")
			findings, err := h.Inspect(t.Context(), h.Policy, h.Policy.Datasets[0])
			if err != nil {
				t.Fatal(err)
			}
			if c.refused != "" {
				if !inspect.Fatal(findings) || !strings.Contains(fmt.Sprint(findings), c.refused) {
					t.Errorf("not refused with %q: %v", c.refused, findings)
				}
				return
			}
			backendtest.Prepare(t, h)
			var want string
			if err := mariadbtest.Shared(t).DB().QueryRow("SELECT concat(count(DISTINCT id), ' units, ', (SELECT sum(least(k, 2)) FROM (SELECT count(*) AS k FROM " + database + ".visits WHERE who IS NOT NULL GROUP BY who) AS v), ' rows') FROM " + database + ".people").Scan(&want); err != nil {
				t.Fatal(err)
			}
			b := h.Backend.(*snapshot.Snapshots)
			copied := b.Enter()
			defer b.Leave(copied)
			tables := map[string]string{}
			for name := range copied.Names {
				if !isMarginal(name) {
					table, _, _ := strings.Cut(name, "@")
					tables[table] = fmt.Sprintf("private.%q", name)
				}
			}
			text := fmt.Sprintf("SELECT (SELECT count(DISTINCT u) FROM %s) || ' units, ' || (SELECT count(*) FROM %s WHERE r <= 2 AND u IN (SELECT u FROM %[1]s)) || ' rows'", tables["people"], tables["visits"])
			if err := copied.EachRow(t.Context(), text, func(row []*string) error {
				if *row[0] != want {
					t.Errorf("got %s, MariaDB has %s", *row[0], want)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
