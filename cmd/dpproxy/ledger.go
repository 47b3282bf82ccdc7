package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
)

func ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Look after the ledger: verify, back up, restore, revoke"}
	var path string
	cmd.PersistentFlags().StringVar(&path, "policy", "policy.yaml", "the policy file")
	cmd.AddCommand(
		&cobra.Command{
			Use: "verify", Short: "Walk the hash chain and recompute every account; exits with 3 on a fault", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return onLedger(cmd, path, func(_ *slog.Logger, l ledger.Ledger) error {
					rows, err := l.Verify(cmd.Context())
					if err != nil {
						return exitCode{3, fmt.Errorf("ledger: %w", err)}
					}
					fmt.Fprintf(cmd.OutOrStdout(), "ok: %d rows, every link and every account agree\n", rows)
					return nil
				})
			},
		},
		&cobra.Command{
			Use: "backup FILE", Short: "Write a consistent copy", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return onLedger(cmd, path, func(_ *slog.Logger, l ledger.Ledger) error { return l.Backup(cmd.Context(), args[0]) })
			},
		},
		restoreCommand(&path),
	)
	return cmd
}

func onLedger(cmd *cobra.Command, path string, do func(*slog.Logger, ledger.Ledger) error) error {
	log, err := logger(cmd)
	if err != nil {
		return err
	}
	return withLedger(cmd.Context(), path, log, func(_ *policy.Policy, l ledger.Ledger) error { return do(log, l) })
}
