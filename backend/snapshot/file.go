package snapshot

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Snapshots lie in their directory as
//
//	20261123T020000.004211907Z-6f1c….duckdb   a whole one: the moment of its rows, and the digest of the SQL that makes one
//	making-1234567/                 what is being made, of a process that holds its lock (package scratch)
//
// A file gets its name when all of it is on the disk: one that has such a name is whole.

const (
	FileTime   = "20060102T150405.000000000Z"
	FileEnd    = ".duckdb"
	makingName = "making-"
)

// leastKey is the least length of a key.
const leastKey = 32

// ReadKey reads the key of copies; without a file there is none.
func ReadKey(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("snapshot: the key cannot be read: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("snapshot: %s may be read by others than its owner: chmod 600 %[1]s", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("snapshot: the key cannot be read: %w", err)
	}
	key := strings.TrimSpace(string(text))
	if len(key) < leastKey {
		return "", fmt.Errorf("snapshot: %s holds fewer than %d characters: make one with openssl rand -base64 32", file, leastKey)
	}
	return key, nil
}

// Copied is a snapshot that is open.
type Copied struct {
	*embedded.Instance
	At         time.Time
	Digest     string
	Path       string
	Names      map[string]bool         // of its tables
	unique     []string                // what constraints proved of the source in its moment
	policies   map[*policy.Policy]bool // for which it came into force
	users      int                     // queries that run on it, and one while it is in force
	Superseded bool                    // its file is of no use any more
}

// OpenCopy opens a whole snapshot.
func OpenCopy(ctx context.Context, path, key string) (*Copied, error) {
	at, digest, ok := parseName(filepath.Base(path))
	if !ok {
		return nil, errors.New("backend: not the name of a snapshot")
	}
	engine, err := embedded.Start(ctx, os.TempDir())
	if err != nil {
		return nil, err
	}
	c := &Copied{Instance: engine, At: at, Digest: digest, Path: path, Names: map[string]bool{}, policies: map[*policy.Policy]bool{}, users: 1}
	if err := c.read(ctx, key); err != nil {
		engine.Close()
		if ctx.Err() != nil {
			err = ctx.Err() // and nothing is wrong with the file
		}
		return nil, fmt.Errorf("snapshot %s cannot be opened: %w", filepath.Base(path), err)
	}
	return c, nil
}

func (c *Copied) read(ctx context.Context, key string) error {
	if err := c.halve(ctx); err != nil {
		return err
	}
	if _, err := c.Pool.ExecContext(ctx, embedded.Attach(c.Path, dialect.Catalog, key, true)); err != nil {
		return errors.New("not a file of this version of DuckDB, damaged, or of another key")
	}
	err := c.EachFull(ctx, "SELECT table_name FROM duckdb_tables() WHERE database_name = $1 AND schema_name = 'main'",
		func(row []string) { c.Names[row[0]] = true }, dialect.Catalog)
	if err != nil {
		return errors.New("its tables cannot be listed")
	}
	err = c.EachFull(ctx, "SELECT key FROM "+dialect.Catalog+"."+provenTable,
		func(row []string) { c.unique = append(c.unique, row[0]) })
	if err != nil {
		return errors.New("what was proved of it cannot be read")
	}
	return c.Lock(ctx)
}

// halve has an open copy take half of the memory that DB would take of the machine, beyond which its sorts go to files:
// two are open while one takes another's place.
func (c *Copied) halve(ctx context.Context) error {
	var text, unit string
	var size float64
	err := c.Pool.QueryRowContext(ctx, "SELECT current_setting('memory_limit')").Scan(&text)
	if err == nil {
		_, err = fmt.Sscanf(text, "%g %s", &size, &unit) // 18.7 GiB
	}
	if err == nil {
		_, err = c.Pool.ExecContext(ctx, "SET GLOBAL memory_limit = "+dialect.QuoteText(fmt.Sprintf("%.2f%s", size/2, unit)))
	}
	if err != nil {
		return errors.New("its memory cannot be bounded")
	}
	return nil
}

