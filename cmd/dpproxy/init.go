package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/policy"
)

func initCommand() *cobra.Command {
	var tables []string
	var out, id string
	cmd := &cobra.Command{
		Use:   "init postgres://…/prod --table people --table visits",
		Short: "Write a first policy from a database's schema, with comments (never from its rows)",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(tables) == 0 {
				return exitCode{2, fmt.Errorf("name at least one --table")}
			}
			if strings.HasPrefix(args[0], "duckdb:") {
				return exitCode{2, fmt.Errorf("init reads the schema of a PostgreSQL database; for DuckDB, CSV and Parquet begin with the policy that dpproxy demo writes, and docs/policy.md")}
			}
			text, warnings, err := firstPolicy(cmd.Context(), args[0], id, tables)
			if err != nil {
				return err
			}
			for _, w := range warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning:", w)
			}
			return writeNew(cmd.OutOrStdout(), out, text)
		},
	}
	cmd.Flags().StringArrayVar(&tables, "table", nil, "a table, schema.name or name; may be repeated")
	cmd.Flags().StringVar(&out, "out", "", "file to write; standard output if empty; an existing file is left alone")
	cmd.Flags().StringVar(&id, "dataset", "data", "the dataset's id, which is also the database name that clients ask for")
	return cmd
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

// schemaTable is what the catalog says of one table.
type schemaTable struct {
	schema, name, key string // key: the single-column primary key, if any
	columns           []schemaColumn
	unique            [][]string // the columns of primary keys and unique constraints that hold at once
}

type schemaColumn struct {
	name, typ string
	labels    []string // of an enum
	domain    string   // the name of the domain that the type is
	foreign   string   // "table.column" that a single-column foreign key refers to
}

// firstPolicy reads the catalog and writes the policy's text. What must be edited before it loads is a warning.
func firstPolicy(ctx context.Context, database, id string, names []string) (text string, warnings []string, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return "", nil, fmt.Errorf("database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var tables []schemaTable
	for _, name := range names {
		t, err := readSchema(ctx, conn, name)
		if err != nil {
			return "", nil, err
		}
		tables = append(tables, t)
	}
	unit := unitOf(tables[0])
	for _, t := range tables[1:] {
		switch n := len(unitPaths(t, unit)); {
		case n == 0:
			warnings = append(warnings, fmt.Sprintf("table %s has no foreign key to %s: write its unit: where the policy says EDIT, or it does not load", t.name, unit))
		case n > 1:
			warnings = append(warnings, fmt.Sprintf("table %s has %d foreign keys to %s: the policy takes the first one as its unit; choose", t.name, n, unit))
		}
	}
	return policyText(conn.Config(), id, tables), warnings, nil
}

const schemaColumnsSQL = `SELECT a.attname, pg_catalog.format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE a.atttypid END, a.atttypmod),
  CASE WHEN t.typtype = 'd' THEN t.typname::text ELSE '' END, ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder),
  coalesce((SELECT f.relname || '.' || fa.attname FROM pg_catalog.pg_constraint k
    JOIN pg_catalog.pg_class f ON f.oid = k.confrelid JOIN pg_catalog.pg_attribute fa ON fa.attrelid = f.oid AND fa.attnum = k.confkey[1]
    WHERE k.conrelid = a.attrelid AND k.contype = 'f' AND k.conkey = ARRAY[a.attnum] LIMIT 1), ''),
  EXISTS (SELECT 1 FROM pg_catalog.pg_constraint p WHERE p.conrelid = a.attrelid AND p.contype = 'p' AND p.conkey = ARRAY[a.attnum])
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

func readSchema(ctx context.Context, conn *pgx.Conn, name string) (schemaTable, error) {
	var t schemaTable
	var oid uint32
	err := conn.QueryRow(ctx, `SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = pg_catalog.to_regclass($1)`, name).Scan(&oid, &t.schema, &t.name)
	if err != nil {
		return t, fmt.Errorf("table %s: not found in the database", name)
	}
	rows, err := conn.Query(ctx, schemaColumnsSQL, oid)
	if err != nil {
		return t, err
	}
	defer rows.Close()
	for rows.Next() {
		var c schemaColumn
		var primary bool
		if err := rows.Scan(&c.name, &c.typ, &c.domain, &c.labels, &c.foreign, &primary); err != nil {
			return t, err
		}
		if primary {
			t.key = c.name
		}
		t.columns = append(t.columns, c)
	}
	if err := rows.Err(); err != nil {
		return t, err
	}
	keys, err := conn.Query(ctx, `SELECT ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = ANY (k.conkey) ORDER BY a.attnum)
		FROM pg_catalog.pg_constraint k WHERE k.conrelid = $1 AND k.contype IN ('p', 'u') AND NOT k.condeferrable ORDER BY k.contype, k.conname`, oid)
	if err != nil {
		return t, err
	}
	t.unique, err = pgx.CollectRows(keys, pgx.RowTo[[]string])
	return t, err
}

// unitOf is the column of the first table that names the unit.
func unitOf(t schemaTable) string {
	if t.key == "" {
		return t.name + "." + t.columns[0].name
	}
	return t.name + "." + t.key
}

// unitPaths are the columns of a table that refer to the unit.
func unitPaths(t schemaTable, unit string) []string {
	var paths []string
	for _, c := range t.columns {
		if c.foreign == unit {
			paths = append(paths, quoteYAML(t.name+"."+c.name+" = "+unit))
		}
	}
	return paths
}

// policyText writes a policy that loads as it stands where each table refers to the first; what only the owner can know is
// marked EDIT.
func policyText(config *pgx.ConnConfig, id string, tables []schemaTable) string {
	unit := unitOf(tables[0])
	var b strings.Builder
	fmt.Fprintf(&b, `# A first policy, written from the schema alone. Read every line marked EDIT; then: dpproxy check --policy this-file
