package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/service"
)

func ledgerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ledger", Short: "Look after the ledger: verify, back up, restore, withdraw a release"}
	var path string
	cmd.PersistentFlags().StringVar(&path, "policy", "policy.yaml", "the policy file")
	cmd.AddCommand(
		&cobra.Command{
			Use: "verify", Short: "Walk the hash chain, recompute every account, ask the witness; exits with 3 on a fault", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				err := withLedger(cmd, path, func(_ *policy.Policy, l ledger.Ledger) error {
					rows, err := l.Verify(cmd.Context())
					if err == nil {
						fmt.Fprintf(cmd.OutOrStdout(), "ok: %d rows, every link and every account agree\n", rows)
					}
					return err
				})
				// found at the opening already, or by the walk; or by the witness, which knows rows that are not there,
				// or cannot be read
				if errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrRollback) || errors.Is(err, ledger.ErrWitness) {
					return exitCode{3, err}
				}
				return err
			},
		},
		&cobra.Command{
			Use: "backup FILE", Short: "Write a consistent copy", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withLedger(cmd, path, func(_ *policy.Policy, l ledger.Ledger) error { return l.Backup(cmd.Context(), args[0]) })
			},
		},
		restoreCommand(&path),
		revokeCommand(&path),
		&cobra.Command{
			Use: "releases", Short: "List the saved releases that each user holds, with their numbers", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withLedger(cmd, path, func(p *policy.Policy, l ledger.Ledger) error {
					return listReleases(cmd.Context(), cmd.OutOrStdout(), p, l)
				})
			},
		},
	)
	return cmd
}

// restoreCommand puts a backup in the ledger's place; no proxy may be running on it.
func restoreCommand(path *string) *cobra.Command {
	var trust ledger.Options
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a backup in the ledger's place; refused where the witness has seen more", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := service.ReadPolicy(*path)
			if err != nil {
				return err
			}
			if err := ledger.Restore(cmd.Context(), args[0], p.Ledger.URL, service.LedgerOptions(p, trust, logger(cmd))); err != nil {
				return exitCode{3, err}
			}
			if trust.AcceptRollback || trust.VouchForLedger { // the ledger is opened now, so that whoever does next need not
				l, err := ledger.Open(cmd.Context(), p.Ledger.URL, service.LedgerOptions(p, trust, logger(cmd)))
				if err == nil {
					err = l.Close()
				}
				if err != nil {
					return exitCode{3, fmt.Errorf("%s stands in the place of %s, and does not open: %w", args[0], ledgerName(p), err)}
				}
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s stands in the place of %s\n", args[0], ledgerName(p))
			return nil
		},
	}
	rollbackFlags(cmd, &trust)
	return cmd
}

// ledgerName is the ledger's URL without what is secret in it.
func ledgerName(p *policy.Policy) string {
	if u, err := url.Parse(p.Ledger.URL); err == nil && u.User != nil {
		return u.Redacted()
	}
	return p.Ledger.URL
}

// listReleases is for the operator: it tells who asked for what.
func listReleases(ctx context.Context, out io.Writer, p *policy.Policy, l ledger.Ledger) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tDATASET\tUSER\tPAID AT\tTABLE\tKIND\tNAME\tCOST")
	for _, d := range p.Datasets {
		balances, err := l.Balances(ctx, d.ID)
		if err != nil {
			return err
		}
		for _, b := range balances {
			account := b.User
			if b.Group {
				account = ledger.GroupAccount(b.User)
			} else if d.Holder(b.User) != b.User {
				continue // what she held before she joined her group, the group holds
			}
			for _, r := range l.Holdings(account, d.ID) {
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, d.ID, b.User, r.At.UTC().Format(time.DateTime), r.Item.Table, r.Item.Kind, r.Item.Name, r.Item.Cost)
			}
		}
	}
	return w.Flush()
}

