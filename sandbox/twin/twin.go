// Package twin is the sandbox of a PostgreSQL server (ADR 15): for each dataset a shadow database, which has the tables
// that the policy describes and none of their rows, public tables excepted. It makes these databases and keeps them in
// step with the policy (maintain.go, step.go), refuses servers, databases and roles that could hold or reach
// private rows (maintain.go), and runs outer queries under a role that owns nothing, in transactions that are read-only
// and rolled back.
//
// SELECT k, sum(n) FROM leaf_1 GROUP BY k comes here as PostgreSQL's own text over a released table. compose.go puts
// table expressions in front, WITH leaf_1 AS (SELECT … FROM ROWS FROM (unnest($1), unnest($2)) …), with a column's
// values as one array parameter each, and of catalogs what may be shown; run.go sends it in one round trip and reads
// the rows.
package twin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpproxy/dpproxy/internal/processor"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
	"github.com/dpproxy/dpproxy/sandbox/cluster"
)

// engine is the Engine of a PostgreSQL server: for each dataset an empty database, made from the policy and kept in
// step with it. Outer queries run there under a role that owns nothing, in read-only transactions that are rolled back;
// released tables come with the query as array parameters, so nothing is left behind.
type engine struct {
	options sandbox.Options
	config  *pgxpool.Config // of the URL; its database is the name, or the beginning of the names
	session string          // the role that outer queries run under
	server  *cluster.Server // nil if it is the owner's
	warned  atomic.Bool     // of unbounded temporary files

	mu        sync.RWMutex
	limits    sandbox.Limits
	policy    *policy.Policy
	databases map[string]*database // by dataset
	copies    map[string]copied    // of public tables, by dataset/schema.name: what this proxy put there last, unless another's was found there since
	changing  int                  // how many catalogs or copies are being changed
	changes   int64                // how many have begun to be
	closed    bool
}

// copied is a copy of a public table in a twin.
type copied struct {
	sandbox.Table
	mark string // copyIn's
}

// database is the twin of one dataset.
type database struct {
	name    string
	pool    *pgxpool.Pool
	catalog shapes
	numbers pgcatalog.Numbers
}

// Own is the engine of a cluster of this process's own, which it closes. It has no catalog yet.
func Own(server *cluster.Server, options sandbox.Options) (sandbox.Engine, error) {
	e, err := Open(server.URL(), options)
	if err != nil {
		return nil, err
	}
	e.(*engine).server = server
	return e, nil
}

// Open is the engine of the server that a URL names, with the database that becomes the twin. It has no catalog yet.
func Open(url string, options sandbox.Options) (sandbox.Engine, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("the sandbox's url is not one that PostgreSQL's clients read") // its text may hold a password
	}
	name := config.ConnConfig.Database
	if name == "" || name == "postgres" || name == "template1" {
		return nil, errors.New("the sandbox's url must name a database of its own, such as dpproxy_twin")
	}
	options = options.WithDefaults()
	t := &engine{options: options, limits: options.Limits(nil), config: config, session: shorten(name, "_session"), databases: map[string]*database{}, copies: map[string]copied{}}
	return t, nil
}

func (t *engine) Numbers(dataset string) pgcatalog.Numbers {
	t.mu.Lock()
	defer t.mu.Unlock()
	if db := t.databases[dataset]; db != nil {
		return db.numbers
	}
	return nil
}

func (t *engine) Slots() int {
	if t.server != nil {
		return ownConnections
	}
	return connections
}

