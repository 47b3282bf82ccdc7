package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/assistant"
)

func mcpCommand() *cobra.Command {
	var url, limit string
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an assistant, by the Model Context Protocol on standard input and output",
		Long: `Lets an assistant describe the tables, price questions and ask them of a running proxy, as the user whose
name and password it is given: by --url, or by PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE; with DPPROXY_TOKEN by
the token that dpproxy login has fetched. Nothing is bought without a bound of its cost; --max-cost bounds all that one
run of the assistant may spend. A client's configuration:

  {"mcpServers": {"dpproxy": {"command": "dpproxy", "args": ["mcp", "--max-cost", "1"],
    "env": {"PGHOST": "127.0.0.1", "PGPORT": "6432", "PGDATABASE": "demo",
      "PGUSER": "analyst", "PGPASSWORD": "analyst"}}}}`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a := &assistant.Assistant{Version: version, Connect: connector(url)}
			if limit != "" {
				most, ok := assistant.Amount(limit)
				if !ok {
					return exitCode{2, fmt.Errorf("--max-cost is %q, must be a decimal number such as 1", limit)}
				}
				a.Limit = most
			}
			if _, err := pgconn.ParseConfig(url); err != nil {
				return exitCode{2, err}
			}
			err := a.Server().Run(cmd.Context(), &mcp.StdioTransport{})
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "postgres://user:password@host:port/dataset")
	cmd.Flags().StringVar(&limit, "max-cost", "", "the most that all its questions may cost, in the unit of dp.budget")
	return cmd
}

// connector opens sessions of the wire as psql would: by a URL, or by what the environment says.
func connector(url string) func(context.Context, map[string]string, func(*pgconn.Notice)) (*pgconn.PgConn, error) {
	return func(ctx context.Context, settings map[string]string, notice func(*pgconn.Notice)) (*pgconn.PgConn, error) {
		config, err := pgconn.ParseConfig(url)
		if err != nil {
			return nil, err
		}
		if token, ok := os.LookupEnv(tokenVariable); ok { // of a user who logs in by her provider
			config.OAuthTokenProvider = func(context.Context) (string, error) { return token, nil }
		}
		for name, value := range settings {
			config.RuntimeParams[name] = value
		}
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notice(n) }
		return pgconn.ConnectConfig(ctx, config)
	}
}
