package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
)

// Options set the limits of the embedded engine. Zero values take the defaults.
type Options struct {
	Log          *slog.Logger
	Children     int           // child processes, each running one query at a time; default 2
	Deadline     time.Duration // of one query; default 10 s
	AddressSpace uint64        // bytes that a child may reserve, used or not; default 2.5 GiB and Memory
	Memory       uint64        // bytes that one query may take beside what the child holds anyway; default 512 MiB
	MostRows     int           // rows of an answer; default 1,000,000
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Children <= 0 {
		o.Children = 2
	}
	if o.Deadline <= 0 {
		o.Deadline = 10 * time.Second
	}
	if o.Memory == 0 {
		o.Memory = 512 << 20
	}
	if o.AddressSpace == 0 {
		o.AddressSpace = 5<<29 + o.Memory
	}
	if o.MostRows <= 0 {
		o.MostRows = 1_000_000
	}
	return o
}

// The errors of a query that had to be ended. The engine's own text is never relayed.
var (
	errDeadline  = &scalar.Error{SQLState: "57014", Message: "canceling statement: the query over released answers took too long"}
	errResources = &scalar.Error{SQLState: "54000", Message: "the query over released answers needs more memory than it may use"}
	errBroken    = &scalar.Error{SQLState: "XX000", Message: "the query over released answers could not be run"}
	errClosed    = &scalar.Error{SQLState: "57P01", Message: "the sandbox is shut down"}
)

// embedded is the Engine of DuckDB child processes. All that a child holds can be made again from here, so a child may
// be killed at any moment.
type embedded struct {
	options Options
	idle    chan *child // children that wait for work
	done    chan struct{}

	mu       sync.Mutex
	limits   limits
	policy   *policy.Policy
	public   map[string]map[string]Table // by dataset and name
	version  int64                       // of what datasets hold
	closed   bool
	children []*child
}

// limits are what one query may take: the policy's, where it has any, else those of the engine's options.
type limits struct {
	time   time.Duration // of the processor
	memory uint64
}

func (o Options) limits(p *policy.Policy) limits {
	l := limits{o.Deadline, o.Memory}
	if p != nil && p.Server.Limits.StatementCPU > 0 {
		l.time = p.Server.Limits.StatementCPU
	}
	if p != nil && p.Server.Limits.StatementMemory > 0 {
		l.memory = uint64(p.Server.Limits.StatementMemory)
	}
	return l
}

// late is the error of a query that took more processor time than there was for it.
func (l limits) late(s Session) error {
	whole := l.time
	if s.OfTime > 0 {
		whole = s.OfTime
	}
	return &scalar.Error{SQLState: "57014", Message: fmt.Sprintf("canceling statement: the query over released answers took more than its %s of processor time (server.limits.statement_cpu)", whole)}
}

// large is the error of a query that needed more memory than it may take.
func (l limits) large() error {
	return &scalar.Error{SQLState: errResources.SQLState, Message: fmt.Sprintf("%s: %s (server.limits.statement_memory)", errResources.Message, policy.SizeText(int64(l.memory)))}
}

// Size is about how many bytes rows take in memory.
func (r Rows) Size() (bytes int64) {
	for _, row := range r.Data {
		bytes += rowSize(row)
	}
	return bytes
}

// RowSize is about how many bytes a row of so many small values takes: a slice, and an interface and a word a value.
func RowSize(columns int) int { return 24 + 24*columns }

// rowSize counts what the larger values hold too.
func rowSize(row []policy.Value) (bytes int64) {
	bytes = int64(RowSize(len(row)))
	for _, v := range row {
		switch v := v.(type) {
		case string:
			bytes += int64(len(v))
		case []policy.Value:
			bytes += rowSize(v)
		case policy.Numeric:
			if v.Coefficient != nil {
				bytes += 40 + int64(v.Coefficient.BitLen()/8)
			}
		}
	}
	return bytes
}

// Start starts an embedded engine. It has no catalog yet.
func Start(ctx context.Context, options Options) (Engine, error) {
	options = options.withDefaults()
	e := &embedded{options: options, limits: options.limits(nil), public: map[string]map[string]Table{}, version: 1}
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

func (e *embedded) Places() int { return e.options.Children }

func (e *embedded) Dialect() dialect.Dialect { return dialect.DuckDB }

func (e *embedded) Catalog(_ context.Context, p *policy.Policy) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.policy, e.limits, e.version = p, e.options.limits(p), e.version+1
	return nil
}

func (e *embedded) Load(_ context.Context, dataset string, t Table) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !t.Rows.Valid() {
		return errBroken
	}
	tables := maps.Clone(e.public[dataset])
	if tables == nil {
		tables = map[string]Table{}
	}
	tables[qualified(t.Schema, t.Name)] = t
	e.public[dataset], e.version = tables, e.version+1
	return nil
}

func (e *embedded) Query(ctx context.Context, s Session, q outer.Query, tables []Table) (privacy.Released[Rows], error) {
	rows, err := e.ask(ctx, askQuery, s, q, tables)
	if err != nil {
		return privacy.Released[Rows]{}, err
	}
	// The rows were computed in a process that holds released and public tables alone.
	return privacy.Published(rows), nil
}

func (e *embedded) Describe(ctx context.Context, s Session, q outer.Query, tables []Table) ([]Column, error) {
	if _, err := e.ask(ctx, askDescribe, s, q, tables); err != nil {
		return nil, err
	}
	return outerColumns(q), nil
}

