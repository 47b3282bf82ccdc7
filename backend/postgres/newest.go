package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// What a database will not run is found before the charge: the very query that would run is planned, with its arguments
// and under the settings that it would have, and not executed. Which of a query's texts will run is found in its own
// snapshot, after the charge (proof.go), so each of them is planned:
//
//	EXPLAIN (COSTS false) SELECT … FROM people AS s           -- where a constraint proves one row a unit
//	EXPLAIN (COSTS false) SELECT … row_number() OVER (…) …    -- where none does
//
// EXPLAIN opens no row. What it reads of the rows are the planner's statistics, and the ends of an index where a
// condition lies outside of these; they move a plan and its time, and fail nothing, since every function in dpproxy's
// SQL is total. So whether it is accepted is for the schema, the rights and the engine to say. What was planned is not
// remembered: the same user's same question is not asked again, and another user's is not to show.

// looked is what a look at the database before a charge found.
type looked struct {
	drift     []string      // what is no longer as it was inspected, in an operator's words
	limited   bool          // new sessions would have a limit that rows may exceed
	watches   bool          // the role may ask whether the catalog changed while a query ran
	citus     bool          // the tables may lie on several machines
	away      bool          // one of which does not answer
	unplanned error         // the database does not plan this query
	of        rewrite.Query // of the error
}

// lookAgain holds the database against what was inspected, and plans queries: one round trip for all but trusted
// SELECTs.
func lookAgain(ctx context.Context, tx pgx.Tx, of *cluster, pinned []pinnedShape, queries []rewrite.Query) (found looked, err error) {
	var batch pgx.Batch
	batch.Queue(keptSQL)
	batch.Queue("SELECT " + onCitus + ", " + mayAskSQL)
	for _, s := range pinned {
		batch.Queue(shapeSQL, shapeArguments(inspect.ColumnsRead(s.tables, dialect.PostgreSQL))...)
	}
	if of != nil && len(queries) > 0 {
		batch.Queue(awaySQL)
	}
	for _, q := range queries {
		for _, u := range q.Required() {
			batch.Queue(uniqueSQL, uniqueArguments(u)...)
		}
		for _, f := range of.forms(q) {
			batch.Queue("EXPLAIN (COSTS false) "+f.SQL, f.Args...)
		}
	}
	shapes, err := found.read(tx.SendBatch(ctx, &batch), len(pinned), of, queries)
	for i := range shapes {
		if err == nil {
			err = viewShapes(ctx, tx, pinned[i].tables, shapes[i])
		}
		if err == nil || found.unplanned != nil && !hasTrusted(pinned[i].tables) {
			found.drift = append(found.drift, pinned[i].shape.Drift(shapes[i])...)
		}
	}
	return found, err
}

// read takes the results of a batch in their order. Its error ends the transaction.
func (found *looked) read(results pgx.BatchResults, datasets int, of *cluster, queries []rewrite.Query) (shapes []inspect.Shape, err error) {
	defer func() {
		if failed := results.Close(); err == nil {
			err = failed
		}
	}()
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	kept, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	found.limited = limited(kept)
	if err := results.QueryRow().Scan(&found.citus, &found.watches); err != nil {
		return nil, err
	}
	for range datasets {
		rows, err := results.Query()
		if err != nil {
			return nil, err
		}
		s, err := collectShape(rows)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, s)
	}
	workers := of != nil && len(queries) > 0
	if workers {
		if err := results.QueryRow().Scan(&found.away); err != nil {
			return shapes, err
		}
	}
	for _, q := range queries {
		for _, u := range q.Required() {
			var unique bool
			if err := results.QueryRow().Scan(&unique); err != nil {
				return shapes, err
			}
			if !unique {
				found.drift = append(found.drift, fmt.Sprintf("no constraint proves %s of table %s unique and NOT NULL", strings.Join(u.Columns, ", "), u.Table.Name))
			}
		}
		for range of.forms(q) {
			whole, err := nextPlan(results, workers)
			if err != nil {
				if refuses(err) && found.unplanned == nil {
					found.unplanned, found.of = err, q
				}
				return shapes, err
			}
			if !whole && found.unplanned == nil {
				found.unplanned, found.of = errNoRemotePlan, q
			}
		}
	}
	return shapes, nil
}

// nextPlan takes the next plan, and reports whether it is whole: on a cluster a worker may not have planned its part.
func nextPlan(results pgx.BatchResults, workers bool) (whole bool, err error) {
	if !workers {
		_, err := results.Exec()
		return true, err
	}
	rows, err := results.Query()
	if err != nil {
		return false, err
	}
	defer rows.Close()
	whole = true
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return false, err
		}
		whole = whole && strings.TrimSpace(line) != noRemotePlan
	}
	return whole, rows.Err()
}

