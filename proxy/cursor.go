package proxy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// Cursors. DECLARE draws the answer, pays for it and keeps it; FETCH and MOVE go about in what was kept, in any
// direction, and neither draw nor pay. A cursor is a portal, so messages of the extended protocol find it by its name
// as well.

// declare opens a cursor. Everything that can be refused is refused before the answer is drawn.
func (c *session) declare(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	if !k.Cursor.Hold && !c.tx.block && !c.several {
		return pipeline.Result{}, outsideBlock("DECLARE CURSOR")
	}
	if err := c.mayOpen(k.Cursor.Name); err != nil {
		return pipeline.Result{}, err
	}
	p := &portal{stmt: &prepared{command: &command{Statement: *k.Inner}}, params: params, run: true,
		binary: k.Cursor.Binary, forward: k.Cursor.NoScroll, hold: k.Cursor.Hold}
	p.under = c.standing()
	p.cursor = c.describedCursor(k.Cursor.Name, p, c.source, !p.forward, time.Now()) // its time is seen: not that of the answer's end
	var err error
	p.result, err = c.selectRows(ctx, *k.Inner, params)
	told := pipeline.Result{Tag: "DECLARE CURSOR", Notices: p.result.Notices}
	if err != nil {
		return told, err
	}
	p.columns, p.kept = p.result.Columns, p.result.Rows.Value().Size()
	if err := c.open(k.Cursor.Name, p); err != nil {
		return told, err
	}
	if p.binary {
		p.names, err = c.namesFor(ctx, p.columns, inBinary)
	}
	return told, err
}

// inBinary is the format of all columns of a BINARY cursor.
var inBinary = []int16{1}

// cursorFormats are the formats in which a simple query sends the rows of a command.
func (c *objects) cursorFormats(k *command) ([]int16, encoding.ObjectNames) {
	if k.Kind == parse.KindFetch {
		if p := c.portals[k.Fetch.Name]; p != nil && p.binary {
			return inBinary, p.names
		}
	}
	return nil, nil
}

// fetchCursor runs FETCH or MOVE.
func (c *session) fetchCursor(ctx context.Context, k *command) (pipeline.Result, error) {
	p := c.portals[k.Fetch.Name]
	if p == nil {
		return pipeline.Result{}, missingCursor(k.Fetch.Name)
	}
	if !p.run { // a portal that Bind opened
		if p.stmt.command == nil || p.columns == nil {
			return pipeline.Result{}, pgerror.New("55000", fmt.Sprintf("portal %q cannot be run", k.Fetch.Name))
		}
		if err := c.draw(ctx, p); err != nil {
			return pipeline.Result{}, err
		}
	}
	if !p.result.Rows.Valid() {
		return pipeline.Result{}, pgerror.New("55000", fmt.Sprintf("portal %q cannot be run", k.Fetch.Name))
	}
	step, ok := p.step(k.Fetch)
	if !ok {
		p.result = pipeline.Result{} // as in PostgreSQL, it cannot be run any more
		return pipeline.Result{}, pgerror.New("55000", "cursor can only scan forward").WithHint("Declare it with SCROLL option to enable backward scan.")
	}
	p.at = step.to
	count := strconv.Itoa(step.rows())
	if k.Fetch.Move {
		return pipeline.Result{Tag: "MOVE " + count}, nil
	}
	c.tellComputed(k.Fetch.Name, p)
	rows := privacy.PostProcess(p.result.Rows, func(r sandbox.Rows) sandbox.Rows {
		data := slices.Clone(r.Data[step.low:step.high])
		if step.back {
			slices.Reverse(data)
		}
		return sandbox.Rows{Columns: r.Columns, Data: data}
	})
	return pipeline.Result{Columns: p.result.Columns, Rows: rows, Tag: "FETCH " + count}, nil
}

// tellComputed says that a cursor's answer is of other settings than those of its FETCH. PostgreSQL computes rows as
// they are fetched: `at::date` is the day in the zone of then. Here they are drawn and paid for by DECLARE.
func (c *replies) tellComputed(name string, p *portal) {
	if p.under == nil {
		return
	}
	was, is := &p.under.Settings, c.settings.Typed()
	if was.Form == is.Form && was.Zone.String() == is.Zone.String() {
		return
	}
	p.under = nil
	c.notify(pipeline.Notice{Message: fmt.Sprintf("cursor %q was computed by its DECLARE, with the TimeZone, DateStyle, IntervalStyle and extra_float_digits of then", name),
		Detail: "Only how its values are written goes by those of now.", Hint: "SET them before DECLARE."})
}

func missingCursor(name string) *pgerror.Failure {
	return pgerror.New("34000", fmt.Sprintf("cursor %q does not exist", name))
}

func (c *objects) closeCursor(name string) (string, error) {
	if name == "" {
		c.closePortals()
		return "CLOSE CURSOR ALL", nil
	}
	if c.portals[name] == nil {
		return "", missingCursor(name)
	}
	c.closePortal(name)
	return "CLOSE CURSOR", nil
}

