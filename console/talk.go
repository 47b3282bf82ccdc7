package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/digits"
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

// ask has one statement answered. It goes by the extended protocol, which takes one alone: what follows a semicolon is
// refused before anything is run, so that EXPLAIN before a text explains all of it.
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

// answerView is an answer as a table, and as a plot where it has one.
type answerView struct {
	Notices []message
	Heads   []head
	Rows    [][]valueView
	Cut     bool
	Bars    *barChart
	Line    *lineChart
}

type head struct {
	Name   string
	Number bool // its values are on the right
}

// valueView is one value, with the interval that its own x_low and x_high give.
type valueView struct {
	Head          string // of its column, for narrow screens
	Text, Between string
	Null, Number  bool
}

// escaped is a path's segment.
func escaped(name string) string { return url.PathEscape(name) }

func number(oid uint32) bool {
	switch oid {
	case 20, 21, 23, 700, 701, 1700:
		return true
	}
	return false
}

// moment tells the types that are put on an axis by their order, and are no numbers.
func moment(oid uint32) bool { return oid == 1082 || oid == 1114 || oid == 1184 }

// bounds finds, for each column, those that hold its interval.
func bounds(columns []column) (low, high map[int]int, hidden map[int]bool) {
	low, high, hidden = map[int]int{}, map[int]int{}, map[int]bool{}
	for i := 0; i+2 < len(columns); i++ {
		name := columns[i].Name
		if columns[i+1].Name == name+"_low" && columns[i+2].Name == name+"_high" {
			low[i], high[i], hidden[i+1], hidden[i+2] = i+1, i+2, true, true
		}
	}
	return low, high, hidden
}

func viewOf(a answer) answerView {
	v := answerView{Notices: a.Notices, Cut: a.Cut}
	low, high, hidden := bounds(a.Columns)
	for i, c := range a.Columns {
		if !hidden[i] {
			v.Heads = append(v.Heads, head{c.Name, number(c.OID)})
		}
	}
	for _, row := range a.Rows {
		var values []valueView
		for i, c := range row {
			if hidden[i] {
				continue
			}
			one := valueView{Head: a.Columns[i].Name, Text: c.Text, Null: c.Null, Number: number(a.Columns[i].OID)}
			if at, ok := low[i]; ok && !row[at].Null && !row[high[i]].Null {
				one.Between = row[at].Text + " to " + row[high[i]].Text
				if shown, between := digits.Shown(c.Text, row[at].Text, row[high[i]].Text); shown != "" {
					one.Text, one.Between = shown, between
				}
			}
			values = append(values, one)
		}
		v.Rows = append(v.Rows, values)
	}
	v.plot(a, low, high, hidden)
	return v
}

// maxBars is how many groups are drawn as bars; more are drawn as a line.
const maxBars = 30

// plot draws the first number that is no key: over the keys before it as bars, or as a line where the key is a number
// or a time, or where there are many.
func (v *answerView) plot(a answer, low, high map[int]int, hidden map[int]bool) {
	measure := -1
	for i, c := range a.Columns {
		if _, bounded := low[i]; number(c.OID) && !hidden[i] && (bounded || measure < 0 && i > 0) {
			if measure = i; bounded {
				break
			}
		}
	}
	if measure < 1 || len(a.Rows) < 2 || a.Cut {
		return
	}
	var points []point
	keys := 0
	for i := range a.Columns[:measure] {
		if !hidden[i] {
			keys++
		}
	}
	ordered := keys == 1 && (number(a.Columns[0].OID) || moment(a.Columns[0].OID))
	line := ordered && len(a.Rows) > 8 || len(a.Rows) > maxBars
	var xs []cell
	for _, row := range a.Rows {
		y, ok := numberOf(row[measure])
		if !ok || line && ordered && row[0].Null { // NULL has no place on an axis
			continue
		}
		xs = append(xs, row[0])
		p := point{Label: labelOf(row[:measure], hidden), Y: y, Low: y, High: y, Shown: row[measure].Text}
		if at, ok := low[measure]; ok {
			if l, ok := numberOf(row[at]); ok {
				p.Low = l
			}
			if h, ok := numberOf(row[high[measure]]); ok {
				p.High = h
			}
			p.Between = row[at].Text + " to " + row[high[measure]].Text
		}
		points = append(points, p)
	}
	if len(points) < 2 {
		return
	}
	if line {
		v.Line = lineOf(a.Columns[measure].Name, places(xs, ordered && number(a.Columns[0].OID)), points)
		return
	}
	v.Bars = barsOf(a.Columns[measure].Name, points)
}

// places are where the points are on the axis: by the value of a key that is a number and rises, or one after the
// other.
func places(keys []cell, numbers bool) []float64 {
	xs, byValue := make([]float64, len(keys)), numbers
	for i, key := range keys {
		x, ok := numberOf(key)
		xs[i] = x
		byValue = byValue && ok && (i == 0 || x > xs[i-1])
	}
	for i := range xs {
		if !byValue {
			xs[i] = float64(i)
		}
	}
	return xs
}

func labelOf(keys []cell, hidden map[int]bool) string {
	var parts []string
	for i, k := range keys {
		switch {
		case hidden[i]:
		case k.Null:
			parts = append(parts, "NULL")
		default:
			parts = append(parts, k.Text)
		}
	}
	return strings.Join(parts, " · ")
}

// numberOf is a value as a number to draw. No number that is shown as text goes through it.
func numberOf(c cell) (float64, bool) {
	if c.Null {
		return 0, false
	}
	f, err := strconv.ParseFloat(c.Text, 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}
