package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/backend/engines"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/service"
)

func checkCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "check --policy policy.yaml",
		Short: "Check a policy against the database's schema, and say what it means",
		Long: `Reads the policy, connects to the database and compares the declared types and constraints with its schema, never with
its rows. Then says what typical questions to each table would cost, and how exact their answers would be, for one who has spent nothing. Exits with 0 when serve would start, with 3 when it would refuse to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd, path) },
	}
	policyFlag(cmd, &path)
	return cmd
}

func check(cmd *cobra.Command, path string) error {
	out := cmd.OutOrStdout()
	p, err := service.ReadPolicy(path)
	if err != nil {
		return exitCode{3, err}
	}
	describePolicy(out, p)
	b, err := engines.Open(cmd.Context(), p, logger(cmd))
	if err != nil {
		return exitCode{3, fmt.Errorf("database: %w", err)}
	}
	defer b.Close()
	fatal, slow := 0, []string{}
	for _, d := range p.Datasets {
		findings, err := b.Inspect(cmd.Context(), p, d)
		if err != nil {
			return exitCode{3, fmt.Errorf("database: %w", err)}
		}
		for _, f := range findings {
			mark := "warning"
			switch {
			case f.Fatal:
				mark, fatal = "error", fatal+1
			case f.Note:
				mark = "note"
			}
			fmt.Fprintf(out, "%s: dataset %s: %s\n", mark, d.ID, f.Text)
			if f.Numbered != "" && p.Backend.Snapshot == nil {
				slow = append(slow, f.Numbered)
			}
		}
	}
	if len(slow) > 0 {
		fmt.Fprintf(out, "note: slow where there are many rows: %s: each question numbers all of them; backend.snapshot copies them once, and row_rank (dpproxy prepare) has them numbered\n",
			strings.Join(slow, ", "))
	}
	for _, w := range p.Warnings() {
		fmt.Fprintln(out, "warning:", w)
	}
	for _, n := range append(p.Notes(), choose.LevelNotes(p)...) {
		fmt.Fprintln(out, "note:", n)
	}
	for _, d := range p.Datasets {
		if err := writeTypical(cmd.Context(), p, d, out, logger(cmd)); err != nil {
			return err
		}
	}
	if fatal > 0 {
		return exitCode{3, fmt.Errorf("%s: serve would refuse to start", counted(fatal, "error"))}
	}
	fmt.Fprintln(out, "ok: serve would start")
	return nil
}

// describePolicy says in plain words what a policy grants.
func describePolicy(out io.Writer, p *policy.Policy) {
	fmt.Fprintf(out, "%s: %s, %s, listening on %s\n", p.Path, counted(len(p.Datasets), "dataset"), counted(len(p.Users), "user"), p.Server.Listen)
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
			if t.Analysed() {
				fmt.Fprintf(out, "  table %s: %s of a SELECT over other tables, which is analysed where it is used\n", t.Name, counted(len(t.Columns), "column"))
				continue
			}
			of := "unit"
			if !d.Unit.Row {
				of = d.Unit.Name
			}
			most := counted(t.MaxRowsPerUnit, "row") + " a " + of
			if t.MaxGroups > 0 {
				most = fmt.Sprintf("%s of an answer a %s with %s in each", counted(t.MaxGroups, "group"), of, counted(t.MaxPerGroup, "row"))
			}
			fmt.Fprintf(out, "  table %s: %s, %s, at most %s\n", t.Name, counted(len(t.Columns), "column"), counted(len(t.All()), "release"), most)
		}
	}
}

// counted is a number with its noun, in the plural where it is not one.
func counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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
