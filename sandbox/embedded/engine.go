// Package embedded is the sandbox of DuckDB child processes. The parent's half (engine.go, child.go) keeps what a child is
// to hold, sends it one query at a time (message.go, frame.go) and kills it when its time is over. The child's half
// (childmain.go, instance.go) bounds itself, fills a locked DuckDB in memory with the catalogs and the public tables of a
// dataset, and answers. PostgreSQL's functions that DuckDB has not, or has otherwise, are our own: Go functions
// (functions.go) and macros (macros.go).
//
// SELECT k, sum(n) FROM leaf_1 GROUP BY k comes here rewritten, as text in DuckDB's dialect, with the released table leaf_1.
// A request carries both; the child appends the rows to a temporary table, prepares the one SELECT, and its rows come back,
// each value in the type that PostgreSQL would give it. The sum of a numeric is num_sum over texts that keep every digit.
package embedded

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/catalog"
)

// engine is the Engine of DuckDB child processes. All that a child holds can be made again from here, so a child may
// be killed at any moment.
type engine struct {
	options sandbox.Options
	idle    chan *child // children that wait for work
	done    chan struct{}
	ahead   sync.Mutex // one child at a time is furnished ahead, so that the others answer

	mu       sync.Mutex
	limits   sandbox.Limits
	policy   *policy.Policy
	numbers  map[string]pgcatalog.Numbers        // by dataset, of the policy; made when they are asked for
	public   map[string]map[string]sandbox.Table // by dataset and name
	version  int64                               // grows with whatever a child is to hold
	versions map[string]int64                    // by dataset: when its public tables changed last
	catalog  int64                               // when the policy did
	closed   bool
	children []*child
}

// Start starts an embedded engine. It has no catalog yet.
func Start(ctx context.Context, options sandbox.Options) (sandbox.Engine, error) {
	options = options.WithDefaults()
	e := &engine{options: options, limits: options.Limits(nil), public: map[string]map[string]sandbox.Table{}, versions: map[string]int64{}}
	e.idle, e.done = make(chan *child, e.options.Children), make(chan struct{})
	for range e.options.Children {
		c := &child{options: e.options}
		e.children = append(e.children, c)
		e.idle <- c
		if err := c.start(); err != nil {
			_ = e.Close()
			return nil, err
		}
	}
	return e, ctx.Err()
}

func (e *engine) Slots() int { return e.options.Children }

func (e *engine) Dialect() dialect.Dialect { return dialect.DuckDB }

func (e *engine) Catalog(_ context.Context, p *policy.Policy) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.policy, e.limits, e.version = p, e.options.Limits(p), e.version+1
	e.catalog = e.version
	e.numbers = map[string]pgcatalog.Numbers{}
	return nil
}

func (e *engine) Numbers(dataset string) pgcatalog.Numbers {
	e.mu.Lock()
	defer e.mu.Unlock()
	have, known := e.numbers[dataset]
	if !known && e.numbers != nil {
		have = catalog.Numbers(e.policy, dataset)
		e.numbers[dataset] = have
	}
	return have
}

func (e *engine) Load(_ context.Context, dataset string, given ...sandbox.Table) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	tables := maps.Clone(e.public[dataset])
	if tables == nil {
		tables = map[string]sandbox.Table{}
	}
	for _, t := range given {
		if !t.Rows.Valid() {
			return sandbox.ErrBroken
		}
		tables[t.Qualified()] = t
	}
	e.version++
	e.public[dataset], e.versions[dataset] = tables, e.version
	go e.furnishAhead(dataset)
	return nil
}

// furnishAhead gives a dataset's public tables to the children that wait for work, one after another: the first statement that
// reads a million rows of parts and suppliers would wait a second for each child to take them in. Who is at work takes them in
// before its next query.
func (e *engine) furnishAhead(dataset string) {
	e.ahead.Lock()
	defer e.ahead.Unlock()
	for range e.options.Children {
		select {
		case c := <-e.idle:
			if open, version, _, err := e.open(c, dataset); err == nil && open != nil && e.furnish(context.Background(), c, open, version) != nil {
				e.restart(c)
			}
			e.idle <- c
		case <-e.done:
			return
		}
	}
}

