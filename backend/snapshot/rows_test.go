package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/embedded"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/rewrite"
)

// stagedHere is a maker with nothing but a place where rows of each kind of field wait.
func stagedHere(t *testing.T, numbered bool) (*Maker, *Staged, rewrite.Extraction) {
	t.Helper()
	engine, err := embedded.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	m := &Maker{Instance: engine, Log: slog.New(slog.DiscardHandler), unitsMost: units.Memory}
	if numbered {
		m.units = map[string]*units.Numbers{}
	}
	if err := m.Exec(t.Context(), "ATTACH ':memory:' AS staged"); err != nil {
		t.Fatal(err)
	}
	e := rewrite.Extraction{Table: backendtest.TestPolicy(t, "postgres://h/d").Datasets[0].Tables[0], Fields: []rewrite.Field{
		{Name: "u", Kind: rewrite.Words, OfUnit: true}, {Name: "n1", Kind: rewrite.Whole}, {Name: "n2", Kind: rewrite.Real}, {Name: "n3", Kind: rewrite.Words}, {Name: "n4", Kind: rewrite.Long, Scale: 2}}}
	into, err := m.stage(t.Context(), 0, e)
	if err != nil {
		t.Fatal(err)
	}
	return m, into, e
}

// itemsOf are the items of a row as PostgreSQL sends them: the i-th field of every (i + 3)-th row is NULL.
func itemsOf(i int) [][]byte {
	eight := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	row := [][]byte{fmt.Appendf(nil, "unit %d", i%5000), eight(uint64(-i)), eight(math.Float64bits(float64(i) / 4)), []byte(strings.Repeat("x", i%7) + fmt.Sprint(i)),
		{0, 1, 0, 0, 0, 0, 0, 0, byte(i % 10000 >> 8), byte(i % 10000)}}
	for field := range row {
		if i%(field+3) == 0 {
			row[field] = nil
		}
	}
	return row
}

// rowsInBatches are the rows of itemsOf from 0 to below $1, in DB's words.
const rowsInBatches = `SELECT CASE WHEN i % 3 > 0 THEN 'unit ' || i % 5000 END AS u, CASE WHEN i % 4 > 0 THEN -i END AS n1, CASE WHEN i % 5 > 0 THEN i / 4.0::DOUBLE END AS n2,
  CASE WHEN i % 6 > 0 THEN repeat('x', i % 7) || i END AS n3, CASE WHEN i % 7 > 0 THEN i % 10000 || '.00' END AS n4 FROM (SELECT range AS i FROM range($1))`

// TestRowsInBatches: what several readers hand on is in the table, row by row, NULL where it is, and units that are
// texts are one number each.
func TestRowsInBatches(t *testing.T) {
	t.Parallel()
	const rows, readers = 30011, 3
	for _, numbered := range []bool{true, false} {
		m, into, e := stagedHere(t, numbered)
		tallies := make([]UnitCounts, readers)
		err := into.Fill(t.Context(), e, readers, func(_ context.Context, c *Coming) error {
			var all sync.WaitGroup
			for reader := range readers {
				all.Go(func() {
					tallies[reader] = make(UnitCounts, CountsLength)
					b := c.EmptyBatch()
					for i := reader; i < rows; i += readers {
						err := b.Add(itemsOf(i))
						if err == nil && b.Full() {
							b, err = c.Hand(b, tallies[reader])
						}
						if err != nil {
							t.Error(err)
							return
						}
					}
					if _, err := c.Hand(b, tallies[reader]); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Pool.Exec("CREATE TABLE staged.main.wanted AS "+rowsInBatches, rows); err != nil {
			t.Fatal(err)
		}
		const cells = "SELECT n1, n2, n3, n4, u IS NULL FROM staged.main."
		var units, pairs, wrong, missing int
		err = m.Pool.QueryRow(`SELECT (SELECT count(DISTINCT u) FROM staged.main.t0),
  (SELECT count(*) FROM (SELECT DISTINCT s.u, w.u FROM staged.main.t0 AS s JOIN staged.main.wanted AS w ON w.n1 = s.n1 WHERE s.u IS NOT NULL)),
  (SELECT count(*) FROM (`+cells+`t0 EXCEPT ALL `+cells+`wanted)), (SELECT count(*) FROM (`+cells+`wanted EXCEPT ALL `+cells+`t0))`).Scan(&units, &pairs, &wrong, &missing)
		if err != nil {
			t.Fatal(err)
		}
		if units != 5000 || pairs != 3750 || // a quarter have rows with n1 of NULL alone
			wrong != 0 || missing != 0 {
			t.Errorf("numbered %t: %d units, %d pairs of one and its text, %d rows that should not be there, %d that are missing", numbered, units, pairs, wrong, missing)
		}
		counted := 0
		for _, tally := range tallies {
			for _, n := range tally {
				counted += int(n)
			}
		}
		if want := rows - (rows+2)/3; counted != want {
			t.Errorf("numbered %t: %d rows of units are counted, not %d", numbered, counted, want)
		}
	}
}

// TestBatchesThatFail: whatever ends the reading or the writing ends both, what is said is the first cause, and no row
// stays.
func TestBatchesThatFail(t *testing.T) {
	t.Parallel()
	m, into, e := stagedHere(t, true)
	tally := make(UnitCounts, CountsLength)
	endless := func(stop error) func(context.Context, *Coming) error {
		return func(ctx context.Context, c *Coming) error {
			b := c.EmptyBatch()
			for i := 0; ; i++ {
				err := b.Add(itemsOf(i))
				if err == nil && b.Full() {
					b, err = c.Hand(b, tally)
				}
				if err == nil && i > 20000 {
					err = stop
				}
				if err != nil {
					return err
				}
			}
		}
	}
	fault := errors.New("the source is gone")
	if err := into.Fill(t.Context(), e, 1, endless(fault)); !errors.Is(err, fault) {
		t.Errorf("a fault of the source: %v", err)
	}
	var rows int
	if err := m.Pool.QueryRow("SELECT count(*) FROM staged.main.t0").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows stay, %v", rows, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("given up")
	err := into.Fill(ctx, e, 1, func(ctx context.Context, c *Coming) error {
		cancel(gone)
		return endless(nil)(ctx, c)
	})
	if !errors.Is(err, gone) {
		t.Errorf("who gave up: %v", err)
	}
	if err := m.Exec(t.Context(), "DROP TABLE staged.main.t0"); err != nil {
		t.Fatal(err)
	}
	if err := into.Fill(t.Context(), e, 1, endless(nil)); !errors.Is(err, ErrMaking) {
		t.Errorf("a table that is gone: %v", err)
	}
	b := newBatch(e.Fields, true)
	for _, items := range [][][]byte{itemsOf(1)[:4], append(itemsOf(1), nil), {nil, {1}, nil, nil, nil}, {nil, nil, nil, nil, {1}}} {
		if err := b.Add(items); !errors.Is(err, execute.ErrResult) {
			t.Errorf("%q is taken for a row: %v", items, err)
		}
	}
	long := itemsOf(1)
	long[3] = []byte(strings.Repeat("x", maxText))
	if err := b.Add(long); err != nil || !b.Full() {
		t.Errorf("a batch with a text of a megabyte takes more: %v", err)
	}
}
