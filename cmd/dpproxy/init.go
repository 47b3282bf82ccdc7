package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/cmd/dpproxy/draft"
)

// initFlags are what the owner says beside the schema.
type initFlags struct {
	tables      []string
	all         bool
	schemas     []string
	schemaGiven bool
	readPublic  bool
	out         string
	draft.Options
}

func initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init postgres://…/prod|mysql://…/prod --all",
		Short: "Write a first policy from a database's schema, with comments (never from private rows)",
		Long: `Reads the names, types, constraints and comments of tables, and writes a policy: whom the budget protects, how the rows of
each table lead to them, which tables are public, which columns no analyst should see, and the values of the others. What
only you can know is marked EDIT. No row is read, unless --read-public: then the keys of the tables that become public.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.schemaGiven = cmd.Flags().Changed("schema")
			return runInit(cmd, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.tables, "table", nil, "a table, schema.name or name; may be repeated")
	flags.BoolVar(&f.all, "all", false, "all tables of the schema")
	flags.StringArrayVar(&f.schemas, "schema", []string{"public"}, "with --all: the schema, of MySQL the database, by default the URL's; may be repeated")
	flags.StringVar(&f.Unit, "unit", "", "table.column that names whom the budget protects, where the schema does not tell")
	flags.StringVar(&f.From, "from", "", "first date of columns of dates, such as 2020-01-01")
	flags.StringVar(&f.Until, "until", "", "last date of columns of dates")
	flags.BoolVar(&f.readPublic, "read-public", false, "read the keys of the tables that become public, for the domains of the columns that name them")
	flags.StringVar(&f.out, "out", "", "file to write; standard output if empty; an existing file is left alone")
	flags.StringVar(&f.Dataset, "dataset", "data", "the dataset's id, which is also the database name that clients ask for")
	return cmd
}

func runInit(cmd *cobra.Command, database string, f initFlags) error {
	switch {
	case len(f.tables) == 0 && !f.all:
		return exitCode{2, errors.New("name at least one --table, or --all")}
	case len(f.tables) > 0 && f.all:
		return exitCode{2, errors.New("--table and --all: say one of them")}
	case (f.From == "") != (f.Until == ""), f.From != "" && f.From >= f.Until:
		return exitCode{2, errors.New("--from and --until go together, the earlier one first: --from 2020-01-01 --until 2029-12-31")}
	case strings.HasPrefix(database, "spark:"):
		return exitCode{2, errors.New("init reads the schema of a PostgreSQL, MySQL or MariaDB database; for Spark begin with the policy in docs/engines.md")}
	case strings.HasPrefix(database, "duckdb:"):
		return exitCode{2, errors.New("init reads the schema of a PostgreSQL, MySQL or MariaDB database; for DuckDB, CSV and Parquet begin with the policy that dpproxy demo writes, and docs/policy.md")}
	}
	made, err := firstPolicy(cmd.Context(), database, f)
	var doubt draft.Doubt
	if errors.As(err, &doubt) {
		return exitCode{2, err}
	}
	if err != nil {
		return err
	}
	for _, w := range made.Warnings {
		fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
	}
	if err := writeNew(cmd.OutOrStdout(), f.out, made.Text); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "protects each %s: %s\n", made.Unit.Name(), made.Unit.Why)
	fmt.Fprintf(cmd.ErrOrStderr(), "%s, %s, %d left out; %s marked EDIT to decide\n", counted(made.Private, "private table"), counted(made.Public, "public table"), made.LeftOut, counted(made.Edits, "line"))
	return nil
}

func writeNew(stdout io.Writer, path, text string) error {
	if path == "" {
		_, err := io.WriteString(stdout, text)
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(f, text); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// firstPolicy reads the catalog and drafts a policy.
func firstPolicy(ctx context.Context, database string, f initFlags) (*draft.Draft, error) {
	if strings.HasPrefix(database, "mysql://") {
		return firstMySQLPolicy(ctx, database, f)
	}
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil, fmt.Errorf("database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	schema, err := readCatalog(ctx, conn, f)
	if err != nil {
		return nil, err
	}
	options := f.Options
	options.URL, options.Named = address(conn.Config()), len(f.tables) > 0
	if f.readPublic {
		options.Keys = func(t *draft.Table, c *draft.Column) (draft.Keys, error) { return publicKeys(ctx, conn, t, c) }
	}
	return draft.Write(schema, options)
}

// address is the database's URL without its password.
func address(config *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", User: url.User(config.User), Host: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), Path: "/" + config.Database}
	if strings.HasPrefix(config.Host, "/") { // the directory of a Unix socket
		u.Host, u.RawQuery = "", url.Values{"host": {config.Host}, "port": {strconv.Itoa(int(config.Port))}}.Encode()
	}
	return u.String()
}

// What PostgreSQL's catalog says of tables: names, types, constraints and comments.

const (
	tablesSQL = `SELECT c.oid, n.nspname::text, c.relname::text, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY n.nspname, c.relname`

	schemasSQL = `SELECT DISTINCT n.nspname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ORDER BY 1`

	tableSQL = `SELECT c.oid, n.nspname::text, c.relname::text, coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1)`

	columnsSQL = `SELECT a.attname::text, pg_catalog.format_type(b.type, b.mod), CASE WHEN t.typtype = 'd' THEN t.typname::text ELSE '' END,
  ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = b.type ORDER BY e.enumsortorder),
  ARRAY(SELECT pg_catalog.pg_get_expr(k.conbin, 0) FROM pg_catalog.pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c' AND k.convalidated ORDER BY k.conname),
  coalesce(pg_catalog.col_description(a.attrelid, a.attnum), ''),
  EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum)
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
CROSS JOIN LATERAL (WITH RECURSIVE below(type, mod) AS (SELECT a.atttypid, a.atttypmod
    UNION ALL SELECT y.typbasetype, CASE WHEN y.typtypmod < 0 THEN below.mod ELSE y.typtypmod END FROM below JOIN pg_catalog.pg_type y ON y.oid = below.type AND y.typtype = 'd')
  SELECT below.type, below.mod FROM below JOIN pg_catalog.pg_type y ON y.oid = below.type AND y.typtype <> 'd') AS b
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v' ORDER BY a.attnum`

	constraintsSQL = `SELECT k.contype::text, coalesce(k.confrelid, 0), k.condeferrable, k.convalidated,
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.conkey) WITH ORDINALITY AS w(n, i) JOIN pg_catalog.pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = w.n ORDER BY w.i),
  ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(k.confkey) WITH ORDINALITY AS w(n, i) JOIN pg_catalog.pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = w.n ORDER BY w.i),
  CASE WHEN k.contype = 'c' THEN pg_catalog.pg_get_expr(k.conbin, k.conrelid) ELSE '' END
FROM pg_catalog.pg_constraint k WHERE k.conrelid = $1 AND k.contype IN ('p', 'u', 'f', 'c') AND (k.convalidated OR k.contype = 'f')
  AND NOT EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indexrelid = k.conindid AND i.indisexclusion) -- WITHOUT OVERLAPS: a person has a row for each of her spans of time
ORDER BY k.contype = 'p' DESC, k.conkey, k.conname`
)