func (e *engine) Query(ctx context.Context, s sandbox.Session, q outer.Query, tables []sandbox.Table) (privacy.Released[sandbox.Rows], error) {
	rows, err := e.ask(ctx, askQuery, s, q, tables)
	if err != nil {
		return privacy.Released[sandbox.Rows]{}, err
	}
	// The rows were computed in a process that holds released and public tables alone.
	return privacy.Published(rows), nil
}

func (e *engine) Describe(ctx context.Context, s sandbox.Session, q outer.Query, tables []sandbox.Table) ([]sandbox.Column, error) {
	if _, err := e.ask(ctx, askDescribe, s, q, tables); err != nil {
		return nil, err
	}
	return outerColumns(q), nil
}

// ask sends one query to a free child and waits for its answer, until it has taken its processor time.
func (e *engine) ask(ctx context.Context, what kind, s sandbox.Session, q outer.Query, tables []sandbox.Table) (sandbox.Rows, error) {
	var c *child
	select {
	case c = <-e.idle:
	case <-e.done:
		return sandbox.Rows{}, sandbox.ErrClosed
	case <-ctx.Done():
		return sandbox.Rows{}, context.Cause(ctx)
	}
	defer func() { e.idle <- c }()
	rows, err := e.askChild(ctx, c, what, s, q, tables)
	if errors.Is(err, errUnsent) { // the child had died while it was idle; another has taken its place
		rows, err = e.askChild(ctx, c, what, s, q, tables)
	}
	if errors.Is(err, errUnsent) {
		return sandbox.Rows{}, sandbox.ErrBroken
	}
	return rows, err
}

// askChild has one child run a query.
func (e *engine) askChild(ctx context.Context, c *child, what kind, s sandbox.Session, q outer.Query, tables []sandbox.Table) (sandbox.Rows, error) {
	open, version, limits, err := e.open(c, s.Database)
	if err != nil {
		return sandbox.Rows{}, err
	}
	if s.Time > 0 {
		limits.Time = min(limits.Time, s.Time)
	}
	r := &request{kind: what, dataset: s.Database, sql: q.SQL, texts: scalar.Literals{Now: time.Now(), Zone: s.Location(), Form: s.Form()}, columns: outerColumns(q)}
	if r.read = r.texts; s.Literals != nil {
		r.read = *s.Literals
	}
	for _, p := range q.Params {
		r.args = append(r.args, catalog.Parameter(s, p, r.texts.Now.UnixMicro()))
	}
	if r.tables = e.sessionTables(s, q, tables); sizeOf(r.tables) > int64(limits.Memory/2) {
		return sandbox.Rows{}, limits.Large()
	}
	if open != nil {
		if err := e.furnish(ctx, c, open, version); err != nil {
			return sandbox.Rows{}, e.failure(ctx, c, s, limits, err)
		}
	}
	answer, err := answered(ctx, c, r, s, limits.Time)
	if err == nil && q.Careful != "" && !answer.worn && failedOnAValue(answer) && c.took < limits.Time {
		r.sql = q.Careful
		answer, err = answered(ctx, c, r, s, limits.Time-c.took)
	}
	if err != nil {
		return sandbox.Rows{}, e.failure(ctx, c, s, limits, err)
	}
	if answer.worn { // it kept so much of the last query's memory that the next one would have too little, or something broke in it
		e.renew(c, s.Database)
	}
	if answer.fault != nil {
		if answer.log != "" {
			e.options.Log.ErrorContext(ctx, "sandbox could not run a query", "error", answer.log)
		}
		if *answer.fault == *sandbox.ErrResources {
			return sandbox.Rows{}, limits.Large()
		}
		return sandbox.Rows{}, answer.fault
	}
	answer.rows.Columns = r.columns
	return answer.rows, nil
}

// answered is what a child makes of a session's query, which is told how long it took.
func answered(ctx context.Context, c *child, r *request, s sandbox.Session, limit time.Duration) (*reply, error) {
	answer, err := c.ask(ctx, r, limit)
	if s.Took != nil {
		s.Took(c.took)
	}
	return answer, err
}

// failedOnAValue tells whether a query failed on a value that one of its expressions was given.
func failedOnAValue(r *reply) bool {
	return r.fault != nil && strings.HasPrefix(r.fault.SQLState, "22")
}

