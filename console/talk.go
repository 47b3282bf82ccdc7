package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// What an analyst's page shows it has asked for as any client does: a session of the wire's protocol, over a connection
// that does not leave the process. A page opens one and closes it; nothing of it outlives the page, so that a log-out
// or a policy that is reloaded finds none to end.

// talk is one such session. It serves one page, and one goroutine at a time.
type talk struct {
	conn   net.Conn
	front  *pgproto3.Frontend
	served context.Context
}

// answer is what one statement brought.
type answer struct {
	Columns []column
	Rows    [][]cell
	Notices []message
	Cut     bool // there are more rows than a page shows
}

type column struct {
	Name string
	OID  uint32
}

// cell is a value as text. Its bytes are those of the wire.
type cell struct {
	Text string
	Null bool
}

// message is an error or a notice, as psql shows it.
type message struct {
	Severity, Code, Message, Detail, Hint string
	Position                              int // in characters of what was asked, from 1; 0 means none
}

func (m *message) Error() string { return m.Message }

const (
	maxRows   = 2000    // of an answer that are shown
	maxBytes  = 1 << 20 // of them, with what a cell takes
	cellBytes = 64      // of a cell without a text
	maxRow    = 4 << 20 // of one row; EXPLAIN's answer is one
)

// errGone says that the proxy ended a session: it shuts down, or the page's time is over.
var errGone = errors.New("the proxy has ended the session")

// converse opens a session in a dataset, with settings as a client gives them at its start. The context ends it at any
// moment.
func converse(ctx context.Context, conn net.Conn, user, dataset string, settings map[string]string) (*talk, error) {
	t := &talk{conn: conn, front: pgproto3.NewFrontend(conn, conn), served: ctx}
	t.front.SetMaxBodyLen(maxRow)
	parameters := map[string]string{"user": user, "database": dataset, "application_name": "dpproxy console", "client_encoding": "UTF8"}
	for name, value := range settings {
		parameters[name] = value
	}
	for name, value := range parameters {
		switch err := carried(value); {
		case err != nil && name == "database":
			return nil, errors.Join(&message{Severity: "FATAL", Code: "3D000", Message: fmt.Sprintf("database %q does not exist", value)}, conn.Close())
		case err != nil:
			return nil, errors.Join(err, conn.Close())
		}
	}
	opening := &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: parameters}
	if _, err := t.exchange(opening); err != nil {
		conn.Close()
		return nil, err
	}
	return t, nil
}

// carried refuses a text that no message of the protocol carries.
func carried(text string) error {
	if strings.Contains(text, "\x00") {
		return &message{Severity: "ERROR", Code: "22021", Message: "a text holds a zero byte"}
	}
	return nil
}

// ask has one statement answered. It goes by the extended protocol, which takes one alone: what stands behind a
// semicolon is refused before anything is run, so that EXPLAIN before a text explains all of it.
func (t *talk) ask(sql string) (answer, error) {
	if err := carried(sql); err != nil {
		return answer{}, err
	}
	return t.exchange(&pgproto3.Parse{Query: sql}, &pgproto3.Bind{}, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{MaxRows: maxRows + 1}, &pgproto3.Sync{})
}

// exchange sends messages and reads up to ReadyForQuery. It writes beside reading: the other side may answer before it
// has read all, and such a connection holds nothing in between.
func (t *talk) exchange(messages ...pgproto3.FrontendMessage) (a answer, err error) {
	defer context.AfterFunc(t.served, func() { t.conn.Close() })()
	var out []byte
	for _, m := range messages {
		if out, err = m.Encode(out); err != nil {
			return a, err
		}
	}
	written := make(chan error, 1)
	go func() {
		_, err := t.conn.Write(out)
		written <- err
	}()
	failed := t.read(&a)
	if failed == nil || t.stays(failed) {
		if err := <-written; err != nil {
			return a, errGone
		}
		return a, failed
	}
	t.conn.Close()
	<-written
	return a, failed
}

// stays tells an error after which the session goes on.
func (t *talk) stays(err error) bool {
	var told *message
	return errors.As(err, &told) && told.Severity != "FATAL"
}

func (t *talk) read(a *answer) error {
	var failed *message
	bytes := 0
	for {
		received, err := t.front.Receive()
		var long *pgproto3.ExceededMaxBodyLenErr
		switch {
		case errors.As(err, &long):
			return &message{Severity: "FATAL", Code: "54000", Message: "the answer has a row that is too long for a page", Hint: "psql shows it, and for free: what was bought is yours."}
		case err != nil && failed != nil:
			return failed
		case err != nil && t.served.Err() != nil:
			return fmt.Errorf("%w: %w", errGone, context.Cause(t.served))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe):
			return errGone
		case err != nil:
			return err
		}
		switch m := received.(type) {
		case *pgproto3.RowDescription:
			for _, f := range m.Fields {
				a.Columns = append(a.Columns, column{string(f.Name), f.DataTypeOID})
			}
		case *pgproto3.DataRow:
			if len(a.Rows) >= maxRows || bytes > maxBytes {
				a.Cut = true
				continue
			}
			row := make([]cell, len(m.Values))
			for i, v := range m.Values {
				row[i] = cell{string(v), v == nil}
				bytes += len(v) + cellBytes
			}
			a.Rows = append(a.Rows, row)
		case *pgproto3.NoticeResponse:
			a.Notices = append(a.Notices, messageOf((*pgproto3.ErrorResponse)(m)))
		case *pgproto3.ErrorResponse:
			told := messageOf(m)
			if failed = &told; told.Severity == "FATAL" {
				return failed
			}
		case *pgproto3.ReadyForQuery:
			if failed != nil {
				return failed
			}
			return nil
		}
	}
}

func messageOf(e *pgproto3.ErrorResponse) message {
	return message{e.Severity, e.Code, e.Message, e.Detail, e.Hint, int(e.Position)}
}

// close ends the session as a client does that says good-bye; one that has ended already does not hear it.
func (t *talk) close() {
	if out, err := (&pgproto3.Terminate{}).Encode(nil); err == nil && t.served.Err() == nil && t.conn.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		_, _ = t.conn.Write(out)
	}
	t.conn.Close()
}
