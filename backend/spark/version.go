package spark

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Tables of Iceberg and Delta have versions, each the rows of one moment, which a query may name:
//
//	SELECT … FROM `spark_catalog`.`shop`.`visits` VERSION AS OF 42 AS t
//
// Which version is current is looked up once for a statement and a table, by Ready, before anything is charged; every
// query of the statement then names that one (docs/adr/0151).
//
// Claim. All queries of a statement count rows of one version of each table, that which was current at a moment between
// the statement's admission and its charge; of versions, of their numbers and of their times nothing reaches an
// analyst, and no refusal and no price depends on them. Neighbours. Histories of the tables that differ by one unit's
// rows at every moment. Their numbers may differ in anything: a commit may hold that unit's rows alone. Proof. When a
// lookup is made depends on the statement's moment on the timetable, which is public (privacy rule 23), and on this
// process's clock. Whatever history there was, there is a current version, or none where nothing has been written yet
// (Iceberg), which is read as a table without rows; so there is a lookup's answer, a text and a plan for either of two
// neighbours. The rows of what was current at that moment differ by that unit's rows alone: each measure's sensitivity
// is as it was. The number is in the text that Spark gets, which is not the one that EXPLAIN shows
// (rewrite.Query.SQL); it is in no log line, no error, and no row of the ledger. What these have of it is the moment of
// the lookup, by this process's clock, not that of a commit. Limits. That a version is there as long as a statement
// takes is assumed, and said by check: Iceberg keeps them five days by itself, Delta seven. One that is gone before the
// charge is a plain error; one that is gone after it gives no groups (rule 5). A version of Iceberg has the columns
// that the table had when it was written, and where nothing has been written those that it has now: from a change of
// columns to the next commit, which may be one unit's, queries over what changed are planned or refused by the rows'
// history. That the owner commits at once after ALTER TABLE is assumed, and said by check; Delta's changes of columns
// are versions.

// versioned reports whether a table's format has versions.
func (t relation) versioned() bool { return t.provider == "iceberg" || t.provider == "delta" }

// reading is what a statement reads: of each table one version.
type reading struct {
	mu       sync.Mutex
	versions map[string]string // by keyOf; empty means nothing has been written yet
}

// Admit: see Backend. Where tables have versions the moment of a statement's rows is that of its admission.
func (b *DB) Admit(ctx context.Context, step time.Duration, of *policy.Policy) (asOf func(...rewrite.Query) int64, leave func(last time.Time), err error) {
	live, inner, err := b.Executor.Admit(ctx, step, of)
	if err != nil || !b.haveVersions(of) {
		return live, inner, err
	}
	moment := sync.OnceValue(b.begin)
	return func(...rewrite.Query) int64 { return moment() }, func(last time.Time) {
		inner(last)
		at := moment()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.reads, at)
	}, nil
}

// haveVersions reports whether any table of a policy has.
func (b *DB) haveVersions(of *policy.Policy) bool {
	for _, seen := range b.pins.All(of) {
		for _, t := range seen {
			if t.versioned() {
				return true
			}
		}
	}
	return false
}

// begin is the moment of a statement's rows, which no other statement has: what was drawn at one moment is of the same
// versions, and may be added up.
func (b *DB) begin() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest = max(b.latest+1, time.Now().UnixNano())
	b.reads[b.latest] = &reading{versions: map[string]string{}}
	return b.latest
}

// textOf is a query's text as its statement reads the tables.
func (b *DB) textOf(ctx context.Context, s *hive.Session, q rewrite.Query) (string, error) {
	r := &reading{versions: map[string]string{}}
	if q.AsOf() != 0 {
		b.mu.Lock()
		r = b.reads[q.AsOf()]
		b.mu.Unlock()
	}
	if r == nil {
		return "", errNoVersion
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range q.Tables() {
		at, _ := b.inspected(t)
		if _, known := r.versions[keyOf(t)]; known || !at.versioned() {
			continue
		}
		version, err := currentVersion(ctx, s, rewrite.Named(t, q.Dialect()), at.provider)
		if err != nil {
			return "", err
		}
		r.versions[keyOf(t)] = version
	}
	return q.Reading(func(t *policy.Table, name string) string {
		switch version, has := r.versions[keyOf(t)]; {
		case !has:
			return name
		case version == "":
			return "(SELECT * FROM " + name + " WHERE false)"
		default:
			return name + " VERSION AS OF " + version
		}
	}), nil
}

// currentVersion looks up the number of a table's current version; empty means nothing has been written yet.
func currentVersion(ctx context.Context, s *hive.Session, name, provider string) (version string, err error) {
	text := map[string]string{"iceberg": "SELECT snapshot_id FROM " + name + ".`refs` WHERE name = 'main'", "delta": "DESCRIBE HISTORY " + name + " LIMIT 1"}[provider]
	err = s.Query(ctx, text, func(r hive.Row) error {
		if version != "" || r[0].Kind != hive.Bigint || r[0].Null || r[0].Whole < 0 {
			return execute.ErrResult
		}
		version = strconv.FormatInt(r[0].Whole, 10)
		return nil
	})
	if err == nil && version == "" && provider == "delta" { // whose tables have one from the first
		err = execute.ErrResult
	}
	return version, err
}
