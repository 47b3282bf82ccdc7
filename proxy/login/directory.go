package login

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-ldap/ldap/v3"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

const mechanismBearer = "OAUTHBEARER"

// issuer verifies the tokens of one provider. Its keys are fetched when a token names one that is not known, so that a
// key may roll.
type issuer struct {
	policy *policy.OIDC

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil: its configuration has not been read yet
	tried    time.Time             // when that failed last
}

func newIssuer(o *policy.OIDC) *issuer {
	if o == nil {
		return nil
	}
	return &issuer{policy: o}
}

var errNoProvider = errors.New("the provider does not say where its keys are")

// ready reads the provider's configuration, until it has been read once. After a failure it waits a second.
func (i *issuer) ready() (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	if time.Since(i.tried) < time.Second {
		return nil, errNoProvider
	}
	config, err := trusting(i.policy.CA)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: answersWithin, Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	// The client outlives this call: the verifier fetches keys with it.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.Background(), client), i.policy.Issuer)
	if err != nil {
		i.tried = time.Now()
		return nil, errNoProvider
	}
	i.verifier = provider.Verifier(&oidc.Config{ClientID: i.policy.Audience})
	return i.verifier, nil
}

// verify returns whom a token names. known is false where nobody could say.
func (i *issuer) verify(ctx context.Context, token string) (identity string, known bool, err error) {
	verifier, err := i.ready()
	if err != nil {
		return "", false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	good, err := verifier.Verify(ctx, token)
	if err != nil {
		if strings.Contains(err.Error(), "fetching keys") { // the library has no type for it
			return "", false, errors.New("the provider's keys cannot be fetched")
		}
		return "", true, nil
	}
	claims := map[string]any{}
	if err := good.Claims(&claims); err != nil {
		return "", true, nil
	}
	verified, ok := claims["email_verified"].(bool)
	if i.policy.Claim == "email" && (!ok || !verified) {
		return "", true, nil // anybody may say that an address is hers
	}
	identity, _ = claims[i.policy.Claim].(string)
	return identity, true, nil
}

// byToken runs SASL's OAUTHBEARER (RFC 7628) as PostgreSQL 18 does: a client without a token is sent where to get one.
func byToken(ctx context.Context, back *pgproto3.Backend, c Claimant, u policy.User, known bool, i *issuer, brake *Brake) error {
	msg, err := asked(back, &pgproto3.AuthenticationSASL{AuthMechanisms: []string{mechanismBearer}},
		pgproto3.AuthTypeSASL)
	if err != nil {
		return err
	}
	first, ok := msg.(*pgproto3.SASLInitialResponse)
	if !ok || first.AuthMechanism != mechanismBearer {
		return pgerror.New("08P01", "client selected an invalid SASL authentication mechanism").Fatal()
	}
	token, ok := bearer(string(first.Data))
	if !ok {
		return pgerror.New("08P01", "malformed OAUTHBEARER message").Fatal()
	}
	if token == "" {
		return i.refuse(back, c.User)
	}
	var failed error
	right, judged, err := brake.GuessElsewhere(ctx, c.User, c.Origin, func(ctx context.Context) (bool, bool) {
		identity, judged, err := i.verify(ctx, token)
		failed = err
		return judged && known && identity != "" && identity == u.Identity, judged
	})
	switch {
	case err != nil:
		return pgerror.New("53300", err.Error()).WithHint("Try again in a few seconds.").Fatal()
	case !judged:
		return unreached{"the provider of tokens", failed}
	case !right:
		return i.refuse(back, c.User)
	}
	return nil
}

// refuse tells where tokens are to be had, takes the client's word that it has understood, and ends.
func (i *issuer) refuse(back *pgproto3.Backend, user string) error {
	why, err := json.Marshal(map[string]string{
		"status": "invalid_token", "scope": i.policy.Scope,
		"openid-configuration": strings.TrimSuffix(i.policy.Issuer, "/") + "/.well-known/openid-configuration",
	})
	if err != nil {
		return err
	}
	if _, err := asked(back, &pgproto3.AuthenticationSASLContinue{Data: why},
		pgproto3.AuthTypeSASLContinue); err != nil {
		return err
	}
	return pgerror.New("28000", "OAuth bearer authentication failed for user \""+user+"\"").
		WithHint("The token is missing, expired, made out to somebody else, or not this user's: dpproxy login fetches another.").Fatal()
}

// bearer reads the client's first message: a header without a channel binding or another name to act for, then
// key=value pairs of which one is auth.
func bearer(text string) (token string, ok bool) {
	rest, ok := strings.CutPrefix(text, "n,,\x01")
	if !ok {
		if rest, ok = strings.CutPrefix(text, "y,,\x01"); !ok {
			return "", false
		}
	}
	pairs, ok := strings.CutSuffix(rest, "\x01\x01")
	if !ok {
		return "", false
	}
	found := false
	for _, pair := range strings.Split(pairs, "\x01") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return "", false
		}
		if key != "auth" {
			continue
		}
		if found {
			return "", false
		}
		found = true
		if value == "" {
			continue
		}
		scheme, rest, _ := strings.Cut(value, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return "", false
		}
		token = strings.TrimLeft(rest, " ")
	}
	return token, found
}

// Saying returns whom a token says that it is of, by a claim, and until when: nothing of it is proved. It is empty of
// what is no token.
func Saying(token, claim string) (identity string, until time.Time) {
	parts, claims := strings.Split(token, "."), map[string]any{}
	if len(parts) != 3 {
		return "", until
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return "", until
	}
	identity, _ = claims[claim].(string)
	if seconds, ok := claims["exp"].(float64); ok && seconds < 1<<40 {
		until = time.Unix(int64(seconds), 0)
	}
	return identity, until
}

// answersWithin is how long a directory or a provider may take.
const answersWithin = 5 * time.Second

// directory binds users.
type directory struct{ policy *policy.LDAP }

func newDirectory(l *policy.LDAP) *directory {
	if l == nil {
		return nil
	}
	return &directory{l}
}

// bind reports whether a password is that of an identity; an error says that the directory did not say either. A bind
// with an empty password is an anonymous one, which directories accept (RFC 4513, 5.1.2): it is wrong here, and not
// sent.
func (d *directory) bind(ctx context.Context, identity, password string) (bool, error) {
	if password == "" {
		return false, nil
	}
	config, err := trusting(d.policy.CA)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	conn, err := ldap.DialURL(d.policy.URL, ldap.DialWithTLSConfig(config), ldap.DialWithDialer(&net.Dialer{Timeout: answersWithin}))
	if err != nil {
		return false, errors.New("no connection to the directory")
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // one that hangs
	conn.SetTimeout(answersWithin)
	err = conn.Bind(strings.Replace(d.policy.Bind, policy.UserMark, ldap.EscapeDN(identity), 1), password)
	switch {
	case err == nil:
		return true, nil
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultNoSuchObject, ldap.LDAPResultInvalidDNSyntax,
		ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultInsufficientAccessRights, ldap.LDAPResultUnwillingToPerform, ldap.LDAPResultConstraintViolation):
		return false, nil
	case ctx.Err() != nil:
		return false, errors.New("the directory does not answer in time")
	}
	var told *ldap.Error
	if errors.As(err, &told) {
		return false, errors.New("the directory answers with " + ldap.LDAPResultCodeMap[told.ResultCode]) // its own text may repeat what was sent
	}
	return false, errors.New("the directory ends the connection")
}
