// Package spark has private rows behind Spark's Thrift server.
package spark

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/hive"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// readyWithin bounds the look at Spark before a charge: a plan of its takes some tenths of a second, the first ones
// seconds.
const readyWithin = 30 * time.Second

// errNoVersion says that nobody has looked up what a query of an earlier statement reads.
var errNoVersion = execute.Fault("the statement that a query is of is over")

// errOld says that a server has not the functions that are total there since version 4.
var errOld = execute.Fault("not Spark 4.0 or newer")

// DB is a private database behind Spark's Thrift server, whose tables are of Iceberg or Delta, which are read by
// version (version.go), or Parquet files that do not change (docs/adr/0149 and 0151). Each query has a session of its
// own, which dpproxy's settings are made in and which ends with it: nothing of one is left for the next, and none waits
// for another's.
//
// Spark enforces no constraint. So no text that takes one for proven ever runs (rule 11): units have the rows that the
// query itself leaves them.
type DB struct {
	execute.Executor
	config hive.Config
	words  dialect.Dialect
	weak   bool
	log    *slog.Logger

	pins inspect.Pins[map[string]relation] // of a dataset's policy, by relation

	mu     sync.Mutex
	reads  map[int64]*reading // by their moments, what statements that were admitted read
	latest int64              // of these moments
}

var _ backend.Backend = (*DB)(nil)

// Open connects to the database that a policy names.
func Open(ctx context.Context, p *policy.Policy, log *slog.Logger) (*DB, error) {
	link, err := linkOf(p.Backend.URL)
	if err != nil {
		return nil, err
	}
	b := &DB{config: link.config, words: dialect.SparkIn(link.catalog), weak: link.weak, log: log, reads: map[int64]*reading{}}
	b.Executor = execute.NewExecutor(b.Dialect, b.groups, p.Backend.Deadline, log, link.queries)
	return b, b.beside(ctx, 4*readyWithin, func(context.Context, *hive.Session) error { return nil })
}

// Dialect: see Backend.
func (b *DB) Dialect() dialect.Dialect { return b.words }

// Close: see Backend. Nothing stays open.
func (b *DB) Close() error { return nil }

// beside runs do in a session of its own, beside paid queries. Its error holds no text of the server's.
func (b *DB) beside(caller context.Context, limit time.Duration, do func(context.Context, *hive.Session) error) error {
	ctx, cancel := context.WithTimeout(caller, limit)
	defer cancel()
	s, err := b.session(ctx)
	if err == nil {
		err = do(ctx, s)
		s.Close()
	}
	switch {
	case err == nil || errors.Is(err, backend.ErrDrift) || errors.Is(err, backend.ErrUnplanned):
		return err
	case caller.Err() != nil:
		return backend.ErrUnavailable // the caller stopped waiting: that says nothing of the database
	case errors.Is(err, hive.ErrSettings):
		b.log.ErrorContext(caller, "the private database's settings are not those that queries need: Spark does not keep to those of a session", "cause", err)
		return backend.ErrSettings
	}
	b.log.WarnContext(caller, "the private database is not ready", "cause", execute.Cause(err))
	return backend.ErrUnavailable
}

