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
only you can know is marked EDIT. No row is read, unless --read-public: then those of the tables that become public.`,
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
	flags.BoolVar(&f.readPublic, "read-public", false, "read the tables that become public: how many rows they have, and which of them the names of other columns say")
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
		options.Read = publicReader{textsOf(conn), func(name string) string { return pgx.Identifier{name}.Sanitize() }, "text"}.in(ctx)
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

// fewTexts is how many different texts of a public table's column are read, to find what names of other columns say.
const fewTexts = 200

// publicReader asks a database for texts, in its own words.
type publicReader struct {
	ask   func(ctx context.Context, sql string, args ...string) ([][]string, error)
	quote func(name string) string
	text  string // the type that a text is cast to
}

// textsOf asks PostgreSQL for rows of texts.
func textsOf(conn *pgx.Conn) func(context.Context, string, ...string) ([][]string, error) {
	return func(ctx context.Context, sql string, _ ...string) ([][]string, error) {
		rows, err := conn.Query(ctx, sql)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
			texts := make([]string, len(row.RawValues()))
			into := make([]any, len(texts))
			for i := range texts {
				into[i] = &texts[i]
			}
			return texts, row.Scan(into...)
		})
	}
}

// in is read as a draft asks for it.
func (r publicReader) in(ctx context.Context) func(*draft.Table, []*draft.Column) (draft.Public, error) {
	return func(t *draft.Table, texts []*draft.Column) (draft.Public, error) { return r.read(ctx, t, texts) }
}

// read reads how many rows a table has that is to be public, and how many have each text of columns that have few.
func (r publicReader) read(ctx context.Context, t *draft.Table, texts []*draft.Column) (draft.Public, error) {
	read, from := draft.Public{Values: map[string]map[string]int64{}}, r.quote(t.Schema)+"."+r.quote(t.Name)
	rows, err := r.ask(ctx, fmt.Sprintf("SELECT CAST(count(*) AS %s) FROM %s", r.text, from))
	if err != nil || len(rows) != 1 {
		return read, err
	}
	if read.Rows, err = strconv.ParseInt(rows[0][0], 10, 64); err != nil {
		return read, err
	}
	for _, c := range texts {
		rows, err := r.ask(ctx, fmt.Sprintf("SELECT CAST(%[1]s AS %[4]s), CAST(count(*) AS %[4]s) FROM %[2]s "+
			"WHERE %[1]s IS NOT NULL GROUP BY 1 ORDER BY 1 LIMIT %[3]d", r.quote(c.Name), from, fewTexts+1, r.text))
		if err != nil {
			return read, err
		}
		if len(rows) > fewTexts {
			continue
		}
		having := map[string]int64{}
		for _, row := range rows {
			if having[row[0]], err = strconv.ParseInt(row[1], 10, 64); err != nil {
				return read, err
			}
		}
		read.Values[c.Name] = having
	}
	return read, nil
}
