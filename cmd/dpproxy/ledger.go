package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
)

func ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Look after the ledger: verify, back up, restore"}
	var path string
	cmd.PersistentFlags().StringVar(&path, "policy", "policy.yaml", "the policy file")
	cmd.AddCommand(
		&cobra.Command{
			Use: "verify", Short: "Walk the hash chain and recompute every account; exits with 3 on a fault", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				err := onLedger(cmd, path, func(_ *slog.Logger, l ledger.Ledger) error {
					rows, err := l.Verify(cmd.Context())
					if err == nil {
						fmt.Fprintf(cmd.OutOrStdout(), "ok: %d rows, every link and every account agree\n", rows)
					}
					return err
				})
				if errors.Is(err, ledger.ErrCorrupt) { // found at the opening already, or by the walk
					return exitCode{3, err}
				}
				return err
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

// restoreCommand puts a backup in the ledger's place; no proxy may be running on it.
func restoreCommand(path *string) *cobra.Command {
	var trust ledger.Options
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the ledger's place; refused where the witness has seen more", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := readPolicy(*path)
			if err != nil {
				return err
			}
			if trust.Log, err = logger(cmd); err != nil {
				return err
			}
			if err := ledger.Restore(cmd.Context(), args[0], p.Ledger.URL, trust); err != nil {
				return exitCode{3, err}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s stands in the place of %s\n", args[0], p.Ledger.URL)
			return nil
		},
	}
	rollbackFlags(cmd, &trust)
	return cmd
}

// rollbackFlags are what an operator says to a ledger that its witness does not confirm.
func rollbackFlags(cmd *cobra.Command, trust *ledger.Options) {
	cmd.Flags().BoolVar(&trust.AcceptRollback, "accept-rollback", false, "accept a ledger older than its witness; every account forfeits what may be missing")
	cmd.Flags().BoolVar(&trust.VouchForLedger, "vouch-for-ledger", false, "accept a ledger whose witness is lost: you vouch that no charge is missing")
}

func onLedger(cmd *cobra.Command, path string, do func(*slog.Logger, ledger.Ledger) error) error {
	log, err := logger(cmd)
	if err != nil {
		return err
	}
	return withLedger(cmd.Context(), path, log, func(_ *policy.Policy, l ledger.Ledger) error { return do(log, l) })
}
