package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/policy"
)

func checkCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check --policy policy.yaml",
		Short: "Check a policy against the database's schema, and say what it means",
		Long: `Reads the policy, connects to the database and compares the declared types and constraints with its schema, never with
its rows. Exits with 0 when serve would start, with 3 when it would refuse to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, path) },
	}
	policyFlag(cmd, &path)
	return cmd
}

func check(cmd *cobra.Command, path string) error {
	out := cmd.OutOrStdout()
	p, err := policy.Read(path)
	if err != nil {
		return exitCode{3, err}
	}
	log, err := logger(cmd)
	if err != nil {
		return err
	}
	describePolicy(out, p)
	b, err := backend.Open(cmd.Context(), p, log)
	if err != nil {
		return exitCode{3, fmt.Errorf("database: %w", err)}
	}
	defer b.Close()
	fatal := 0
	for _, d := range p.Datasets {
		findings, err := b.Inspect(cmd.Context(), d)
		if err != nil {
			return exitCode{3, fmt.Errorf("database: %w", err)}
		}
		for _, f := range findings {
			mark := "warning"
			if f.Fatal {
				mark, fatal = "error", fatal+1
			}
			fmt.Fprintf(out, "%s: dataset %s: %s\n", mark, d.ID, f.Text)
		}
	}
	for _, w := range p.Warnings() {
		fmt.Fprintln(out, "warning:", w)
	}
	if fatal > 0 {
		return exitCode{3, fmt.Errorf("%d errors: serve would refuse to start", fatal)}
	}
	fmt.Fprintln(out, "ok: serve would start")
	return nil
}

// describePolicy says in plain words what a policy grants.
func describePolicy(out io.Writer, p *policy.Policy) {
	fmt.Fprintf(out, "%s: %d datasets, %d users, listening on %s\n", p.Path, len(p.Datasets), len(p.Users), p.Server.Listen)
	for _, d := range p.Datasets {
		unit := "each row by itself"
		if !d.Unit.Row {
			unit = fmt.Sprintf("each %s (%s.%s)", d.Unit.Name, d.Unit.Table, d.Unit.Column)
		}
		fmt.Fprintf(out, "dataset %s protects %s; %s neighbours; %s accountant; cap (ε %s, δ %s)\n", d.ID, unit, d.Neighbors, d.Accountant, d.Cap.Epsilon, d.Cap.Delta)
		for _, t := range d.Tables {
			if t.Public {
				fmt.Fprintf(out, "  table %s: public, exact and free\n", t.Name)
				continue
			}
			fmt.Fprintf(out, "  table %s: %d columns, %d releases, at most %d rows a unit\n", t.Name, len(t.Columns), len(t.Releases), t.MaxRowsPerUnit)
		}
	}
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the policy file, for editors",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(policy.Schema())
			return err
		},
	}
}
