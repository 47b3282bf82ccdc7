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
// is the row's next version, which the server shows whoever asks by a later snapshot than that by which the names were looked up. So in between r had the name, the schema, the columns with their names, numbers and types, the storage and the parents that the snapshot shows: a rename, SET SCHEMA, TRUNCATE and whatever else gives a table new storage write r's row
// of pg_class, ALTER SCHEMA … RENAME that of pg_namespace, RENAME COLUMN, ALTER COLUMN, DROP COLUMN and INHERIT (the child's) those of pg_attribute. A name in the query stood, when it was looked up, for a relation that was then locked and had it; of
// that name the snapshot has one relation; so it is that one. A child that the query read was one in the snapshot, where what is proven has none.
// Limits. It is believed of PostgreSQL itself, as proofs are; the definition of a view and the collation's or type's own rows are not looked at, and no proof is of a view. A superuser who deletes a row of the catalog by hand and inserts it anew, as no statement of the schema does, is not seen.

// changedSQL tells whether the snapshot's catalog lacks a relation that this transaction has locked, or has a row of one that is no longer the newest.
var changedSQL = `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation
  WHERE ` + lockedHere + ` AND (c.oid IS NULL OR c.relkind NOT IN ('i', 'I', 't') AND (` + superseded("pg_class", "c") + `
    OR EXISTS (SELECT FROM pg_catalog.pg_namespace s WHERE s.oid = c.relnamespace AND ` + superseded("pg_namespace", "s") + `)
    OR EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND ` + superseded("pg_attribute", "a") + `))))`

// lockedHere tells whether l, of pg_locks, is the lock of this transaction on a relation that is not of the catalogs.
const lockedHere = `l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation' AND l.relation >= 16384`

// superseded tells whether a row of a catalog that the snapshot shows has a newer version: currtid2, which was made for drivers that go on from a row's place, follows the row's versions to the one that is
// visible now, to whoever would begin. What bears no mark (xmax) has none. A mark alone says little: it is left by what was given up (ROLLBACK), by what is under way (an owner's session that stands open after GRANT or SET STATISTICS, which lock no
// reader out, has changed nothing that anybody else sees) and by what locked the row and no more; and it need not be a transaction's number, by which one could ask what became of it. Where several have the row, it is that of their list (a multixact), of another count:
//
//	SELECT FROM pg_class WHERE relname = 'people' FOR KEY SHARE      -- a superuser's session, which stands open
//	TRUNCATE people                                                  -- by its owner: xmax is 1, the first list of this server
func superseded(catalog, row string) string {
	return row + ".xmax <> '0'::pg_catalog.xid AND pg_catalog.currtid2('pg_catalog." + catalog + "', " + row + ".ctid) <> " + row + ".ctid"
}

// mayAskSQL tells whether the role may ask changedSQL, which some owners take from all roles but their own (REVOKE SELECT ON pg_locks FROM PUBLIC), and whether the server has currtid2: a paid query would fail. It has to be known before a charge.
const mayAskSQL = `CASE WHEN ` + onlyPostgres + ` THEN (SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege('pg_catalog.' || s.t, 'SELECT')) FROM pg_catalog.unnest('{pg_locks, pg_class, pg_namespace, pg_attribute}'::text[]) AS s(t))
  AND (SELECT pg_catalog.bool_and(COALESCE(pg_catalog.has_function_privilege(pg_catalog.to_regprocedure(s.f), 'EXECUTE'), false))
    FROM pg_catalog.unnest('{pg_catalog.pg_lock_status(), pg_catalog.pg_backend_pid(), "pg_catalog.currtid2(text,tid)"}'::text[]) AS s(f)) ELSE true END`

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

// read takes a query's rows, and where it is watched looks whether the catalog is still the snapshot's, in one round trip.
func (b *Postgres) read(ctx context.Context, tx pgx.Tx, query rewrite.Query, f form, watched bool, into *results) (err error) {
	var batch pgx.Batch
	if query.Joins() {
		batch.Queue(noLoops)
	}
	batch.Queue(f.sql, f.args...)
	if watched {
		batch.Queue(changedSQL)
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