// furnishTime is what a child has of the processor to take the catalog and the public tables of a dataset. No statement's time
// counts for it, whoever's comes first.
const furnishTime = 30 * time.Second

// furnish brings a dataset up to date in a child.
func (e *engine) furnish(ctx context.Context, c *child, open *request, version int64) error {
	opened, err := c.ask(ctx, open, furnishTime)
	if err != nil {
		return err
	}
	if opened.fault != nil {
		e.options.Log.Error("sandbox cannot be furnished", "error", opened.log)
		return sandbox.ErrBroken
	}
	c.holds[open.dataset] = version
	return nil
}

func sizeOf(tables []table) (bytes int64) {
	for _, t := range tables {
		bytes += t.rows.Size()
	}
	return bytes
}

// open returns the request that brings a dataset up to date in a child, nil where it is.
func (e *engine) open(c *child, dataset string) (*request, int64, sandbox.Limits, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, 0, sandbox.Limits{}, sandbox.ErrClosed
	}
	version := max(e.versions[dataset], e.catalog)
	if have, holds := c.holds[dataset]; holds && have == version {
		return nil, version, e.limits, nil
	}
	r := &request{kind: askOpen, dataset: dataset, memory: int64(e.limits.Memory), tables: wired(catalog.Dataset(e.policy, dataset))}
	for _, name := range slices.Sorted(maps.Keys(e.public[dataset])) {
		r.tables = append(r.tables, table{name: name, rows: e.public[dataset][name].Rows.Value()})
	}
	return r, version, e.limits, nil
}

// renew puts another process in a child's place, and furnishes it while the place is still that of who made it necessary.
func (e *engine) renew(c *child, dataset string) (closed bool) {
	if e.restart(c) {
		return true
	}
	open, version, _, err := e.open(c, dataset)
	if err == nil && open != nil {
		err = e.furnish(context.Background(), c, open, version)
	}
	if err != nil {
		return e.restart(c)
	}
	return false
}

func (e *engine) restart(c *child) (closed bool) {
	c.stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return true
	}
	if fault := c.start(); fault != nil {
		e.options.Log.Error("sandbox child does not start", "error", fault)
	}
	return false
}

// failure starts a child anew after it died or was killed, and says what the analyst may know of it.
func (e *engine) failure(ctx context.Context, c *child, s sandbox.Session, l sandbox.Limits, err error) error {
	switch closed := e.renew(c, s.Database); {
	case closed:
		return sandbox.ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errLate):
		return l.Late(s)
	case errors.Is(err, errUnsent), errors.Is(err, sandbox.ErrBroken):
		return err
	}
	e.options.Log.WarnContext(ctx, "sandbox child ended during a query", "error", err)
	return l.Large()
}

// Close ends the children and waits for the queries that they ran.
func (e *engine) Close() error {
	e.mu.Lock()
	children := e.children
	if !e.closed {
		close(e.done)
	}
	e.children, e.closed = nil, true
	for _, c := range children {
		c.kill()
	}
	e.mu.Unlock()
	for range children {
		(<-e.idle).stop()
	}
	return nil
}

// sessionTables are the tables of this query alone: the leaves and dp.* rows that came with it, and what the catalogs
// show of this session.
func (e *engine) sessionTables(s sandbox.Session, q outer.Query, given []sandbox.Table) []table {
	e.mu.Lock()
	p, public := e.policy, e.public[s.Database]
	e.mu.Unlock()
	var tables []table
	named := map[string]bool{}
	for _, t := range given {
		name := t.Qualified()
		if own, ok := public[name]; ok && own.Same(t) { // which every child has before it is asked
			continue
		}
		named[name] = true
		tables = append(tables, table{name: name, rows: t.Rows.Value()})
	}
	for _, name := range q.Relations {
		if rows, of := catalog.SessionRows(p, s, name); of && !named[name] {
			tables = append(tables, table{name: name, rows: rows})
		}
	}
	return tables
}

func outerColumns(q outer.Query) []sandbox.Column {
	columns := make([]sandbox.Column, len(q.Columns))
	for i, c := range q.Columns {
		columns[i] = sandbox.Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod}
	}
	return columns
}
