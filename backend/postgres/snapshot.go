package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Identity: see source.
func (b *DB) Identity() string {
	at := b.pool.Config().ConnConfig
	return fmt.Sprintf("%q %d %q", at.Host, at.Port, at.Database)
}

// Consistent: see source. It is one transaction, on a connection of its own.
func (b *DB) Consistent(ctx context.Context, into *snapshot.Maker, do func(snapshot.Reading) error) error {
	limit := snapshot.LongestCopy
	if deadline, ok := ctx.Deadline(); ok {
		limit = time.Until(deadline)
	}
	conn, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
	if err != nil {
		return backend.ErrUnavailable
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = transactionOn(ctx, conn, limit, func(tx pgx.Tx) error {
		var tables []*policy.Table
		for _, e := range into.List {
			tables = append(tables, e.Table.Base()...)
		}
		found, err := lookAgain(ctx, tx, b.cluster, b.shapesOf(tables), nil)
		switch {
		case err != nil:
			return err
		case found.limited:
			return errSettings
		case len(found.drift) > 0 || found.citus != (b.cluster != nil):
			return backend.ErrDrift
		}
		if b.cluster != nil {
			if err := lockAll(ctx, tx, into.List); err != nil {
				return err
			}
		}
		r := &reading{into: into, first: tx, all: []pgx.Tx{tx}, part: b.partPages}
		defer r.leave(context.WithoutCancel(ctx))
		if err := r.join(ctx, b, limit); err != nil {
			return err
		}
		if err := do(r); err != nil {
			return err
		}
		if err := r.inPlace(ctx); err != nil {
			return err
		}
		return b.stillThere(ctx, tables)
	}, b.cluster.singly().settings(limit)...)
	switch {
	case err == nil, errors.Is(err, backend.ErrDrift), errors.Is(err, snapshot.ErrMaking), errors.Is(err, errReplaced):
		return err
	case errors.Is(err, errSettings):
		return backend.ErrSettings
	}
	return fmt.Errorf("the private tables cannot be read (%s)", cause(err))
}

// reading is transactions of one snapshot: the first one's, which the others were given. PostgreSQL evaluates each on a
// processor of its own.
type reading struct {
	into  *snapshot.Maker
	first pgx.Tx
	all   []pgx.Tx
	part  int64 // how many pages a part has at least
}

// lockAll has the first transaction parse what will read each table, by which these are locked against being emptied or
// written anew. Of the coordinator's own tables inPlace tells afterwards; of what lies on workers nothing would, whose
// snapshots begin after this: on Citus an owner's TRUNCATE waits for the copy.
func lockAll(ctx context.Context, tx pgx.Tx, list []rewrite.Extraction) error {
	for _, e := range list {
		if _, err := tx.Conn().PgConn().Prepare(ctx, "", e.SQL(), nil); err != nil {
			return err
		}
	}
	return nil
}

// join begins the other transactions. Where the server or the role lets no more connections in there are fewer.
func (r *reading) join(ctx context.Context, b *DB, limit time.Duration) error {
	if b.readers < 2 {
		return nil
	}
	var alone bool
	if err := r.first.QueryRow(ctx, "SELECT "+onlyPostgres).Scan(&alone); err != nil || !alone {
		return err
	}
	var snapshot string
	if err := r.first.QueryRow(ctx, "SELECT pg_catalog.pg_export_snapshot()").Scan(&snapshot); err != nil {
		return err
	}
	for len(r.all) < b.readers {
		conn, err := pgx.ConnectConfig(ctx, b.aside.Config().ConnConfig)
		if err == nil {
			var batch pgx.Batch
			begin(&batch, conn, limit, snapshot)
			results := conn.SendBatch(ctx, &batch)
			if err = results.Close(); err == nil {
				r.all = append(r.all, results.Tx())
				continue
			}
			conn.Close(context.WithoutCancel(ctx))
		}
		b.log.Warn("snapshot: fewer connections read the private tables than the policy says", "connections", len(r.all), "cause", cause(err))
		return nil
	}
	return nil
}

// leave ends the other transactions, and their connections.
func (r *reading) leave(ctx context.Context) {
	for _, tx := range r.all[1:] {
		tx.Conn().Close(ctx)
	}
}

// errReplaced is an owner's TRUNCATE, or another statement that gives a table new storage, in the middle of a copy.
var errReplaced = errors.New("a private table was emptied, altered or written anew (TRUNCATE, ALTER TABLE, REFRESH, VACUUM FULL) while it was read")

// replacedSQL counts the relations with rows that this transaction has locked, by reading them, of which the storage or
// a column is another one than in its snapshot: pg_relation_filenode tells what is read, pg_class, as the snapshot
// shows it, what was. It is as changedSQL, but for what an owner may do to a table that moves no row: a copy takes
// long. A table that becomes another's child has its columns written anew.
var replacedSQL = `SELECT pg_catalog.count(*) FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c ON c.oid = l.relation
WHERE ` + lockedHere + ` AND c.relkind IN ('r', 'm')
    AND (c.relfilenode <> 0 AND pg_catalog.pg_relation_filenode(c.oid) IS DISTINCT FROM c.relfilenode
      OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND ` + superseded("pg_attribute", "a") + `))`

// inPlace tells, once all tables are read, whether each was read where its rows lay in the moment of the snapshot. A
// table is locked against being replaced when it is first read, and not before: BEGIN; TRUNCATE visits; COPY visits …;
// COMMIT, between the two, leaves it empty for every older snapshot, since its new rows came later and its old ones
// have no storage. The first transaction has parsed or read each table, and what a view or a partitioned table reads,
// so that it holds the locks of all to its end, and nothing changes after this look but a schema's name. What the names
// mean is looked at then (stillThere).
func (r *reading) inPlace(ctx context.Context) error {
	var known bool
	if err := r.first.QueryRow(ctx, "SELECT "+onlyPostgres+" OR "+onCitus).Scan(&known); err != nil || !known {
		return err // other storage has no such numbers
	}
	var replaced int64
	if err := r.first.QueryRow(ctx, replacedSQL).Scan(&replaced); err != nil {
		return err
	}
	if replaced > 0 {
		return errReplaced
	}
	return nil
}

// Proven: see reading.
func (r *reading) Proven(ctx context.Context, needs []rewrite.Unique) (bool, error) {
	return proven(ctx, r.first, needs)
}

// Numbers: see reading.
func (r *reading) Numbers() bool { return true }

// Rows: see reading. Each transaction reads one part of the table after the other.
func (r *reading) Rows(ctx context.Context, e rewrite.Extraction, into *snapshot.Staged) error {
	parts, err := r.parts(ctx, e)
	if err != nil {
		return err
	}
	left := make(chan rewrite.Extraction, len(parts))
	for _, part := range parts {
		left <- part
	}
	close(left)
	readers := r.all[:min(len(r.all), len(parts))]
	return into.Fill(ctx, e, len(readers), func(ctx context.Context, c *snapshot.Coming) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		var done atomic.Int32
		var many atomic.Bool
		var all sync.WaitGroup
		for _, tx := range readers {
			all.Go(func() {
				tally := make(snapshot.UnitCounts, snapshot.CountsLength)
				defer into.Add(tally)
				for part := range left {
					if ctx.Err() != nil || many.Load() {
						return
					}
					if err := copyRows(ctx, tx, part, c, tally); errors.Is(err, units.ErrMany) {
						many.Store(true)
						return // the others end by themselves, for their connections are used again
					} else if err != nil {
						cancel(err) // the first one's is the cause
						return
					}
					if n := done.Add(1); len(parts) > 1 {
						r.into.Log.Info("snapshot: reading", "table", e.Table.Name, "parts", len(parts), "done", n)
					}
				}
			})
		}
		all.Wait()
		if err := context.Cause(ctx); err != nil || !many.Load() {
			return err
		}
		return units.ErrMany
	})
}

