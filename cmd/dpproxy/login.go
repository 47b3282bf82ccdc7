package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/dpproxy/dpproxy/proxy/login"
)

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
