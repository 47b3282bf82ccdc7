package postgres

import (
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// secureLink refuses a way to the ledger over a network of which the owner has not said how it is protected. Whoever stands
// on it could acknowledge charges that are kept nowhere, and what is free would be asked again and again. A password is
// never sent as it is, unless the owner says so.
func secureLink(config *pgx.ConnConfig, url string) error {
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {} // without it they would be kept
	if config.RequireAuth == "" {
		config.RequireAuth = "!password"
	}
	local := func(host string) bool {
		return host == "" || host[0] == '/' || host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
	}
	far := !local(config.Host)
	for _, f := range config.Fallbacks {
		far = far || !local(f.Host)
	}
	if far && !strings.Contains(url, "sslmode=") && os.Getenv("PGSSLMODE") == "" {
		return fmt.Errorf("%w: it is on another machine and the url does not say how the way there is protected: add sslmode=verify-full, or another sslmode if the network is trusted", store.ErrServer)
	}
	return nil
}
