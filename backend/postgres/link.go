package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A pooler (pgbouncer, say) may be between dpproxy and PostgreSQL. All that dpproxy asks is asked in transactions,
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

// poolerFindings says what is between dpproxy and the server, and whether as many transactions are let through at a
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

// roleSQL lists what dpproxy's role can do besides reading: the fatal ones let it change data or escape the database.
const roleSQL = `SELECT says, fatal FROM (
  SELECT 'is a superuser' AS says, true AS fatal, r.rolsuper AS holds FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
  UNION ALL SELECT 'bypasses row-level security', true, r.rolbypassrls AND NOT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
  UNION ALL SELECT 'may create roles', true, r.rolcreaterole AND NOT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
  UNION ALL SELECT 'may create objects in database ' || pg_catalog.current_database(), true, pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
  UNION ALL SELECT 'may create temporary tables (REVOKE TEMPORARY ON DATABASE ' || pg_catalog.quote_ident(pg_catalog.current_database()) || ' FROM PUBLIC)', false, pg_catalog.has_database_privilege(pg_catalog.current_database(), 'TEMP')
  UNION ALL SELECT 'is a member of ' || r.rolname, true, pg_catalog.pg_has_role(r.oid, 'MEMBER') FROM pg_catalog.pg_roles r
    WHERE r.rolname IN ('pg_read_server_files', 'pg_write_server_files', 'pg_execute_server_program', 'pg_write_all_data')
  UNION ALL SELECT 'is a member of pg_read_all_data and so reads more than the policy names', false, pg_catalog.pg_has_role(r.oid, 'MEMBER')
    FROM pg_catalog.pg_roles r WHERE r.rolname = 'pg_read_all_data'
) f WHERE holds`

// relationSQL says of tables what the role can do with each, whether it can read it, and whose rows it sees.
const relationSQL = `SELECT w.i,
  pg_catalog.has_schema_privilege(n.oid, 'CREATE'),
  pg_catalog.pg_has_role(c.relowner, 'MEMBER'),
  pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'),
  pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND COALESCE((SELECT pg_catalog.bool_and(pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'))
    FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = c.oid AND a.attname::text = ANY (w.columns::text[]) AND NOT a.attisdropped), true),
  c.relrowsecurity AND NOT COALESCE((SELECT pg_catalog.bool_or(p.polpermissive) AND pg_catalog.bool_and(pg_catalog.pg_get_expr(p.polqual, p.polrelid) = 'true')
    FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid AND p.polcmd IN ('r', '*')
      AND (0 = ANY (p.polroles) OR EXISTS (SELECT FROM pg_catalog.unnest(p.polroles) AS g(role) WHERE pg_catalog.pg_has_role(g.role, 'USAGE')))), false),
  EXISTS (SELECT FROM pg_catalog.pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f')
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[]))
  WITH ORDINALITY AS w(s, t, columns, i)
JOIN pg_catalog.pg_namespace n ON n.nspname = w.s
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = w.t ORDER BY w.i`

// roleFindings says where dpproxy's own role is stronger or weaker than its work needs.
func roleFindings(ctx context.Context, tx pgx.Tx, d *policy.Dataset) ([]backend.Finding, error) {
	rows, err := tx.Query(ctx, roleSQL)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (backend.Finding, error) {
		var f backend.Finding
		err := row.Scan(&f.Text, &f.Fatal)
		f.Text = "dpproxy's database role " + f.Text + "; it needs to read the policy's tables and nothing else"
		return f, err
	})
	if err != nil {
		return nil, err
	}
	var watches bool
	if err := tx.QueryRow(ctx, "SELECT "+mayAskSQL).Scan(&watches); err != nil {
		return nil, err
	}
	if !watches {
		list = append(list, backend.Finding{Fatal: true, Text: "dpproxy's database role may not read pg_locks, or not call currtid2: each query asks them whether its tables changed while it ran, and would fail after its charge. " +
			"GRANT SELECT ON pg_locks, pg_class, pg_namespace and pg_attribute, and EXECUTE on pg_lock_status(), pg_backend_pid() and currtid2(text, tid), to it"})
	}
	if len(list) > 0 && list[0].Fatal && list[0].Text == superuserFinding {
		return list[:1], nil // a superuser may do all the rest, too
	}
	named := slices.DeleteFunc(slices.Clone(d.Tables), func(t *policy.Table) bool { return t.View.Text != "" })
	more, err := relationFindings(ctx, tx, named)
	return append(list, more...), err
}

const superuserFinding = "dpproxy's database role is a superuser; it needs to read the policy's tables and nothing else"

// relationFindings says what the role can do with tables, of which none is a SELECT.
func relationFindings(ctx context.Context, tx pgx.Tx, tables []*policy.Table) (list []backend.Finding, err error) {
	schemas, names := inspect.RelationNames(tables, dialect.PostgreSQL)
	columns := make([]string, len(tables))
	for i, t := range tables {
		of := inspect.KeyColumns(t)
		for _, c := range t.Columns {
			of = append(of, c.Source)
		}
		columns[i] = asText(of)
	}
	rows, err := tx.Query(ctx, relationSQL, schemas, names, columns)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var i int64
		var creates, owns, writes, reads, secured, refers bool
		if err := rows.Scan(&i, &creates, &owns, &writes, &reads, &secured, &refers); err != nil {
			return nil, execute.ErrResult
		}
		t, schema, name := tables[i-1], schemas[i-1], names[i-1]
		add := func(holds, fatal bool, format string, args ...any) {
			if holds {
				list = append(list, backend.Finding{Fatal: fatal, Text: fmt.Sprintf(format, args...)})
			}
		}
		add(owns, true, "dpproxy's database role owns %s.%s; grant it SELECT on a table of another role instead",
			schema, name)
		add(creates, true, "dpproxy's database role may create objects in schema %s: REVOKE CREATE ON SCHEMA %[1]s "+
			"FROM it and from PUBLIC", schema)
		add(writes && !owns, true, "dpproxy's database role may change the rows of %s.%s; it needs SELECT alone",
			schema, name)
		add(!reads, true, "dpproxy's database role may not read all columns of %s.%s that the policy names",
			schema, name)
		add(secured, true, "table %s has row-level security, whose conditions may fail at a row, or depend on others' "+
			"rows: give dpproxy's role all rows with CREATE POLICY … ON %s.%s FOR SELECT TO … USING (true) as its only "+
			"policy, and leave rows out by a SELECT as the table's source", t.Name, schema, name)
		add(t.Public && refers, false, "public table %s has a foreign key: that no private table can be told from it is "+
			"assumed, not enforced", t.Name)
	}
	return list, rows.Err()
}

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
