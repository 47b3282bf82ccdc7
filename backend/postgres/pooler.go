package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
)

// A pooler (pgbouncer, say) may stand between dpproxy and PostgreSQL. All that dpproxy asks is asked in transactions,
// none of which leaves anything behind on its session, so that a pooler may give each transaction another session:
//
//	pool_mode = session, transaction      answered as without it
//	pool_mode = statement                 no transaction is let through: refused at the start
//
// What it does not give at once is waited for within a paid query, whose deadline does not stop meanwhile:
//
//	pool_mode = session                   one of default_pool_size = 1 sessions is kept by the first connection, the look before a charge: each paid query would wait
//	default_pool_size = 1                 for its deadline, and be answered by noise
//
// So behind a pooler as many transactions as there may be at a time are begun when dpproxy starts, and held until all
// of them have begun.

// ErrPooling says that a pooler lets no transaction through.
var ErrPooling = errors.New("a pooler before the private database lets no transaction through (pgbouncer's pool_mode = statement): dpproxy needs pool_mode = transaction or session for its role")

const noTransactions = "it lets no transaction through (pool_mode = statement)"

// poolerSaid are pgbouncer's words for what it does not do, which it says with the SQLSTATE of a broken protocol, and
// ours.
var poolerSaid = []struct{ theirs, ours string }{
	{"statement pooling mode", noTransactions},
	{"max_client_conn", "it takes no more connections (max_client_conn)"},
	{"query_wait_timeout", "it had no session free in time (default_pool_size, query_wait_timeout)"},
	{"query_timeout", "it ended the query (query_timeout, which must be 0 or above backend.deadline)"},
	{"idle_transaction_timeout", "it ended the transaction (idle_transaction_timeout)"},
	{"transaction_timeout", "it ended the transaction (transaction_timeout, which must be 0 or above backend.deadline)"},
	{"unsupported startup parameter", "it does not know a parameter of the url (ignore_startup_parameters)"},
	{"server login", "it cannot log in to the database"},
	{"server conn crashed", "it lost the database"},
	{"pgbouncer", "it does not reach the database"},
}

// ofPooler is what a pooler's error says, in our words; empty means it is none. Behind one whose words are others it is
// a broken connection.
func ofPooler(err error) string {
	var said *pgconn.PgError
	if !errors.As(err, &said) || said.Code != "08P01" {
		return ""
	}
	for _, s := range poolerSaid {
		if strings.Contains(said.Message, s.theirs) {
			return "the pooler before the database: " + s.ours
		}
	}
	return ""
}

// cause names a fault as cause does, a pooler's too.
func cause(err error) string { return execute.Cause(inWords(err)) }

// inWords puts our words in the place of a pooler's error.
func inWords(err error) error {
	if said := ofPooler(err); said != "" {
		return execute.Fault(said)
	}
	return err
}

// pooled reports whether the session behind a connection is not that which the connection was greeted by.
func pooled(ctx context.Context, conn *pgx.Conn) (is bool, err error) {
	var behind int64
	err = conn.QueryRow(ctx, "SELECT pg_catalog.pg_backend_pid()::pg_catalog.int8").Scan(&behind)
	return behind != int64(conn.PgConn().PID()), err
}

// poolerFindings says what stands between dpproxy and the server, and whether as many transactions are let through at a
// time as there may be. That is tried before a policy is in force: afterwards paid queries have their connections.
func (b *DB) poolerFindings(ctx context.Context) ([]backend.Finding, error) {
	is := false
	err := b.aside.AcquireFunc(ctx, func(conn *pgxpool.Conn) (err error) {
		is, err = pooled(ctx, conn.Conn())
		return err
	})
	if err != nil || !is {
		return nil, err
	}
	most := b.connections()
	list := []backend.Finding{{Note: true, Text: fmt.Sprintf("a pooler stands between dpproxy and the database: it must have %d sessions for dpproxy's role, and where it limits how long a query or a transaction takes (pgbouncer's query_timeout, transaction_timeout), "+
		"by more than backend.deadline, since what it ends is answered by noise alone", most)}}
	if len(b.pins.Deciding()) > 0 {
		return list, nil
	}
	if got := b.atOnce(ctx); got < most {
		list = append(list, backend.Finding{Fatal: true, Text: fmt.Sprintf("the pooler before the database lets %d of dpproxy's %d transactions begin at a time: a paid query would wait there until its deadline, and be answered by noise alone. "+
			"Let dpproxy's role have %[2]d sessions (pgbouncer's default_pool_size, max_client_conn; a dpproxy that runs beside has as many), or set pool_max_conns in the url to fewer", got, most)})
	}
	return list, nil
}

// atOnce is how many of the transactions that dpproxy may have at a time have begun when all of them are held.
func (b *DB) atOnce(ctx context.Context) (n int) {
	ctx, cancel := context.WithTimeout(ctx, execute.ReadyTimeout)
	defer cancel()
	begin := func(conn *pgx.Conn) (end func(), ok bool) {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return func() {}, false
		}
		n++
		return func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }, true
	}
	for _, pool := range []*pgxpool.Pool{b.aside, b.pool} {
		for range pool.Config().MaxConns {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return n
			}
			defer conn.Release()
			end, ok := begin(conn.Conn())
			defer end()
			if !ok {
				return n
			}
		}
	}
	copies, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
	if err != nil {
		return n
	}
	defer copies.Close(context.WithoutCancel(ctx))
	_, _ = begin(copies)
	return n
}
