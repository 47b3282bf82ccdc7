// Package postgres has private rows in PostgreSQL, or on the workers of Citus, live or as the source of snapshots.
package postgres

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// DB is a private PostgreSQL database. What is asked beside paid queries has connections of its own: whether one of
// theirs is free, or was closed at its deadline, depends on rows, and a wait for it would show before any charge.
type DB struct {
	pool  *pgxpool.Pool // of paid queries
	aside *pgxpool.Pool // of the schema
	execute.Executor
	log       *slog.Logger
	readers   int      // connections that read the tables of a snapshot
	partPages int64    // of which each reads at least so many pages of a table at a time
	cluster   *cluster // of which this is the coordinator; nil means of none
	opened    bool     // that has been looked for
	alone     bool     // PostgreSQL itself was found then

	pins inspect.Pins[inspect.Shape]
}

var _ backend.Backend = (*DB)(nil)

// Open connects to the database that a policy names.
func Open(ctx context.Context, p *policy.Policy, log *slog.Logger) (*DB, error) {
	config, err := pgxpool.ParseConfig(p.Backend.URL)
	if err != nil {
		return nil, errors.New("the url is not one that PostgreSQL's clients read") // its text may hold a password
	}
	if err := secureLink(config.ConnConfig, p.Backend.URL); err != nil {
		return nil, err
	}
	// One round trip a query, parameters as text of the types that the SQL names, nothing cached on the server.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	if _, given := config.ConnConfig.RuntimeParams["application_name"]; !given {
		config.ConnConfig.RuntimeParams["application_name"] = "dpproxy"
	}
	config.ConnConfig.OnNotice = noteLost
	b := &DB{log: log, partPages: 1 << 12} // 32 MiB
	if p.Backend.Snapshot != nil {
		b.readers = p.Backend.Snapshot.Connections
	}
	quarter := max(config.MaxConns/4, 1)
	if b.aside, err = poolOf(ctx, config, quarter); err != nil {
		return nil, err
	}
	if b.pool, err = poolOf(ctx, config, max(config.MaxConns-quarter, 1)); err != nil {
		b.aside.Close()
		return nil, err
	}
	b.Executor = execute.NewExecutor(b.Dialect, b.groups, p.Backend.Deadline, log, int(b.pool.Config().MaxConns))
	if err = b.Ready(ctx); err == nil {
		err = b.findCluster(ctx, p.Server.Timing.Fresh > 0)
	}
	if err != nil && err != backend.ErrSettings { // Inspect says what is wrong with those
		b.Close()
		return nil, err
	}
	return b, nil
}

// poolOf is a pool of at most so many connections.
func poolOf(ctx context.Context, config *pgxpool.Config, most int32) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = most, min(config.MinConns, most), min(config.MinIdleConns, most)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, backend.ErrUnavailable
	}
	return pool, nil
}

// Dialect: see Backend.
func (b *DB) Dialect() dialect.Dialect {
	if b.cluster != nil {
		return dialect.Citus
	}
	return dialect.PostgreSQL
}

// Close ends all connections.
func (b *DB) Close() error {
	b.pool.Close()
	b.aside.Close()
	return nil
}

// Ready: see Backend.
func (b *DB) Ready(caller context.Context, queries ...rewrite.Query) error {
	ctx, cancel := context.WithTimeout(caller, execute.ReadyTimeout)
	defer cancel()
	var found looked
	err := b.transactionAside(ctx, execute.ReadyTimeout, func(tx pgx.Tx) (err error) {
		found, err = lookAgain(ctx, tx, b.cluster, b.shapes(queries), queries)
		return err
	})
	if err == nil && b.opened && found.citus != (b.cluster != nil) {
		found.drift = append(found.drift, "the extension citus came or went")
	}
	switch {
	case err != nil && caller.Err() != nil:
		return backend.ErrUnavailable // the caller stopped waiting: that says nothing of the database
	case strings.HasSuffix(ofPooler(err), noTransactions):
		return ErrPooling
	case errors.Is(err, errSettings) || found.limited || err == nil && !found.watches:
		b.log.ErrorContext(caller, "the private database's settings are not those that queries need: run dpproxy check")
		return backend.ErrSettings
	case len(found.drift) > 0:
		b.log.ErrorContext(caller, "the private database's schema changed: run dpproxy check, then restart", "what", strings.Join(found.drift, "; "))
		return backend.ErrDrift
	case found.away:
		b.log.WarnContext(caller, "a worker of the private database's cluster does not answer; nothing was charged")
		return backend.ErrUnavailable
	case found.unplanned != nil:
		b.log.ErrorContext(caller, "the private database does not plan a query; nothing was charged for it", "table", found.of.Table().Name, "cause", cause(found.unplanned))
		return backend.ErrUnplanned
	case len(queries) > 0 && errors.As(err, new(*pgproto3.ExceededMaxBodyLenErr)): // what else is looked at is small
		b.log.ErrorContext(caller, "the private database's plan of a query is longer than what is read of one; nothing was charged for it", "bytes", maxMessage)
		return backend.ErrUnplanned
	case err != nil:
		b.log.WarnContext(caller, "the private database is not ready", "cause", cause(err))
		return backend.ErrUnavailable
	}
	return nil
}

// Adopt: see Backend.
func (b *DB) Adopt(p *policy.Policy) { b.pins.Adopt(p) }

// shapes are what Inspect saw of the tables that queries read, whatever became of others; without a query of all that
// the policy in force names.
func (b *DB) shapes(queries []rewrite.Query) (list []pinnedShape) {
	var tables []*policy.Table
	for _, q := range queries {
		tables = append(tables, q.Tables()...)
	}
	if len(queries) > 0 {
		return b.shapesOf(tables)
	}
	for d, seen := range b.pins.Deciding() {
		list = append(list, pinnedShape{d.Tables, seen})
	}
	return list
}

