package postgres

import (
	"strings"

	"github.com/dpproxy/dpproxy/ledger/store"
)

// The tables of a ledger in PostgreSQL lie in a schema of their own. The CHECKs are the last wall, as in SQLite; the
// primary key of the chain is another: of two proxies that would write the same row one fails. Each migration takes the
// schema from the version that is its place in the list to the next one. What has been released is never changed here.
var migrations = []string{`
CREATE SCHEMA dpproxy_ledger;
REVOKE ALL ON SCHEMA dpproxy_ledger FROM PUBLIC;
CREATE TABLE dpproxy_ledger.version (one boolean PRIMARY KEY CHECK (one), version bigint NOT NULL);
INSERT INTO dpproxy_ledger.version VALUES (true, 0);
CREATE TABLE dpproxy_ledger.head (one boolean PRIMARY KEY CHECK (one), seq bigint NOT NULL, hash bytea NOT NULL);
INSERT INTO dpproxy_ledger.head VALUES (true, 0, '');
CREATE TABLE dpproxy_ledger.chain (
	seq bigint PRIMARY KEY, kind bigint NOT NULL, at bigint NOT NULL, ds bigint NOT NULL, holder text COLLATE "C" NOT NULL,
	body bytea NOT NULL, hash bytea NOT NULL CHECK (length(hash) = 32), request bytea NOT NULL UNIQUE
);
CREATE INDEX charges ON dpproxy_ledger.chain (ds, holder, seq) WHERE kind = 6;
CREATE TABLE dpproxy_ledger.account (
	ds bigint NOT NULL, scope bigint NOT NULL, holder text COLLATE "C" NOT NULL, ends bigint NOT NULL,
	eps bigint NOT NULL, eps_limit bigint NOT NULL, eps_over bigint NOT NULL,
	rho bigint NOT NULL, rho_limit bigint NOT NULL, rho_over bigint NOT NULL,
	delta bigint NOT NULL, delta_limit bigint NOT NULL, delta_over bigint NOT NULL,
	alt bigint NOT NULL CHECK (alt >= 0),
	PRIMARY KEY (ds, scope, holder),
	` + store.Within + `
) WITH (fillfactor = 50);
CREATE TABLE dpproxy_ledger.release (
	id bigint PRIMARY KEY, charge bigint NOT NULL UNIQUE, measure bytea UNIQUE, noisy bytea NOT NULL
);
CREATE TABLE dpproxy_ledger.claim (key bytea PRIMARY KEY, owner bigint NOT NULL, fence bigint NOT NULL);
CREATE SEQUENCE dpproxy_ledger.fence;`,

	// A head for each dataset's chain (ADR 148). A program that knows one head alone finds none, and no column to leave
	// out.
	`
CREATE TABLE dpproxy_ledger.heads (head bigint PRIMARY KEY, seq bigint NOT NULL, hash bytea NOT NULL) WITH (fillfactor = 50);
INSERT INTO dpproxy_ledger.heads SELECT 0, seq, hash FROM dpproxy_ledger.head;
DROP TABLE dpproxy_ledger.head;
ALTER TABLE dpproxy_ledger.chain ADD COLUMN head bigint NOT NULL DEFAULT 0;
ALTER TABLE dpproxy_ledger.chain ALTER COLUMN head DROP DEFAULT;
CREATE UNIQUE INDEX links ON dpproxy_ledger.chain (head, seq);
CREATE SEQUENCE dpproxy_ledger.number INCREMENT 65536;
SELECT pg_catalog.setval('dpproxy_ledger.number', (seq / 65536 + 1) * 65536, false) FROM dpproxy_ledger.heads;`,

	// Rows are read before they are durable (ADR 152). A program that takes what it reads for durable is to keep off.
	`
COMMENT ON SCHEMA dpproxy_ledger IS 'the ledger of dpproxy, whose rows may be seen before they are flushed';`,
}

// The numbers of the advisory locks: one is held while the schema is made or changed, one for each chain that a batch
// writes, for which proxies wait in the order of asking, and one, with a number of its own, by each proxy as long as
// its connection lives.
const (
	lockSchema int64 = 0x6470_7072_6f78_79
	lockTurn   int64 = lockSchema + 1 // and the chain's number
	LockAlive  int32 = 0x6470_7078
)

// Alive are the numbers of the proxies that are connected. Settled tells that the server has been up for a while:
// before, none is taken for dead, because all have lost their connections at once.
const (
	Alive = `SELECT objid::bigint FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND classid = 1685090424 AND objsubid = 2 AND granted
	AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())`
	pgJoin  = "SELECT pg_catalog.pg_advisory_lock($1, $2), pg_catalog.pg_advisory_lock_shared($1, $2), pg_catalog.pg_advisory_unlock($1, $2)" // in this order
	Settled = `pg_catalog.clock_timestamp() > pg_catalog.pg_postmaster_start_time() + interval '10 seconds'`
)

