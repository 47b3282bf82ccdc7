package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"
)

func queryCommand() *cobra.Command {
	var url string
	cmd := &cobra.Command{
		Use:   `query "SELECT …"`,
		Short: "Ask a running proxy, on a machine that has no psql",
		Long: `Connects as psql would: by --url, or by PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE; with
DPPROXY_TOKEN by the token that dpproxy login has fetched. Notices go to standard error. Numbers have the digits that
their errors leave; SET dp.digits = exact before the SELECT has all of them.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return query(cmd.Context(), url, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "postgres://user:password@host:port/dataset")
	return cmd
}

func query(ctx context.Context, url, text string, out, notices io.Writer) error {
	if _, err := pgconn.ParseConfig(url); err != nil {
		return exitCode{2, err}
	}
	settings := map[string]string{"dp.digits": "significant"}
	conn, err := connector(url)(ctx, settings, func(n *pgconn.Notice) { printMessage(notices, (*pgconn.PgError)(n)) })
	var refused *pgconn.PgError
	if errors.As(err, &refused) { // what the proxy said, rather than what was tried before: a TLS connection
		printMessage(notices, refused)
		return exitCode{code: 1}
	}
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	results := conn.Exec(ctx, text)
	for results.NextResult() {
		if err = printResult(results.ResultReader(), out); err != nil {
			break
		}
	}
	if closed := results.Close(); err == nil {
		err = closed
	}
	if errors.As(err, &refused) {
		printMessage(notices, refused)
		return exitCode{code: 1}
	}
	return err
}

// printMessage prints a notice or an error as psql would, and the SQLSTATE of an error.
func printMessage(w io.Writer, m *pgconn.PgError) {
	code := ""
	if m.Severity != "NOTICE" {
		code = " (SQLSTATE " + m.Code + ")"
	}
	fmt.Fprintf(w, "%s:  %s%s\n", m.Severity, m.Message, code)
	if m.Detail != "" {
		fmt.Fprintln(w, "DETAIL:  "+m.Detail)
	}
	if m.Hint != "" {
		fmt.Fprintln(w, "HINT:  "+m.Hint)
	}
}

func printResult(r *pgconn.ResultReader, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, f := range r.FieldDescriptions() {
		fmt.Fprintf(w, "%s\t", f.Name)
	}
	rows := 0
	if len(r.FieldDescriptions()) > 0 {
		fmt.Fprintln(w)
	}
	for r.NextRow() {
		for _, v := range r.Values() {
			fmt.Fprintf(w, "%s\t", v)
		}
		fmt.Fprintln(w)
		rows++
	}
	tag, err := r.Close()
	if err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out, tag.String())
	return nil
}
