package service

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
)

// ReadPolicy reads the policy of a command, and says what to do where there is none.
func ReadPolicy(path string) (*policy.Policy, error) { return readPolicy(path, policy.Read) }

// ReadPolicyForLedger reads it for a command that opens the ledger alone: what names the database or a file of the
// service may be left out of the environment.
func ReadPolicyForLedger(path string) (*policy.Policy, error) {
	return readPolicy(path, policy.ReadForLedger)
}

func readPolicy(path string, read func(string) (*policy.Policy, error)) (*policy.Policy, error) {
	p, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no policy %s: name one by --policy, write a first one with dpproxy init, or try dpproxy demo", path)
	}
	if err != nil {
		return nil, err
	}
	return p, planner.CheckViews(p)
}

// LedgerOptions are those that the policy says.
func LedgerOptions(p *policy.Policy, o ledger.Options, log *slog.Logger) ledger.Options {
	o.Log, o.Witness, o.DataRoles = log, p.Ledger.Witness, nil
	for _, url := range []string{p.Backend.URL, p.Sandbox.URL} {
		if !strings.HasPrefix(url, "postgres") {
			continue
		}
		if config, err := pgx.ParseConfig(url); err == nil {
			o.DataRoles = append(o.DataRoles, config.User)
		}
	}
	return o
}