const (
	// The turns of the chains that a batch takes: of one or all of which it waits for others, of one by itself, and of
	// those that are free, whose heads are locked.
	pgReads = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE" // whatever the role is set to
	pgTurns = "SELECT pg_catalog.pg_advisory_xact_lock($1 + head) FROM (SELECT head FROM dpproxy_ledger.heads ORDER BY head) AS h"
	pgAll   = "SELECT head FROM dpproxy_ledger.heads ORDER BY head FOR UPDATE"
	pgTurn  = "SELECT pg_catalog.pg_advisory_xact_lock($1)"
	pgFree  = "(SELECT c FROM unnest($1::bigint[]) AS u (c) WHERE pg_catalog.pg_try_advisory_xact_lock($2 + c) OFFSET 0) AS free"
	pgSome  = "SELECT h.head FROM " + pgFree + " JOIN dpproxy_ledger.heads AS h ON h.head = free.c ORDER BY h.head FOR UPDATE OF h"
	pgBegun = "SELECT " + pgNow + ", nextval('dpproxy_ledger.fence'), nextval('dpproxy_ledger.number')"

	// The same of a batch that presumes where the chains end, in one turn to the server with all that it writes. Each
	// head is moved from where it is known to be, and its turn must be free: who waits for it is not passed by. With
	// the heads held, chain 0 ends where it is known to, or there is no logarithm; it will until the commit, for
	// whoever writes there needs them.
	pgMove = `WITH w AS (UPDATE dpproxy_ledger.heads AS h SET seq = n.seq, hash = n.hash
	FROM (SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bigint[], $5::bytea[]) AS u (head, seq, hash, was, its)
		WHERE pg_catalog.pg_try_advisory_xact_lock($6 + head) OFFSET 0) AS n
	WHERE h.head = n.head AND h.seq = n.was AND h.hash = n.its RETURNING 1) SELECT pg_catalog.ln((count(*) = cardinality($1))::int) FROM w`
	pgStands = "SELECT " + pgNow + ", pg_catalog.ln((SELECT count(*) FROM dpproxy_ledger.heads WHERE head = 0 AND seq = $1 AND hash = $2)::int)"

	pgNow    = "(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint * 1000"
	pgAhead  = "INSERT INTO dpproxy_ledger.heads (head, seq, hash) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) ON CONFLICT (head) DO UPDATE SET seq = excluded.seq, hash = excluded.hash"
	pgNumber = "SELECT pg_catalog.setval('dpproxy_ledger.number', $1)"
	pgWrote  = "SELECT EXISTS (SELECT FROM dpproxy_ledger.chain WHERE request BETWEEN $1 AND $2)"
	pgInsert = "INSERT INTO dpproxy_ledger.chain (seq, kind, at, ds, holder, body, hash, request, head) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bytea[], $7::bytea[], $8::bytea[], $9::bigint[])"

	// Where all chains end, and of those that do not end as they were known to the rows from there on, as of one
	// moment. The sub-query is asked once for each chain, by the index, whatever the planner knows of the tables.
	pgEnds = "SELECT head, seq, hash FROM dpproxy_ledger.heads"
	pgEnd  = "SELECT 0::bigint, seq, hash FROM dpproxy_ledger.head" // of the tables' first version, which may be read, and no more
	pgNews = `SELECT h.head, h.seq, h.hash, r.seq, r.kind, r.at, r.ds, r.holder, r.body, r.hash
FROM dpproxy_ledger.heads AS h LEFT JOIN unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS k (head, seq, hash) ON k.head = h.head
	` + pgSince
	// The same of the chains that are asked for, with what pgBegun tells in each row.
	pgNewsOf = `WITH b (now, fence, number) AS MATERIALIZED (` + pgBegun + `)
SELECT h.head, h.seq, h.hash, r.seq, r.kind, r.at, r.ds, r.holder, r.body, r.hash, b.now, b.fence, b.number FROM b, unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS k (head, seq, hash)
	JOIN dpproxy_ledger.heads AS h ON h.head = k.head
	` + pgSince
	// The rows of chain h from where it is known to end, k, or of all of it. No index but that of the chains serves the
	// condition.
	pgSince = `LEFT JOIN LATERAL (SELECT c.seq, c.kind, c.at, c.ds, c.holder, c.body, c.hash FROM dpproxy_ledger.chain AS c
		WHERE (k.seq IS NULL OR k.seq <> h.seq OR k.hash <> h.hash) AND (c.head, c.seq) BETWEEN (h.head, coalesce(k.seq, 0)) AND (h.head, h.seq) ORDER BY c.head, c.seq OFFSET 0) AS r ON true
ORDER BY r.seq`

	pgCharge      = "UPDATE dpproxy_ledger.account" + store.ChargeUpdate
	pgAccounts    = "SELECT ds, scope, holder, " + store.AccountColumns + " FROM dpproxy_ledger.account"
	pgOpenAccount = "INSERT INTO dpproxy_ledger.account (ds, scope, holder, " + store.AccountColumns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT DO NOTHING"

	pgKeepRelease = "INSERT INTO dpproxy_ledger.release (id, charge, measure, noisy) VALUES ($1, $2, $3, $4)"
	pgWithdraw    = "UPDATE dpproxy_ledger.release SET measure = NULL WHERE id = $1"

	pgClaim = `
INSERT INTO dpproxy_ledger.claim AS c (key, owner, fence) SELECT k, $2::bigint, $3::bigint FROM unnest($1::bytea[]) AS k
ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, fence = excluded.fence
	WHERE c.owner = $2 OR ` + Settled + ` AND c.owner NOT IN (` + Alive + `)
RETURNING fence`
	pgClaimed = "SELECT 1 FROM dpproxy_ledger.claim WHERE key = $1 AND owner = $2 AND fence = $3"
	// The same for a batch that presumes: what touches no row divides by zero.
	pgClaimSure   = "WITH w AS (" + pgClaim + ") SELECT 1 / (count(*) = cardinality($1))::int FROM w"
	pgClaimedSure = "WITH w AS (" + pgClaimed + ") SELECT 1 / count(*) FROM w"

	// Not by a join: claims come and go, so that the planner takes the table for an empty one, and would read the whole
	// of an index that is full of those that have gone.
	pgUnclaim = "DELETE FROM dpproxy_ledger.claim WHERE key = ANY ($1::bytea[]) AND owner = $2 AND key || pg_catalog.int8send(fence) = ANY ($3::bytea[])"

	pgRows     = "SELECT seq, kind, at, ds, holder, body, hash FROM dpproxy_ledger.chain ORDER BY seq"
	pgReleases = "SELECT id, charge, measure, noisy FROM dpproxy_ledger.release"
	pgBody     = "SELECT body FROM dpproxy_ledger.chain WHERE seq = $1"
	pgNoisy    = "SELECT noisy FROM dpproxy_ledger.release WHERE id = $1"
	pgCharges  = "SELECT seq, at, holder, body FROM dpproxy_ledger.chain WHERE kind = 6 AND ds = $1 AND seq <= $2 ORDER BY seq DESC LIMIT $3"
	// Of one holder's it reads no others, who may have charged a million times since.
	pgChargesOf = "SELECT seq, at, holder, body FROM dpproxy_ledger.chain WHERE kind = 6 AND (ds, holder, seq) BETWEEN ($1, $4, 0) AND ($1, $4, $2) ORDER BY ds DESC, holder DESC, seq DESC LIMIT $3"

	// A batch's commit that does not wait for its flush, and a statement whose transaction's commit waits for the flush
	// of all that was committed before. Where all of that is flushed already, and there is no standby to wait for, it
	// writes nothing.
	pgEarly   = "SELECT pg_catalog.set_config('synchronous_commit', 'off', true)"
	pgDurable = `SELECT CASE WHEN pg_catalog.pg_current_wal_flush_lsn() < pg_catalog.pg_current_wal_insert_lsn() OR pg_catalog.current_setting('synchronous_standby_names') <> ''
	THEN ` + pgEmit + ` END`
	pgEmit = "pg_catalog.pg_logical_emit_message(true, 'dpproxy', '')"
	// Whether all that a snapshot shows is flushed, which on a standby it is; and a transaction whose commit flushes
	// it, without a standby's word.
	pgFlushed = "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN true ELSE pg_catalog.pg_current_wal_flush_lsn() >= pg_catalog.pg_current_wal_insert_lsn() END"
	pgLocal   = "SELECT pg_catalog.set_config('synchronous_commit', 'local', true)"
	pgFlush   = "SELECT " + pgEmit

	// What a server must be for its word that a row is durable to be true.
	pgPromises = `SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit'),
	pg_catalog.pg_is_in_recovery(), current_setting('server_encoding'), pg_catalog.pg_backend_pid()::pg_catalog.int8`

	// Whether a role that runs what analysts ask can reach the ledger: by a privilege, or by becoming its owner.
	pgReach = `SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'dpproxy_ledger' AND c.relkind IN ('r', 'S') AND (pg_catalog.pg_has_role($1, c.relowner, 'MEMBER')
	OR c.relkind = 'r' AND pg_catalog.has_table_privilege($1, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER'))
ORDER BY 1 LIMIT 1`
)

// pgChargeSure is pgCharge of many accounts in one statement, each of them with its own cost, for a batch that
// presumes: where one does not hold its cost it divides by zero.
var pgChargeSure = func() string {
	set, where, _ := strings.Cut(store.ChargeUpdate, "\nWHERE ")
	its := strings.NewReplacer("$1", "m1", "$2", "m2", "$3", "m3", "$4", "m4", "$5", "m5", "$6", "m6", "$7", "m7", "$8", "m8", "$9", "m9")
	return "WITH w AS (UPDATE dpproxy_ledger.account" + its.Replace(set) +
		" FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[])" +
		" AS m (m1, m2, m3, m4, m5, m6, m7, m8, m9) WHERE " + its.Replace(where) +
		" RETURNING 1) SELECT 1 / (count(*) = cardinality($1))::int FROM w"
}()
