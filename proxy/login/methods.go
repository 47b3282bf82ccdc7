package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-ldap/ldap/v3"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/xdg-go/scram"

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

// Cause returns what an operator is shown of a log-in that failed because somebody else did not answer, or nil for
// others. It holds no password and no token.
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

// Guesses that somebody else judges, as a directory does, take a network's time, and no lock may be held meanwhile. So
// one of a name, and a few of an origin, are made at a time: as with verifiers of ours, any number of connections at
// once learn no more than these would one after another.

const (
	elsewherePerOrigin = 4
	elsewhereAgain     = 20 * time.Millisecond
)

// GuessElsewhere waits for the turn of a guess and has it judged: ok where it was right, known where somebody judged it
// at all. What nobody judged is no failure of hers.
func (b *Brake) GuessElsewhere(ctx context.Context, user, origin string, judge func(context.Context) (ok, known bool)) (ok, known bool, err error) {
	name := of(user, origin)
	for {
		wait := b.begin(name, origin)
		if wait <= 0 {
			break
		}
		if end, bound := ctx.Deadline(); bound && time.Until(end) < wait {
			return false, false, ErrBraked
		}
		select {
		case <-time.After(wait + lot()):
		case <-ctx.Done():
			return false, false, ErrBraked
		}
	}
	defer func() { b.end(name, origin, ok, known) }()
	ok, known = judge(ctx)
	return ok, known, nil
}

// begin takes a place for a guess, or says how long until there may be one.
func (b *Brake) begin(name, origin string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if wait := max(b.names.held(name, now).next.Sub(now), b.origins.held(origin, now).next.Sub(now)); wait > 0 {
		return wait
	}
	if b.running[name] > 0 || b.running[origin] >= elsewherePerOrigin {
		return elsewhereAgain
	}
	if b.running == nil {
		b.running = map[string]int{}
	}
	b.running[name]++
	b.running[origin]++
	return 0
}

func (b *Brake) end(name, origin string, ok, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, key := range []string{name, origin} {
		if b.running[key]--; b.running[key] <= 0 {
			delete(b.running, key)
		}
	}
	switch {
	case ok:
		b.names.forgive(name, now)
	case known:
		b.names.failed(name, now)
		b.origins.failed(origin, now)
	}
}

// Whether those who judge log-ins elsewhere answer, for the operator's pages: the same question whoever asks, without a
// name or a password of anybody.

// DirectoryAnswers asks a directory for the entry that says what it is (RFC 4512, 5.1). Any answer will do, a refusal
// too.
func DirectoryAnswers(ctx context.Context, l *policy.LDAP) error {
	config, err := trusting(l.CA)
	if err != nil {
		return errors.New("the file of those who sign its certificate cannot be read")
	}
	conn, err := ldap.DialURL(l.URL, ldap.DialWithTLSConfig(config), ldap.DialWithDialer(&net.Dialer{Timeout: within(ctx)}))
	if err != nil {
		return errors.New("no connection")
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // one that hangs
	_, err = conn.Search(&ldap.SearchRequest{Scope: ldap.ScopeBaseObject, Filter: "(objectClass=*)", Attributes: []string{"1.1"}, SizeLimit: 1})
	var told *ldap.Error
	if err == nil || errors.As(err, &told) && told.ResultCode < ldap.ErrorNetwork {
		return nil
	}
	return errors.New("it does not answer")
}

// ProviderAnswers reads a provider's configuration.
func ProviderAnswers(ctx context.Context, o *policy.OIDC) error {
	config, err := trusting(o.CA)
	if err != nil {
		return errors.New("the file of those who sign its certificate cannot be read")
	}
	client := &http.Client{Timeout: within(ctx), Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	if _, err := oidc.NewProvider(oidc.ClientContext(ctx, client), o.Issuer); err != nil {
		return errNoProvider
	}
	return nil
}

// within is how long a context leaves for an answer.
func within(ctx context.Context) time.Duration {
	if end, bound := ctx.Deadline(); bound {
		return max(min(time.Until(end), answersWithin), time.Millisecond)
	}
	return answersWithin
}

// errOtherwise says that a name is asked for something that is no password and no token.
var errOtherwise = errors.New("this name does not log in with a password")

// Claim is the client's side of Authenticate for who has a name and a password and no driver of her own, such as a form
// in a browser: of carol's verifier it does SCRAM-SHA-256, to a directory's user it gives the password as it is, and a
// provider's user has given her token. It returns once everything is sent that can be; whether it was right,
// Authenticate says.
func Claim(front *pgproto3.Frontend, password string) error {
	var talk *scram.ClientConversation
	for {
		msg, err := front.Receive()
		if err != nil {
			return ErrSilent
		}
		switch m := msg.(type) {
		case *pgproto3.AuthenticationCleartextPassword:
			front.Send(&pgproto3.PasswordMessage{Password: password})
		case *pgproto3.AuthenticationSASL:
			if slices.Equal(m.AuthMechanisms, []string{mechanismBearer}) {
				token := password
				if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
					token = "" // it has one form, and what is more in it would be more pairs
				}
				front.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanismBearer,
					Data: []byte("n,,\x01auth=Bearer " + token + "\x01\x01")})
				break
			}
			client, err := scram.SHA256.NewClientUnprepped("", policy.Prepared(password), "") // the name is in the start-up packet
			if err != nil {
				return err
			}
			talk = client.NewConversation()
			first, err := talk.Step("")
			if err != nil || len(m.AuthMechanisms) == 0 || m.AuthMechanisms[len(m.AuthMechanisms)-1] != mechanism {
				return errOtherwise
			}
			front.Send(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(first)})
		case *pgproto3.AuthenticationSASLContinue:
			if talk == nil { // why a token was refused, which is acknowledged
				front.Send(&pgproto3.SASLResponse{Data: []byte("\x01")})
				break
			}
			next, err := talk.Step(string(m.Data))
			if err != nil {
				return err
			}
			front.Send(&pgproto3.SASLResponse{Data: []byte(next)})
		default:
			return nil // an error, or the last word
		}
		if front.Flush() != nil {
			return ErrSilent
		}
	}
}
