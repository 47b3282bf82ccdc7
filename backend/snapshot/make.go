package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/internal/scratch"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// A snapshot is made in a directory of its own, in this order: the rows of each private table as its extraction gives
// them, in one transaction of the source, into tables of a file that is thrown away; the numbers of units that are
// texts; each table in order, into the file that stays; then that file is flushed and gets its name.
//
//	staged.t0      n1, n2, u                                  visits, as read
//	private.main."visits@1f…"   "1:minutes", "2:ward", u, r   in order
//	private.main."visits@1f…#1" r, "1:minutes", n             how many of its rows have each rank and each number of minutes

// makingMemory is the most memory that DB takes while it makes a snapshot. What is sorted beyond it goes to files.
const makingMemory = "1GiB"

// digestLength is how many bytes of a digest a file's name has.
const digestLength = 16

// extractions are the tables of a snapshot.
type extractions struct {
	List   []rewrite.Extraction
	digest string // of the database, and of the SQL that reads and arranges them
}

// ExtractionsOf lists the private tables of a policy, those of one meaning once.
func (b *Snapshots) ExtractionsOf(p *policy.Policy) (extractions, error) {
	var all extractions
	seen := map[string]bool{}
	h := sha256.New()
	fmt.Fprintf(h, "%s %t\n", b.Source.Identity(), b.key != "") // whose rows, and whether a file is encrypted
	for _, d := range p.Datasets {
		for _, t := range d.Tables {
			if t.Public || t.Analysed() || seen[rewrite.Copied(t)] {
				continue
			}
			seen[rewrite.Copied(t)] = true
			e, err := rewrite.Extract(t, b.Source.Dialect())
			if err != nil {
				return all, fmt.Errorf("table %s: %w", t.Name, err)
			}
			arrange, err := e.Arrange(rewrite.Arrangement{Staged: "s", Numbers: "v", Heavy: "h"})
			if err != nil {
				return all, fmt.Errorf("table %s: %w", t.Name, err)
			}
			marginals, err := e.Marginals()
			if err != nil {
				return all, fmt.Errorf("table %s: %w", t.Name, err)
			}
			fmt.Fprintf(h, "%q %q %q %q %q\n", d.ID, e.SQL(), e.Args(), arrange, marginals)
			for _, f := range e.Fields {
				fmt.Fprintf(h, "%q\n", f.Meaning())
			}
			all.List = append(all.List, e)
		}
	}
	all.digest = hex.EncodeToString(h.Sum(nil)[:digestLength])
	return all, nil
}

// makeWithin is make until the moment at which the snapshot is to come into force.
func (b *Snapshots) makeWithin(ctx context.Context, force time.Time, want extractions) (*Copied, error) {
	within, cancel := context.WithDeadlineCause(ctx, force, lateError{b.Plan.Within})
	defer cancel()
	return b.Make(within, want)
}

// lateError says that a copy is given up which is not there in time. It is a context.DeadlineExceeded.
type lateError struct{ within time.Duration }

func (e lateError) Error() string {
	return fmt.Sprintf("it takes longer than backend.snapshot.within, which is %v: give it more", e.within)
}

func (lateError) Unwrap() error { return context.DeadlineExceeded }

// Make makes a snapshot and opens it. What it began is gone when it fails.
func (b *Snapshots) Make(ctx context.Context, want extractions) (*Copied, error) {
	if err := os.MkdirAll(b.Plan.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	scratch.Sweep(b.Plan.Dir, makingName)
	directory, remove, err := scratch.New(b.Plan.Dir, makingName)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	defer func() {
		if err := remove(); err != nil {
			b.Log.Warn("what a snapshot was made in cannot be removed", "error", err)
		}
	}()
	at := b.next(time.Now()).UTC()
	whole := filepath.Join(directory, "snapshot"+FileEnd)
	if err := b.write(ctx, want, directory, whole); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	path := filepath.Join(b.Plan.Dir, FileName(at, want.digest))
	if err := settle(whole, path); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	c, err := OpenCopy(ctx, path, b.key)
	if err != nil {
		_ = os.Remove(path) // what is given up is nobody's to take up
		return nil, err
	}
	return c, nil
}

// next is the moment of a copy that is begun now. Moments grow, also where the clock was set back: what is saved of one
// must not be taken for another's.
func (b *Snapshots) next(now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range slices.Concat(b.Copies, b.left) {
		if !now.After(c.At) {
			now = c.At.Add(1)
		}
	}
	return now
}

// sweep removes whole snapshots, of whichever policy, that are older than what is in force here. Where another process
// has one of them open it stays open.
func (b *Snapshots) sweep() {
	list, err := os.ReadDir(b.Plan.Dir)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.Copies) == 0 {
		return
	}
	kept := map[string]bool{}
	for _, c := range slices.Concat(b.Copies, b.left) {
		kept[c.Path] = true
	}
	for _, e := range list {
		path := filepath.Join(b.Plan.Dir, e.Name())
		if at, _, ok := parseName(e.Name()); ok && !kept[path] && at.Before(b.Copies[0].At) {
			_ = os.Remove(path) // another process may have done so
		}
	}
}

