package ledger

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestLinkIsNamed: a ledger on another machine is not spoken to before the owner has said how the way there is protected.
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
		s, err := newPostgresSite(url, Options{})
		if got := errors.Is(err, ErrServer); got != refused || !refused && err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if err == nil && s.config.RequireAuth != "!password" {
			t.Errorf("%s: a password may be sent as it is", url)
		}
	}
}

// TestFatalInAnyLanguage: a server that ends a connection in its own language leaves the outcome of a commit as unknown.
func TestFatalInAnyLanguage(t *testing.T) {
	if !ends(&pgconn.PgError{Severity: "ВАЖНО", SeverityUnlocalized: "FATAL"}) || ends(&pgconn.PgError{Severity: "ERROR"}) {
		t.Error("the severity is read in the server's language")
	}
}

// TestLostLeaseIsTold: that a release was taken over is forgotten only once whoever asked for it is told. With a batch that
// fails she is not: what lives here would else be taken for new, and go on beside what another process has made of it.
func TestLostLeaseIsTold(t *testing.T) {
	f := &keeper{}
	f.sharing.leases = map[int64]int64{7: 3}
	if f.settleClaims(&batch{lost: []int64{7}}, false); f.sharing.leases[7] != 3 {
		t.Error("forgotten although nobody was told")
	}
	if f.settleClaims(&batch{lost: []int64{7}}, true); len(f.sharing.leases) > 0 {
		t.Error("not forgotten")
	}
}