// ask sends one query to a free child and waits for its answer, until it has taken its processor time.
func (e *embedded) ask(ctx context.Context, what kind, s Session, q outer.Query, tables []Table) (Rows, error) {
	var c *child
	select {
	case c = <-e.idle:
	case <-e.done:
		return Rows{}, errClosed
	case <-ctx.Done():
		return Rows{}, context.Cause(ctx)
	}
	defer func() { e.idle <- c }()
	rows, err := e.askChild(ctx, c, what, s, q, tables)
	if errors.Is(err, errUnsent) { // the child had died while it was idle; another has taken its place
		rows, err = e.askChild(ctx, c, what, s, q, tables)
	}
	if errors.Is(err, errUnsent) {
		return Rows{}, errBroken
	}
	return rows, err
}

// askChild has one child run a query.
func (e *embedded) askChild(ctx context.Context, c *child, what kind, s Session, q outer.Query, tables []Table) (Rows, error) {
	open, version, limits, err := e.open(c, s.Database)
	if err != nil {
		return Rows{}, err
	}
	if s.Time > 0 {
		limits.time = min(limits.time, s.Time)
	}
	r := &request{kind: what, dataset: s.Database, sql: q.SQL, zone: setting(s, "timezone", "UTC"),
		now: time.Now().UnixMicro(), columns: outerColumns(q)}
	for _, p := range q.Params {
		r.args = append(r.args, parameter(s, p, r.now))
	}
	if r.tables = e.sessionTables(s, q, tables); sizeOf(r.tables) > int64(limits.memory/2) {
		return Rows{}, limits.large()
	}
	if open != nil {
		if err := e.furnish(ctx, c, open, version); err != nil {
			return Rows{}, e.failure(ctx, c, s, limits, err)
		}
	}
	answer, err := c.ask(ctx, r, limits.time)
	if s.Took != nil {
		s.Took(c.took)
	}
	if err != nil {
		return Rows{}, e.failure(ctx, c, s, limits, err)
	}
	if answer.worn { // it kept so much of the last query's memory that the next one would have too little, or something broke in it
		e.renew(c, s.Database)
	}
	if answer.fault != nil {
		if answer.log != "" {
			e.options.Log.Error("sandbox could not run a query", "error", answer.log)
		}
		if *answer.fault == *errResources {
			return Rows{}, limits.large()
		}
		return Rows{}, answer.fault
	}
	answer.rows.Columns = r.columns
	return answer.rows, nil
}

// furnishTime is what a child has of the processor to take the catalog and the public tables of a dataset. No statement's time
// counts for it, whoever's comes first.
const furnishTime = 30 * time.Second

// furnish brings a dataset up to date in a child.
func (e *embedded) furnish(ctx context.Context, c *child, open *request, version int64) error {
	opened, err := c.ask(ctx, open, furnishTime)
	if err != nil {
		return err
	}
	if opened.fault != nil {
		e.options.Log.Error("sandbox cannot be furnished", "error", opened.log)
		return errBroken
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
func (e *embedded) open(c *child, dataset string) (*request, int64, limits, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, 0, limits{}, errClosed
	}
	if c.holds[dataset] == e.version {
		return nil, e.version, e.limits, nil
	}
	r := &request{kind: askOpen, dataset: dataset, memory: int64(e.limits.memory), tables: catalogTables(e.policy, dataset)}
	for _, name := range slices.Sorted(maps.Keys(e.public[dataset])) {
		r.tables = append(r.tables, table{name: name, rows: e.public[dataset][name].Rows.Value()})
	}
	return r, e.version, e.limits, nil
}

// renew puts another process in a child's place, and furnishes it while the place is still that of who made it necessary.
func (e *embedded) renew(c *child, dataset string) (closed bool) {
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

func (e *embedded) restart(c *child) (closed bool) {
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
func (e *embedded) failure(ctx context.Context, c *child, s Session, l limits, err error) error {
	switch closed := e.renew(c, s.Database); {
	case closed:
		return errClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errLate):
		return l.late(s)
	case errors.Is(err, errUnsent), errors.Is(err, errBroken):
		return err
	}
	e.options.Log.Warn("sandbox child ended during a query", "error", err)
	return l.large()
}

// Close ends the children and waits for the queries that they ran.
func (e *embedded) Close() error {
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
func (e *embedded) sessionTables(s Session, q outer.Query, given []Table) []table {
	e.mu.Lock()
	p := e.policy
	e.mu.Unlock()
	var tables []table
	named := map[string]bool{}
	for _, t := range given {
		name := qualified(t.Schema, t.Name)
		named[name] = true
		tables = append(tables, table{name: name, rows: t.Rows.Value()})
	}
	for _, name := range q.Relations {
		if rows, of := sessionRows(p, s, name); of && !named[name] {
			tables = append(tables, table{name: name, rows: rows})
		}
	}
	return tables
}

func qualified(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

func outerColumns(q outer.Query) []Column {
	columns := make([]Column, len(q.Columns))
	for i, c := range q.Columns {
		columns[i] = Column{Name: c.Name, Type: c.Type, Typmod: c.Typmod}
	}
	return columns
}

// parameter is the value of a session parameter of an outer query.
func parameter(s Session, name string, now int64) string {
	switch name {
	case "user":
		return s.User
	case "database":
		return s.Database
	case "useroid":
		return itoa(roleOid(s.User))
	case "pid":
		return strconv.FormatUint(uint64(s.PID), 10)
	case "now":
		return strconv.FormatInt(now, 10)
	case "zone":
		return setting(s, "timezone", "UTC")
	case "version":
		return "PostgreSQL " + setting(s, "server_version", "15.0 (dpproxy)")
	}
	return setting(s, name, "")
}

func setting(s Session, name, otherwise string) string {
	if v, ok := s.Settings[name]; ok {
		return v
	}
	return otherwise
}
