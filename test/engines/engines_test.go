package engines

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/citustest"
	"github.com/dpproxy/dpproxy/backend/mariadbtest"
	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/backend/sparktest"
)

// An engine is one way to have private rows: lay puts tables into it and returns what the policy says of it. It skips
// the test where the engine is not installed.
type engine struct {
	name string
	lay  func(t *testing.T, dir string, tables []*table) (backend string)
}

// engines are the columns of the matrix.
var engines = []engine{
	{"PostgreSQL", inPostgres("")},
	{"PostgreSQL, copied", inPostgres(", snapshot: {dir: snapshots, every: 1d}")},
	{"Citus", inCitus("")},
	{"Citus, copied", inCitus(", snapshot: {dir: snapshots, every: 1d}")},
	{"DuckDB", inDuckDB},
	{"Parquet", inParquet},
	{"MariaDB, copied", inMariaDB},
	{"Spark", inSpark},
}

// inPostgres lays tables into a database of the shared server.
func inPostgres(more string) func(*testing.T, string, []*table) string {
	return func(t *testing.T, _ string, tables []*table) string {
		server := pgtest.Shared(t)
		role := server.Role(t, "")
		database := server.Database(t)
		server.Exec(t, database, "SET timezone = 'UTC'; "+strings.Join(statements(tables, nil, true), ";\n"), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role, "ANALYZE")
		return fmt.Sprintf("{url: %q%s}", server.URLFor(role, database), more)
	}
}

// inCitus lays tables into a database of a cluster, by the person and beside each other, but for the lines of orders,
// which do not name one: they and the public table are everywhere.
func inCitus(more string) func(*testing.T, string, []*table) string {
	return func(t *testing.T, _ string, tables []*table) string {
		d := citustest.New(t)
		role := d.Role(t)
		list := []string{"SET timezone = 'UTC'"}
		for _, table := range tables {
			list = append(list, table.create(nil, table.name != "orders")...) // whose key does not name the person, by which its rows lie
			lie := "create_reference_table('" + table.name + "')"
			if column := map[string]string{"people": "id", "visits": "who", "orders": "person", "stays": "who", "calls": "who"}[table.name]; column != "" {
				lie = fmt.Sprintf("create_distributed_table('%s', '%s', colocate_with => '%s')", table.name, column, map[bool]string{true: "none", false: "people"}[table.name == "people"])
			}
			list = append(list, "SELECT "+lie)
		}
		d.Exec(t, append(list, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role)...)
		return fmt.Sprintf("{url: %q%s}", d.URLFor(role), more)
	}
}

func statements(tables []*table, types map[string]string, constraints bool) (list []string) {
	for _, table := range tables {
		list = append(list, table.create(types, constraints)...)
	}
	return list
}

func inDuckDB(t *testing.T, dir string, tables []*table) string {
	duck(t, filepath.Join(dir, "shop.duckdb"), statements(tables, nil, true)...)
	return `{url: "duckdb:shop.duckdb"}`
}

// duck runs statements in a DuckDB file, or in memory.
func duck(t *testing.T, file string, list ...string) {
	t.Helper()
	db, err := sql.Open("duckdb", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, text := range append([]string{"SET TimeZone = 'UTC'"}, list...) {
		if _, err := db.Exec(text); err != nil {
			t.Fatalf("%v\n%.300s", err, text)
		}
	}
}

// parquet writes tables as Parquet files, which hold no constraints.
func parquet(t *testing.T, dir string, tables []*table) {
	t.Helper()
	list := statements(tables, nil, false)
	for _, table := range tables {
		list = append(list, fmt.Sprintf("COPY %s TO '%s' (FORMAT parquet)", table.name, filepath.Join(dir, table.name+".parquet")))
	}
	duck(t, "", list...)
}

func inParquet(t *testing.T, dir string, tables []*table) string {
	parquet(t, dir, tables)
	var files []string
	for _, table := range tables {
		files = append(files, fmt.Sprintf("%s: %s.parquet", table.name, table.name))
	}
	return `{url: "duckdb:", files: {` + strings.Join(files, ", ") + `}}`
}

// mariaTypes are what MariaDB calls types, and writes around names.
var mariaTypes = map[string]string{"`": "`", "text": "varchar(200) CHARACTER SET utf8mb4", "boolean": "tinyint(1)", "real": "float", "timestamptz": "timestamp NULL", "timestamp": "datetime"}

func inMariaDB(t *testing.T, _ string, tables []*table) string {
	server := mariadbtest.Shared(t)
	database := server.Database(t)
	role := server.Role(t, database)
	list := []string{"SET SESSION time_zone = '+00:00'"}
	for _, text := range statements(tables, mariaTypes, true) {
		list = append(list, strings.ReplaceAll(text, zoned+"'", "'"))
	}
	server.ExecIn(t, database, list...)
	return fmt.Sprintf("{url: %q, snapshot: {dir: snapshots, every: 1d}}", server.URL(role, database))
}

// sparkTypes are what Spark calls those of Parquet files.
var sparkTypes = map[string]string{"integer": "INT", "text": "STRING", "real": "FLOAT", "timestamptz": "TIMESTAMP", "timestamp": "TIMESTAMP_NTZ", "numeric(12,2)": "DECIMAL(12,2)", "numeric(8,2)": "DECIMAL(8,2)"}

func inSpark(t *testing.T, dir string, tables []*table) string {
	server := sparktest.Shared(t)
	database := server.Database(t)
	parquet(t, dir, tables)
	for _, table := range tables {
		create := table.create(sparkTypes, false)[0]
		server.Exec(t, strings.Replace(create, "CREATE TABLE ", "CREATE TABLE "+database+".", 1)+fmt.Sprintf(" USING PARQUET LOCATION 'file:%s'", filepath.Join(dir, table.name+".parquet")))
	}
	return fmt.Sprintf("{url: %q}", server.URL(database))
}

// truth runs statements in plain PostgreSQL over the same rows.
func truth(t *testing.T, tables []*table) func(statement string) [][]string {
	server := pgtest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, "SET timezone = 'UTC'; "+strings.Join(statements(tables, nil, true), ";\n"))
	conn, err := pgconn.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	ask := func(statement string) (rows [][]string) {
		t.Helper()
		results, err := conn.Exec(t.Context(), statement).ReadAll()
		if err != nil {
			t.Fatalf("plain PostgreSQL: %s: %v", statement, err)
		}
		for _, values := range results[0].Rows {
			row := make([]string, len(values))
			for i, v := range values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			rows = append(rows, row)
		}
		return rows
	}
	ask("SET timezone = 'UTC'")
	return ask
}
