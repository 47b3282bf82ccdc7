package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/service"
)

func prepareCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "prepare --policy policy.yaml [table…]",
		Args:  cobra.ArbitraryArgs,
		Short: "Print the SQL that numbers each unit's rows in the database, so that no query has to",
		Long: `Prints SQL for the tables' owner to read and run: a column that numbers each unit's rows, constraints on the unit and that column, an index of
the rows beyond the bound, and a trigger that numbers new rows. row_rank in the policy then names the column, and a question reads the rows up to
max_rows_per_unit without numbering them. It connects to no database. Without names it is for each private table of which a unit may have several rows
and that has no row_rank. The first rows are numbered in the order of a hash of what they hold, so that those beyond the bound are not of one kind; new
rows are the last of their unit. A deleted row's number is given again only where it was the last.
For a DuckDB file, of which it reads the names and types of columns, it is a table beside the old one, of the rows within the bound alone: run it again
where rows have come since, or the bound has grown.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := service.ReadPolicy(path)
			if err != nil {
				return exitCode{3, err}
			}
			return prepare(cmd.OutOrStdout(), p, args)
		},
	}
	policyFlag(cmd, &path)
	return cmd
}

// prepare writes the SQL for the tables that are named, or for all that it helps.
func prepare(out io.Writer, p *policy.Policy, tables []string) error {
	if p.Backend.Spark() {
		return exitCode{2, errors.New("prepare is for PostgreSQL and DuckDB: Spark enforces no constraint, so that no row_rank of its is believed")}
	}
	if p.Backend.MySQL() {
		return exitCode{2, errors.New("prepare is for PostgreSQL and DuckDB: a snapshot of MySQL numbers each unit's rows itself")}
	}
	write := writeRank
	if strings.HasPrefix(p.Backend.URL, "duckdb:") {
		write = duckRanks(p)
	}
	found, written := map[string]bool{}, 0
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			named := len(tables) == 0
			for _, name := range tables {
				if name == t.Name || name == t.Schema+"."+t.Name {
					named, found[name] = true, true
				}
			}
			if !named {
				continue
			}
			why := unranked(t)
			switch {
			case why == "":
				if err := write(out, t); err != nil {
					return err
				}
				written++
			case len(tables) > 0:
				return exitCode{2, fmt.Errorf("table %s: %s", t.Name, why)}
			}
		}
	}
	for _, name := range tables {
		if !found[name] {
			return exitCode{2, fmt.Errorf("the policy has no table %s", name)}
		}
	}
	if written == 0 {
		fmt.Fprintln(out, "-- No table of the policy would be read faster by a row_rank.")
	}
	return nil
}

// unranked says why a rank would not help a table; empty means it would.
func unranked(t *policy.Table) string {
	switch {
	case t.Public || t.Dataset.Unit.Row || t.AnyRows:
		return "none of its rows are left out"
	case t.RowRank != "":
		return "row_rank is " + t.RowRank + " already"
	case t.File != "":
		return "no constraint holds in a file: a table of a DuckDB file may have a row_rank, and backend.snapshot numbers the rows of files"
	case t.UnitColumn == "" || t.View.Text != "" || t.NullEach:
		return "row_rank is for tables in which a column names each row's unit"
	case t.MaxGroups > 0 || t.Appends != nil:
		return "row_rank goes with max_rows_per_unit alone"
	case t.MaxRowsPerUnit == 1:
		return "a unique constraint on " + t.UnitColumn + " does what row_rank would: each unit has one row"
	}
	return ""
}

// rankSQL makes the column dp_rank: $table is `clinic.visits`, $unit its column that names the unit.
const rankSQL = `-- Table $name: the rows of each $what from 1 to $most are read. Then write into the policy: row_rank: dp_rank
BEGIN;
LOCK TABLE $table IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE $table ADD COLUMN dp_rank bigint;
UPDATE $table AS t SET dp_rank = n.rank
  FROM (SELECT r.ctid, row_number() OVER (PARTITION BY r.$unit ORDER BY md5(r::text)) AS rank FROM $table AS r WHERE r.$unit IS NOT NULL) AS n
  WHERE n.ctid = t.ctid;
ALTER TABLE $table ADD CONSTRAINT $constraint UNIQUE ($unit, dp_rank);
ALTER TABLE $table ADD CHECK (dp_rank >= 1), ADD CHECK (dp_rank IS NULL OR $unit IS NOT NULL); -- spare each query two comparisons a row
-- Counts and sums of all rows, less those of the rows beyond the bound, which this index has. It may INCLUDE texts that are short in every row, too: varchar(n), not text.
CREATE INDEX ON $table (dp_rank)$include WHERE dp_rank > $most OR dp_rank IS NULL;
-- If more than a tenth of the rows are beyond the bound, make this one in its place: CREATE INDEX ON $table (dp_rank) WHERE dp_rank <= $most;
CREATE FUNCTION $function() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $body$ -- writers need not be able to read
BEGIN
  IF TG_OP = 'INSERT' OR NEW.$unit IS DISTINCT FROM OLD.$unit THEN
    PERFORM pg_advisory_xact_lock(hashtext($text), hashtext(NEW.$unit::text)); -- rows of one unit that come at once wait for each other
    NEW.dp_rank := CASE WHEN NEW.$unit IS NOT NULL THEN (SELECT coalesce(max(r.dp_rank), 0) + 1 FROM $table AS r WHERE r.$unit = NEW.$unit) END;
  END IF;
  RETURN NEW;
END $body$;
REVOKE ALL ON FUNCTION $function() FROM PUBLIC; -- nobody else is to give it to a table of theirs: it reads this one
CREATE TRIGGER dp_rank BEFORE INSERT OR UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION $function();
COMMIT;
-- Every row was written anew; then run: VACUUM ANALYZE $table;
`

// writeRank writes the SQL of one table.
func writeRank(out io.Writer, t *policy.Table) error {
	named := func(name string) string { return dialect.QuoteName(t.Source.Schema) + "." + dialect.QuoteName(name) }
	_, err := fmt.Fprint(out, strings.NewReplacer(
		"$name", t.Name, "$what", t.Dataset.Unit.Name, "$most", fmt.Sprint(t.MaxRowsPerUnit), "$table", named(t.Source.Name), "$unit", dialect.QuoteName(t.UnitColumn), "$include", included(t),
		"$constraint", dialect.QuoteName(cut(t.Source.Name, "_dp_rank_key")), "$text", dialect.QuoteText(named(t.Source.Name)),
		"$function", named(cut(t.Source.Name, "_dp_rank")), "$body$", "$dp_rank$").Replace(rankSQL))
	return err
}

// maxIncluded is how many columns an index of PostgreSQL has beside one.
const maxIncluded = 31

// included are the columns that an index of some rows may have beside their rank, so that the table is not read: those
// whose values take a few bytes each. A row whose text is too long for an index could not be written.
func included(t *policy.Table) string {
	var names []string
	for _, c := range t.Columns {
		name := dialect.QuoteName(c.Source)
		if c.Source == "" || c.Type.Textual() || c.Type == policy.NumericType || slices.Contains(names, name) || len(names) == maxIncluded {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return ""
	}
	return " INCLUDE (" + strings.Join(names, ", ") + ")"
}

// cut is a name with an ending, of at most the 63 bytes that PostgreSQL keeps.
func cut(name, ending string) string {
	return strings.ToValidUTF8(name[:min(len(name), 63-len(ending))], "") + ending
}

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
