package backend

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/internal/scratch"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// DuckDB is an embedded private database: a DuckDB file, attached read-only, or files read into memory at the start. Its
// tables lie in the catalog dialect.Catalog, outside the search path. Once they are there the engine is locked: no file,
// no extension, no setting can be reached from SQL.
type DuckDB struct {
	db    *sql.DB
	aside *sql.Conn // of Ready: whether a connection of paid queries is free depends on rows
	executor
	log       *slog.Logger
	directory string // of what does not fit in memory
	remove    func() error
	leftOut   []leftOut   // of the files
	unique    []uniqueKey // what constraints prove; the schema cannot change any more
}

var _ Backend = (*DuckDB)(nil)

// settled are DuckDB's settings, before any row is read. What is sorted and grouped beyond the memory goes to files in a
// directory of this process's own, which is gone with it (or with the next one's start, where it was killed): without one, a unit with enough rows would decide whether a query
// ends (privacy rule 24). The files are encrypted with a key that nobody keeps; DuckDB calls the randomness of the module that
// is built in unsafe, so this is no more than a help against what a crash leaves behind. The other values are DuckDB's own
// defaults: nothing but a new version of it could change them.
func settled(directory string) []string {
	return []string{
		"SET GLOBAL TimeZone = 'UTC'", // text without a zone is UTC's
		"SET GLOBAL temp_directory = " + dialect.QuoteText(directory),
		"SET GLOBAL force_mbedtls_unsafe = true",
		"SET GLOBAL temp_file_encryption = true",
		fmt.Sprintf("SET GLOBAL threads = %d", runtime.GOMAXPROCS(0)),
		"SET GLOBAL default_collation = ''", "SET GLOBAL default_null_order = 'NULLS_LAST'", "SET GLOBAL default_order = 'ASCENDING'",
		"SET GLOBAL integer_division = false", "SET GLOBAL ieee_floating_point_ops = true", "SET GLOBAL old_implicit_casting = false",
		"SET GLOBAL preserve_insertion_order = true", "SET GLOBAL scalar_subquery_error_on_multiple_rows = true",
		"SET GLOBAL autoload_known_extensions = false",
		"SET GLOBAL autoinstall_known_extensions = false",
		"SET GLOBAL allow_community_extensions = false",
	}
}

// lockdown is run once the data are there.
var lockdown = []string{
	"SET GLOBAL enable_external_access = false",
	"SET GLOBAL lock_configuration = true",
}

func openDuckDB(ctx context.Context, p *policy.Policy, file string, log *slog.Logger) (*DuckDB, error) {
	connector, err := duckdb.NewConnector("", func(driver.ExecerContext) error { return nil })
	if err != nil {
		return nil, errors.New("the embedded DuckDB does not start")
	}
	const prefix = "dpproxy-spill-"
	scratch.Sweep(os.TempDir(), prefix)
	directory, remove, err := scratch.New(os.TempDir(), prefix)
	if err != nil {
		return nil, fmt.Errorf("there is no room for the files of large sorts: %w", err)
	}
	b := &DuckDB{db: sql.OpenDB(connector), log: log, directory: directory, remove: remove}
	b.executor = newExecutor(b, p.Backend.Deadline, log, runtime.GOMAXPROCS(0)) // each query uses every core by itself
	if err := b.run(ctx, settled(directory)); err != nil {
		b.Close()
		return nil, err
	}
	if err := b.fill(ctx, p, file); err != nil {
		b.Close()
		return nil, err
	}
	if err := b.run(ctx, lockdown); err != nil {
		b.Close()
		return nil, err
	}
	if b.aside, err = b.db.Conn(ctx); err == nil {
		b.unique, err = b.uniqueKeys(ctx)
	}
	if err != nil {
		b.Close()
		return nil, ErrUnavailable
	}
	return b, nil
}

// run runs statements that settle the engine.
func (b *DuckDB) run(ctx context.Context, statements []string) error {
	for _, s := range statements {
		if _, err := b.db.ExecContext(ctx, s); err != nil {
			return errors.New("DuckDB cannot be locked down")
		}
	}
	return nil
}

// fill attaches the file, or reads the policy's files into memory.
func (b *DuckDB) fill(ctx context.Context, p *policy.Policy, file string) error {
	if file == "" {
		if _, err := b.db.ExecContext(ctx, "ATTACH ':memory:' AS "+dialect.Catalog); err != nil {
			return ErrUnavailable
		}
		return b.load(ctx, p)
	}
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.File != "" {
				return errors.New("files are read into an embedded database in memory: use the url duckdb: without a file")
			}
		}
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(p.Path), file)
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if _, err := b.db.ExecContext(ctx, "ATTACH "+dialect.QuoteText(file)+" AS "+dialect.Catalog+" (TYPE duckdb, READ_ONLY)"); err != nil {
		return fmt.Errorf("%s is not a DuckDB file that this version can read, or another process writes to it", file)
	}
	return nil
}

// Dialect is described at Backend.
func (b *DuckDB) Dialect() dialect.Dialect { return dialect.DuckDB }

