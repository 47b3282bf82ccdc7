package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/backend/mysql"
	"github.com/dpproxy/dpproxy/cmd/dpproxy/draft"
)

// What MySQL's and MariaDB's information_schema says of tables, in PostgreSQL's words, which a policy's are.

const (
	mysqlTablesSQL  = `SELECT t.TABLE_NAME, t.TABLE_COMMENT FROM information_schema.TABLES AS t WHERE t.TABLE_SCHEMA = ? AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY t.TABLE_NAME`
	mysqlSchemasSQL = `SELECT DISTINCT t.TABLE_SCHEMA FROM information_schema.TABLES AS t
WHERE t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND t.TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY t.TABLE_SCHEMA`
	mysqlColumnsSQL = `SELECT c.COLUMN_NAME, lower(c.DATA_TYPE), c.COLUMN_TYPE, c.COLUMN_COMMENT,
  EXISTS (SELECT 1 FROM information_schema.STATISTICS AS k WHERE k.TABLE_SCHEMA = c.TABLE_SCHEMA
    AND k.TABLE_NAME = c.TABLE_NAME AND k.COLUMN_NAME = c.COLUMN_NAME AND k.NON_UNIQUE = 0
    AND NOT EXISTS (SELECT 1 FROM information_schema.STATISTICS AS o WHERE o.TABLE_SCHEMA = k.TABLE_SCHEMA
      AND o.TABLE_NAME = k.TABLE_NAME AND o.INDEX_NAME = k.INDEX_NAME AND o.SEQ_IN_INDEX > 1))
FROM information_schema.COLUMNS AS c
WHERE c.TABLE_SCHEMA = ? AND c.TABLE_NAME = ? AND c.EXTRA NOT LIKE '%VIRTUAL%' ORDER BY c.ORDINAL_POSITION`
	mysqlPrimarySQL = `SELECT k.COLUMN_NAME FROM information_schema.STATISTICS AS k WHERE k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ? AND k.INDEX_NAME = 'PRIMARY' ORDER BY k.SEQ_IN_INDEX`
	mysqlForeignSQL = `SELECT k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE AS k
WHERE k.TABLE_SCHEMA = ? AND k.TABLE_NAME = ? AND k.REFERENCED_TABLE_NAME IS NOT NULL ORDER BY k.CONSTRAINT_NAME, k.ORDINAL_POSITION`
	mariaChecksSQL = `SELECT k.CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS AS k WHERE k.CONSTRAINT_SCHEMA = ? AND k.TABLE_NAME = ? ORDER BY k.CONSTRAINT_NAME`
	mysqlChecksSQL = `SELECT k.CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS AS k JOIN information_schema.TABLE_CONSTRAINTS AS t
ON t.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND t.CONSTRAINT_NAME = k.CONSTRAINT_NAME WHERE k.CONSTRAINT_SCHEMA = ? AND t.TABLE_NAME = ? ORDER BY k.CONSTRAINT_NAME`
)

// firstMySQLPolicy reads the catalog and drafts a policy.
func firstMySQLPolicy(ctx context.Context, database string, f initFlags) (*draft.Draft, error) {
	c, err := mysql.OpenCatalog(ctx, database)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	defer c.Close()
	schema, err := readMySQL(ctx, c, f)
	if err != nil {
		return nil, err
	}
	options := f.Options
	options.Named, options.Copied = len(f.tables) > 0, true
	if u, err := url.Parse(database); err == nil {
		u.User = url.User(u.User.Username())
		options.URL = u.String()
	}
	if f.readPublic {
		options.Read = publicReader{c.Ask, c.Quote, "char"}.in(ctx)
	}
	return draft.Write(schema, options)
}

