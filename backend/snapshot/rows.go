package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/backend/units"
	"github.com/dpproxy/dpproxy/rewrite"
)

// Rows come from a source in batches of as many as DB takes at a time, column by column, through a function that gives
// what is still to come:
//
//	INSERT INTO staged.main.t0 SELECT * FROM coming1()
//
// No value has a place in memory of its own, units that are texts get their numbers many at a time (package units), and
// DB writes rows while the next are read.

// maxText is how many bytes of a column's texts fill a batch, whose rows may be long.
const maxText = 1 << 20

// batch is rows that wait for DB to take them.
type batch struct {
	rows, most int
	columns    []column
}

// column is what a batch has of a field.
type column struct {
	field *rewrite.Field
	items int
	words bool // it comes as texts
	unit  bool // which get numbers

	numbers []int64 // by row, those of texts if they get some; of a Real its bits
	text    []byte  // one after the other
	ends    []int   // by row
	nulls   []int   // rows
	search  units.Search
}

// newBatch is an empty one of some fields, where units that are texts get numbers or not.
func newBatch(fields []rewrite.Field, numbered bool) *batch {
	b := &batch{most: duckdb.GetDataChunkCapacity(), columns: make([]column, len(fields))}
	for i := range b.columns {
		f, c := &fields[i], &b.columns[i]
		c.field, c.items, c.words = f, f.Items(), !f.Stored() && (f.Kind == rewrite.Words || f.Kind == rewrite.Long)
		c.unit = c.words && f.OfUnit && numbered
		c.numbers = make([]int64, b.most)
		if c.words {
			c.ends = make([]int, b.most)
		}
	}
	return b
}

// Add takes a row of its items, in PostgreSQL's binary form.
func (b *batch) Add(items [][]byte) error {
	for i := range b.columns {
		c := &b.columns[i]
		if len(items) < c.items || !c.add(b.rows, items[:c.items]) {
			return execute.ErrResult
		}
		items = items[c.items:]
	}
	if len(items) > 0 {
		return execute.ErrResult
	}
	b.rows++
	return nil
}

// add reports whether the items are values of their types.
func (c *column) add(row int, items [][]byte) (ok bool) {
	number, known, v := int64(0), items[0] != nil, items[0]
	switch f := c.field; {
	case f.Stored():
		if number, known, ok = f.Number(items); !ok {
			return false
		}
	case !known:
	case c.words && f.Kind == rewrite.Words:
		c.text = append(c.text, v...)
	case c.words:
		text, ok := f.Decimal(v)
		if !ok {
			return false
		}
		c.text = append(c.text, text...)
	case len(v) != 8 || f.Kind != rewrite.Whole && f.Kind != rewrite.Real:
		return false
	default:
		number = int64(binary.BigEndian.Uint64(v))
	}
	c.numbers[row] = number
	if c.words {
		c.ends[row] = len(c.text)
	}
	if !known {
		c.nulls = append(c.nulls, row)
	}
	return true
}

// Full reports whether no other row goes in.
func (b *batch) Full() bool {
	if b.rows == b.most {
		return true
	}
	for i := range b.columns {
		if len(b.columns[i].text) >= maxText {
			return true
		}
	}
	return false
}

func (b *batch) clear() {
	b.rows = 0
	for i := range b.columns {
		c := &b.columns[i]
		c.text, c.nulls = c.text[:0], c.nulls[:0]
	}
}

// textOf is a row's text.
func (c *column) textOf(row int) []byte {
	from := 0
	if row > 0 {
		from = c.ends[row-1]
	}
	return c.text[from:c.ends[row]]
}

// number gives units their numbers; that of NULL is not read.
func (b *batch) number(known *units.Numbers) error {
	for i := range b.columns {
		if c := &b.columns[i]; c.unit {
			if err := known.Of(c.textOf, c.numbers[:b.rows], &c.search); err != nil {
				return err
			}
		}
	}
	return nil
}

// tally counts the rows by their first field, which names their units, and not those that are nobody's.
func (b *batch) tally(into UnitCounts) {
	c := &b.columns[0]
	switch {
	case c.words && !c.unit:
		for row := range b.rows {
			into.Of(units.Hash(c.textOf(row)), 1)
		}
	case c.field.Kind == rewrite.Real:
		return
	default:
		for _, n := range c.numbers[:b.rows] {
			into.Of(uint64(n), 1)
		}
	}
	for _, row := range c.nulls {
		h := uint64(c.numbers[row])
		if c.words && !c.unit {
			h = units.Hash(c.textOf(row))
		}
		into.Of(h, -1)
	}
}

// put writes the column into a chunk of DB's, as its i-th.
func (c *column) put(chunk duckdb.DataChunk, i, rows int) error {
	for row := range rows {
		var err error
		switch {
		case c.words && !c.unit:
			err = duckdb.SetChunkValue(chunk, i, row, c.textOf(row))
		case c.field.Kind == rewrite.Real && !c.field.Stored():
			err = duckdb.SetChunkValue(chunk, i, row, math.Float64frombits(uint64(c.numbers[row])))
		default:
			err = duckdb.SetChunkValue(chunk, i, row, c.numbers[row])
		}
		if err != nil {
			return ErrMaking
		}
	}
	for _, row := range c.nulls {
		if chunk.SetValue(i, row, nil) != nil {
			return ErrMaking
		}
	}
	return nil
}