// Catalog makes the twin of each dataset, or brings it in step with the policy.
func (t *engine) Catalog(ctx context.Context, p *policy.Policy) error {
	defer t.change()()
	if t.server != nil {
		t.server.Limit(t.options.Limits(p).Memory)
	}
	made := map[string]*database{}
	for _, d := range p.Datasets {
		name := t.config.ConnConfig.Database
		if len(p.Datasets) > 1 {
			name = shorten(name, "_"+d.ID)
		}
		own, numbers, err := t.maintain(ctx, name, d)
		if err != nil {
			return fmt.Errorf("twin database %s: %w", name, err)
		}
		made[d.ID] = &database{name: name, catalog: own, numbers: numbers}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return sandbox.ErrClosed
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
	t.databases, t.policy, t.limits = made, p, t.options.Limits(p)
	return nil
}

// shorten joins two parts of a name so that PostgreSQL does not cut it.
func shorten(name, suffix string) string {
	const most = 63
	if len(name)+len(suffix) <= most {
		return name + suffix
	}
	number := "_" + strconv.FormatInt(catalog.Oid(name+suffix), 10)
	return (name + suffix)[:most-len(number)] + number
}

// Load replaces the rows of public tables, one after another. Queries that run meanwhile see the earlier rows.
func (t *engine) Load(ctx context.Context, dataset string, tables ...sandbox.Table) error {
	db, _, _, err := t.database(dataset)
	if err != nil {
		return err
	}
	defer t.change()()
	for _, public := range tables {
		if !public.Rows.Valid() {
			return sandbox.ErrBroken
		}
		mark, err := t.copyIn(ctx, db.name, public)
		if err != nil {
			return err
		}
		t.mu.Lock()
		t.copies[dataset+"/"+public.Qualified()] = copied{public, mark}
		t.mu.Unlock()
	}
	return nil
}

// change notes that catalogs or copies begin to change; what it returns, that they have changed.
func (t *engine) change() (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing, t.changes = t.changing+1, t.changes+1
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.changing--
	}
}

// holds reports whether the twin's own copies are these, as far as this proxy knows, and nothing changes, as of that
// many changes; and how they are marked.
func (t *engine) holds(dataset string, public []sandbox.Table) (own []copied, ok bool, changes int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return own, t.changing == 0 && !slices.ContainsFunc(public, func(given sandbox.Table) bool {
		have, ok := t.copies[dataset+"/"+given.Qualified()]
		own = append(own, have)
		return !ok || !have.Same(given)
	}), t.changes
}

// forget is called when another proxy has put other copies in the place of these: they travel with each query that
// reads them, until they are put there again.
func (t *engine) forget(dataset string, copies []copied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range copies {
		if name := dataset + "/" + c.Qualified(); t.copies[name].mark == c.mark {
			delete(t.copies, name)
		}
	}
}

func (t *engine) Query(ctx context.Context, s sandbox.Session, q outer.Query, tables []sandbox.Table) (privacy.Released[sandbox.Rows], error) {
	rows, err := t.ask(ctx, nil, s, q, tables)
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	// The rows were computed in a database that holds public tables alone, from them and from released tables.
	return privacy.Published(rows), nil
}

func (t *engine) Describe(ctx context.Context, s sandbox.Session, q outer.Query, tables []sandbox.Table) (d sandbox.Description, err error) {
	_, err = t.ask(ctx, &d, s, q, tables)
	return d, err
}

// errGone says that a session ended while it was asked, with its server or by it. Asked again, another answers.
var errGone = errors.New("twin: the session is gone")

// ask runs or binds one query. Where the twin's copies of public tables are not those that are given with it, or come
// to be others while it runs, it reads these, which then travel with it. Of what this proxy does it knows; what others
// do that share the twin the query's own transaction tells.
func (t *engine) ask(ctx context.Context, describe *sandbox.Description, s sandbox.Session, q outer.Query, tables []sandbox.Table) (sandbox.Rows, error) {
	var public, others []sandbox.Table
	for _, given := range tables {
		if given.Schema == "" || given.Schema == "dp" {
			others = append(others, given)
		} else {
			public = append(public, given)
		}
	}
	if len(public) == 0 || q.Apart == "" {
		return t.send(ctx, describe, s, q, others, nil)
	}
	if own, ok, at := t.holds(s.Database, public); ok {
		rows, err := t.send(ctx, describe, s, q, others, own)
		if errors.Is(err, errTheirs) {
			t.forget(s.Database, own)
		} else if _, _, now := t.holds(s.Database, nil); now == at {
			return rows, err
		}
	}
	q.SQL = q.Apart
	return t.send(ctx, describe, s, q, tables, nil)
}