// forms are all the texts of which one runs: the shortest that constraints prove in the query's own snapshot, which is
// a later one than that of the look.
func (c *cluster) forms(q rewrite.Query) (list []execute.Form) {
	if c != nil {
		return []execute.Form{execute.FormOf(q)} // nothing is proven there
	}
	for _, s := range q.Proven() {
		list = append(list, execute.FormOf(s))
	}
	return append(list, execute.FormOf(q))
}

// refuses tells an error that says no to a query from one that says that the database is away.
func refuses(err error) bool {
	var server *pgconn.PgError
	if !errors.As(err, &server) || len(server.Code) != 5 {
		return false
	}
	switch execute.Class(server.Code) {
	case "08", "40", "53", "57", "58", "XX":
		// 40: of two that wait for each other, or for a standby's replay, one is ended. XX: a partition that was found
		// is dropped before it is opened.
		return false
	}
	return true
}

// PostgreSQL reads rows, and catalogs that a query names, as its snapshot shows them. What a query's own names mean it
// looks up as it is now:
//
//	BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT … FROM pg_index …      -- people has one row a person
//	                 the owner: BEGIN; ALTER TABLE people RENAME TO old; ALTER TABLE new RENAME TO people; COMMIT
//	SELECT … FROM people …                                               -- reads new, of which nothing is proven
//
// So a paid query is followed, in its transaction and in one message with it, by the question whether the catalog has
// changed since the snapshot in what the query read (docs/adr/0169).
//
// Claim. If it has not, the rows that the query read are those of which the proofs in its snapshot speak (privacy rule
// 11). Proof. Parsing and planning lock every relation whose rows a query may read, to the end of the transaction. Let
// r be one of them. It is in pg_class as the snapshot has it, and this row, that of r's schema and those of its columns
// are the newest ones at the end: what supersedes a row is the row's next version, which the server shows whoever asks
// by a later snapshot than that by which the names were looked up. So in between r had the name, the schema, the
// columns with their names, numbers and types, the storage and the parents that the snapshot shows: a rename, SET
// SCHEMA, TRUNCATE and whatever else gives a table new storage write r's row of pg_class, ALTER SCHEMA … RENAME that of
// pg_namespace, RENAME COLUMN, ALTER COLUMN, DROP COLUMN and INHERIT (the child's) those of pg_attribute. A name in the
// query stood, when it was looked up, for a relation that was then locked and had it; of that name the snapshot has one
// relation; so it is that one. A child that the query read was one in the snapshot, where what is proven has none.
// Limits. It is believed of PostgreSQL itself, as proofs are; the definition of a view and the collation's or type's
// own rows are not looked at, and no proof is of a view. A superuser who deletes a row of the catalog by hand and
// inserts it anew, as no statement of the schema does, is not seen.

// changedSQL reports whether the snapshot's catalog lacks a relation that this transaction has locked, or has a row of
// one that is no longer the newest.
var changedSQL = `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation
  WHERE ` + lockedHere + ` AND (c.oid IS NULL OR c.relkind NOT IN ('i', 'I', 't') AND (` + superseded("pg_class", "c") + `
    OR EXISTS (SELECT FROM pg_catalog.pg_namespace s WHERE s.oid = c.relnamespace AND ` + superseded("pg_namespace", "s") + `)
    OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND ` + superseded("pg_attribute", "a") + `))))`

// lockedHere reports whether l, of pg_locks, is the lock of this transaction on a relation that is not of the catalogs.
const lockedHere = `l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384`

// superseded reports whether a row of a catalog that the snapshot shows has a newer version: currtid2, which was made
// for drivers that go on from a row's place, follows the row's versions to the one that is visible now, to whoever
// would begin. What bears no mark (xmax) has none. A mark alone says little: it is left by what was given up
// (ROLLBACK), by what is under way (an owner's session that remains open after GRANT or SET STATISTICS, which lock no
// reader out, has changed nothing that anybody else sees) and by what locked the row and no more; and it need not be a
// transaction's number, by which one could ask what became of it. Where several have the row, it is that of their list
// (a multixact), of another count:
//
//	SELECT FROM pg_class WHERE relname = 'people' FOR KEY SHARE      -- a superuser's session, which remains open
//	TRUNCATE people                                                  -- by its owner: xmax is 1, the first list of this server
func superseded(catalog, row string) string {
	return row + ".xmax <> '0'::pg_catalog.xid AND pg_catalog.currtid2('pg_catalog." + catalog + "', " + row + ".ctid) <> " + row + ".ctid"
}

