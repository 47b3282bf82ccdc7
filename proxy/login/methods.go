package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/deadline"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

// Claimant is who says to be a user, and on what connection.
type Claimant struct {
	User, Origin string
	Opening      *Opening
}

// Authenticate has a client prove that she is the user of her start-up packet, by the method that the policy in force
// names for her. A name that does not exist, or is disabled, is asked by one of the methods as often as users have it,
// and is refused whatever it proves: which names exist is not seen.
//
// An example: of {name: carol, login: ldap} the client is asked for a password in plain (the connection is TLS, or does
// not leave the machine), and the directory is bound as uid=carol,… with it.
func (a *Passwords) Authenticate(ctx context.Context, back *pgproto3.Backend, c Claimant, brake *Brake) error {
	v := a.inForce()
	u, known := v.others[c.User]
	if _, ours := v.users[c.User]; !known && !ours {
		u = policy.User{Name: c.User, Identity: c.User, Login: a.mockShape(v, c.User).method}
	}
	switch u.Login {
	case policy.ByCertificate:
		return byCertificate(c, u, known)
	case policy.ByLDAP:
		return byLDAP(ctx, back, c, u, known, v.directory, brake)
	case policy.ByOIDC:
		return byToken(ctx, back, c, u, known, v.issuer, brake)
	}
	return a.Exchange(back, c.User, ChannelBinding(c.Opening.Config, c.Opening.Secure()), func(right func() bool) (bool, error) {
		return brake.Guess(ctx, c.User, c.Origin, right)
	})
}

// byCertificate looks at what TLS has verified: the chain up to server.tls.clients, and that she has its key.
func byCertificate(c Claimant, u policy.User, known bool) error {
	if known && c.Opening.secure != nil {
		state := c.Opening.secure.ConnectionState()
		if len(state.VerifiedChains) > 0 && state.PeerCertificates[0].Subject.CommonName == u.Identity {
			return nil
		}
	}
	return pgerror.New("28000", fmt.Sprintf("certificate authentication failed for user %q", c.User)).
		WithHint("This name logs in with a client certificate: sslcert and sslkey, over TLS.").Fatal()
}

// errUnreached says that nobody judged a proof.
func errUnreached(what string) error {
	return pgerror.New("57P03", what+" does not answer: nobody can be let in by it now").WithHint("Try again; the operator's log has more.").Fatal()
}

// byLDAP asks for the password and binds the directory with it. Names that do not exist are bound too: that takes as
// long.
func byLDAP(ctx context.Context, back *pgproto3.Backend, c Claimant, u policy.User, known bool, d *directory, brake *Brake) error {
	msg, err := asked(back, &pgproto3.AuthenticationCleartextPassword{}, pgproto3.AuthTypeCleartextPassword)
	if err != nil {
		return err
	}
	given, ok := msg.(*pgproto3.PasswordMessage)
	if !ok {
		return pgerror.New("08P01", "expected a password").Fatal()
	}
	var failed error
	right, judged, err := brake.GuessElsewhere(ctx, c.User, c.Origin, func(ctx context.Context) (bool, bool) {
		bound, err := d.bind(ctx, u.Identity, given.Password)
		failed = err
		return bound && known, err == nil
	})
	switch {
	case err != nil:
		return pgerror.New("53300", err.Error()).WithHint("Try again in a few seconds.").Fatal()
	case !judged:
		return unreached{"the directory", failed}
	case !right:
		return rejected(c.User)
	}
	return nil
}

// unreached is a log-in that nobody judged, and why, for the operator's log.
type unreached struct {
	what  string
	cause error
}

func (u unreached) Error() string { return u.what + " does not answer" }
func (u unreached) Unwrap() error { return errUnreached(u.what) }

// Cause is what an operator is told of a log-in that failed because somebody else did not answer; nil for others. It
// holds no password and no token.
func Cause(err error) error {
	var u unreached
	if errors.As(err, &u) {
		return u.cause
	}
	return nil
}

// trusting is a TLS configuration that believes a file of certificates, or the system's.
func trusting(file string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return config, nil
	}
	pool, err := Certificates(file)
	config.RootCAs = pool
	return config, err
}

// Certificates reads a file of those who sign.
func Certificates(file string) (*x509.CertPool, error) {
	text, err := deadline.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}