// settle gives a file its name once all of it is on the disk.
func settle(from, to string) error {
	if err := os.Chmod(from, 0o600); err != nil {
		return err
	}
	for _, path := range []string{from, filepath.Dir(to)} {
		if path != from {
			if err := os.Rename(from, to); err != nil {
				return err
			}
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// write writes a snapshot into a file.
func (b *Snapshots) write(ctx context.Context, want extractions, directory, whole string) error {
	engine, err := embedded.Start(ctx, directory)
	if err != nil {
		return err
	}
	defer engine.Close()
	m := &Maker{Instance: engine, Log: b.Log, List: want.List, Proven: map[string]bool{}, unitsMost: b.UnitsMost}
	err = m.Exec(ctx,
		"SET GLOBAL memory_limit = '"+makingMemory+"'",
		"SET GLOBAL preserve_insertion_order = false", // rows have an order of their own
		embedded.Attach(filepath.Join(directory, "staged"+FileEnd), "staged", b.key, false))
	if err != nil {
		return err
	}
	if err := m.read(ctx, b.Source); err != nil {
		return err
	}
	err = m.Exec(ctx,
		embedded.Attach(whole, dialect.Catalog, b.key, false),
		"CREATE SCHEMA "+dialect.Catalog+".dpproxy",
		"CREATE TABLE "+dialect.Catalog+"."+provenTable+" (key VARCHAR)")
	if err != nil {
		return err
	}
	if err := m.arrange(ctx); err != nil {
		return err
	}
	return m.Exec(ctx, "CHECKPOINT "+dialect.Catalog, "DETACH "+dialect.Catalog)
}

// Maker puts a snapshot together.
type Maker struct {
	*embedded.Instance
	Log    *slog.Logger
	List   []rewrite.Extraction
	Proven map[string]bool // keys, by name, that constraints proved
	light  []bool          // by table that was read: no unit has very many rows
	fills  int             // of tables, that have begun

	units      map[string]*units.Numbers // by dataset, of units that are texts; nil means DB numbers them
	unitsTaken atomic.Int64
	unitsMost  int64
}

// ErrMaking says nothing of the rows, which DB's own text may show.
var ErrMaking = errors.New("the copy cannot be written: is there room on its disk?")

// Exec runs statements, whose errors say nothing of the rows.
func (m *Maker) Exec(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		if _, err := m.Pool.ExecContext(ctx, text); err != nil {
			return m.Failed(err)
		}
	}
	return nil
}

// Failed is what is said of an error of DB's.
func (m *Maker) Failed(err error) error {
	if err != nil {
		var full *duckdb.Error
		if errors.As(err, &full) && full.Type == duckdb.ErrorTypeOutOfMemory {
			return errors.New("the copy does not fit in " + makingMemory + " of memory")
		}
		return ErrMaking
	}
	return nil
}

// sortedFields is how many fields of rows are put in order at a time: what is sorted of them stays within makingMemory.
const sortedFields = 1 << 25

// parts tells in how many parts a staged table of so many fields is put in order.
func (m *Maker) parts(ctx context.Context, staged string, fields int) (int, error) {
	var rows int
	if err := m.Pool.QueryRowContext(ctx, "SELECT count(*) FROM "+staged).Scan(&rows); err != nil {
		return 0, m.Failed(err)
	}
	return 1 + rows*fields/sortedFields, nil
}

// numberUnits numbers what names units by texts, in a table for each dataset that has some.
func (m *Maker) numberUnits(ctx context.Context) (map[string]string, error) {
	byUnit := map[string][]rewrite.Staged{}
	first := map[string]*policy.Table{}
	for i, e := range m.List {
		for _, f := range e.Fields {
			if id := e.Table.Dataset.ID; f.OfUnit && m.units == nil {
				byUnit[id], first[id] = append(byUnit[id], rewrite.Staged{Table: stagedTable(i), Field: f.Name}), e.Table
			}
		}
	}
	numbers := map[string]string{}
	for id, fields := range byUnit {
		numbers[id] = fmt.Sprintf("staged.main.units%d", len(numbers))
		text, err := rewrite.Number(first[id], fields, numbers[id])
		if err != nil {
			return nil, err
		}
		if err := m.Exec(ctx, text); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// arrange puts what was staged in order.
func (m *Maker) arrange(ctx context.Context) error {
	for id := range m.units {
		m.units[id] = nil // their memory is free for what follows
	}
	numbers, err := m.numberUnits(ctx)
	if err != nil {
		return err
	}
	for i, e := range m.List {
		single := e.Table.UnitColumn != "" && m.Proven[keyName(rewrite.Unique{Table: e.Table, Columns: []string{e.Table.UnitColumn}})]
		parts, err := m.parts(ctx, stagedTable(i), len(e.Fields))
		if err != nil {
			return err
		}
		texts, err := e.Arrange(rewrite.Arrangement{Staged: stagedTable(i), Numbers: numbers[e.Table.Dataset.ID], Heavy: stagedTable(i) + "_heavy", Single: single, Light: m.light[i], Parts: parts})
		if err != nil {
			return err
		}
		marginals, err := e.Marginals()
		if err != nil {
			return err
		}
		if err := m.Exec(ctx, slices.Concat(texts, []string{"DROP TABLE " + stagedTable(i)}, marginals)...); err != nil {
			return err
		}
		m.Log.Info("snapshot: table in order", "table", e.Table.Name, "of", len(m.List), "done", i+1)
	}
	var proven []string
	for key, sound := range m.Proven {
		if sound {
			proven = append(proven, "INSERT INTO "+dialect.Catalog+"."+provenTable+" VALUES ("+dialect.QuoteText(key)+")")
		}
	}
	return m.Exec(ctx, proven...)
}

// LongestCopy bounds the copy that a start waits for.
const LongestCopy = 24 * time.Hour