// mayAskSQL reports whether the role may ask changedSQL, which some owners take from all roles but their own (REVOKE
// SELECT ON pg_locks FROM PUBLIC), and whether the server has currtid2: a paid query would fail. It has to be known
// before a charge.
const mayAskSQL = `CASE WHEN ` + onlyPostgres + ` THEN (SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege('pg_catalog.' || s.t, 'SELECT')) FROM pg_catalog.unnest('{pg_locks, pg_class, pg_namespace, pg_attribute}'::text[]) AS s(t))
  AND (SELECT pg_catalog.bool_and(COALESCE(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(s.f), 'EXECUTE'), false))
    FROM pg_catalog.unnest('{pg_catalog.pg_lock_status(), pg_catalog.pg_backend_pid(), "pg_catalog.currtid2(text,tid)"}'::text[]) AS s(f)) ELSE true END`

// errChanged says that the catalog changed between a query's snapshot and its end.
var errChanged = execute.Fault("a private table was renamed, altered or emptied while it was asked, twice")

// ask runs a query, by the shortest text that is proven in its snapshot. Where it was asked once before and the catalog
// changed meanwhile, the schema has to be the one that Inspect saw. It takes two turns to the server, and one where no
// constraint could shorten the text:
//
//	BEGIN …; SELECT … set_config(…) …; SELECT EXISTS (… pg_index …); …      -- all that the texts rely on
//	SELECT … FROM people …; SELECT EXISTS (… pg_locks …); COMMIT            -- the rows, and whether the catalog has changed
func (b *DB) ask(ctx context.Context, conn *pgx.Conn, limit time.Duration, query rewrite.Query, again bool, into *execute.Results) error {
	p, changed := b.proofsOf(query), new(bool)
	atOnce := len(p) == 0 && !again
	return transactionWith(ctx, conn, limit, b.cluster.settings(limit), func(batch *pgx.Batch) {
		p.queue(batch)
		if atOnce {
			text, relies := b.text(query, p)
			changed = b.queue(batch, query, text, relies, into)
		}
	}, func(tx pgx.Tx) error {
		if again {
			found, err := lookAgain(ctx, tx, b.cluster, b.shapesOf(query.Tables()), nil)
			if err != nil {
				return err
			}
			if len(found.drift) > 0 {
				return backend.ErrDrift
			}
		}
		if !atOnce {
			return b.read(ctx, tx, query, p, into)
		}
		return errIf(*changed)
	})
}

// proofsOf are what a query relies on and what a shorter text of it would.
func (b *DB) proofsOf(query rewrite.Query) (p proofs) {
	p.need(nil, query.Required())
	if b.cluster == nil {
		for _, s := range query.Proven() {
			p.need(s.Ranks, s.Needs)
		}
	}
	return p
}

// text is what a query runs as where these are the proofs, and whether it relies on them.
func (b *DB) text(query rewrite.Query, p proofs) (f execute.Form, relies bool) {
	relies = len(query.Required()) > 0
	f = execute.Shortest(query, func(s rewrite.Shorter) bool {
		holds := b.cluster == nil && p.hold(s.Ranks, s.Needs)
		relies = relies || holds
		return holds
	})
	return f, relies
}

// read takes a query's rows by the text that is proven, looks whether the catalog is still the snapshot's, and ends the
// transaction.
func (b *DB) read(ctx context.Context, tx pgx.Tx, query rewrite.Query, p proofs, into *execute.Results) error {
	if !p.hold(nil, query.Required()) {
		return execute.ErrUnproven
	}
	text, relies := b.text(query, p)
	var batch pgx.Batch
	changed := b.queue(&batch, query, text, relies, into)
	if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	return errIf(*changed)
}

func errIf(changed bool) error {
	if changed {
		return errChanged
	}
	return nil
}

// queue has a message ask for a query's rows, then whether the catalog has changed, and end the transaction.
func (b *DB) queue(batch *pgx.Batch, query rewrite.Query, text execute.Form, relies bool, into *execute.Results) (changed *bool) {
	changed = new(bool)
	if query.Joins() {
		batch.Queue(noLoops)
	}
	batch.Queue(text.SQL, text.Args...).Query(func(rows pgx.Rows) error {
		if query.Keyed() {
			return execute.CollectKeys(rows, into.Of[0])
		}
		return collectPostgres(rows, into)
	})
	if b.cluster == nil && (relies || b.alone) {
		batch.Queue(changedSQL).QueryRow(func(row pgx.Row) error { return row.Scan(changed) })
	}
	batch.Queue("COMMIT")
	return changed
}

// stillThere tells, once a copy has read all its tables and while it holds their locks, whether the newest catalog has
// the schema that Inspect saw: the names mean the same relations as in the copy's moment.
func (b *DB) stillThere(ctx context.Context, tables []*policy.Table) error {
	return b.transactionAside(ctx, execute.DefaultDeadline, func(tx pgx.Tx) error {
		found, err := lookAgain(ctx, tx, b.cluster, b.shapesOf(tables), nil)
		if err == nil && len(found.drift) > 0 {
			err = backend.ErrDrift
		}
		return err
	})
}