// sizeSQL is the number of pages of a plain table of PostgreSQL's own storage.
const sizeSQL = `SELECT pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::pg_catalog.int8
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace JOIN pg_catalog.pg_am m ON m.oid = c.relam
WHERE s.nspname = $1::pg_catalog.name AND c.relname = $2::pg_catalog.name AND c.relkind = 'r' AND m.amname = 'heap'`

// parts are the parts in which a table is read: of a SELECT, a view or a partitioned table there is one. The first
// transaction has the table parsed before, by which it is locked against being written anew (VACUUM FULL) between its
// parts: then a row would have another place.
func (r *reading) parts(ctx context.Context, e rewrite.Extraction) ([]rewrite.Extraction, error) {
	if len(r.all) < 2 || e.Table.View.Text != "" {
		return []rewrite.Extraction{e}, nil
	}
	if _, err := r.first.Conn().PgConn().Prepare(ctx, "", e.SQL(), nil); err != nil {
		return nil, err
	}
	schema, name := rewrite.Relation(e.Table.Source, dialect.PostgreSQL)
	var pages int64
	if err := r.first.QueryRow(ctx, sizeSQL, schema, name).Scan(&pages); errors.Is(err, pgx.ErrNoRows) {
		return []rewrite.Extraction{e}, nil
	} else if err != nil {
		return nil, err
	}
	n := min(pages/r.part, int64(8*len(r.all)))
	if e.Table.Via != nil { // each part joins the other table anew
		n = min(n, int64(len(r.all)))
	}
	var list []rewrite.Extraction
	for i := range max(n, 1) {
		p := rewrite.Pages{First: uint32(pages * i / max(n, 1)), End: uint32(pages * (i + 1) / max(n, 1))}
		if i == max(n, 1)-1 {
			p.End = 0 // whatever came since
		}
		part, err := e.Part(p)
		if err != nil {
			return nil, err
		}
		list = append(list, part)
	}
	return list, nil
}

// copyRows hands on the rows of an extraction, which come in binary.
func copyRows(ctx context.Context, tx pgx.Tx, e rewrite.Extraction, into *snapshot.Coming, tally snapshot.UnitCounts) error {
	args := make([][]byte, len(e.Args()))
	for i, a := range e.Args() {
		text, ok := a.(string)
		if !ok {
			return execute.ErrResult
		}
		args[i] = []byte(text)
	}
	rows, b := tx.Conn().PgConn().ExecParams(ctx, e.SQL(), args, nil, nil, []int16{1}), into.EmptyBatch()
	for rows.NextRow() {
		err := b.Add(rows.Values())
		if err == nil && b.Full() {
			b, err = into.Hand(b, tally)
		}
		if err != nil {
			_, _ = rows.Close()
			return err
		}
	}
	if _, err := rows.Close(); err != nil {
		return err
	}
	_, err := into.Hand(b, tally)
	return err
}

// CopyFindings: see source.
func (b *DB) CopyFindings(ctx context.Context, d *policy.Dataset) (list []backend.Finding, err error) {
	err = b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) error {
		have, err := datasetShape(ctx, tx, d)
		list = inspect.KeyFindings(inspect.Copies{Questions: answers{tx}}, d, have, dialect.PostgreSQL)
		return err
	})
	if err != nil {
		b.log.Warn("the private database's keys cannot be read", "cause", cause(err))
		return nil, backend.ErrUnavailable
	}
	return list, nil
}
