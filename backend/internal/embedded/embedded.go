// Package embedded starts a DuckDB within this process, locks it once its data are there, and plans and runs what it is
// asked.
package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/internal/scratch"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Instance is a DB within this process. Once its data are there it is locked.
type Instance struct {
	Pool      *sql.DB
	aside     *sql.Conn     // on which Ready looks whether the engine answers
	Kept      kept          // what Ready has planned
	planning  chan struct{} // a place for each statement that Ready has planned now, also where nobody waits for it any more
	Directory string        // of what does not fit in memory
	remove    func() error
}

// kept are statements that are planned and have not run, the oldest first. Each has a connection that was opened for it
// and is closed after it: whether one of others' is free would depend on the rows that they read.
type kept struct {
	mu   sync.Mutex
	List []planned
}

// planned is a statement on the connection that planned it.
type planned struct {
	Text string
	conn *sql.Conn
	*sql.Stmt
}

// MaxKept is how many statements stay planned; beyond it the oldest are planned again when they run. What was planned
// and then not charged for goes so.
const MaxKept = 16

// maxPlanning is how many statements are planned at a time before they are charged for. DB does not look whether it is
// to stop while it plans: whoever cancels, or has waited long enough, leaves the plan to end by itself.
const maxPlanning = 8

// Settled are DB's settings, before any row is read. What is sorted and grouped beyond the memory goes to files in a
// directory of this process's own, which is gone with it (or with the next one's start, where it was killed): without
// one, a unit with enough rows would decide whether a query ends (privacy rule 24). The files are encrypted with a key
// that nobody keeps; DB calls the randomness of the module that is built in unsafe, so this is no more than a help
// against what a crash leaves behind. The other values are DB's own defaults: nothing but a new version of it could
// change them.
func Settled(directory string) []string {
	return []string{
		"SET GLOBAL TimeZone = 'UTC'", // text without a zone is UTC's
		"SET GLOBAL temp_directory = " + dialect.QuoteText(directory),
		"SET GLOBAL force_mbedtls_unsafe = true",
		"SET GLOBAL temp_file_encryption = true",
		fmt.Sprintf("SET GLOBAL threads = %d", runtime.GOMAXPROCS(0)),
		"SET GLOBAL default_collation = ''", "SET GLOBAL default_null_order = 'NULLS_LAST'", "SET GLOBAL default_order = 'ASCENDING'",
		"SET GLOBAL integer_division = false", "SET GLOBAL ieee_floating_point_ops = true", "SET GLOBAL old_implicit_casting = false",
		"SET GLOBAL preserve_insertion_order = true", "SET GLOBAL scalar_subquery_error_on_multiple_rows = true",
		"SET GLOBAL explain_output = 'all'", // with the plan before it is optimised (DB.shows)
		"SET GLOBAL autoload_known_extensions = false",
		"SET GLOBAL autoinstall_known_extensions = false",
		"SET GLOBAL allow_community_extensions = false",
	}
}

// Lockdown is run once the data are there.
var Lockdown = []string{
	"SET GLOBAL enable_external_access = false",
	"SET GLOBAL lock_configuration = true",
}

// Start starts a DB with its settings, which keeps what does not fit in memory in a directory below root.
func Start(ctx context.Context, root string) (*Instance, error) {
	connector, err := duckdb.NewConnector("", func(driver.ExecerContext) error { return nil })
	if err != nil {
		return nil, errors.New("the embedded DuckDB does not start")
	}
	const prefix = "dpproxy-spill-"
	scratch.Sweep(root, prefix)
	directory, remove, err := scratch.New(root, prefix)
	if err != nil {
		return nil, fmt.Errorf("there is no room for the files of large sorts: %w", err)
	}
	i := &Instance{Pool: sql.OpenDB(connector), Directory: directory, remove: remove, planning: make(chan struct{}, maxPlanning)}
	i.Pool.SetMaxIdleConns(0)
	if err := i.run(ctx, Settled(directory)); err != nil {
		i.Close()
		return nil, err
	}
	return i, nil
}

// run runs statements that settle the engine.
func (i *Instance) run(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := i.Pool.ExecContext(ctx, s); err != nil {
			if ctx.Err() != nil {
				return ctx.Err() // and nothing is wrong with the engine
			}
			return errors.New("DuckDB cannot be locked down")
		}
	}
	return nil
}

// Lock locks the engine, whose data are there.
func (i *Instance) Lock(ctx context.Context) error {
	if err := i.run(ctx, Lockdown); err != nil {
		return err
	}
	var err error
	if i.aside, err = i.Pool.Conn(ctx); err != nil {
		return backend.ErrUnavailable
	}
	return nil
}

// Close frees the embedded database, and removes what it left in files.
func (i *Instance) Close() error {
	if i.aside != nil {
		_ = i.aside.Close() // closed before, or for good
	}
	i.Kept.drop(0)
	return errors.Join(i.Pool.Close(), i.remove())
}

// drop closes the oldest until so many are left.
func (k *kept) drop(left int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.List) > left {
		k.List[0].close()
		k.List = k.List[1:]
	}
}

// take is a statement of the text that is planned, if there is one, the newest.
func (k *kept) take(text string) (p planned, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, p := range slices.Backward(k.List) {
		if p.Text == text {
			k.List = slices.Delete(k.List, i, i+1)
			return p, true
		}
	}
	return planned{}, false
}

func (p planned) close() {
	_ = p.Stmt.Close() // nothing is written
	_ = p.conn.Close()
}