// Coming is the rows of a table, as DB asks for them.
type Coming struct {
	*Staged
	ctx     context.Context
	fields  []rewrite.Field
	readers int
	batches chan *batch
	empty   chan *batch // that were taken
	ended   chan struct{}
	takers  atomic.Int64
}

var _ duckdb.ParallelChunkTableSource = (*Coming)(nil)

// Fill has do hand on rows in batches, from several readers at a time, until it returns or ctx ends, and puts them into
// the table. Nothing of them is there when it fails.
func (s *Staged) Fill(ctx context.Context, e rewrite.Extraction, readers int, do func(context.Context, *Coming) error) error {
	conn, err := s.Pool.Conn(ctx)
	if err != nil {
		return ErrMaking
	}
	defer conn.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &Coming{Staged: s, ctx: ctx, fields: e.Fields, readers: readers, batches: make(chan *batch, 2*readers), empty: make(chan *batch, 4*readers), ended: make(chan struct{})}
	s.fills++
	name := fmt.Sprintf("coming%d", s.fills)
	bind := func(map[string]any, ...any) (duckdb.ParallelChunkTableSource, error) { return c, nil }
	if err := duckdb.RegisterTableUDF(conn, name, duckdb.ParallelChunkTableFunction{BindArguments: bind}); err != nil {
		return ErrMaking
	}
	taken := make(chan error, 1)
	go func() {
		_, err := conn.ExecContext(ctx, "INSERT INTO staged.main."+s.Name+" SELECT * FROM "+name+"()")
		if err = s.Failed(err); err != nil {
			cancel(err) // whoever reads ends
		}
		taken <- err
	}()
	if err = do(ctx, c); err != nil {
		cancel(err)
	}
	close(c.batches)
	close(c.ended)
	if took := <-taken; err == nil {
		err = took
	}
	return err
}

// Hand gives a batch to DB, and returns an empty one.
func (c *Coming) Hand(b *batch, tally UnitCounts) (*batch, error) {
	if b.rows == 0 {
		return b, nil
	}
	if c.units != nil {
		if err := b.number(c.units); err != nil {
			return b, err
		}
	}
	b.tally(tally)
	select {
	case c.batches <- b:
	case <-c.ctx.Done():
		return b, context.Cause(c.ctx)
	}
	return c.EmptyBatch(), nil
}

// EmptyBatch is one that was read before, or a new one.
func (c *Coming) EmptyBatch() *batch {
	select {
	case b := <-c.empty:
		b.clear()
		return b
	default:
		return newBatch(c.fields, c.units != nil)
	}
}

// ColumnInfos: see duckdb.ParallelChunkTableSource, as the following are.
func (c *Coming) ColumnInfos() []duckdb.ColumnInfo {
	list := make([]duckdb.ColumnInfo, len(c.fields))
	for i := range list {
		f := &c.fields[i]
		kind := map[string]duckdb.Type{"BIGINT": duckdb.TYPE_BIGINT, "DOUBLE": duckdb.TYPE_DOUBLE, "VARCHAR": duckdb.TYPE_VARCHAR}[c.typeOf(f)]
		list[i].Name = f.Name
		list[i].T, _ = duckdb.NewTypeInfo(kind) // which takes these
	}
	return list
}

// Cardinality is not known.
func (c *Coming) Cardinality() *duckdb.CardinalityInfo { return nil }

// Init gives each of DB's threads a part, since one that has none asks for one again and again while the others work.
func (c *Coming) Init() duckdb.ParallelTableSourceInfo {
	return duckdb.ParallelTableSourceInfo{MaxThreads: runtime.GOMAXPROCS(0)}
}

// taker is one of the threads. As many as there are readers take rows; the others wait for the end, and hold none.
type taker struct{ number int64 }

// NewLocalState is a taker.
func (c *Coming) NewLocalState() any { return &taker{c.takers.Add(1)} }

// FillChunk takes a batch; no rows are the end.
func (c *Coming) FillChunk(state any, chunk duckdb.DataChunk) error {
	if t, ok := state.(*taker); !ok || t.number > int64(c.readers) {
		select {
		case <-c.ended:
			return chunk.SetSize(0)
		case <-c.ctx.Done():
			return ErrMaking
		}
	}
	select {
	case b, more := <-c.batches:
		if !more && c.ctx.Err() != nil {
			return ErrMaking // what came is not all
		}
		if !more {
			return chunk.SetSize(0)
		}
		for i := range b.columns {
			if err := b.columns[i].put(chunk, i, b.rows); err != nil {
				return err
			}
		}
		err := chunk.SetSize(b.rows)
		select {
		case c.empty <- b:
		default:
		}
		return err
	case <-c.ctx.Done():
		return ErrMaking
	}
}
