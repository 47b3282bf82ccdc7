// Package duckdb has private rows in a DuckDB file, or in files that are read into memory at the start; Source makes
// snapshots of either.
package duckdb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/files"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// DB is an embedded private database: a DB file, attached read-only, or files read into memory at the start. Its tables
// lie in the catalog dialect.Catalog, outside the search path. Once they are there the engine is locked: no file, no
// extension, no setting can be reached from SQL.
type DB struct {
	*embedded.Instance
	execute.Executor
	log     *slog.Logger
	leftOut []files.LeftOut                        // of the files
	unique  []uniqueKey                            // what constraints prove; the schema cannot change any more
	said    map[inspect.ColumnName]map[string]bool // by table, what CHECK and NOT NULL constraints say (rowsSaid)
}

var (
	_ backend.Backend   = (*DB)(nil)
	_ inspect.Questions = (*DB)(nil)
)

// Open attaches a policy's file, or reads its files into memory.
func Open(ctx context.Context, p *policy.Policy, log *slog.Logger) (*DB, error) {
	engine, err := embedded.Start(ctx, os.TempDir())
	if err != nil {
		return nil, err
	}
	b := &DB{Instance: engine, log: log}
	b.Executor = execute.NewExecutor(b.Dialect, b.groups, p.Backend.Deadline, log, runtime.GOMAXPROCS(0)) // each query uses every core by itself
	if err := b.fill(ctx, p, files.TablesOf(p), files.Whole); err != nil {
		b.Close()
		return nil, err
	}
	if err := b.Lock(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// fill attaches the policy's file, or brings in the files of tables.
func (b *DB) fill(ctx context.Context, p *policy.Policy, tables []*policy.Table, how files.Loading) (err error) {
	if file := duckFile(p); file != "" {
		err = b.attach(ctx, file, tables)
	} else if _, err = b.Pool.ExecContext(ctx, "ATTACH ':memory:' AS "+dialect.Catalog); err != nil {
		err = backend.ErrUnavailable
	} else {
		files := files.Loader{Instance: b.Instance, How: how}
		err = files.Load(ctx, tables)
		b.leftOut = files.LeftOut
	}
	if err != nil {
		return err
	}
	if b.unique, err = b.uniqueKeys(ctx); err != nil {
		return backend.ErrUnavailable
	}
	if b.said, err = b.rowsSaid(ctx); err != nil {
		return backend.ErrUnavailable
	}
	return nil
}

// duckFile is the path of the file that the policy's URL names; empty means its tables have files of their own.
func duckFile(p *policy.Policy) string {
	file := strings.TrimPrefix(p.Backend.URL, "duckdb:")
	if file != "" && !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(p.Path), file)
	}
	return file
}

// attach attaches a DB file.
func (b *DB) attach(ctx context.Context, file string, tables []*policy.Table) error {
	if slices.ContainsFunc(tables, func(t *policy.Table) bool { return t.File != "" }) {
		return errors.New("files are read into an embedded database in memory: use the url duckdb: without a file")
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	if _, err := b.Pool.ExecContext(ctx, embedded.Attach(file, dialect.Catalog, "", true)); err != nil {
		return unreadable{file, strings.Contains(err.Error(), "set lock on file")}
	}
	return nil
}

// unreadable says that a DB file cannot be attached.
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

// Dialect: see Backend.
func (b *DB) Dialect() dialect.Dialect { return dialect.DuckDB }

// Ready: see Backend.
func (b *DB) Ready(caller context.Context, queries ...rewrite.Query) error {
	return b.ReadyTo(caller, b.log, queries, b.textOf)
}

// groups runs a query.
func (b *DB) groups(ctx context.Context, query rewrite.Query) ([][]privacy.Group, error) {
	text, err := b.textOf(query)
	if err != nil {
		return nil, err
	}
	return b.Answer(ctx, query, text)
}

// textOf is the text that a query runs as.
func (b *DB) textOf(query rewrite.Query) (string, error) {
	if !b.proven(query.Required()) {
		return "", execute.ErrUnproven
	}
	return execute.Shortest(query, b.provenForm).SQL, nil
}

// folded names a column as DB compares names: without regard to case.
func folded(schema, table, column string) inspect.ColumnName {
	return inspect.ColumnOf(strings.ToLower(schema), strings.ToLower(table), strings.ToLower(column))
}

// ReadPublic: see Backend.
func (b *DB) ReadPublic(ctx context.Context, t *policy.Table) (privacy.Released[[][]policy.Value], error) {
	return inspect.CopyTable(t, dialect.DuckDB, func(text string, add func([]*string) error) error {
		return b.EachRow(ctx, text, add)
	})
}

// Inspect: see Backend. The schema cannot change below a running backend: a file is attached read-only, and
// memory belongs to this process.
func (b *DB) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) ([]backend.Finding, error) {
	have, err := b.datasetShape(ctx, d)
	if err != nil {
		return nil, err
	}
	var findings []backend.Finding
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		found := inspect.CompareTable(t, have, dialect.DuckDB)
		for _, l := range b.leftOut {
			if l.File == t.File {
				found = append(found, backend.Finding{Text: fmt.Sprintf("table %s: %s", t.Name, l.What)})
			}
		}
		found = append(found, inspect.BoundFinding(t, t.UnitColumn != "" && b.proven([]rewrite.Unique{{Table: t, Columns: []string{t.UnitColumn}}}))...)
		keys := inspect.UniqueFindings(t, func(u rewrite.Unique) bool { return b.proven([]rewrite.Unique{u}) })
		found = append(found, keys...)
		found = append(found, inspect.RequiredFinding(t, b.proven(rewrite.Required(t)))...)
		found = append(found, b.fewerRanks(t)...)
		if !t.Public && !inspect.Fatal(found) {
			found = append(found, b.probe(ctx, t)...)
		}
		findings = append(findings, found...)
	}
	judged, err := inspect.Judge(ctx, b, p, d, have, dialect.DuckDB)
	if err != nil {
		b.log.Warn("what the private database's tables show cannot be read", "cause", execute.Cause(err))
		return nil, backend.ErrUnavailable
	}
	return append(findings, judged...), nil
}

