package rewrite_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/sparktest"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Spark runs the SQL of measures over the very Parquet files that DuckDB has written, and both count what the twin counts. These tests
// run in `make spark`.

// sparkTypes are what Spark calls the types of the test tables.
var sparkTypes = strings.NewReplacer("double precision", "DOUBLE", "timestamptz", "TIMESTAMP", "timestamp", "TIMESTAMP_NTZ", "integer", "INT", "real", "FLOAT", "uuid", "STRING",
	"text", "STRING", "varchar(20)", "STRING", "numeric", "DECIMAL", "smallint", "SMALLINT", "bigint", "BIGINT", "boolean", "BOOLEAN", "date", "DATE")

// sparkTable writes a table of DuckDB's as a Parquet file, and has Spark read it under the same name.
func sparkTable(t *testing.T, server *sparktest.Server, duck *sql.DB, schema, name string, columns []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	var items, declared []string
	for _, c := range columns {
		column, kind, _ := strings.Cut(c, " ")
		items, declared = append(items, column), append(declared, "`"+column+"` "+kind)
		if kind == "uuid" {
			items[len(items)-1] = column + "::VARCHAR AS " + column
		}
		if kind == "numeric" {
			declared[len(declared)-1] = "`" + column + "` DECIMAL(38,9)"
		}
		declared[len(declared)-1] = sparkTypes.Replace(declared[len(declared)-1])
	}
	for _, text := range []string{fmt.Sprintf("COPY (SELECT %s FROM %s.%s) TO '%s' (FORMAT parquet, PER_THREAD_OUTPUT true)", strings.Join(items, ", "), schema, name, dir)} {
		if _, err := duck.Exec(text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	server.Exec(t, "CREATE TABLE "+schema+"."+name+" ("+strings.Join(declared, ", ")+") USING PARQUET LOCATION 'file:"+dir+"'")
}

// sparkQueries runs queries in one session.
func sparkQueries(t *testing.T, server *sparktest.Server) engine {
	session, err := hive.Settled(context.Background(), server.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return func(t *testing.T, text string, args []any) (list [][]int64) {
		t.Helper()
		if len(args) > 0 {
			t.Fatal("Spark's SQL has arguments")
		}
		err := session.Query(t.Context(), text, func(r hive.Row) error {
			row := make([]int64, len(r))
			for i, v := range r {
				if v.Null || v.Kind != hive.Int && v.Kind != hive.Bigint {
					return fmt.Errorf("column %d is no number", i)
				}
				row[i] = v.Whole
			}
			list = append(list, row)
			return nil
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return list
	}
}

// columnsOf are the columns of a test table as schemaSQL declares them.
func columnsOf(specs []spec) []string {
	list := []string{"person_id bigint"}
	for _, s := range specs {
		list = append(list, s.name+" "+s.kind)
	}
	return list
}

// TestSparkAgreesWithTheTwin is TestEnginesAgreeWithTheTwin, and TestHostileRowsLieInGosCells, on Spark.
func TestSparkAgreesWithTheTwin(t *testing.T) {
	server := sparktest.Shared(t)
	_, visits, people := tables(t)
	r := rand.New(rand.NewPCG(20240611, 1))
	for name, rows := range map[string][2][]stored{
		"generated": {generate(r, people, 1500, 900), generate(r, visits, 900, 150)},
		"hostile":   {hostileRows(people), hostileRows(visits)},
	} {
		t.Run(name, func(t *testing.T) {
			duck := duckDB(t, append(append([]string{"CREATE SCHEMA clinic"}, schemaSQL(people, "person_id", peopleSpecs, rows[0], true)...), schemaSQL(visits, "person_id", visitsSpecs, rows[1], true)...))
			server.Exec(t, "CREATE DATABASE clinic")
			t.Cleanup(func() { server.Exec(t, "DROP DATABASE clinic CASCADE") })
			sparkTable(t, server, duck, "clinic", "people", columnsOf(peopleSpecs))
			sparkTable(t, server, duck, "clinic", "visits", columnsOf(visitsSpecs))
			engines := map[dialect.Dialect]engine{dialect.Spark: sparkQueries(t, server)}
			compareAll(t, dialect.Spark, maps.Clone(engines), rows[0], rows[1])
		})
	}
}
