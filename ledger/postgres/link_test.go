package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// TestLinkIsNamed: a ledger on another machine is not spoken to before the owner has said how the way there is
// protected.
func TestLinkIsNamed(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, refused := range map[string]bool{
		"postgres://l@10.0.0.7/l":                        true,
		"postgres://l@localhost,ledger.example/l":        true,
		"postgres://l@10.0.0.7/l?sslmode=require":        false,
		"postgres://l@localhost/l":                       false,
		"postgres://l@/l?host=/run/postgresql":           false,
		"postgres://l@127.0.0.1:5432,[::1]:5433/l":       false,
		"postgres://l@10.0.0.7/l?sslmode=disable":        false,
		"postgres://l@[fe80::1]/l?application_name=none": true,
	} {
		s, err := At(url, nil, false)
		if got := errors.Is(err, store.ErrServer); got != refused || !refused && err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil && s.Config.RequireAuth != "!password" {
			t.Errorf("%s: a password may be sent as it is", url)
		}
	}
}

// TestFatalInAnyLanguage: a server that ends a connection in its own language leaves the outcome of a commit as
// unknown.
func TestFatalInAnyLanguage(t *testing.T) {
	if !ends(&pgconn.PgError{Severity: "ВАЖНО", SeverityUnlocalized: "FATAL"}) || ends(&pgconn.PgError{Severity: "ERROR"}) {
		t.Error("the severity is read in the server's language")
	}
}