// Adopt: see Backend. What Inspect saw stays.
func (b *DB) Adopt(*policy.Policy) {}

// datasetShape is what the catalog says of a dataset's tables, and what its trusted SELECTs would show.
func (b *DB) datasetShape(ctx context.Context, d *policy.Dataset) (inspect.Shape, error) {
	have, err := b.readShape(ctx, inspect.ColumnsRead(d.Tables, dialect.DuckDB))
	if err != nil {
		b.log.Warn("the private database's schema cannot be read", "cause", execute.Cause(err))
		return nil, backend.ErrUnavailable
	}
	for _, t := range d.Tables {
		if t.View.Trusted {
			b.viewShape(ctx, t, have)
		}
	}
	return have, nil
}

// EngineVersion is the version of the DB that is built in, such as v1.5.5.
var EngineVersion = sync.OnceValues(func() (version string, err error) {
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return "", err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	return version, db.QueryRowContext(context.Background(), "SELECT version()").Scan(&version)
})

// writtenBy is what the head of a DB file says of who wrote it: the version of its format, and that of the DB.
type writtenBy struct {
	format  uint64
	library string
}

// The head of a DB file: a checksum of eight bytes, the letters DUCK, the number of the format, four words of flags,
// and the version of the library in 32 bytes. Every version of DB reads that much of every other's, to refuse it.
const (
	duckMagic   = "DUCK"
	magicAt     = 8
	formatAt    = magicAt + len(duckMagic)
	libraryAt   = formatAt + 8 + 4*8
	libraryLong = 32
)

// writerOf reads the head of a file; ok is false where it is not DB's.
func writerOf(file string) (w writtenBy, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return w, false
	}
	defer f.Close()
	head := make([]byte, libraryAt+libraryLong)
	if _, err := io.ReadFull(f, head); err != nil || string(head[magicAt:formatAt]) != duckMagic {
		return w, false
	}
	name, _, _ := bytes.Cut(head[libraryAt:], []byte{0})
	w = writtenBy{format: binary.LittleEndian.Uint64(head[formatAt:]), library: "an unnamed version"}
	for _, c := range name { // the file's own word: it goes to the operator, and nothing but a version is one
		if c != '.' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return w, true
		}
	}
	if len(name) > 0 {
		w.library = string(name)
	}
	return w, true
}

// otherVersion says of a file that is DB's and that nobody holds, but cannot be attached, which versions do not agree;
// "" where that is not why.
func otherVersion(file string) string {
	w, ok := writerOf(file)
	own, err := EngineVersion()
	if !ok || err != nil || w.library == own {
		return ""
	}
	return fmt.Sprintf("%s was written by DuckDB %s (storage format %d), and this dpproxy has DuckDB %s, which does not read that: "+
		"copy it with the newer DuckDB into a file that is attached with (STORAGE_VERSION '%s')", file, w.library, w.format, own, own)
}