// provenTable lists the keys that constraints proved unique.
const provenTable = "dpproxy.proven"

// proven reports whether constraints proved, in the moment of the snapshot, all that is needed.
func (c *Copied) proven(needs []rewrite.Unique) bool {
	return !slices.ContainsFunc(needs, func(u rewrite.Unique) bool { return !slices.Contains(c.unique, keyName(u)) })
}

// textOf is the text that a query runs as. What it requires was proved when the copy was made: units were found by it.
func (c *Copied) textOf(query rewrite.Query) (string, error) {
	return execute.Shortest(query, func(s rewrite.Shorter) bool { return c.proven(s.Needs) }).SQL, nil
}

// keyName names what a constraint may prove of a table in a snapshot.
func keyName(u rewrite.Unique) string {
	return fmt.Sprintf("%q %q %t", rewrite.Copied(u.Table), u.Columns, u.Nullable)
}

// Discard closes a snapshot, and removes its file where another has taken its place.
func (c *Copied) Discard(log *slog.Logger) {
	if err := c.Close(); err != nil {
		log.Warn("a snapshot did not close cleanly", "error", err)
	}
	if !c.Superseded {
		return
	}
	if err := os.Remove(c.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		log.Warn("a snapshot that is no longer in force cannot be removed", "error", err)
	}
}

// FileName and parseName are the name of a snapshot's file.
func FileName(at time.Time, digest string) string {
	return at.UTC().Format(FileTime) + "-" + digest + FileEnd
}

func parseName(name string) (at time.Time, digest string, ok bool) {
	first, rest, _ := strings.Cut(name, "-")
	digest, whole := strings.CutSuffix(rest, FileEnd)
	at, err := time.Parse(FileTime, first)
	raw, bad := hex.DecodeString(digest)
	return at, digest, whole && err == nil && bad == nil && len(raw) == digestLength
}

// newest opens the newest snapshot that was made by the same SQL; nil means there is none that can be opened.
func (b *Snapshots) newest(ctx context.Context, want extractions) *Copied {
	list, err := os.ReadDir(b.Plan.Dir)
	if err != nil {
		return nil
	}
	for _, e := range slices.Backward(list) { // names are in the order of their moments
		at, digest, ok := parseName(e.Name())
		if !ok || digest != want.digest || time.Until(at) > time.Minute { // which a clock that was wrong has named
			continue
		}
		c, err := OpenCopy(ctx, filepath.Join(b.Plan.Dir, e.Name()), b.key)
		if err == nil {
			return c
		}
		b.Log.Warn("a snapshot is left out", "error", err)
	}
	return nil
}

// While rows are read they are counted by a hash of their units, so that a table of which no unit has very many rows
// (rewrite.MaxRanked) need not be grouped by its units to find that out. Where many units share a hash it may be
// grouped in vain. Neither decides which rank a row has.

// UnitCounts are numbers of rows by the last bits of a hash of their unit.
type UnitCounts []uint32

// CountsLength is few enough of them for a processor's own memory, a megabyte, and as many as tell ten thousand million
// rows of ordinary units from a heavy one: units share them, and of seventeen thousand million rows each has MaxRanked.
const (
	countsBits   = 18
	CountsLength = 1 << countsBits
)

// Counted adds up what several have counted of a table.
type Counted struct {
	mu   sync.Mutex
	sums UnitCounts // nil: nobody has
}

// Of counts so many rows of the units with a hash.
func (c UnitCounts) Of(h uint64, rows int32) {
	const golden = 0x9E3779B97F4A7C15
	c[h*golden>>(64-countsBits)] += uint32(rows)
}

// Add adds up what was counted.
func (c *Counted) Add(more UnitCounts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums = make(UnitCounts, CountsLength)
	}
	for i, n := range more {
		if c.sums[i] += n; c.sums[i] < n {
			c.sums[i] = ^uint32(0)
		}
	}
}

// Light reports whether it is known that no unit has very many rows.
func (c *Counted) Light() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sums != nil && !slices.ContainsFunc(c.sums, func(n uint32) bool { return n > rewrite.MaxRanked })
}
