package proxy

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

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
