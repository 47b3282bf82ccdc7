package proxy

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// COPY (SELECT …) TO STDOUT is the SELECT, its rows written otherwise.

// copyRows answers the SELECT of COPY. Columns that FORCE_QUOTE names must exist, which is seen before anything is charged.
func (c *session) copyRows(ctx context.Context, k *command, params []policy.Value) (Result, error) {
	if len(k.Copy.ForceQuote) > 0 {
		shape := &prepared{}
		if err := c.inferAsked(ctx, shape, k.Inner); err != nil {
			return Result{}, err
		}
		for _, name := range k.Copy.ForceQuote {
			if !slices.ContainsFunc(shape.columns, func(col sandbox.Column) bool { return col.Name == name }) {
				return Result{}, failure("42703", fmt.Sprintf("column %q does not exist", name))
			}
		}
	}
	return c.selectRows(ctx, *k.Inner, params)
}

// copySignature begins a binary copy: no flags, no extension.
const copySignature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// sendCopy sends the rows of a result as COPY writes them.
func (c *session) sendCopy(ctx context.Context, how *parse.Copy, result Result) error {
	formats := []int16{0}
	if how.Format == parse.CopyBinary {
		formats = inBinary
	}
	names, err := c.namesFor(ctx, result.Columns, formats)
	if err != nil {
		return err
	}
	w := newCopyWriter(how, c.encoder(result, formats, names), result.Columns)
	codes := make([]uint16, len(result.Columns))
	for i := range codes {
		codes[i] = uint16(formats[0])
	}
	c.back.Send(&pgproto3.CopyOutResponse{OverallFormat: byte(formats[0]), ColumnFormatCodes: codes})
	const unwritten = "a value cannot be written in the format that was asked for"
	if err := w.begin(); err != nil {
		return unsent(err, unwritten)
	}
	rows := result.Rows.Value().Data
	for i := 0; i < len(rows); {
		var err error
		encode := func() {
			for ; i < len(rows) && len(w.out) < flushAt && err == nil; i++ {
				err = w.row(rows[i])
			}
		}
		if len(rows) < longRows {
			encode()
		} else if c.server.workers.briefly(ctx, c.user, encode) != nil {
			return interrupted(ctx)
		}
		if err != nil {
			c.back.Send(encodedRows(w.out[:w.from]))
			return unsent(err, unwritten)
		}
		if len(w.out) >= flushAt {
			c.back.Send(encodedRows(w.out))
			if err := c.flushPart(ctx); err != nil {
				return err
			}
			w.out = w.out[:0]
		}
	}
	if err := w.end(); err != nil {
		return unsent(err, unwritten)
	}
	c.back.Send(encodedRows(w.out))
	c.back.Send(&pgproto3.CopyDone{})
	c.complete("COPY " + strconv.Itoa(len(rows)))
	return nil
}

// copyWriter writes rows as CopyData messages.
type copyWriter struct {
	*parse.Copy
	encoder *encoder
	names   []string
	forced  []bool // by column: always in quotes
	out     []byte
	from    int // where the message begins that is open
	open    bool
	value   []byte
}

func newCopyWriter(how *parse.Copy, e *encoder, columns []sandbox.Column) *copyWriter {
	w := &copyWriter{Copy: how, encoder: e, forced: make([]bool, len(columns))}
	for i, col := range columns {
		w.names = append(w.names, wire(col.Name))
		w.forced[i] = how.ForceAll || slices.Contains(how.ForceQuote, col.Name)
	}
	return w
}

// message opens a message, unless one is open: as with PostgreSQL, the head of a binary copy is in that of the first row.
func (w *copyWriter) message() {
	if !w.open {
		w.open, w.from = true, len(w.out)
		w.out = append(w.out, 'd', 0, 0, 0, 0)
	}
}

func (w *copyWriter) sealed() (err error) {
	if w.Format != parse.CopyBinary {
		if w.out, err = w.encoder.charset.rewritten(w.out, w.from+5); err != nil {
			return err
		}
		w.out = append(w.out, '\n')
	}
	binary.BigEndian.PutUint32(w.out[w.from+1:], uint32(len(w.out)-w.from-1))
	w.open = false
	return nil
}

// begin writes what stands before the rows.
func (w *copyWriter) begin() error {
	switch {
	case w.Format == parse.CopyBinary:
		w.message()
		w.out = append(w.out, copySignature...)
	case w.Header:
		w.message()
		for i, name := range w.names {
			w.part(i)
			if w.Format == parse.CopyCSV {
				w.quoted(name, false)
			} else {
				w.escaped(name)
			}
		}
		return w.sealed()
	}
	return nil
}

// end writes what stands behind them: a binary copy tells that no row follows.
func (w *copyWriter) end() error {
	if w.Format != parse.CopyBinary {
		return nil
	}
	w.message()
	w.out = binary.BigEndian.AppendUint16(w.out, 0xFFFF)
	return w.sealed()
}

// part begins a column.
func (w *copyWriter) part(i int) {
	if i > 0 {
		w.out = append(w.out, w.Delimiter)
	}
}

// row writes a row.
func (w *copyWriter) row(values []policy.Value) error {
	if len(values) != len(w.names) {
		return errEncode
	}
	w.message()
	if w.Format == parse.CopyBinary {
		w.out = binary.BigEndian.AppendUint16(w.out, uint16(len(values)))
	}
	for i, v := range values {
		if err := w.field(i, v); err != nil {
			return err
		}
	}
	return w.sealed()
}

func (w *copyWriter) field(i int, v policy.Value) (err error) {
	if w.Format == parse.CopyBinary {
		at := len(w.out)
		w.out = binary.BigEndian.AppendUint32(w.out, 0xFFFFFFFF)
		if v != nil {
			w.out, err = w.encoder.binary(w.out, w.encoder.types[i], v)
			binary.BigEndian.PutUint32(w.out[at:], uint32(len(w.out)-at-4))
		}
		return err
	}
	w.part(i)
	if v == nil {
		w.out = append(w.out, w.Null...)
		return nil
	}
	if w.value, err = w.encoder.text(w.value[:0], w.encoder.types[i], v); err != nil {
		return err
	}
	if w.Format == parse.CopyCSV {
		w.quoted(string(w.value), w.forced[i])
	} else {
		w.escaped(string(w.value))
	}
	return nil
}

// copyEscapes are the characters that text writes as a backslash and a letter.
var copyEscapes = map[byte]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v'}

// escaped writes a value of the text format.
func (w *copyWriter) escaped(s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if letter, ok := copyEscapes[c]; ok {
			w.out = append(w.out, '\\', letter)
			continue
		}
		if c == '\\' || c == w.Delimiter {
			w.out = append(w.out, '\\')
		}
		w.out = append(w.out, c)
	}
}

// quoted writes a value of the CSV format, in quotes where it could be misread.
func (w *copyWriter) quoted(s string, always bool) {
	misread := s == w.Null || len(w.names) == 1 && s == `\.` ||
		strings.IndexByte(s, w.Delimiter) >= 0 || strings.IndexByte(s, w.Quote) >= 0 || strings.ContainsAny(s, "\r\n")
	if !always && !misread {
		w.out = append(w.out, s...)
		return
	}
	w.out = append(w.out, w.Quote)
	for i := 0; i < len(s); i++ {
		if s[i] == w.Quote || s[i] == w.Escape {
			w.out = append(w.out, w.Escape)
		}
		w.out = append(w.out, s[i])
	}
	w.out = append(w.out, w.Quote)
}
