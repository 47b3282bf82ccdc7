package proxy

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// longRows is the number of rows from which on a user's sessions encode them one after the other, a part at a time. No
// part waits for a client: a slow one keeps its rows, which count as its user's memory, and nothing else.
const longRows = 1000

// flushAt is how many bytes of rows are gathered before they are sent.
const flushAt = 64 << 10

// query answers one message of the simple protocol: its statements are one transaction, unless they say otherwise, and
// the first error ends it.
func (c *session) query(text string) error {
	c.dropStatement("")
	c.source = text
	c.closePortal("")
	err := c.cancelable(func(ctx context.Context) error { return c.statementsOf(ctx, text) })
	c.several = false
	return c.endMessage(err)
}

// endMessage ends a message that is a transaction of its own, unless its statements said otherwise.
func (c *session) endMessage(err error) error {
	if err != nil {
		if err = c.fail(err); err != nil {
			return err
		}
	}
	c.endImplicit()
	return c.ready()
}

// statementsOf runs the statements of a text. Each is read in the dialect that those before it, and the policy, leave
// in force.
func (c *session) statementsOf(ctx context.Context, text string) error {
	for from, some := 0, false; ; {
		if err := c.refresh(); err != nil {
			return err
		}
		part := c.readable(text[from:])
		blank := utf8.RuneCountInString(text[:from]) // keeps positions in errors those of the whole text
		commands, under, err := c.read(ctx, strings.Repeat(" ", blank)+part)
		if err != nil {
			return err
		}
		some = some || len(commands) > 0
		c.several = c.several || len(commands) > 1 || len(commands) > 0 && from+len(part) < len(text)
		next, err := c.runAll(ctx, commands, under)
		if err != nil {
			return err
		}
		if next < len(commands) {
			from += commands[next].From - blank
			continue
		}
		if from += len(part); from == len(text) {
			if !some {
				c.back.Send(&pgproto3.EmptyQueryResponse{})
			}
			return nil
		}
	}
}

// readable is the part of a text that is read at once: all of it, or, where it may change the dialect, its first
// statement.
func (c *replies) readable(text string) string {
	if strings.Contains(strings.ToLower(text), "dp.dialect") {
		if pieces := parse.Split(text, c.settings.Dialect()); len(pieces) > 1 {
			return text[:pieces[1].From]
		}
	}
	return text
}

// runAll answers commands, up to one that must be read again: those before it have changed the dialect, or the policy
// has changed.
func (c *session) runAll(ctx context.Context, commands []command, under reading) (next int, err error) {
	for i := range commands {
		if err := c.refresh(); err != nil {
			return 0, err
		}
		if under != c.reading() {
			return i, nil
		}
		if err := c.answer(ctx, &commands[i]); c.overtaken(ctx, err) {
			return i, nil
		} else if err != nil {
			return 0, err
		}
	}
	return len(commands), nil
}

// reading is what the tree of a statement depends on beside its text.
type reading struct {
	dialect parse.Dialect
	dataset *policy.Dataset // whose names MySQL's are looked up in; nil for a dialect that looks nothing up
}

func (c *session) reading() reading {
	r := reading{dialect: c.settings.Dialect()}
	if r.dialect != parse.PostgreSQL {
		r.dataset = c.dataset
	}
	return r
}

// longText is the length from which on a text takes long enough to be parsed that a user's sessions do it one after the
// other.
const longText = 4 << 10

// shortText is the length up to which the last texts that were parsed are kept with what they became, for a client that
// sends them again: what looks whether a connection is alive (SELECT 1), the charts of a dashboard that is refreshed.
// Nothing writes to a tree: a prepared statement's is run many times too. All of a session's take some 300 kB at most.
const (
	shortText  = 512
	shortTexts = 8
)

// parsed is a text that was read, and what it became.
type parsed struct {
	text     string
	under    reading
	commands []command
}

