package login

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/dpproxy/dpproxy/policy"
)

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
