package postgres

import (
	"crypto/tls"
	"errors"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
)

// maxMessage bounds one message of the database: a row of a public table is far below it, and all others are small.
const maxMessage = 4 << 20

// ErrLink says that the owner has not said how the way to the database is protected.
var ErrLink = errors.New("the database is on another machine and the url does not say how the way there is protected: " +
	"add sslmode=verify-full, or another sslmode if the network is trusted")

// secureLink makes a database that is not what it says harmless before it is spoken to: a password is never sent to it
// as it is, one message takes little memory, and a way over a network is encrypted to the right server unless the owner
// names something weaker.
func secureLink(config *pgx.ConnConfig, url string) error {
	config.MaxProtocolMessageBodyLen = maxMessage
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // without it they would be kept, however many come
	if config.RequireAuth == "" {
		config.RequireAuth = "!password"
	}
	if weakLink(config) && !strings.Contains(url, "sslmode=") && os.Getenv("PGSSLMODE") == "" {
		return ErrLink
	}
	return nil
}

// weakLink reports whether the way to the database may be unencrypted, or lead to an impostor.
func weakLink(config *pgx.ConnConfig) bool {
	local := func(host string) bool {
		return host == "" || host[0] == '/' || host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
	}
	open := func(host string, t *tls.Config) bool {
		return !local(host) && (t == nil || t.InsecureSkipVerify && t.VerifyPeerCertificate == nil && t.VerifyConnection == nil)
	}
	weak := open(config.Host, config.TLSConfig)
	for _, f := range config.Fallbacks {
		weak = weak || open(f.Host, f.TLSConfig)
	}
	return weak
}

// linkFindings says whether the way to the database is protected.
func (b *DB) linkFindings() []backend.Finding {
	if !weakLink(b.pool.Config().ConnConfig) {
		return nil
	}
	return []backend.Finding{{Text: "the connection to the database may be unencrypted or to an impostor: add sslmode=verify-full to the url"}}
}
