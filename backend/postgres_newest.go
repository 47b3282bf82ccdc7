package backend

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// PostgreSQL reads rows, and catalogs that a query names, as its snapshot shows them. What a query's own names stand for it looks up as it is now:
//
//	BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT … FROM pg_index …      -- people has one row a person
//	                 the owner: BEGIN; ALTER TABLE people RENAME TO old; ALTER TABLE new RENAME TO people; COMMIT
//	SELECT … FROM people …                                               -- reads new, of which nothing is proven
//
// So a paid query is followed, in its transaction and in one message with it, by the question whether the catalog has changed since the snapshot in what the query read (docs/adr/0169).
//
// Claim. If it has not, the rows that the query read are those of which the proofs in its snapshot speak (privacy rule 11). Proof. Parsing and planning lock every relation whose rows a
// query may read, to the end of the transaction. Let r be one of them. It is in pg_class as the snapshot has it, and this row, that of r's schema and those of its columns are the newest ones at the end: what supersedes a row
// marks it (xmax) in every snapshot. So in between r had the name, the schema, the columns with their names, numbers and types, the storage and the parents that the snapshot shows: a rename, SET SCHEMA, TRUNCATE and whatever else gives a table new storage write r's row
// of pg_class, ALTER SCHEMA … RENAME that of pg_namespace, RENAME COLUMN, ALTER COLUMN, DROP COLUMN and INHERIT (the child's) those of pg_attribute. A name in the query stood, when it was looked up, for a relation that was then locked and had it; of
// that name the snapshot has one relation; so it is that one. A child that the query read was one in the snapshot, where what is proven has none.
// Limits. It is believed of PostgreSQL itself, as proofs are; the definition of a view and the collation's or type's own rows are not looked at, and no proof is of a view.

// markedSQL tells whether the snapshot's catalog lacks a relation that this transaction has locked, or has a row of one that is marked as superseded.
var markedSQL = markedBy(func(mark string) string { return mark + " <> '0'::pg_catalog.xid" })

// changedSQL is markedSQL of those marks alone that mean that there is a newer row. It is asked where there are any, for one that was given up stays until the row is written anew.
var changedSQL = markedBy(superseded)

func markedBy(holds func(mark string) string) string {
	return `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation
  WHERE ` + lockedHere + ` AND (c.oid IS NULL OR c.relkind NOT IN ('i', 'I', 't') AND (` + holds("c.xmax") + `
    OR EXISTS (SELECT FROM pg_catalog.pg_namespace s WHERE s.oid = c.relnamespace AND ` + holds("s.xmax") + `)
    OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND ` + holds("a.xmax") + `))))`
}

// lockedHere tells whether l, of pg_locks, is the lock of this transaction on a relation that is not of the catalogs.
const lockedHere = `l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384`

// superseded tells whether a row of the catalog that the snapshot shows is no longer the newest, by its xmax: whether that transaction ended well by now. Those below the snapshot's xmin had all ended when it was taken, and the snapshot shows
// the row nevertheless: they were given up, or locked it and no more. One that is under way (an owner's session that stands open after GRANT or SET STATISTICS, which lock no reader out) has changed nothing that anybody else sees: what a name stands for was looked
// up before this is asked. The snapshot's xmax does not tell: of a server where nothing else ended since, it is below those under way. The number of a transaction in 64 bits is the one nearest to the snapshot's.
func superseded(mark string) string {
	const end = `(pg_catalog.pg_current_snapshot())::pg_catalog.text::pg_catalog.int8`
	return `(SELECT CASE WHEN n.mark = 0 OR n.number < n.oldest THEN false
      ELSE COALESCE(pg_catalog.pg_xact_status(n.number::pg_catalog.text::pg_catalog.xid8) = 'committed', false) END
    FROM (SELECT x.oldest, x.mark, x.next + (x.mark - x.next % 4294967296 + 6442450944) % 4294967296 - 2147483648 AS number
      FROM (SELECT pg_catalog.pg_snapshot_xmin` + end + ` AS oldest, pg_catalog.pg_snapshot_xmax` + end + ` AS next, ` + mark + `::pg_catalog.text::pg_catalog.int8 AS mark) x) n)`
}

