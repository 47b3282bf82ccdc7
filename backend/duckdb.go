package backend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// DuckDB is an embedded private database: a DuckDB file, attached read-only, or files read into memory at the start. Its
// tables lie in the catalog dialect.Catalog, outside the search path. Once they are there the engine is locked: no file,
// no extension, no setting can be reached from SQL.
type DuckDB struct {
	*instance
	executor
	log     *slog.Logger
	leftOut []leftOut                      // of the files
	unique  []uniqueKey                    // what constraints prove; the schema cannot change any more
	said    map[columnName]map[string]bool // by table, what CHECK and NOT NULL constraints say (rowsSaid)
}

var (
	_ Backend   = (*DuckDB)(nil)
	_ questions = (*DuckDB)(nil)
)

func openDuckDB(ctx context.Context, p *policy.Policy, log *slog.Logger) (*DuckDB, error) {
	engine, err := startInstance(ctx, os.TempDir())
	if err != nil {
		return nil, err
	}
	b := &DuckDB{instance: engine, log: log}
	b.executor = newExecutor(b.Dialect, b.groups, p.Backend.Deadline, log, runtime.GOMAXPROCS(0)) // each query uses every core by itself
	if err := b.fill(ctx, p, tablesOf(p), whole); err != nil {
		b.Close()
		return nil, err
	}
	if err := b.lock(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// fill attaches the policy's file, or brings in the files of tables.
func (b *DuckDB) fill(ctx context.Context, p *policy.Policy, tables []*policy.Table, how loading) (err error) {
	if file := duckFile(p); file != "" {
		err = b.attach(ctx, file, tables)
	} else if _, err = b.db.ExecContext(ctx, "ATTACH ':memory:' AS "+dialect.Catalog); err != nil {
		err = ErrUnavailable
	} else {
		files := loader{instance: b.instance, how: how}
		err = files.load(ctx, tables)
		b.leftOut = files.leftOut
	}
	if err != nil {
		return err
	}
	if b.unique, err = b.uniqueKeys(ctx); err != nil {
		return ErrUnavailable
	}
	if b.said, err = b.rowsSaid(ctx); err != nil {
		return ErrUnavailable
	}
	return nil
}

// duckFile is the path of the file that the policy's URL names; empty: its tables have files of their own.
func duckFile(p *policy.Policy) string {
	file := strings.TrimPrefix(p.Backend.URL, "duckdb:")
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(p.Path), file)
	}
	return file
}

// attach attaches a DuckDB file.
func (b *DuckDB) attach(ctx context.Context, file string, tables []*policy.Table) error {
	if slices.ContainsFunc(tables, func(t *policy.Table) bool { return t.File != "" }) {
		return errors.New("files are read into an embedded database in memory: use the url duckdb: without a file")
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if _, err := b.db.ExecContext(ctx, attach(file, dialect.Catalog, "", true)); err != nil {
		return unreadable{file, strings.Contains(err.Error(), "set lock on file")}
	}
	return nil
}

// unreadable says that a DuckDB file cannot be attached.
type unreadable struct {
	file   string
	locked bool
}

func (u unreadable) Error() string {
	if text := otherVersion(u.file); text != "" && !u.locked {
		return text
	}
	return u.file + " is not a DuckDB file that this version can read, or another process writes to it"
}

// Dialect is described at Backend.
func (b *DuckDB) Dialect() dialect.Dialect { return dialect.DuckDB }

// Ready is described at Backend.
func (b *DuckDB) Ready(caller context.Context, queries ...rewrite.Query) error {
	return b.ready(caller, b.log, queries, b.textOf)
}

// groups runs a query.
func (b *DuckDB) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	text, err := b.textOf(query)
	if err != nil {
		return nil, err
	}
	return b.answer(ctx, query, text)
}

// textOf is the text that a query runs as.
func (b *DuckDB) textOf(query rewrite.Query) (string, error) {
	if !b.proven(query.Required()) {
		return "", errUnproven
	}
	return shortest(query, b.provenForm).sql, nil
}

// folded names a column as DuckDB compares names: without regard to case.
func folded(schema, table, column string) columnName {
	return columnName{strings.ToLower(schema), strings.ToLower(table), strings.ToLower(column)}
}

// ReadPublic is described at Backend.
func (b *DuckDB) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return copyTable(t, dialect.DuckDB, func(text string, add func([]*string) error) error {
		return b.eachRow(ctx, text, add)
	})
}

// Inspect is described at Backend. The schema cannot change below a running backend: a file is attached read-only, and
// memory belongs to this process.
func (b *DuckDB) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]Finding, error) {
	have, err := b.datasetShape(ctx, d)
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		found := compareTable(t, have, dialect.DuckDB)
		for _, l := range b.leftOut {
			if l.file == t.File {
				found = append(found, Finding{Text: fmt.Sprintf("table %s: %s", t.Name, l.what)})
			}
		}
		found = append(found, boundFinding(t, t.UnitColumn != "" && b.proven([]rewrite.Unique{{Table: t, Columns: []string{t.UnitColumn}}}))...)
		keys := uniqueFindings(t, func(u rewrite.Unique) bool { return b.proven([]rewrite.Unique{u}) })
		found = append(found, keys...)
		found = append(found, requiredFinding(t, b.proven(rewrite.Required(t)))...)
		found = append(found, b.fewerRanks(t)...)
		if !t.Public && !fatal(found) {
			found = append(found, b.probe(ctx, t)...)
		}
		findings = append(findings, found...)
	}
	judged, err := judge(ctx, b, p, d, have, dialect.DuckDB)
	if err != nil {
		b.log.Warn("what the private database's tables show cannot be read", "cause", cause(err))
		return nil, ErrUnavailable
	}
	return append(findings, judged...), nil
}

// Adopt is described at Backend. What Inspect saw stays.
func (b *DuckDB) Adopt(*policy.Policy) {}

// datasetShape is what the catalog says of a dataset's tables, and what its trusted SELECTs would show.
func (b *DuckDB) datasetShape(ctx context.Context, d *policy.Dataset) (shape, error) {
	have, err := b.readShape(ctx, columnsRead(d.Tables, dialect.DuckDB))
	if err != nil {
		b.log.Warn("the private database's schema cannot be read", "cause", cause(err))
		return nil, ErrUnavailable
	}
	for _, t := range d.Tables {
		if t.View.Trusted {
			b.viewShape(ctx, t, have)
		}
	}
	return have, nil
}
