package postgres

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// secureLink refuses a way to the ledger over a network of which the owner has not said how it is protected. Whoever
// is on it could acknowledge charges that are kept nowhere, and what is free would be asked again and again. A
// password is never sent as it is, unless the owner says so.
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

// keeps refuses a pooler that gives a connection's next transaction another session: a proxy is known to be alive by a
// lock that its session holds. Where the session is not the one by which the connection was greeted, something is
// between. Then another connection begins a transaction, for which a pooler takes the session that nobody uses at the
// moment (LIFO: this one's; in turns, or where there is one session: the next is another or none), and this one is
// asked again.
func (s *Store) keeps(ctx context.Context, session int64) error {
	if session == int64(s.Conn.PgConn().PID()) {
		return nil
	}
	refused := fmt.Errorf("%w: a pooler stands before it that gives each transaction another session (pgbouncer's pool_mode = transaction): connect to the server itself", store.ErrServer)
	other, err := pgx.ConnectConfig(ctx, s.site.Config)
	if err != nil {
		return err
	}
	defer other.Close(context.WithoutCancel(ctx))
	tx, err := other.Begin(ctx)
	if err != nil {
		return refused
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var again int64
	if err := s.Conn.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()::pg_catalog.int8").Scan(&again); err != nil || again != session {
		return refused
	}
	return nil
}