// Plan plans a text on a connection of its own, and reads no row.
func (i *Instance) Plan(ctx context.Context, text string) (planned, error) {
	conn, err := i.Pool.Conn(ctx)
	if err != nil {
		return planned{}, err
	}
	statement, err := conn.PrepareContext(ctx, text)
	if err != nil {
		_ = conn.Close()
		return planned{}, err
	}
	return planned{text, conn, statement}, nil
}

// planBefore plans a text before its charge, and returns at the latest when ctx ends.
func (i *Instance) planBefore(ctx context.Context, text string) (planned, error) {
	return leftAt(ctx, i.planning, func() (planned, error) { return i.Plan(ctx, text) }, planned.close)
}

// leftAt runs f in one of some places and returns what it returns, or when ctx ends: f then goes on in its place, and
// what it comes to is closed.
func leftAt[T any](ctx context.Context, places chan struct{}, f func() (T, error), discard func(T)) (none T, err error) {
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		return none, ctx.Err()
	}
	type outcome struct {
		of  T
		err error
	}
	done := make(chan outcome)
	go func() {
		defer func() { <-places }()
		of, err := f()
		select {
		case done <- outcome{of, err}:
		case <-ctx.Done():
			if err == nil {
				discard(of)
			}
		}
	}()
	select {
	case o := <-done:
		return o.of, o.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// ReadyTo is Backend.Ready, where textOf is the text that a query runs as, now and later: what constraints prove does
// not change. It is planned here, before the charge, and once.
func (i *Instance) ReadyTo(caller context.Context, log *slog.Logger, queries []rewrite.Query, textOf func(rewrite.Query) (string, error)) error {
	ctx, cancel := context.WithTimeout(caller, execute.ReadyTimeout)
	defer cancel()
	if _, err := i.aside.ExecContext(ctx, "SELECT 1"); err != nil {
		if caller.Err() != nil {
			return backend.ErrUnavailable // the caller stopped waiting: that says nothing of the database
		}
		log.WarnContext(caller, "the private database is not ready", "cause", execute.Cause(err))
		return backend.ErrUnavailable
	}
	for _, q := range queries {
		text, err := textOf(q)
		var p planned
		if err == nil {
			p, err = i.planBefore(ctx, text)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return backend.ErrUnavailable
		case err != nil:
			log.ErrorContext(caller, "the private database does not plan a query; nothing was charged for it", "table", q.Table().Name, "cause", execute.Cause(err))
			return backend.ErrUnplanned
		}
		i.Kept.mu.Lock()
		i.Kept.List = append(i.Kept.List, p)
		i.Kept.mu.Unlock()
		i.Kept.drop(MaxKept)
	}
	return nil
}

// ask runs a text as it was planned before, or plans it. done ends what ran it.
func (i *Instance) ask(ctx context.Context, text string) (rows *sql.Rows, done func(), err error) {
	p, ok := i.Kept.take(text)
	if !ok {
		if p, err = i.Plan(ctx, text); err != nil {
			return nil, nil, err
		}
	}
	if rows, err = p.QueryContext(ctx); err != nil {
		p.close()
		return nil, nil, err
	}
	return rows, func() {
		_ = rows.Close() // what is wrong with them rows.Err has said
		p.close()
	}, nil
}

// Answer runs a query by one of its texts.
func (i *Instance) Answer(ctx context.Context, query rewrite.Query, text string) ([][]privacy.Group, error) {
	rows, done, err := i.ask(ctx, text)
	if err != nil {
		return nil, err
	}
	defer done()
	into := execute.NewResults(query)
	if query.Keyed() {
		err := execute.CollectKeys(rows, into.Of[0])
		return into.Groups(), err
	}
	row := into.Row()
	values := make([]any, row.Width())
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, execute.ErrResult
		}
		fits := true
		for i, v := range values {
			var ok bool
			if i < len(row.Small) {
				row.Small[i], ok = v.(int32)
			} else {
				row.Counts[i-len(row.Small)], ok = v.(int64)
			}
			fits = fits && ok
		}
		if !fits {
			return nil, execute.ErrResult
		}
		if err := into.AddRow(row); err != nil {
			return nil, err
		}
	}
	return into.Groups(), rows.Err()
}

// EachRow runs a query whose columns are all text.
func (i *Instance) EachRow(ctx context.Context, text string, add func([]*string) error, args ...any) error {
	rows, err := i.Pool.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		texts, into := inspect.TextRow(len(names))
		if err := rows.Scan(into...); err != nil {
			return execute.ErrResult
		}
		if err := add(texts); err != nil {
			return err
		}
	}
	return rows.Err()
}

// EachFull runs a query whose columns are all text, and never NULL.
func (i *Instance) EachFull(ctx context.Context, text string, add func([]string), args ...any) error {
	return i.EachRow(ctx, text, func(row []*string) error {
		full := make([]string, len(row))
		for at, v := range row {
			if v == nil {
				return execute.ErrResult
			}
			full[at] = *v
		}
		add(full)
		return nil
	}, args...)
}

// Attach writes the statement that attaches a DB file.
func Attach(file, as, key string, readOnly bool) string {
	options := []string{"TYPE duckdb"}
	if readOnly {
		options = append(options, "READ_ONLY")
	}
	if key != "" {
		options = append(options, "ENCRYPTION_KEY "+dialect.QuoteText(key))
	}
	return "ATTACH " + dialect.QuoteText(file) + " AS " + as + " (" + strings.Join(options, ", ") + ")"
}