// errTheirs says that a query found other copies of public tables than those that it is to read.
var errTheirs = errors.New("twin: another proxy's copies of public tables")

// send runs or binds one query on a connection of the dataset's twin, at most to the deadline: again where a server of
// the engine's own has ended it, as it does all sessions when one is killed.
func (t *engine) send(ctx context.Context, describe *sandbox.Description, s sandbox.Session, q outer.Query, tables []sandbox.Table, own []copied) (sandbox.Rows, error) {
	until := time.Now().Add(t.patience(t.options.Limits(nil)))
	rows, err := t.sendOnce(ctx, describe, s, q, tables, own)
	for errors.Is(err, errGone) && t.server != nil && ctx.Err() == nil && time.Now().Before(until) {
		rows, err = t.sendOnce(ctx, describe, s, q, tables, own)
	}
	if errors.Is(err, errGone) {
		t.options.Log.ErrorContext(ctx, "twin could not be asked")
		err = sandbox.ErrBroken
	}
	return rows, err
}

func (t *engine) sendOnce(ctx context.Context, describe *sandbox.Description, s sandbox.Session, q outer.Query, tables []sandbox.Table, own []copied) (sandbox.Rows, error) {
	db, p, l, err := t.database(s.Database)
	if err != nil {
		return sandbox.Rows{}, err
	}
	if s.Time > 0 {
		l.Time = min(l.Time, s.Time)
	}
	var size int64
	for _, given := range tables {
		size += given.Rows.Value().Size()
	}
	if size > int64(l.Memory/2) {
		return sandbox.Rows{}, l.Large()
	}
	c := &composer{session: s, policy: p, catalog: db.catalog, blank: describe != nil}
	text := c.compose(q, tables)
	conn, err := t.acquire(ctx, db, s, l)
	if err != nil {
		return sandbox.Rows{}, t.fault(ctx, s, l, err)
	}
	defer conn.Release()
	limited, done := t.timed(ctx, conn.Conn().PgConn(), s, l)
	defer done()
	r := &run{conn: conn.Conn().PgConn(), maxRows: t.options.MaxRows, maxBytes: int(l.Memory / 2), time: t.patience(l), zone: s.Location()}
	if len(own) > 0 {
		r.theirs = theirs(own)
	}
	var rows sandbox.Rows
	if describe != nil {
		planned := slices.ContainsFunc(tables, func(given sandbox.Table) bool { return given.Schema == "" })
		*describe, err = r.describe(limited, s, q, text, c.args, planned)
	} else {
		rows, err = r.query(limited, s, text, c.args)
	}
	if errors.Is(err, errTheirs) || err != nil && limited.Err() == nil && r.others(limited) {
		return sandbox.Rows{}, errTheirs
	}
	if err != nil {
		return sandbox.Rows{}, t.fault(limited, s, l, err)
	}
	return rows, nil
}

// patience is how long a query may last by the clock. Of a server of its own the engine sees the processor time
// (timed).
func (t *engine) patience(l sandbox.Limits) time.Duration {
	if t.server != nil {
		return processor.Patience * l.Time
	}
	return l.Time
}

