package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/login"
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

// tokenVariable is where query looks for a token.
const tokenVariable = "DPPROXY_TOKEN"

func loginCommand() *cobra.Command {
	var d deviceLogin
	cmd := &cobra.Command{
		Use:   "login --issuer https://id.example.org --client-id dpproxy",
		Short: "Fetch a token from the provider, by a code that is typed into a browser anywhere",
		Long: `Asks the provider for a code (OAuth's device flow, RFC 8628), prints where to type it, waits until that is done, and writes the token
to standard output, for clients whose libpq cannot do that itself:

  DPPROXY_TOKEN=$(dpproxy login --issuer https://id.example.org --client-id dpproxy) dpproxy query "SELECT count(*) FROM people"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if d.issuer == "" || d.client == "" {
				return exitCode{2, errors.New("--issuer and --client-id are needed: the policy's server.login.oidc says which")}
			}
			token, err := d.fetch(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), token)
			return nil
		},
	}
	cmd.Flags().StringVar(&d.issuer, "issuer", "", "the provider's address, as the policy has it")
	cmd.Flags().StringVar(&d.client, "client-id", "", "dpproxy's client id at the provider")
	cmd.Flags().StringVar(&d.scope, "scope", oidc.ScopeOpenID, "what to ask for")
	cmd.Flags().StringVar(&d.ca, "ca", "", "file of certificates that the provider's is signed by; without it the system's")
	cmd.Flags().BoolVar(&d.identity, "id-token", false, "write the identity token: for providers whose access tokens are not JWTs for this audience")
	return cmd
}

type deviceLogin struct {
	issuer, client, scope, ca string
	identity                  bool
}

// fetch leads somebody through the device flow. What the provider answers is not repeated: it may hold a token.
func (d deviceLogin) fetch(ctx context.Context, prompt io.Writer) (string, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.ca != "" {
		pool, err := login.Certificates(d.ca)
		if err != nil {
			return "", err
		}
		config.RootCAs = pool
	}
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment}})
	provider, err := oidc.NewProvider(ctx, d.issuer)
	if err != nil {
		return "", fmt.Errorf("%s does not say where its pages are: %w", d.issuer, err)
	}
	flow := oauth2.Config{ClientID: d.client, Endpoint: provider.Endpoint(), Scopes: []string{d.scope}}
	if flow.Endpoint.DeviceAuthURL == "" {
		return "", fmt.Errorf("%s has no device flow", d.issuer)
	}
	device, err := flow.DeviceAuth(ctx)
	if err != nil {
		return "", fmt.Errorf("the provider gives no code: %s", refusal(err))
	}
	fmt.Fprintf(prompt, "Open %s and type %s\n", printable(device.VerificationURI), printable(device.UserCode))
	token, err := flow.DeviceAccessToken(ctx, device)
	if err != nil {
		return "", fmt.Errorf("the provider gives no token: %s", refusal(err))
	}
	text := token.AccessToken
	if d.identity {
		text, _ = token.Extra("id_token").(string)
	}
	if text == "" {
		return "", errors.New("the provider's answer has no such token")
	}
	return text, nil
}

// refusal is the provider's word for why not, which is one of OAuth's, or what went wrong on the way.
func refusal(err error) string {
	var told *oauth2.RetrieveError
	if errors.As(err, &told) {
		if told.ErrorCode == "" {
			return "it says no more"
		}
		return printable(told.ErrorCode)
	}
	return err.Error()
}

// printable leaves out what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
}