// readCatalog reads the tables that the flags name.
func readCatalog(ctx context.Context, conn *pgx.Conn, f initFlags) (*draft.Schema, error) {
	s, byOID := &draft.Schema{}, map[uint32]*draft.Table{}
	var oids []uint32
	add := func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			var oid uint32
			var t draft.Table
			if err := rows.Scan(&oid, &t.Schema, &t.Name, &t.Comment); err != nil {
				return err
			}
			if byOID[oid] == nil {
				byOID[oid], oids, s.Tables = &t, append(oids, oid), append(s.Tables, &t)
			}
		}
		return rows.Err()
	}
	if f.all {
		rows, err := conn.Query(ctx, tablesSQL, f.schemas)
		if err == nil {
			err = add(rows)
		}
		if err != nil {
			return nil, err
		}
		if len(oids) == 0 {
			return nil, noTables(ctx, conn, f.schemas)
		}
	}
	for _, name := range f.tables {
		rows, err := conn.Query(ctx, tableSQL, name)
		before := len(oids)
		if err == nil {
			err = add(rows)
		}
		if err != nil || len(oids) == before {
			return nil, fmt.Errorf("table %s: not found in the database", name)
		}
	}
	for i, oid := range oids {
		if err := readColumns(ctx, conn, oid, s.Tables[i]); err != nil {
			return nil, err
		}
		if err := readConstraints(ctx, conn, oid, s.Tables[i], byOID); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// noTables says which schemas have tables where those that were named have none.
func noTables(ctx context.Context, conn *pgx.Conn, schemas []string) error {
	rows, err := conn.Query(ctx, schemasSQL)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return nothingIn("schema", strings.Join(schemas, ", "), "role", names)
}

func nothingIn(what, named, who string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("%s %s has no table that this %s can see, nor has any other %s", what, named, who, what)
	}
	const text = "%s %s has no table that this %s can see; --schema takes one that has some: %s"
	return fmt.Errorf(text, what, named, who, strings.Join(names, ", "))
}

