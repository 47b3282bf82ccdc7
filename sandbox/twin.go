package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// twin is the Engine of a PostgreSQL server: for each dataset an empty database, made from the policy and kept in step
// with it. Outer queries run there under a role that owns nothing, in read-only transactions that are rolled back;
// released tables come with the query as array parameters, so nothing is left behind.
type twin struct {
	options Options
	config  *pgxpool.Config // of the URL; its database is the name, or the beginning of the names
	session string          // the role that outer queries run under
	warned  atomic.Bool     // of unbounded temporary files

	mu        sync.RWMutex
	limits    limits
	policy    *policy.Policy
	databases map[string]*twinDatabase // by dataset
	closed    bool
}

// twinDatabase is the twin of one dataset.
type twinDatabase struct {
	name    string
	pool    *pgxpool.Pool
	catalog twinCatalog
}

// Open starts the engine that a policy's sandbox URL names. It has no catalog yet.
func Open(ctx context.Context, url string, options Options) (Engine, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return Start(ctx, options)
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the sandbox's url is not one that PostgreSQL's clients read") // its text may hold a password
	}
	name := config.ConnConfig.Database
	if name == "" || name == "postgres" || name == "template1" {
		return nil, errors.New("the sandbox's url must name a database of its own, such as dpproxy_twin")
	}
	options = options.withDefaults()
	t := &twin{options: options, limits: options.limits(nil), config: config, session: shorten(name, "_session"), databases: map[string]*twinDatabase{}}
	return t, nil
}

func (t *twin) Places() int { return twinConnections }

func (t *twin) Dialect() dialect.Dialect { return dialect.PostgreSQL }

// Catalog makes the twin of each dataset, or brings it in step with the policy.
func (t *twin) Catalog(ctx context.Context, p *policy.Policy) error {
	made := map[string]*twinDatabase{}
	for _, d := range p.Datasets {
		name := t.config.ConnConfig.Database
		if len(p.Datasets) > 1 {
			name = shorten(name, "_"+d.ID)
		}
		catalog, err := t.maintain(ctx, name, d)
		if err != nil {
			return fmt.Errorf("twin database %s: %w", name, err)
		}
		made[d.ID] = &twinDatabase{name: name, catalog: catalog}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	for id, db := range made {
		if old := t.databases[id]; old != nil && old.name == db.name {
			db.pool = old.pool
			delete(t.databases, id)
			continue
		}
		pool, err := t.connect(ctx, db.name)
		if err != nil {
			return fmt.Errorf("twin database %s: %w", db.name, err)
		}
		db.pool = pool
	}
	for _, left := range t.databases {
		go left.pool.Close() // it waits for the queries that still run there
	}
	t.databases, t.policy, t.limits = made, p, t.options.limits(p)
	return nil
}

// shorten joins two parts of a name so that PostgreSQL does not cut it.
func shorten(name, suffix string) string {
	const most = 63
	if len(name)+len(suffix) <= most {
		return name + suffix
	}
	number := "_" + itoa(numbers{used: map[int64]bool{}}.of(name+suffix))
	return (name + suffix)[:most-len(number)] + number
}

// Load replaces the rows of a public table. Queries that run meanwhile see the earlier rows.
func (t *twin) Load(ctx context.Context, dataset string, public Table) error {
	db, _, _, err := t.database(dataset)
	if err != nil {
		return err
	}
	if !public.Rows.Valid() {
		return errBroken
	}
	return t.copyIn(ctx, db.name, public)
}

func (t *twin) Query(ctx context.Context, s Session, q outer.Query, tables []Table) (privacy.Released[Rows], error) {
	rows, err := t.ask(ctx, askQuery, s, q, tables)
	if err != nil {
		return privacy.Released[Rows]{}, err
	}
	// The rows were computed in a database that holds public tables alone, from them and from released tables.
	return privacy.Published(rows), nil
}

func (t *twin) Describe(ctx context.Context, s Session, q outer.Query, tables []Table) ([]Column, error) {
	rows, err := t.ask(ctx, askDescribe, s, q, tables)
	return rows.Columns, err
}

// ask runs or binds one query on a connection of the dataset's twin, at most to the deadline.
func (t *twin) ask(ctx context.Context, what kind, s Session, q outer.Query, tables []Table) (Rows, error) {
	db, p, l, err := t.database(s.Database)
	if err != nil {
		return Rows{}, err
	}
	if s.Time > 0 {
		l.time = min(l.time, s.Time)
	}
	var size int64
	for _, given := range tables {
		size += given.Rows.Value().Size()
	}
	if size > int64(l.memory/2) {
		return Rows{}, l.large()
	}
	if s.Took != nil {
		defer func(begun time.Time) { s.Took(time.Since(begun)) }(time.Now())
	}
	limited, cancel := context.WithTimeoutCause(ctx, l.time, l.late(s)) // its processor may be another machine's
	defer cancel()
	c := &composer{session: s, policy: p, catalog: db.catalog, blank: what == askDescribe}
	text := c.compose(q, tables)
	conn, err := db.pool.Acquire(limited)
	if err != nil {
		return Rows{}, t.fault(limited, s, l, err)
	}
	defer conn.Release()
	run := &twinRun{conn: conn.Conn().PgConn(), mostRows: t.options.MostRows, mostBytes: int(l.memory / 2), time: l.time, zone: c.zone()}
	var rows Rows
	if what == askDescribe {
		rows.Columns, err = run.describe(limited, s, text)
	} else {
		rows, err = run.query(limited, s, text, c.args)
	}
	if err != nil {
		return Rows{}, t.fault(limited, s, l, err)
	}
	return rows, nil
}

func (t *twin) database(dataset string) (*twinDatabase, *policy.Policy, limits, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return nil, nil, limits{}, errClosed
	}
	db := t.databases[dataset]
	if db == nil {
		return nil, nil, limits{}, errBroken
	}
	return db, t.policy, t.limits, nil
}