// cursorStep is what one FETCH passes: rows low up to, not including, high, counted from 0, and where it ends.
type cursorStep struct {
	low, high int
	back      bool // the last comes first
	to        int
}

func (s cursorStep) rows() int { return s.high - s.low }

// step finds what a FETCH passes from where the portal is, and reports whether the cursor may go there.
func (p *portal) step(f *parse.Fetch) (cursorStep, bool) {
	total := len(p.result.Rows.Value().Data)
	n := f.Count
	switch f.Direction {
	case parse.FetchBackward:
		return p.walk(-n, total)
	case parse.FetchAbsolute:
		to := int64(total) + 1 + n
		if n >= 0 {
			to = min(n, int64(total)+1)
		}
		s := jump(max(to, 0), total)
		return s, !p.forward || n >= 0 && p.at == 0 || n > int64(p.at)
	case parse.FetchRelative:
		if n == 0 {
			return p.walk(0, total)
		}
		to := int64(p.at) + max(min(n, int64(total)+1), -int64(total)-1)
		return jump(max(min(to, int64(total)+1), 0), total), !p.forward || n > 0
	}
	return p.walk(n, total)
}

// walk passes so many rows forward, or backward where n is negative; none is its present row once more.
func (p *portal) walk(n int64, total int) (cursorStep, bool) {
	on := p.at > 0 && p.at <= total
	switch {
	case n == 0 && on:
		return cursorStep{low: p.at - 1, high: p.at, to: p.at}, !p.forward
	case n == 0:
		at := min(p.at, total)
		return cursorStep{low: at, high: at, to: p.at}, true
	case n > 0:
		from := min(p.at, total)
		if n > int64(total-from) {
			return cursorStep{low: from, high: total, to: total + 1}, true
		}
		return cursorStep{low: from, high: from + int(n), to: from + int(n)}, true
	}
	last := max(p.at-1, 0) // rows before the one it is on
	if n < -int64(last) {
		return cursorStep{high: last, back: true}, !p.forward
	}
	return cursorStep{low: last + int(n), high: last, back: true, to: last + int(n) + 1}, !p.forward
}

// jump goes to one row, before the first (0), or behind the last.
func jump(to int64, total int) cursorStep {
	at := int(to)
	if at == 0 || at > total {
		edge := min(max(at-1, 0), total)
		return cursorStep{low: edge, high: edge, to: at}
	}
	return cursorStep{low: at - 1, high: at, to: at}
}

// COPY (SELECT …) TO STDOUT is the SELECT, its rows written otherwise.

// copyRows answers the SELECT of COPY. Columns that FORCE_QUOTE names must exist, which is seen before anything is
// charged.
func (c *session) copyRows(ctx context.Context, k *command, params []policy.Value) (pipeline.Result, error) {
	if len(k.Copy.ForceQuote) > 0 {
		shape := &prepared{}
		if err := c.inferAsked(ctx, shape, k.Inner); err != nil {
			return pipeline.Result{}, err
		}
		for _, name := range k.Copy.ForceQuote {
			if !slices.ContainsFunc(shape.columns, func(col sandbox.Column) bool { return col.Name == name }) {
				return pipeline.Result{}, pgerror.New("42703", fmt.Sprintf("column %q does not exist", name))
			}
		}
	}
	return c.selectRows(ctx, *k.Inner, params)
}

// sendCopy sends the rows of a result as COPY writes them.
func (c *session) sendCopy(ctx context.Context, how *parse.Copy, result pipeline.Result) error {
	formats := []int16{0}
	if how.Format == parse.CopyBinary {
		formats = inBinary
	}
	names, err := c.namesFor(ctx, result.Columns, formats)
	if err != nil {
		return err
	}
	w := encoding.NewCopyWriter(how, c.encoder(result, formats, names), result.Columns)
	codes := make([]uint16, len(result.Columns))
	for i := range codes {
		codes[i] = uint16(formats[0])
	}
	c.back.Send(&pgproto3.CopyOutResponse{OverallFormat: byte(formats[0]), ColumnFormatCodes: codes})
	const unwritten = "a value cannot be written in the format that was asked for"
	if err := w.Begin(); err != nil {
		return unsent(err, unwritten)
	}
	rows := len(result.Rows.Value().Data)
	for i := 0; i < rows; {
		var err error
		encode := func() {
			for ; i < rows && w.Len() < flushAt && err == nil; i++ {
				err = w.Row(result.Rows, i)
			}
		}
		if rows < longRows {
			encode()
		} else if c.server.workers.Briefly(ctx, c.user, encode) != nil {
			return interrupted(ctx)
		}
		if err != nil {
			c.back.Send(w.WholeRows())
			return unsent(err, unwritten)
		}
		if w.Len() >= flushAt {
			c.back.Send(w.Written())
			if err := c.flushPart(ctx); err != nil {
				return err
			}
			w.Sent()
		}
	}
	if err := w.End(); err != nil {
		return unsent(err, unwritten)
	}
	c.back.Send(w.Written())
	c.back.Send(&pgproto3.CopyDone{})
	c.complete("COPY " + strconv.Itoa(rows))
	return nil
}