func readColumns(ctx context.Context, conn *pgx.Conn, oid uint32, t *draft.Table) error {
	rows, err := conn.Query(ctx, columnsSQL, oid)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c draft.Column
		if err := rows.Scan(&c.Name, &c.Type, &c.Domain, &c.Labels, &c.Checks, &c.Comment, &c.Unshared); err != nil {
			return err
		}
		t.Columns = append(t.Columns, &c)
	}
	return rows.Err()
}

func readConstraints(ctx context.Context, conn *pgx.Conn, oid uint32, t *draft.Table, byOID map[uint32]*draft.Table) error {
	rows, err := conn.Query(ctx, constraintsSQL, oid)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, condition string
		var to uint32
		var deferrable, valid bool
		var columns, keys []string
		if err := rows.Scan(&kind, &to, &deferrable, &valid, &columns, &keys, &condition); err != nil {
			return err
		}
		switch kind {
		case "c":
			t.Checks = append(t.Checks, condition)
		case "f":
			if byOID[to] != nil && valid {
				t.Foreign = append(t.Foreign, draft.Foreign{Columns: columns, To: byOID[to], Keys: keys})
			} else {
				t.Unsure = append(t.Unsure, columns...)
			}
		default:
			if kind == "p" {
				t.Primary = columns
			}
			if !deferrable {
				t.Unique = append(t.Unique, columns)
			}
		}
	}
	return rows.Err()
}

// maxKeys is how many keys that are text a domain lists.
const maxKeys = 1000

// publicKeys reads the keys of a table that is to be public: ends of whole numbers, else all values.
func publicKeys(ctx context.Context, conn *pgx.Conn, t *draft.Table, c *draft.Column) (draft.Keys, error) {
	var k draft.Keys
	column, from := pgx.Identifier{c.Name}.Sanitize(), pgx.Identifier{t.Schema, t.Name}.Sanitize()
	if c.Type == "smallint" || c.Type == "integer" || c.Type == "bigint" {
		err := conn.QueryRow(ctx, fmt.Sprintf("SELECT coalesce(min(%[1]s)::text, ''), coalesce(max(%[1]s)::text, '') FROM %[2]s", column, from)).Scan(&k.Min, &k.Max)
		if k.Min == k.Max { // a domain has two ends
			k.Max = ""
		}
		return k, err
	}
	rows, err := conn.Query(ctx, fmt.Sprintf("SELECT DISTINCT %[1]s::text FROM %[2]s WHERE %[1]s IS NOT NULL ORDER BY 1 LIMIT %[3]d", column, from, maxKeys+1))
	if err != nil {
		return k, err
	}
	if k.Values, err = pgx.CollectRows(rows, pgx.RowTo[string]); len(k.Values) > maxKeys {
		k.Values = nil
	}
	return k, err
}