// Close frees the embedded database, and removes what it left in files.
func (b *DuckDB) Close() error {
	if b.aside != nil {
		_ = b.aside.Close() // closed before, or for good
	}
	return errors.Join(b.db.Close(), b.remove())
}

// Ready is described at Backend.
func (b *DuckDB) Ready(caller context.Context, queries ...rewrite.Query) error {
	ctx, cancel := context.WithTimeout(caller, readyTimeout)
	defer cancel()
	if _, err := b.aside.ExecContext(ctx, "SELECT 1"); err != nil {
		if caller.Err() != nil {
			return ErrUnavailable // the caller stopped waiting: that says nothing of the database
		}
		b.log.Warn("the private database is not ready", "cause", cause(err))
		return ErrUnavailable
	}
	for _, q := range queries {
		err := b.bind(ctx, q)
		switch {
		case err != nil && ctx.Err() != nil:
			return ErrUnavailable
		case err != nil || !b.proven(q.Required()):
			b.log.Error("the private database does not plan a query; nothing was charged for it", "table", q.Table().Name, "cause", cause(err))
			return ErrUnplanned
		}
	}
	return nil
}

// bind binds every text that a query may run as, and reads no row.
func (b *DuckDB) bind(ctx context.Context, q rewrite.Query) error {
	for _, f := range forms(q) {
		statement, err := b.aside.PrepareContext(ctx, f.sql)
		if err == nil {
			err = statement.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// groups runs a query.
func (b *DuckDB) groups(ctx context.Context, query rewrite.Query) ([]privacy.Group, error) {
	if !b.proven(query.Required()) {
		return nil, errUnproven
	}
	text, args, err := shortest(query, func(needs []rewrite.Unique) (bool, error) { return b.proven(needs), nil })
	if err != nil {
		return nil, err
	}
	rows, err := b.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	into := newCollector(query)
	if query.Keyed() {
		err := collectKeys(rows, into)
		return into.groups, err
	}
	values := make([]any, query.Grain()+query.Counters())
	targets := make([]any, len(values))
	for i := range values {
		targets[i] = &values[i]
	}
	cells, counts := make([]int32, query.Grain()), make([]int64, query.Counters())
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, errResult
		}
		fits := true
		for i, v := range values {
			var ok bool
			if i < len(cells) {
				cells[i], ok = v.(int32)
			} else {
				counts[i-len(cells)], ok = v.(int64)
			}
			fits = fits && ok
		}
		if !fits {
			return nil, errResult
		}
		if err := into.add(cells, counts); err != nil {
			return nil, err
		}
	}
	return into.groups, rows.Err()
}

// folded names a column as DuckDB compares names: without regard to case.
func folded(schema, table, column string) place {
	return place{strings.ToLower(schema), strings.ToLower(table), strings.ToLower(column)}
}

// ReadPublic is described at Backend.
func (b *DuckDB) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return copyTable(t, dialect.DuckDB, func(text string, add func([]*string) error) error {
		return b.eachRow(ctx, text, add)
	})
}

// eachRow runs a query whose columns are all text.
func (b *DuckDB) eachRow(ctx context.Context, text string, add func([]*string) error, args ...any) error {
	rows, err := b.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		texts, into := textRow(len(names))
		if err := rows.Scan(into...); err != nil {
			return errResult
		}
		if err := add(texts); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Inspect is described at Backend. The schema cannot change below a running backend: a file is attached read-only, and
// memory belongs to this process.
func (b *DuckDB) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]Finding, error) {
	have, err := b.shape(ctx, placesOf(d, dialect.DuckDB))
	if err != nil {
		b.log.Warn("the private database's schema cannot be read", "cause", cause(err))
		return nil, ErrUnavailable
	}
	for _, t := range d.Tables {
		if t.View.Trusted {
			b.viewShape(ctx, t, have)
		}
	}
	var findings []Finding
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		found := compareTable(t, have, dialect.DuckDB)
		for _, l := range b.leftOut {
			if l.source == t.Source && t.File != "" {
				found = append(found, Finding{Text: fmt.Sprintf("table %s: %s of its file have another number of fields than the header, and are left out", t.Name, l.lines)})
			}
		}
		found = append(found, boundFinding(t, t.UnitColumn != "" && b.proven([]rewrite.Unique{{Table: t, Columns: []string{t.UnitColumn}}}))...)
		keys, _ := uniqueFindings(t, func(u rewrite.Unique) (bool, error) { return b.proven([]rewrite.Unique{u}), nil })
		found = append(found, keys...)
		found = append(found, pathFinding(t, b.proven(rewrite.Required(t)))...)
		if !t.Public && !fatal(found) {
			found = append(found, b.probe(ctx, t)...)
		}
		findings = append(findings, found...)
	}
	overlaps, err := b.overlapFindings(ctx, p, d)
	if err != nil {
		b.log.Warn("the private database's views cannot be read", "cause", cause(err))
		return nil, ErrUnavailable
	}
	return append(append(findings, overlaps...), numberFindings(d, have, dialect.DuckDB)...), nil
}