// acquire waits for a session, as long as a query may last. A server that starts again is waited for too.
func (t *engine) acquire(ctx context.Context, db *database, s sandbox.Session, l sandbox.Limits) (conn *pgxpool.Conn, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.patience(l), l.Late(s))
	defer cancel()
	for began := time.Now(); ; {
		if conn, err = db.pool.Acquire(ctx); err == nil || t.server == nil {
			return conn, err
		}
		// Before her time is over: it is not the query that takes it.
		if ctx.Err() == nil && time.Since(began) > t.patience(l)/2 {
			return nil, sandbox.ErrAway
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// timed is a context that ends when a session has taken the time of a query: of the processor where the server is the
// engine's own, else by the clock, since its processor may be another machine's. done says what it took to who asks,
// and ends a session of its own server that does not stop.
func (t *engine) timed(ctx context.Context, conn *pgconn.PgConn, s sandbox.Session, l sandbox.Limits) (limited context.Context, done func()) {
	begun, pid := time.Now(), int(conn.PID())
	limited, over := context.WithCancelCause(ctx)
	limited, stop := context.WithTimeoutCause(limited, t.patience(l), l.Late(s))
	before, unwatch := time.Duration(0), func() {}
	if t.server != nil {
		before, _ = processor.Time(pid)
		unwatch = processor.Watch(l.Time, func() (time.Duration, bool) {
			now, ok := processor.Time(pid)
			return now - before, ok
		}, func() { over(l.Late(s)) })
	}
	return limited, func() {
		unwatch()
		took := time.Since(begun)
		if t.server != nil && took > 50*time.Millisecond { // the system counts in hundredths of a second
			if now, ok := processor.Time(pid); ok {
				took = min(took, now-before)
			} else { // it was ended with the server, by no fault of the query's
				took = 0
			}
		}
		if s.Took != nil {
			s.Took(took)
		}
		if t.server != nil && conn.IsClosed() {
			go t.server.End(uint32(pid), 2*time.Second)
		}
		stop()
		over(nil)
	}
}

func (t *engine) database(dataset string) (*database, *policy.Policy, sandbox.Limits, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.closed {
		return nil, nil, sandbox.Limits{}, sandbox.ErrClosed
	}
	db := t.databases[dataset]
	if db == nil {
		return nil, nil, sandbox.Limits{}, sandbox.ErrBroken
	}
	return db, t.policy, t.limits, nil
}

// Close ends all connections, after the queries that they run.
func (t *engine) Close() error {
	t.mu.Lock()
	databases := t.databases
	t.databases, t.closed = nil, true
	t.mu.Unlock()
	for _, db := range databases {
		db.pool.Close()
	}
	if t.server != nil {
		return t.server.Close()
	}
	return nil
}

// connections is how many queries run at a time in one twin; ownConnections, where their memory is this machine's.
const (
	connections    = 4
	ownConnections = 2
)

// connect makes the pool whose connections analysts' queries run on. Each is bound to the session's role and to its
// limits before the first query; a query's own transaction is rolled back, so none can change that.
func (t *engine) connect(ctx context.Context, name string) (*pgxpool.Pool, error) {
	config := t.config.Copy()
	config.ConnConfig.Database = name
	config.MaxConns, config.MinConns = int32(t.Slots()), 0
	config.ConnConfig.RuntimeParams["application_name"] = "dpproxy sandbox"
	config.ConnConfig.BuildFrontend = boundedFrontend
	config.ConnConfig.BuildContextWatcherHandler = cancelling
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return t.bind(ctx, conn) }
	return pgxpool.NewWithConfig(ctx, config)
}

// settings are those of every connection for outer queries.
func (t *engine) settings() [][2]string {
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
func (t *engine) bind(ctx context.Context, conn *pgx.Conn) error {
	for _, s := range t.settings() {
		if _, err := conn.Exec(ctx, "SELECT pg_catalog.set_config($1, $2, false)", pgx.QueryExecModeExec, s[0], s[1]); err != nil {
			return fmt.Errorf("setting %s: %w", s[0], err)
		}
	}
	// Only a superuser, or a role to whom one granted it, may bound the files that sorts spill into.
	_, _ = conn.Exec(ctx, "SELECT pg_catalog.set_config('temp_file_limit', $1, false)", pgx.QueryExecModeExec, spillLimit)
	if _, err := conn.PgConn().Prepare(ctx, namesStatement, setNames, nil); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, "SET ROLE "+pgx.Identifier{t.session}.Sanitize(), pgx.QueryExecModeExec)
	return err
}

const spillLimit = "256MB"