// read parses the text of a message, in the dialect that is in force once the session is up to the policy.
func (c *session) read(ctx context.Context, text string) ([]command, reading, error) {
	under := c.reading()
	for i := range c.parsed {
		if p := &c.parsed[i]; text == p.text && under == p.under && text != "" {
			return slices.Clone(p.commands), under, nil
		}
	}
	if !utf8.ValidString(text) {
		return nil, under, pgerror.New("22021", `invalid byte sequence for encoding "UTF8"`)
	}
	var commands []command
	var refusal *refuse.Refusal
	clock := c.server.config.Spans.Clock()
	work := func() {
		if under.dialect == parse.PostgreSQL {
			commands, refusal = c.server.parse(text)
		} else {
			commands, refusal = parseCommandsAs(text, under.dialect, under.dataset)
		}
	}
	if len(text) < longText {
		work()
	} else if err := c.server.workers.Briefly(ctx, c.user, work); err != nil {
		return nil, under, interrupted(ctx)
	}
	if c.parse = clock(); refusal != nil {
		return nil, under, refusal
	}
	if len(text) <= shortText {
		c.parsed[c.texts%shortTexts] = parsed{text, under, slices.Clone(commands)}
		c.texts++
	}
	return commands, under, nil
}

// answer runs one command of a message of the simple protocol, and sends all that it returns.
func (c *session) answer(ctx context.Context, k *command) error {
	result, err := c.perform(ctx, k, nil)
	for _, n := range result.Notices {
		c.notify(n)
	}
	if err != nil {
		return err
	}
	if !result.Rows.Valid() {
		c.complete(result.Tag)
		return nil
	}
	if k.Kind != parse.KindFetch { // whose rows the cursor keeps
		size := result.Rows.Value().Size()
		if err := c.keep(size); err != nil {
			return err
		}
		defer c.forget(size)
	}
	if k.Kind == parse.KindCopy {
		return c.sendCopy(ctx, k.Copy, result)
	}
	formats, names := c.cursorFormats(k)
	c.describeRows(result.Columns, formats)
	rows := len(result.Rows.Value().Data)
	if err := c.sendRows(ctx, c.encoder(result, formats, names), result, 0, rows); err != nil {
		return err
	}
	c.complete(countedTag(result.Tag, rows))
	return nil
}

func (c *replies) complete(tag string) {
	c.completed.CommandTag = append(c.completed.CommandTag[:0], tag...)
	c.back.Send(&c.completed)
}

// countedTag adds the number of rows where PostgreSQL does.
func countedTag(tag string, rows int) string {
	switch {
	case tag == "" || tag == "SELECT":
		return "SELECT " + strconv.Itoa(rows)
	case strings.HasPrefix(tag, "FETCH "):
		return "FETCH " + strconv.Itoa(rows) // of this part
	}
	return tag
}

// encoder writes the rows of a result as the settings say.
func (c *replies) encoder(result pipeline.Result, formats []int16, names encoding.ObjectNames) *encoding.Encoder {
	if names == nil {
		return c.description(result.Columns, formats).encoder
	}
	return encoding.NewEncoder(result.Columns, formats, c.mannered().style, names)
}

// unsent says why a value was not sent.
func unsent(err error, otherwise string) error {
	var f *pgerror.Failure
	if errors.As(err, &f) {
		return f
	}
	return pgerror.New("42883", otherwise)
}

// sendRows sends the rows of a result from one index up to, not including, another. A cancel request ends it: the
// answer is paid for, and comes again for free.
func (c *objects) sendRows(ctx context.Context, e *encoding.Encoder, result pipeline.Result, from, to int) error {
	var err error
	buffer := c.buffer[:0]
	for i := from; i < to; {
		encode := func() {
			for ; i < to && len(buffer) < flushAt && err == nil; i++ {
				buffer, err = e.Row(buffer, result.Rows, i)
			}
		}
		if to-from < longRows {
			encode()
		} else if c.server.workers.Briefly(ctx, c.user, encode) != nil {
			return interrupted(ctx)
		}
		if err != nil {
			c.back.Send(encoding.Encoded(buffer))
			return unsent(err, "a value cannot be sent in the format that was asked for")
		}
		if len(buffer) >= flushAt {
			c.back.Send(encoding.Encoded(buffer))
			if err := c.flushPart(ctx); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	if len(buffer) > 0 {
		c.back.Send(encoding.Encoded(buffer))
	}
	if cap(buffer) <= 2*flushAt {
		c.buffer = buffer
	}
	return nil
}
