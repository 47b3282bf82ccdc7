package main

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/service"
)

func userCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Look after the users of a policy", Long: `Edits the policy file and nothing else: a running proxy takes the change in at once, and its log says what changed for whom.`}
	var path string
	var admin bool
	add := &cobra.Command{
		Use:   "add NAME --policy policy.yaml",
		Short: "Add a user, or change a password; the policy keeps a SCRAM verifier, never the password",
		Long:  `Reads the password from standard input (one line) or from DPPROXY_PASSWORD, and writes a SCRAM-SHA-256 verifier.`,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withVerifier(cmd, path, args[0], func(verifier string) error { return policy.AddUser(path, args[0], verifier, admin) })
		},
	}
	add.Flags().BoolVar(&admin, "admin", false, "may see every budget")
	password := &cobra.Command{
		Use: "password NAME --policy policy.yaml", Short: "Give a user who is there another password", Args: cobra.ExactArgs(1),
		Long: `Reads the password as user add does. Sessions that are open stay open: disable the user to end them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withVerifier(cmd, path, args[0], func(verifier string) error { return policy.ChangePassword(path, args[0], verifier) })
		},
	}
	edit := func(use, short, long, done string, change func(path, name string) error) *cobra.Command {
		return &cobra.Command{Use: use + " NAME --policy policy.yaml", Short: short, Long: long, Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			if err := change(path, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: user %s %s\n", path, args[0], done)
			return nil
		}}
	}
	cmd.AddCommand(add, password,
		edit("disable", "Keep a user from logging in", "Her sessions end with their next statement. What she holds and has spent stays hers.", "is disabled",
			func(path, name string) error { return policy.DisableUser(path, name, true) }),
		edit("enable", "Let a user log in again who was disabled", "", "is enabled", func(path, name string) error { return policy.DisableUser(path, name, false) }),
		edit("remove", "Take a user out of the policy, her budgets and her group", `The ledger remembers: whoever is added by the same name again has spent what she had. For somebody else take another name.`, "is removed", policy.RemoveUser),
		&cobra.Command{
			Use: "list --policy policy.yaml", Short: "List the users: how they log in, their groups, and where they have a budget", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				p, err := service.ReadPolicyForLedger(path)
				if err != nil {
					return err
				}
				return listUsers(cmd.OutOrStdout(), p)
			},
		})
	for _, c := range cmd.Commands() {
		policyFlag(c, &path)
	}
	return cmd
}

// withVerifier reads a password and hands on its verifier.
func withVerifier(cmd *cobra.Command, path, name string, write func(verifier string) error) error {
	password, err := readPassword(cmd.InOrStdin(), cmd.ErrOrStderr(), name)
	if err != nil {
		return err
	}
	verifier, err := policy.Verifier(password, rand.Reader)
	if err != nil {
		return err
	}
	if err := write(verifier); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: user %s written\n", path, name)
	return nil
}

func listUsers(out io.Writer, p *policy.Policy) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "USER\tLOGIN\tIDENTITY\tGROUP\tDATASETS\tNOTES")
	for _, u := range p.Users {
		var datasets, notes []string
		group := ""
		for _, d := range p.Datasets {
			if _, ok := d.Budget(u.Name); ok {
				datasets = append(datasets, d.ID)
			}
			if holder := d.Holder(u.Name); holder != u.Name {
				group = holder
			}
		}
		if u.Disabled {
			notes = append(notes, "disabled")
		}
		if u.Admin {
			notes = append(notes, "admin")
		}
		identity := ""
		if u.Login != policy.ByPassword {
			identity = u.Identity
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", u.Name, u.Login, identity, group, strings.Join(datasets, ", "), strings.Join(notes, ", "))
	}
	return w.Flush()
}

// readPassword takes the password from the environment or from one line of input; it is never an argument, which other
// users of the machine could read.
func readPassword(in io.Reader, prompt io.Writer, user string) (string, error) {
	if p, ok := os.LookupEnv("DPPROXY_PASSWORD"); ok {
		if p == "" {
			return "", errors.New("DPPROXY_PASSWORD is empty")
		}
		return p, nil
	}
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			fmt.Fprintf(prompt, "password of %s (shown as you type): ", user)
		}
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", errors.New("the password is empty")
	}
	return line, nil
}
