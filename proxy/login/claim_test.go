package login

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"

	"github.com/dpproxy/dpproxy/policy"
)

// claimed runs a claim against the server's side of an exchange.
func claimed(t *testing.T, password string, server func(*pgproto3.Backend) error) (claim, heard error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	_ = near.SetDeadline(time.Now().Add(10 * time.Second))
	_ = far.SetDeadline(time.Now().Add(10 * time.Second))
	done := make(chan error, 1)
	go func() {
		err := Claim(pgproto3.NewFrontend(far, far), password)
		far.Close()
		done <- err
	}()
	heard = server(pgproto3.NewBackend(near, near))
	near.Close()
	return <-done, heard
}

// TestClaim: a form's password goes through the exchange that drivers speak, as it is where a directory asks for it,
// a token where a provider's is asked for, and nowhere where something else is.
func TestClaim(t *testing.T) {
	for _, password := range []string{"wonderland", "p\u00e4ssw\u00f6rd", "\u2168", "with \x07 control", "x"} {
		a := passwordsOf(t, password)
		exchange := func(right bool) func(*pgproto3.Backend) error {
			return func(back *pgproto3.Backend) error {
				return a.Exchange(back, "alice", scram.ChannelBinding{}, func(ok func() bool) (bool, error) { return ok(), nil })
			}
		}
		if _, err := claimed(t, password, exchange(true)); err != nil {
			t.Errorf("%q: %v", password, err)
		}
		if _, err := claimed(t, password+"x", exchange(false)); err == nil {
			t.Errorf("%q with another letter is let in", password)
		}
	}
	given := ""
	if _, err := claimed(t, "open sesame", func(back *pgproto3.Backend) error {
		msg, err := asked(back, &pgproto3.AuthenticationCleartextPassword{}, pgproto3.AuthTypeCleartextPassword)
		if m, ok := msg.(*pgproto3.PasswordMessage); ok {
			given = m.Password
		}
		return err
	}); err != nil || given != "open sesame" {
		t.Errorf("a directory is given %q: %v", given, err)
	}
	for password, want := range map[string]string{
		"header.claims.signature": "header.claims.signature", "header.claims.signature\x01a=b": "",
	} {
		token := "none"
		if _, err := claimed(t, password, func(back *pgproto3.Backend) error {
			msg, err := asked(back, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{mechanismBearer}},
				pgproto3.AuthTypeSASL)
			if m, ok := msg.(*pgproto3.SASLInitialResponse); ok {
				token, _ = bearer(string(m.Data))
			}
			return err
		}); err != nil || token != want {
			t.Errorf("a provider is given %q of %q: %v", token, password, err)
		}
	}
	claim, heard := claimed(t, "secret", func(back *pgproto3.Backend) error {
		_, err := asked(back, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-1"}},
			pgproto3.AuthTypeSASL)
		return err
	})
	if !errors.Is(claim, errOtherwise) || heard == nil {
		t.Errorf("another proof is given: %v, %v", claim, heard)
	}
}

func passwordsOf(t *testing.T, password string) *Passwords {
	t.Helper()
	v, err := policy.Verifier(password, constant{})
	if err != nil {
		t.Fatal(err)
	}
	p := &policy.Policy{Users: []policy.User{{Name: "alice", Verifier: v}}}
	return &Passwords{Secret: []byte("x"), Policy: func() *policy.Policy { return p }}
}

type constant struct{}

func (constant) Read(b []byte) (int, error) { return len(b), nil }
