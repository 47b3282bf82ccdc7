package proxy

import (
	"context"
	"strconv"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"
)

// flushAt is how many bytes of rows are gathered before they are sent.
const flushAt = 64 << 10

// query answers one message of the simple protocol: its statements are one transaction, unless they say otherwise, and the
// first error ends it.
func (c *session) query(text string) error {
	delete(c.statements, "")
	delete(c.portals, "")
	err := c.cancelable(func(ctx context.Context) error { return c.statementsOf(ctx, text) })
	c.several = false
	if err != nil {
		if err = c.fail(err); err != nil {
			return err
		}
	}
	c.endImplicit()
	return c.ready()
}

func (c *session) statementsOf(ctx context.Context, text string) error {
	commands, err := c.read(text)
	if err != nil {
		return err
	}
	if len(commands) == 0 {
		c.back.Send(&pgproto3.EmptyQueryResponse{})
		return nil
	}
	c.several = len(commands) > 1
	for i := range commands {
		if err := c.answer(ctx, &commands[i]); err != nil {
			return err
		}
	}
	return nil
}

// read parses the text of a message.
func (c *session) read(text string) ([]command, error) {
	if !utf8.ValidString(text) {
		return nil, failure("22021", `invalid byte sequence for encoding "UTF8"`)
	}
	commands, refusal := c.server.parse(text)
	if refusal != nil {
		return nil, refusal
	}
	return commands, nil
}

func (c *session) answer(ctx context.Context, k *command) error {
	result, err := c.perform(ctx, k, nil)
	for _, n := range result.Notices {
		c.notify(n)
	}
	if err != nil {
		return err
	}
	if !k.returnsRows() {
		c.complete(result.Tag)
		return nil
	}
	c.back.Send(rowDescription(result.Columns, nil))
	rows := len(result.Rows.Value().Data)
	if err := c.sendRows(c.encoder(result, nil, nil), result, 0, rows); err != nil {
		return err
	}
	c.complete(countedTag(result.Tag, rows))
	return nil
}

func (c *session) complete(tag string) {
	c.back.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
}

// countedTag adds the number of rows where PostgreSQL does.
func countedTag(tag string, rows int) string {
	if tag == "" || tag == "SELECT" {
		return "SELECT " + strconv.Itoa(rows)
	}
	return tag
}

// encoder writes the rows of a result as the settings say.
func (c *session) encoder(result Result, formats []int16, names objectNames) *encoder {
	digits, err := strconv.Atoi(c.settings.value("extra_float_digits"))
	if err != nil {
		digits = 1
	}
	e := newEncoder(result.Columns, formats, c.settings.current().Zone, digits)
	e.names = names
	return e
}

// sendRows sends the rows of a result from one index up to, not including, another.
func (c *session) sendRows(e *encoder, result Result, from, to int) error {
	var err error
	buffer := c.buffer[:0]
	for i := from; i < to; i++ {
		if buffer, err = e.row(buffer, result.Rows, i); err != nil {
			return failure("42883", "a value cannot be sent in the format that was asked for")
		}
		if len(buffer) >= flushAt {
			c.back.Send(encodedRows(buffer))
			if err := c.flush(); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	if len(buffer) > 0 {
		c.back.Send(encodedRows(buffer))
	}
	if cap(buffer) <= 2*flushAt {
		c.buffer = buffer
	}
	return nil
}
