package main

import (
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// duckRankSQL makes a table $new beside $table of a DuckDB file, with a column dp_rank and the rows within the bound
// alone: by the CHECKs, which hold in each snapshot, no query compares a rank, and DuckDB knows of a bare count what it
// knows of hers, without reading a row. It is written in the order of the ranks, of which DuckDB knows the least and
// the largest of each group of rows, for a bound that is lowered later.
const duckRankSQL = `-- Table $name: the rows of each $what from 1 to $most are read. Then write into the policy: row_rank: dp_rank, source: $source
-- $new has these rows alone; those beyond the bound, which no answer has, stay in $table.
-- A file has one writer: run it while dpproxy is not running, and again (after DROP TABLE $new) where rows have come or max_rows_per_unit has grown.
BEGIN;
CREATE TABLE $new ($columns, dp_rank INTEGER NOT NULL, UNIQUE ($unit, dp_rank), CHECK (dp_rank >= 1), CHECK (dp_rank <= $most)); -- the CHECKs spare each query a comparison a row
INSERT INTO $new
  SELECT r.* FROM (SELECT t.*, row_number() OVER (PARTITION BY t.$unit ORDER BY md5(CAST(t AS VARCHAR))) AS dp_rank FROM $table AS t WHERE t.$unit IS NOT NULL) AS r
  WHERE r.dp_rank <= $most ORDER BY r.dp_rank;
COMMIT;
`

// duckRanks writes the SQL of a table of a policy's DuckDB file, whose catalog it reads.
func duckRanks(p *policy.Policy) func(io.Writer, *policy.Table) error {
	file := strings.TrimPrefix(p.Backend.URL, "duckdb:")
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(p.Path), file)
	}
	return func(out io.Writer, t *policy.Table) error {
		columns, err := duckColumns(file, t)
		if err != nil {
			return exitCode{3, err}
		}
		named := func(name string) string { return dialect.QuoteName(t.Source.Schema) + "." + dialect.QuoteName(name) }
		ordered := cut(t.Source.Name, "_by_rank")
		_, err = fmt.Fprint(out, strings.NewReplacer(
			"$name", t.Name, "$what", t.Dataset.Unit.Name, "$most", fmt.Sprint(t.MaxRowsPerUnit), "$table", named(t.Source.Name), "$unit", dialect.QuoteName(t.UnitColumn),
			"$new", named(ordered), "$source", t.Source.Schema+"."+ordered, "$columns", columns).Replace(duckRankSQL))
		return err
	}
}

// duckColumns are the columns of a table in a DuckDB file with their types, the unit's NOT NULL.
func duckColumns(file string, t *policy.Table) (string, error) {
	unreadable := fmt.Errorf("%s is not a DuckDB file that this version can read, or another process writes to it", file)
	db, err := sql.Open("duckdb", file+"?access_mode=READ_ONLY")
	if err != nil {
		return "", unreadable
	}
	defer db.Close()
	rows, err := db.Query(`SELECT column_name, data_type FROM duckdb_columns() WHERE NOT internal AND lower(schema_name) = lower($1) AND lower(table_name) = lower($2) ORDER BY column_index`,
		t.Source.Schema, t.Source.Name)
	if err != nil {
		return "", unreadable
	}
	defer rows.Close()
	var list []string
	unit := false
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return "", unreadable
		}
		column := dialect.QuoteName(name) + " " + kind
		if strings.EqualFold(name, t.UnitColumn) {
			column, unit = column+" NOT NULL", true
		}
		list = append(list, column)
	}
	switch {
	case rows.Err() != nil:
		return "", unreadable
	case !unit:
		return "", fmt.Errorf("table %s: %s has no table %s with a column %s", t.Name, file, t.Source.Name, t.UnitColumn)
	}
	return strings.Join(list, ", "), nil
}