// mayAskSQL tells whether the role may ask changedSQL, which some owners take from all roles but their own (REVOKE SELECT ON pg_locks FROM PUBLIC): a paid query would fail. It has to be known before a charge.
const mayAskSQL = `CASE WHEN ` + onlyPostgres + ` THEN pg_catalog.has_table_privilege('pg_catalog.pg_locks', 'SELECT') AND (SELECT pg_catalog.bool_and(pg_catalog.has_function_privilege(f, 'EXECUTE'))
  FROM pg_catalog.unnest('{pg_lock_status(), pg_backend_pid(), pg_current_snapshot(), pg_snapshot_xmin(pg_snapshot), pg_snapshot_xmax(pg_snapshot), pg_xact_status(xid8)}'::text[]) AS s(f)) ELSE true END`

// errChanged says that the catalog changed between a query's snapshot and its end.
var errChanged = errors.New("backend: what a private table's name stands for, its columns or its storage changed while it was asked")

// ask runs a query in its snapshot, by the shortest text that is proven there. Where it was asked once before and the catalog changed meanwhile, the schema has to be the one that Inspect saw.
func (b *Postgres) ask(ctx context.Context, tx pgx.Tx, query rewrite.Query, again bool, into *results) error {
	if again {
		found, err := lookAgain(ctx, tx, b.cluster, b.shapes(datasetsOf([]rewrite.Query{query})), nil)
		if err != nil {
			return err
		}
		if found.drifted {
			return ErrDrift
		}
	}
	f, relies, err := b.provenText(ctx, tx, query)
	if err != nil {
		return err
	}
	return b.read(ctx, tx, query, f, b.cluster == nil && (relies || b.alone), into)
}

// provenText is the text that a query runs as in tx's snapshot, and whether it relies on constraints.
func (b *Postgres) provenText(ctx context.Context, tx pgx.Tx, query rewrite.Query) (f form, relies bool, err error) {
	required := query.Required()
	if sound, err := proven(ctx, tx, required); err != nil || !sound {
		return f, false, errors.Join(err, errUnproven)
	}
	relies = len(required) > 0
	f.sql, f.args, err = shortest(query, func(s rewrite.Shorter) (bool, error) {
		if b.cluster != nil {
			return false, nil
		}
		holds, err := provenForm(ctx, tx, s)
		relies = relies || holds
		return holds, err
	})
	return f, relies, err
}

// read takes a query's rows, and where it is watched looks whether the catalog is still the snapshot's, in one round trip unless it may not be.
func (b *Postgres) read(ctx context.Context, tx pgx.Tx, query rewrite.Query, f form, watched bool, into *results) (err error) {
	var batch pgx.Batch
	if query.Joins() {
		batch.Queue(noLoops)
	}
	batch.Queue(f.sql, f.args...)
	if watched {
		batch.Queue(markedSQL)
	}
	results := tx.SendBatch(ctx, &batch)
	defer func() {
		if failed := results.Close(); err == nil {
			err = failed
		}
	}()
	if query.Joins() {
		if _, err := results.Exec(); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	if query.Keyed() {
		err = collectKeys(rows, into.of[0])
	} else {
		err = collectPostgres(rows, into)
	}
	if err != nil || !watched {
		return err
	}
	rows.Close()
	var changed bool
	if err := results.QueryRow().Scan(&changed); err != nil || !changed {
		return err
	}
	if err := results.Close(); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, changedSQL).Scan(&changed); err != nil || !changed {
		return err
	}
	return errChanged
}

// stillThere tells, once a copy has read all its tables and while it holds their locks, whether the newest catalog has the schema that Inspect saw: the names stand for the same relations as in the copy's moment.
func (b *Postgres) stillThere(ctx context.Context, datasets []*policy.Dataset) error {
	return b.look(ctx, defaultDeadline, func(tx pgx.Tx) error {
		found, err := lookAgain(ctx, tx, b.cluster, b.shapes(datasets), nil)
		if err == nil && found.drifted {
			err = ErrDrift
		}
		return err
	})
}
