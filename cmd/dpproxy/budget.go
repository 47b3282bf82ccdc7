package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/service"
)

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