// session opens a session with dpproxy's settings, of a server that is new enough.
func (b *DB) session(ctx context.Context) (*hive.Session, error) {
	s, err := hive.Settled(ctx, b.config)
	if err != nil {
		return nil, err
	}
	version := ""
	if err = s.Query(ctx, "SELECT version()", func(r hive.Row) error { version = r[0].Text; return nil }); err == nil {
		major, _, _ := strings.Cut(version, ".")
		if n, bad := strconv.Atoi(major); bad != nil || n < 4 {
			err = errOld
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Ready: see Backend. A query is planned by EXPLAIN, which reads no row: statistics of columns are not asked
// for.
func (b *DB) Ready(caller context.Context, queries ...rewrite.Query) error {
	return b.beside(caller, readyWithin, func(ctx context.Context, s *hive.Session) error {
		if err := b.drifted(ctx, s, queries); err != nil {
			return err
		}
		texts := make([]string, len(queries))
		for i, q := range queries { // the versions of all of them before any is planned, which takes a while
			var err error
			if texts[i], err = b.textOf(ctx, s, q); err != nil {
				return err
			}
		}
		for i, q := range queries {
			if len(q.Required()) > 0 {
				return backend.ErrDrift
			}
			if err := plans(ctx, s, texts[i]); err != nil {
				if !errors.Is(err, backend.ErrUnplanned) {
					return err
				}
				b.log.ErrorContext(caller, "the private database does not plan a query; nothing was charged for it", "table", q.Table().Name)
				return backend.ErrUnplanned
			}
		}
		return nil
	})
}

// drifted holds the tables of queries against what was inspected.
func (b *DB) drifted(ctx context.Context, s *hive.Session, queries []rewrite.Query) error {
	looked := map[string]bool{}
	for _, q := range queries {
		for _, t := range q.Tables() {
			key := keyOf(t)
			was, known := b.inspected(t)
			if looked[key] || !known {
				continue
			}
			looked[key] = true
			now, err := catalogued(ctx, s, rewrite.Named(t, b.words))
			if err != nil {
				return err
			}
			if !now.same(was) {
				b.log.ErrorContext(ctx, "the private database's schema changed: run dpproxy check, then restart", "table", t.Name)
				return backend.ErrDrift
			}
			gone, err := now.gone(ctx, s)
			if err != nil {
				return err
			}
			if gone {
				b.log.ErrorContext(ctx, "the files of a table are not where the catalog says", "table", t.Name)
				return backend.ErrDrift
			}
		}
	}
	return nil
}

// plans has Spark plan a query, which it answers with the plan, or with a text that says why there is none.
func plans(ctx context.Context, s *hive.Session, text string) error {
	sound := false
	err := s.Query(ctx, "EXPLAIN "+text, func(r hive.Row) error {
		sound = sound || len(r) == 1 && strings.HasPrefix(r[0].Text, "== Physical Plan ==")
		return nil
	})
	var fault hive.Fault
	if errors.As(err, &fault) || err == nil && !sound {
		return backend.ErrUnplanned
	}
	return err
}

// groups runs a query, always in the form that enforces every bound.
func (b *DB) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	if len(query.Required()) > 0 {
		return nil, execute.ErrUnproven
	}
	s, err := b.session(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	text, err := b.textOf(ctx, s, query)
	if err != nil {
		return nil, err
	}
	into := execute.NewResults(query)
	if query.Keyed() {
		err = s.Query(ctx, text, func(r hive.Row) error { return addKey(into.Of[0], r) })
		return into.Groups(), err
	}
	row := into.Row()
	err = s.Query(ctx, text, func(r hive.Row) error {
		if len(r) != row.Width() {
			return execute.ErrResult
		}
		for i, v := range r {
			switch {
			case v.Null, i < len(row.Small) && v.Kind != hive.Int, i >= len(row.Small) && v.Kind != hive.Bigint:
				return execute.ErrResult
			case i < len(row.Small):
				row.Small[i] = int32(v.Whole)
			default:
				row.Counts[i-len(row.Small)] = v.Whole
			}
		}
		return into.AddRow(row)
	})
	return into.Groups(), err
}

func addKey(into *execute.Collector, r hive.Row) error {
	if len(r) != 2 || r[0].Kind != hive.Text || r[1].Kind != hive.Bigint || r[1].Null {
		return execute.ErrResult
	}
	if r[0].Null {
		return into.AddKey(nil, r[1].Whole)
	}
	key := strings.Clone(r[0].Text)
	return into.AddKey(&key, r[1].Whole)
}

// ReadPublic: see Backend. A moment's text has no zone; the session's is UTC.
func (b *DB) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return inspect.CopyTable(t, b.words, func(text string, add func([]*string) error) error {
		ctx, cancel := context.WithTimeout(ctx, execute.DefaultDeadline)
		defer cancel()
		s, err := b.session(ctx)
		if err != nil {
			return err
		}
		defer s.Close()
		return s.Query(ctx, text, func(r hive.Row) error {
			texts := make([]*string, len(r))
			for i, v := range r {
				switch {
				case v.Kind != hive.Text || len(r) != len(t.Columns):
					return execute.ErrResult
				case v.Null:
				case t.Columns[i].Type == policy.TimestampTZ:
					at := v.Text + "+00"
					texts[i] = &at
				default:
					texts[i] = &v.Text
				}
			}
			return add(texts)
		})
	})
}

// Adopt: see Backend.
func (b *DB) Adopt(p *policy.Policy) { b.pins.Adopt(p) }

// inspected is what Inspect saw of a table.
func (b *DB) inspected(t *policy.Table) (at relation, known bool) {
	seen, _ := b.pins.Of(t.Dataset)
	at, known = seen[keyOf(t)]
	return at, known
}

// relation is what Spark's catalog says of a relation.
type relation struct {
	columns     []column // none: it does not exist, or may not be seen
	kind        string   // MANAGED, EXTERNAL, VIEW
	provider    string   // in small letters
	location    string
	partitioned bool
}

type column struct{ name, kind string }

func (t relation) same(other relation) bool {
	return slices.Equal(t.columns, other.columns) && t.kind == other.kind && t.provider == other.provider && t.location == other.location
}

// noPath is the SQLSTATE of a path that does not exist.
const noPath = "42K03"

// gone reports whether the files of a table of Parquet are not there at all: Spark takes such a table for one without
// rows, and says nothing. Whether they are does not depend on rows; and where that may not be looked up, or a table's
// partitions lie elsewhere, they are taken to be there.
func (t relation) gone(ctx context.Context, s *hive.Session) (bool, error) {
	if t.provider != "parquet" || t.partitioned || t.location == "" {
		return false, nil
	}
	err := s.Query(ctx, "SELECT 1 FROM parquet."+dialect.Spark.QuoteAs(t.location)+" LIMIT 0", func(hive.Row) error { return nil })
	var fault hive.Fault
	if errors.As(err, &fault) {
		return fault.State == noPath, nil
	}
	return false, err
}

// catalogued reads the catalog: a row for each column, and after an empty one the table's own properties.
func catalogued(ctx context.Context, s *hive.Session, name string) (t relation, err error) {
	properties := false
	err = s.Query(ctx, "DESCRIBE TABLE EXTENDED "+name, func(r hive.Row) error {
		if len(r) != 3 || r[0].Kind != hive.Text || r[1].Kind != hive.Text {
			return execute.ErrResult
		}
		what, is := strings.Clone(r[0].Text), strings.Clone(r[1].Text)
		switch properties = properties || what == "" || strings.HasPrefix(what, "# "); {
		case !properties:
			t.columns = append(t.columns, column{what, is})
		case what == "# Partition Information":
			t.partitioned = true
		case what == "Type":
			t.kind = is
		case what == "Provider":
			t.provider = strings.ToLower(is)
		case what == "Location":
			t.location = is
		}
		return nil
	})
	var fault hive.Fault
	if errors.As(err, &fault) {
		return relation{}, nil // it does not exist, or may not be seen
	}
	return t, err
}