// shapesOf are what Inspect saw of tables, for the policy that they are of: of those that it has not seen there are
// none.
func (b *DB) shapesOf(tables []*policy.Table) (list []pinnedShape) {
	of := map[*policy.Dataset][]*policy.Table{}
	for _, t := range tables {
		if d := t.Dataset.Whole(); !slices.Contains(of[d], t) {
			of[d] = append(of[d], t)
		}
	}
	for d, tables := range of {
		if seen, known := b.pins.Of(d); known {
			list = append(list, pinnedShape{tables, seen.Only(tables, dialect.PostgreSQL)})
		}
	}
	return list
}

// transactionAside runs do in a transaction beside those of paid queries.
func (b *DB) transactionAside(ctx context.Context, limit time.Duration, do func(tx pgx.Tx) error) error {
	return transaction(ctx, b.aside, limit, do, b.cluster.settings(limit)...)
}

// transaction runs do in a read-only transaction with one snapshot, in which every setting that could decide how a
// query ends is dpproxy's own (settings.go), and which more statements begin. All of it ends with the transaction:
// nothing stays behind on the connection.
func transaction(ctx context.Context, pool *pgxpool.Pool, limit time.Duration, do func(tx pgx.Tx) error, more ...string) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return transactionOn(ctx, conn.Conn(), limit, do, more...)
}

// transactionOn is transaction on a connection.
func transactionOn(ctx context.Context, conn *pgx.Conn, limit time.Duration, do func(tx pgx.Tx) error, more ...string) error {
	return transactionWith(ctx, conn, limit, more, func(*pgx.Batch) {}, do)
}

// transactionWith is transactionOn, where the message that begins the transaction asks more of it. Either part may end
// it too, by a COMMIT of its own, which spares a turn to the server.
func transactionWith(ctx context.Context, conn *pgx.Conn, limit time.Duration, more []string, first func(*pgx.Batch), then func(tx pgx.Tx) error) error {
	lost(conn) // of transactions before
	var batch pgx.Batch
	settled := begin(&batch, conn, limit, "")
	for _, text := range more {
		batch.Queue(text)
	}
	first(&batch)
	results := conn.SendBatch(ctx, &batch)
	err := results.Close()
	if err != nil && !*settled && unsettled(err) {
		err = errSettings
	}
	if err == nil {
		err = then(results.Tx())
	}
	switch open := conn.PgConn().TxStatus() != 'I'; {
	case open && err == nil:
		err = results.Tx().Commit(ctx)
	case open:
		_ = results.Tx().Rollback(ctx) // a connection on which that fails is closed
	}
	if lost(conn) && err == nil {
		return errLost
	}
	return err
}

// groups runs a query. Where a constraint proves, in the query's own snapshot, that no unit has two rows, the rows are
// not numbered first (privacy rule 11). Where the catalog changed between that snapshot and what the query read, what
// came is given up and the query asked again, once: it takes longer by what an owner did to the schema, which no row
// decides.
func (b *DB) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	groups, err := b.groupsOnce(ctx, query, false)
	if errors.Is(err, errChanged) {
		groups, err = b.groupsOnce(ctx, query, true)
	}
	return groups, err
}

// groupsOnce are what a query counts in one transaction.
func (b *DB) groupsOnce(ctx context.Context, query rewrite.Query, again bool) ([][]privacy.Group, error) {
	limit := execute.DefaultDeadline
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	into := execute.NewResults(query)
	err = b.ask(ctx, conn.Conn(), limit, query, again, into)
	return into.Groups(), inWords(err)
}

// noLoops leaves joins to hash tables and sorting, whose steps grow with the rows, for the rest of a transaction.
// PostgreSQL joins by a nested loop where it expects few rows, and of each condition that it knows nothing of, as
// dpproxy's are, it expects one row in two hundred to be left: with a few of them over a million rows it expects one,
// and would compare each of them with each of the others'. What nothing else can do a nested loop still does.
const noLoops = "SET LOCAL enable_nestloop = off"

// collectPostgres checks the types of the columns, then takes every row.
func collectPostgres(rows pgx.Rows, into *execute.Results) error {
	first, row := true, into.Row()
	var targets []any
	for i := range row.Small {
		targets = append(targets, &row.Small[i])
	}
	for i := range row.Counts {
		targets = append(targets, &row.Counts[i])
	}
	for rows.Next() {
		if fields := rows.FieldDescriptions(); first {
			if len(fields) != len(targets) {
				return execute.ErrResult
			}
			for i, f := range fields {
				if small := len(row.Small); i < small && f.DataTypeOID != pgtype.Int4OID || i >= small && f.DataTypeOID != pgtype.Int8OID {
					return execute.ErrResult
				}
			}
			first = false
		}
		if err := rows.Scan(targets...); err != nil {
			return execute.ErrResult // its text would hold the value
		}
		if err := into.AddRow(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ReadPublic: see Backend. A copy may take long: it has a connection of its own.
func (b *DB) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return inspect.CopyTable(t, dialect.PostgreSQL, func(sql string, add func([]*string) error) error {
		conn, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
		if err != nil {
			return inWords(err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return inWords(transactionOn(ctx, conn, execute.DefaultDeadline, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, sql)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				texts, into := inspect.TextRow(len(rows.FieldDescriptions()))
				if err := rows.Scan(into...); err != nil {
					return errors.Join(execute.ErrResult, err)
				}
				if err := add(texts); err != nil {
					return err
				}
			}
			return rows.Err()
		}, b.cluster.settings(execute.DefaultDeadline)...))
	})
}