// revokeCommand withdraws a release. A ledger in PostgreSQL may be in use meanwhile.
func revokeCommand(path *string) *cobra.Command {
	var trust ledger.Options
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Withdraw a release from everybody; what was paid for it stays paid", Args: cobra.ExactArgs(1),
		Long: `Withdraws a saved release, such as one that was drawn while the database failed, by a row of the chain: nobody is answered
from it any more, and whoever asks again pays again. Its number is in dpproxy ledger releases. The embedded ledger
serves one program at a time: stop the proxy first. Proxies on a shared ledger forget the release with their next statement.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return exitCode{2, fmt.Errorf("%s is not the number of a release", args[0])}
			}
			p, err := service.ReadPolicy(*path)
			if err != nil {
				return err
			}
			l, err := ledger.Open(cmd.Context(), p.Ledger.URL, service.LedgerOptions(p, trust, logger(cmd)))
			if err != nil {
				return fmt.Errorf("ledger: %w", err)
			}
			if err := errors.Join(l.Revoke(cmd.Context(), id), l.Close()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "release %d is withdrawn\n", id)
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

func budgetCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "budget --policy policy.yaml",
		Short: "Show the budget of every user and group and each dataset's cap (the policy alone grants them)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withLedger(cmd, path, func(p *policy.Policy, l ledger.Ledger) error {
				return showBudgets(cmd.Context(), cmd.OutOrStdout(), p, l)
			})
		},
	}
	policyFlag(cmd, &path)
	return cmd
}

// withLedger opens a policy's ledger for reading, beside a proxy that may be running.
func withLedger(cmd *cobra.Command, path string, do func(*policy.Policy, ledger.Ledger) error) error {
	p, err := service.ReadPolicyForLedger(path)
	if err != nil {
		return err
	}
	l, err := ledger.Open(cmd.Context(), p.Ledger.URL, service.LedgerOptions(p, ledger.Options{ReadOnly: true}, logger(cmd)))
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer l.Close()
	return do(p, l)
}

// withUnspent adds the users and groups whose budget is that of "*" and who have not spent anything: the ledger has not
// met them.
func withUnspent(p *policy.Policy, d *policy.Dataset, balances []ledger.Balance) []ledger.Balance {
	for _, u := range p.Users {
		b, ok := d.Budget(u.Name)
		if !ok {
			continue
		}
		holder := d.Holder(u.Name)
		if at := slices.IndexFunc(balances, func(known ledger.Balance) bool { return known.User == holder && known.Group == (holder != u.Name) }); at >= 0 {
			continue
		}
		balances = append(balances, ledger.Balance{User: holder, Group: holder != u.Name, Dataset: d.ID, Limit: b.Cost})
	}
	slices.SortFunc(balances, func(a, b ledger.Balance) int { return strings.Compare(a.User, b.User) })
	return balances
}

func showBudgets(ctx context.Context, out io.Writer, p *policy.Policy, l ledger.Ledger) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "DATASET\tUSER\tSPENT\tBUDGET\tWINDOW ENDS\tSPENT FOR LIFE\tLIFETIME")
	for _, d := range p.Datasets {
		balances, err := l.Balances(ctx, d.ID)
		if err != nil {
			return err
		}
		for _, b := range withUnspent(p, d, balances) {
			ends, life, lifeSpent := "never", "", ""
			if !b.WindowEnds.IsZero() {
				ends, life, lifeSpent = b.WindowEnds.UTC().Format("2006-01-02"), b.LifeLimit.String(), b.LifeSpent.String()
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.ID, b.User, b.Spent, b.Limit, ends, lifeSpent, life)
			for _, m := range b.Members {
				fmt.Fprintf(w, "%s\t  %s (in %s)\t%s\t\t\t\t\n", d.ID, m.User, b.User, m.Spent)
			}
		}
		spent, limit, err := l.Cap(ctx, d.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t(cap)\t%s\t%s\tnever\t\t\n", d.ID, spent, limit)
	}
	return w.Flush()
}
