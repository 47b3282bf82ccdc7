package duckdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/backend/files"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/internal/inspect"
	"github.com/dpproxy/dpproxy/backend/snapshot"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Source is a DB file, or CSV and Parquet files, of which snapshots are made (docs/adr/0089). Nothing is kept open
// between them, so that the owner can write to the file, or put other files in their places; a copy is of one moment
// because the file is attached while it is read, which locks writers out, and because no file is another one after all
// have been read than before.
type Source struct {
	policy *policy.Policy
	log    *slog.Logger
	pins   inspect.Pins[inspect.Shape]
}

var _ snapshot.Source = (*Source)(nil)

// NewSource is the source of a policy's snapshots, which is opened for each.
func NewSource(p *policy.Policy, log *slog.Logger) *Source {
	return &Source{policy: p, log: log}
}

// Dialect: see source.
func (s *Source) Dialect() dialect.Dialect { return dialect.DuckDB }

// Close: see source.
func (s *Source) Close() error { return nil }

// Identity: see source.
func (s *Source) Identity() string {
	text := fmt.Sprintf("duckdb %q", duckFile(s.policy))
	for _, name := range slices.Sorted(maps.Keys(s.policy.Backend.Files)) {
		text += fmt.Sprintf(" %q %q", name, s.policy.Backend.Files[name])
	}
	return text
}

// beside runs do on an engine of its own that has the tables.
func (s *Source) beside(ctx context.Context, tables []*policy.Table, how files.Loading, do func(*DB) error) error {
	engine, err := embedded.Start(ctx, os.TempDir())
	if err != nil {
		return err
	}
	defer engine.Close()
	b := &DB{Instance: engine, log: s.log}
	if err := b.fill(ctx, s.policy, tables, how); err != nil {
		return err
	}
	if err := b.Lock(ctx); err != nil {
		return err
	}
	return do(b)
}

// Inspect: see source. Of files it sees the columns alone.
func (s *Source) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) (findings []backend.Finding, err error) {
	err = s.beside(ctx, files.TablesOf(p), files.Bare, func(b *DB) error {
		have, err := b.datasetShape(ctx, d)
		if err != nil {
			return err
		}
		s.pins.Note(p, d, have)
		findings, err = b.Inspect(ctx, p, d)
		return err
	})
	return findings, err
}

// CopyFindings: see source.
func (s *Source) CopyFindings(_ context.Context, d *policy.Dataset) ([]backend.Finding, error) {
	seen, _ := s.pins.Of(d)
	return inspect.KeyFindings(inspect.Copies{Questions: (*DB)(nil)}, d, seen, dialect.DuckDB), nil
}

// Adopt is Backend's.
func (s *Source) Adopt(p *policy.Policy) { s.pins.Adopt(p) }

// ReadPublic: see Backend.
func (s *Source) ReadPublic(ctx context.Context, t *policy.Table) (rows privacy.Released[[][]policy.Value], err error) {
	tables := []*policy.Table{t}
	if t.View.Text != "" {
		tables = t.Dataset.Tables
	}
	err = s.beside(ctx, tables, files.Whole, func(b *DB) (err error) {
		rows, err = b.ReadPublic(ctx, t)
		return err
	})
	return rows, err
}

// Consistent: see source.
func (s *Source) Consistent(ctx context.Context, into *snapshot.Maker, do func(snapshot.Reading) error) error {
	var tables []*policy.Table
	for _, e := range into.List {
		for _, t := range e.Table.Dataset.Tables {
			if !t.Public && !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
	}
	b := &DB{Instance: into.Instance, log: s.log}
	before, err := s.fillWhenFree(ctx, b, tables)
	if err != nil {
		return err
	}
	for _, l := range b.leftOut {
		s.log.Warn("snapshot: "+l.What, "file", filepath.Base(l.File))
	}
	if err := s.unchanged(ctx, b, into.List); err != nil {
		return err
	}
	if err := do(reading{b}); err != nil {
		return err
	}
	after, err := s.identities(tables)
	switch {
	case err != nil:
		return err
	case !slices.EqualFunc(before, after, sameFile):
		return errors.New("a file of the private tables changed while it was read")
	}
	return into.Exec(ctx, "DETACH "+dialect.Catalog)
}

// fillWhenFree waits for who writes to the DB file, where there is a time until which it can, and tells which files
// were taken.
func (s *Source) fillWhenFree(ctx context.Context, b *DB, tables []*policy.Table) (taken []os.FileInfo, err error) {
	for {
		if taken, err = s.identities(tables); err == nil {
			err = b.fill(ctx, s.policy, tables, files.Shown)
		}
		var u unreadable
		if _, bound := ctx.Deadline(); !errors.As(err, &u) || !u.locked || !bound {
			return taken, err
		}
		select {
		case <-ctx.Done():
			return taken, err
		case <-time.After(time.Second):
		}
	}
}

// unchanged reports whether the DB file still has the tables that Inspect saw.
func (s *Source) unchanged(ctx context.Context, b *DB, list []rewrite.Extraction) error {
	if duckFile(s.policy) == "" {
		return nil // files are read with the types that the policy declares
	}
	for _, e := range list {
		d := e.Table.Dataset
		have, err := b.datasetShape(ctx, d)
		if err != nil {
			return err
		}
		if seen, ok := s.pins.Of(d); !ok || !maps.Equal(have, seen) {
			return backend.ErrDrift
		}
	}
	return nil
}

// identities are those of the files that are read. A DB file is one of them: its lock keeps DB's writers out, and
// nobody who copies another file over it, whose blocks are as whole as its own.
func (s *Source) identities(tables []*policy.Table) (list []os.FileInfo, err error) {
	files := []string{duckFile(s.policy)}
	for _, t := range tables {
		files = append(files, t.File)
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

func sameFile(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// reading is a source that the engine which makes a snapshot has attached.
type reading struct{ *DB }

// Proven: see reading.
func (r reading) Proven(_ context.Context, needs []rewrite.Unique) (bool, error) {
	return r.DB.proven(needs), nil
}

// Numbers: see reading.
func (r reading) Numbers() bool { return false }

// Rows: see reading.
func (r reading) Rows(ctx context.Context, e rewrite.Extraction, into *snapshot.Staged) error {
	_, err := r.Pool.ExecContext(ctx, "INSERT INTO staged.main."+into.Name+" "+e.SQL(), e.Args()...)
	if err := into.Failed(err); errors.Is(err, snapshot.ErrMaking) {
		return cmp.Or(context.Cause(ctx), errors.New("the private tables cannot be read, or there is no room for the copy"))
	} else if err != nil {
		return err
	}
	return nil
}