// Close ends all connections, after the queries that they run.
func (t *twin) Close() error {
	t.mu.Lock()
	databases := t.databases
	t.databases, t.closed = nil, true
	t.mu.Unlock()
	for _, db := range databases {
		db.pool.Close()
	}
	return nil
}

// twinConnections is how many queries run at a time in one twin.
const twinConnections = 4

// connect makes the pool whose connections analysts' queries run on. Each is bound to the session's role and to its
// limits before the first query; a query's own transaction is rolled back, so none can change that.
func (t *twin) connect(ctx context.Context, name string) (*pgxpool.Pool, error) {
	config := t.config.Copy()
	config.ConnConfig.Database = name
	config.MaxConns, config.MinConns = twinConnections, 0
	config.ConnConfig.RuntimeParams["application_name"] = "dpproxy sandbox"
	config.ConnConfig.BuildFrontend = boundedFrontend
	config.ConnConfig.BuildContextWatcherHandler = cancelling
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return t.bind(ctx, conn) }
	return pgxpool.NewWithConfig(ctx, config)
}

// settings are those of every connection for outer queries.
func (t *twin) settings() [][2]string {
	return [][2]string{
		{"default_transaction_read_only", "on"}, {"statement_timeout", strconv.FormatInt(t.options.Deadline.Milliseconds(), 10)},
		{"lock_timeout", strconv.FormatInt(t.options.Deadline.Milliseconds(), 10)},
		{"idle_in_transaction_session_timeout", strconv.FormatInt(2*t.options.Deadline.Milliseconds(), 10)},
		{"work_mem", "16MB"}, {"hash_mem_multiplier", "1"}, {"max_parallel_workers_per_gather", "0"}, {"jit", "off"},
		{"client_min_messages", "error"}, {"DateStyle", "ISO, MDY"}, {"IntervalStyle", "postgres"}, {"extra_float_digits", "1"},
		{"bytea_output", "hex"}, {"client_encoding", "UTF8"}, {"standard_conforming_strings", "on"}, {"xmloption", "content"},
		{"lc_time", "C"}, {"lc_numeric", "C"}, {"lc_monetary", "C"}, {"row_security", "on"}, {"search_path", "public"},
	}
}

// bind sets a new connection's limits and then its role.
func (t *twin) bind(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range t.settings() {
		if _, err := conn.Exec(ctx, "SELECT pg_catalog.set_config($1, $2, false)", pgx.QueryExecModeExec, s[0], s[1]); err != nil {
			return fmt.Errorf("setting %s: %w", s[0], err)
		}
	}
	// Only a superuser, or a role to whom one granted it, may bound the files that sorts spill into.
	_, _ = conn.Exec(ctx, "SELECT pg_catalog.set_config('temp_file_limit', $1, false)", pgx.QueryExecModeExec, spillLimit)
	_, err := conn.Exec(ctx, "SET ROLE "+pgx.Identifier{t.session}.Sanitize(), pgx.QueryExecModeExec)
	return err
}

const spillLimit = "256MB"

// zone is the session's time zone, UTC where it names none that is known.
func (c *composer) zone() *time.Location {
	zone, err := time.LoadLocation(setting(c.session, "timezone", "UTC"))
	if err != nil {
		return time.UTC
	}
	return zone
}