version: 1
server:
  listen: 127.0.0.1:6432          # TLS is required on any other than a loopback address
backend:
  url: %s     # a role that may only SELECT; its password in ${NAME} or ~/.pgpass
ledger:
  url: sqlite:dpproxy.ledger
users: []                         # dpproxy user add NAME --policy this-file
datasets:
  - id: %s
    unit: {name: person, key: %s%s}   # EDIT: whom the budget protects
    neighbors: add-remove
    accountant: zcdp
    cap: {epsilon: 10, delta: 1e-6}          # EDIT: everybody together, for life
    budgets:
      "*": {epsilon: 1, delta: 1e-7}         # EDIT: each user, for life
    defaults: {epsilon: 0.02, max_epsilon: 1, confidence: 0.95}   # EDIT: of one question; dpproxy check says how many fit
    tables:
`, address(config), quoteYAML(id), quoteYAML(unit), unitType(tables[0], unit))
	for i, t := range tables {
		writeTable(&b, t, i == 0, unit)
	}
	return b.String()
}

// address is the database's URL without its password.
func address(config *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", User: url.User(config.User), Host: net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))), Path: "/" + config.Database}
	if strings.HasPrefix(config.Host, "/") { // the directory of a Unix socket
		u.Host, u.RawQuery = "", url.Values{"host": {config.Host}, "port": {strconv.Itoa(int(config.Port))}}.Encode()
	}
	return quoteYAML(u.String())
}

func writeTable(b *strings.Builder, t schemaTable, first bool, unit string) {
	fmt.Fprintf(b, "      - name: %s\n        source: %s\n        expected_rows: 100000           # EDIT: a public guess; never counted\n",
		quoteYAML(t.name), quoteYAML(t.schema+"."+t.name))
	rows := 1
	if !first {
		rows = 10
		writeUnit(b, t, unit)
	}
	fmt.Fprintf(b, "        max_rows_per_unit: %d            # EDIT: more rows of one unit are left out\n", rows)
	writeUnique(b, t, unit)
	b.WriteString("        columns:\n")
	for _, c := range t.columns {
		if joins(t, c, unit) {
			fmt.Fprintf(b, "          - {name: %s, type: %q, keys: join}   # rows are joined by it; it is never shown\n", quoteYAML(c.name), c.typ)
			continue
		}
		if c.name == t.key || c.foreign != "" {
			fmt.Fprintf(b, "          # %s: a key; not listed, so analysts do not see it\n", c.name)
			continue
		}
		typ, domain := firstDomain(c)
		if len(c.labels) > 0 || c.domain != "" {
			fmt.Fprintf(b, "          # %s: not listed, since its type is %s; a view as source that casts it to %s would allow:\n          # - {name: %s, type: %q, domain: %s}\n",
				c.name, ownType(c), typ, quoteYAML(c.name), typ, domain)
			continue
		}
		if domain == "" {
			fmt.Fprintf(b, "          # %s (%s): no domain can be guessed; not listed\n", c.name, c.typ)
			continue
		}
		domain, remark, _ := strings.Cut(domain, "   #")
		if remark != "" {
			remark = "   #" + remark
		}
		fmt.Fprintf(b, "          - {name: %s, type: %q, domain: %s}%s\n", quoteYAML(c.name), typ, domain, remark)
	}
}

// unitType says the type of the unit's key, where it is a whole number.
func unitType(t schemaTable, unit string) string {
	for _, c := range t.columns {
		if t.name+"."+c.name == unit && slices.Contains([]string{"smallint", "integer", "bigint"}, c.typ) {
			return ", type: " + c.typ
		}
	}
	return ""
}

// joins tells a key that is not the unit's, of a type that a policy can declare.
func joins(t schemaTable, c schemaColumn, unit string) bool {
	_, _, err := policy.ParseType(c.typ)
	return err == nil && c.domain == "" && t.name+"."+c.name != unit && c.foreign != unit && (c.name == t.key || c.foreign != "")
}

// writeUnique writes the keys that the schema says are unique and whose columns are listed, without the unit's.
func writeUnique(b *strings.Builder, t schemaTable, unit string) {
	own := unit // the column that names the unit, which rows of one unit share in any case
	if i := slices.IndexFunc(t.columns, func(c schemaColumn) bool { return c.foreign == unit }); i >= 0 {
		own = t.name + "." + t.columns[i].name
	}
	var keys []string
	for _, columns := range t.unique {
		var names []string
		for _, c := range t.columns {
			if !slices.Contains(columns, c.name) || t.name+"."+c.name == own {
				continue
			}
			_, domain := firstDomain(c)
			shown := domain != "" && c.domain == "" && len(c.labels) == 0 && c.name != t.key && c.foreign == ""
			if !shown && !joins(t, c, unit) { // then fewer columns than the constraint's would be declared
				names = nil
				break
			}
			names = append(names, quoteYAML(c.name))
		}
		if len(names) > 0 {
			keys = append(keys, "["+strings.Join(names, ", ")+"]")
		}
	}
	if len(keys) > 0 {
		fmt.Fprintf(b, "        unique: [%s]   # as constraints say: joins along them are bounded by the other side\n", strings.Join(keys, ", "))
	}
}

// writeUnit writes whom the rows of a table belong to, in a comment where only the owner knows.
func writeUnit(b *strings.Builder, t schemaTable, unit string) {
	paths := unitPaths(t, unit)
	if len(paths) == 0 {
		fmt.Fprintf(b, "        # unit: %s   # EDIT: no foreign key says which column names the unit; write it, or public: true for a table about nobody\n",
			quoteYAML(t.name+".COLUMN = "+unit))
		return
	}
	fmt.Fprintf(b, "        unit: %s\n", paths[0])
	for _, p := range paths[1:] {
		fmt.Fprintf(b, "        # unit: %s   # EDIT: or this one\n", p)
	}
}

// ownType names a type that the database made itself, which no policy can declare.
func ownType(c schemaColumn) string {
	if c.domain != "" {
		return "the domain " + c.domain
	}
	return "the enum " + c.typ
}

// firstDomain guesses a domain from a type, never from values.
func firstDomain(c schemaColumn) (typ, domain string) {
	base, _, _ := strings.Cut(c.typ, "(")
	switch {
	case len(c.labels) > 0:
		quoted := make([]string, len(c.labels))
		for i, l := range c.labels {
			quoted[i] = quoteYAML(l)
		}
		return "text", "{values: [" + strings.Join(quoted, ", ") + "]}"
	case c.typ == "boolean":
		return c.typ, "{values: [false, true]}"
	case base == "smallint", base == "integer", base == "bigint":
		return c.typ, "{min: 0, max: 100, step: 1}   # EDIT: bounds that are public"
	case base == "numeric", base == "real", base == "double precision":
		return c.typ, "{min: 0, max: 1000, step: 10}   # EDIT: bounds that are public"
	case base == "date":
		return c.typ, "{min: 2000-01-01, max: 2029-12-31, step: 1 day}   # EDIT"
	case c.typ == "timestamp without time zone":
		return "timestamp", "{min: 2020-01-01, below: 2030-01-01, step: 1 day}   # EDIT"
	case c.typ == "timestamp with time zone":
		return "timestamptz", "{min: 2020-01-01, below: 2030-01-01, step: 1 day}   # EDIT"
	case base == "character" && c.typ != base:
		return "char" + strings.TrimPrefix(c.typ, base), "{values: [first, second]}   # EDIT: the public list of values"
	case base == "text", base == "character varying", base == "character":
		return "text", "{values: [first, second]}   # EDIT: the public list of values"
	}
	return c.typ, ""
}

func quoteYAML(s string) string {
	for i, r := range s {
		if i > 0 && (r == '.' || r >= '0' && r <= '9') {
			continue
		}
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_') {
			return fmt.Sprintf("%q", s)
		}
	}
	switch strings.ToLower(s) {
	case "", "yes", "no", "on", "off", "true", "false", "null", "y", "n":
		return fmt.Sprintf("%q", s)
	}
	return s
}