func readMySQL(ctx context.Context, c *mysql.Catalog, f initFlags) (*draft.Schema, error) {
	s := &draft.Schema{}
	add := func(schema, name, comment string) {
		if !slices.ContainsFunc(s.Tables, func(t *draft.Table) bool { return t.Schema == schema && t.Name == name }) {
			s.Tables = append(s.Tables, &draft.Table{Schema: schema, Name: name, Comment: comment})
		}
	}
	schemas := f.schemas
	if !f.schemaGiven {
		schemas = []string{c.Database}
	}
	for _, schema := range schemas {
		rows, err := c.Ask(ctx, mysqlTablesSQL, schema)
		if err != nil {
			return nil, err
		}
		if f.all && len(rows) == 0 {
			return nil, noMySQLTables(ctx, c, schema)
		}
		for _, row := range rows {
			if f.all {
				add(schema, row[0], row[1])
			}
		}
	}
	for _, name := range f.tables {
		schema, table, qualified := strings.Cut(name, ".")
		if !qualified {
			schema, table = c.Database, name
		}
		rows, err := c.Ask(ctx, mysqlTablesSQL, schema)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == table })
		if at < 0 {
			return nil, fmt.Errorf("table %s: not found in the database", name)
		}
		add(schema, table, rows[at][1])
	}
	for _, t := range s.Tables {
		if err := readMySQLTable(ctx, c, s, t); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// noMySQLTables says which databases have tables where the one that was named has none.
func noMySQLTables(ctx context.Context, c *mysql.Catalog, schema string) error {
	rows, err := c.Ask(ctx, mysqlSchemasSQL)
	if err != nil {
		return err
	}
	var names []string
	for _, row := range rows {
		names = append(names, row[0])
	}
	return nothingIn("database", schema, "account", names)
}

func readMySQLTable(ctx context.Context, c *mysql.Catalog, s *draft.Schema, t *draft.Table) error {
	checks := mysqlChecksSQL
	if c.Maria {
		checks = mariaChecksSQL
	}
	var found [4][][]string
	for i, text := range []string{mysqlColumnsSQL, mysqlPrimarySQL, mysqlForeignSQL, checks} {
		var err error
		if found[i], err = c.Ask(ctx, text, t.Schema, t.Name); err != nil {
			return err
		}
	}
	for _, row := range found[0] {
		column := &draft.Column{Name: row[0], Type: policyType(row[1], strings.ToLower(row[2])), Comment: row[3],
			Unshared: row[4] == "1"}
		if labels := enumLabels(row[1], row[2]); labels != "" {
			column.Checks = []string{"VALUE IN (" + labels + ")"}
		}
		t.Columns = append(t.Columns, column)
	}
	for _, row := range found[1] {
		t.Primary = append(t.Primary, row[0])
	}
	if t.Primary != nil {
		t.Unique = [][]string{t.Primary} // a snapshot believes no other key
	}
	last := ""
	for _, row := range found[2] {
		at := slices.IndexFunc(s.Tables, func(o *draft.Table) bool { return o.Schema == row[2] && o.Name == row[3] })
		if at < 0 {
			t.Unsure = append(t.Unsure, row[1])
			continue
		}
		if row[0] != last {
			t.Foreign = append(t.Foreign, draft.Foreign{To: s.Tables[at]})
		}
		last = row[0]
		to := &t.Foreign[len(t.Foreign)-1]
		to.Columns, to.Keys = append(to.Columns, row[1]), append(to.Keys, row[4])
	}
	for _, row := range found[3] {
		t.Checks = append(t.Checks, strings.ReplaceAll(row[0], "`", `"`))
	}
	return nil
}

// policyType is a type of MySQL's in the words of a policy; what no policy can declare keeps its own name.
func policyType(data, full string) string {
	unsigned := strings.Contains(full, "unsigned")
	pick := func(signed, other string) string {
		if unsigned {
			return other
		}
		return signed
	}
	switch data {
	case "tinyint":
		if strings.HasPrefix(full, "tinyint(1)") {
			return "boolean"
		}
		return "smallint"
	case "year":
		return "smallint"
	case "smallint":
		return pick("smallint", "integer")
	case "mediumint":
		return "integer"
	case "int":
		return pick("integer", "bigint")
	case "bigint", "date", "uuid":
		return data
	case "decimal":
		number, _, _ := strings.Cut(strings.TrimPrefix(full, "decimal"), ")")
		return "numeric" + number + ")"
	case "float":
		return "real"
	case "double":
		return "double precision"
	case "datetime":
		return "timestamp without time zone"
	case "timestamp":
		return "timestamp with time zone"
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set":
		return "text"
	}
	return data
}

// enumLabels are the labels of an ENUM, as SQL writes them: enum('new','it”s').
func enumLabels(data, full string) string {
	if data != "enum" {
		return ""
	}
	_, labels, _ := strings.Cut(full, "(")
	return strings.TrimSuffix(labels, ")")
}
