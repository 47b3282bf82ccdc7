package backend

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

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// duckSource is a DuckDB file, or CSV and Parquet files, of which snapshots are made (docs/adr/0089). Nothing is kept open between them,
// so that the owner can write to the file, or put other files in their places; a copy is of one moment because the file is attached
// while it is read, which locks writers out, and because no file is another one after all have been read than before.
type duckSource struct {
	policy *policy.Policy
	log    *slog.Logger
	pins   pins[shape]
}

var _ source = (*duckSource)(nil)

// newDuckSource is the source of a policy's snapshots, which is opened for each.
func newDuckSource(p *policy.Policy, log *slog.Logger) *duckSource {
	return &duckSource{policy: p, log: log}
}

// Dialect is described at source.
func (s *duckSource) Dialect() dialect.Dialect { return dialect.DuckDB }

// Close is described at source.
func (s *duckSource) Close() error { return nil }

// identity is described at source.
func (s *duckSource) identity() string {
	text := fmt.Sprintf("duckdb %q", duckFile(s.policy))
	for _, name := range slices.Sorted(maps.Keys(s.policy.Backend.Files)) {
		text += fmt.Sprintf(" %q %q", name, s.policy.Backend.Files[name])
	}
	return text
}

// beside runs do on an engine of its own that has the tables.
func (s *duckSource) beside(ctx context.Context, tables []*policy.Table, how loading, do func(*DuckDB) error) error {
	engine, err := startInstance(ctx, os.TempDir())
	if err != nil {
		return err
	}
	defer engine.Close()
	b := &DuckDB{instance: engine, log: s.log}
	if err := b.fill(ctx, s.policy, tables, how); err != nil {
		return err
	}
	if err := b.lock(ctx); err != nil {
		return err
	}
	return do(b)
}

// Inspect is described at source. Of files it sees the columns alone.
func (s *duckSource) Inspect(ctx context.Context, p *policy.Policy, d *policy.Dataset) (findings []Finding, err error) {
	err = s.beside(ctx, tablesOf(p), bare, func(b *DuckDB) error {
		have, err := b.datasetShape(ctx, d)
		if err != nil {
			return err
		}
		s.pins.note(p, d, have)
		findings, err = b.Inspect(ctx, p, d)
		return err
	})
	return findings, err
}

// copyFindings is described at source.
func (s *duckSource) copyFindings(_ context.Context, d *policy.Dataset) ([]Finding, error) {
	seen, _ := s.pins.of(d)
	return keyFindings(copies{(*DuckDB)(nil)}, d, seen, dialect.DuckDB), nil
}

// Adopt is Backend's.
func (s *duckSource) Adopt(p *policy.Policy) { s.pins.adopt(p) }

// ReadPublic is described at Backend.
func (s *duckSource) ReadPublic(ctx context.Context, t *policy.Table) (rows privacy.Released[[][]policy.Value], err error) {
	tables := []*policy.Table{t}
	if t.View.Text != "" {
		tables = t.Dataset.Tables
	}
	err = s.beside(ctx, tables, whole, func(b *DuckDB) (err error) {
		rows, err = b.ReadPublic(ctx, t)
		return err
	})
	return rows, err
}

// consistent is described at source.
func (s *duckSource) consistent(ctx context.Context, into *maker, do func(reading) error) error {
	var tables []*policy.Table
	for _, e := range into.list {
		for _, t := range e.Table.Dataset.Tables {
			if !t.Public && !slices.Contains(tables, t) {
				tables = append(tables, t)
			}
		}
	}
	b := &DuckDB{instance: into.instance, log: s.log}
	before, err := s.fillWhenFree(ctx, b, tables)
	if err != nil {
		return err
	}
	for _, l := range b.leftOut {
		s.log.Warn("snapshot: "+l.what, "file", filepath.Base(l.file))
	}
	if err := s.unchanged(ctx, b, into.list); err != nil {
		return err
	}
	if err := do(duckReading{b}); err != nil {
		return err
	}
	after, err := s.identities(tables)
	switch {
	case err != nil:
		return err
	case !slices.EqualFunc(before, after, sameFile):
		return errors.New("a file of the private tables changed while it was read")
	}
	return into.exec(ctx, "DETACH "+dialect.Catalog)
}

// fillWhenFree waits for who writes to the DuckDB file, where there is a time until which it can, and tells which files were taken.
func (s *duckSource) fillWhenFree(ctx context.Context, b *DuckDB, tables []*policy.Table) (taken []os.FileInfo, err error) {
	for {
		if taken, err = s.identities(tables); err == nil {
			err = b.fill(ctx, s.policy, tables, shown)
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

// unchanged tells whether the DuckDB file still has the tables that Inspect saw.
func (s *duckSource) unchanged(ctx context.Context, b *DuckDB, list []rewrite.Extraction) error {
	if duckFile(s.policy) == "" {
		return nil // files are read with the types that the policy declares
	}
	for _, e := range list {
		d := e.Table.Dataset
		have, err := b.datasetShape(ctx, d)
		if err != nil {
			return err
		}
		if seen, ok := s.pins.of(d); !ok || !maps.Equal(have, seen) {
			return ErrDrift
		}
	}
	return nil
}

// identities are those of the files that are read. A DuckDB file is one of them: its lock keeps DuckDB's writers out, and nobody who
// copies another file over it, whose blocks are as whole as its own.
func (s *duckSource) identities(tables []*policy.Table) (list []os.FileInfo, err error) {
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

// duckReading is a source that the engine which makes a snapshot has attached.
type duckReading struct{ *DuckDB }

// proven is described at reading.
func (r duckReading) proven(_ context.Context, needs []rewrite.Unique) (bool, error) {
	return r.DuckDB.proven(needs), nil
}

// numbers is described at reading.
func (r duckReading) numbers() bool { return false }

// rows is described at reading.
func (r duckReading) rows(ctx context.Context, e rewrite.Extraction, into *staged) error {
	_, err := r.db.ExecContext(ctx, "INSERT INTO staged.main."+into.name+" "+e.SQL(), e.Args()...)
	if err := into.failed(err); errors.Is(err, errMaking) {
		return cmp.Or(context.Cause(ctx), errors.New("the private tables cannot be read, or there is no room for the copy"))
	} else if err != nil {
		return err
	}
	return nil
}
