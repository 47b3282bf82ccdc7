package login

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-ldap/ldap/v3"

	"github.com/dpproxy/dpproxy/policy"
)

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
