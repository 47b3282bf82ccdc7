package kit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// Wire is a logged-in connection of which every frame is seen.
type Wire struct {
	T        *testing.T
	Conn     net.Conn
	Patience time.Duration // for an answer; 0 means a minute
	*pgproto3.Frontend
}

// Answer is what one simple query brought.
type Answer struct {
	Frames []string   // every frame in order, noised cells masked
	Rows   [][]string // text rows
	Err    *pgconn.PgError
	Notes  []string
}

// Ask sends one simple query and reads to ReadyForQuery.
func (w *Wire) Ask(sql string) Answer {
	w.T.Helper()
	a, err := w.TryAsk(sql)
	if err != nil {
		w.T.Fatalf("%.200s: %v", sql, err)
	}
	return a
}

// TryAsk does it where the connection may be lost.
func (w *Wire) TryAsk(sql string) (Answer, error) {
	w.Send(&pgproto3.Query{String: sql})
	return w.Hear()
}

// Extended asks by the extended protocol, with binary results.
func (w *Wire) Extended(sql string) Answer {
	w.T.Helper()
	a, err := w.TryExtended(sql)
	if err != nil {
		w.T.Fatalf("%.200s: %v", sql, err)
	}
	return a
}

// TryExtended does it where the connection may be lost.
func (w *Wire) TryExtended(sql string) (Answer, error) {
	w.Send(&pgproto3.Parse{Query: sql})
	w.Send(&pgproto3.Describe{ObjectType: 'S'})
	w.Send(&pgproto3.Bind{ResultFormatCodes: []int16{1}})
	w.Send(&pgproto3.Describe{ObjectType: 'P'})
	w.Send(&pgproto3.Execute{})
	w.Send(&pgproto3.Sync{})
	return w.Hear()
}

// Hear sends what is waiting and reads to ReadyForQuery.
func (w *Wire) Hear() (Answer, error) {
	var a Answer
	_ = w.Conn.SetDeadline(time.Now().Add(cmp.Or(w.Patience, time.Minute)))
	if err := w.Flush(); err != nil {
		return a, err
	}
	for {
		m, err := w.Receive()
		if err != nil {
			return a, err
		}
		a.Frames = append(a.Frames, frameText(m))
		switch m := m.(type) {
		case *pgproto3.DataRow:
			row := make([]string, len(m.Values))
			for i, v := range m.Values {
				if row[i] = string(v); v == nil {
					row[i] = "NULL"
				}
			}
			a.Rows = append(a.Rows, row)
		case *pgproto3.ErrorResponse:
			a.Err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.NoticeResponse:
			a.Notes = append(a.Notes, m.Message+"\n"+m.Detail)
		case *pgproto3.ReadyForQuery:
			return a, nil
		}
	}
}

// frameText writes a frame for comparison: all of it, but the cells of data rows and what a notice says of their sizes,
// and when the snapshot of this side was begun.
func frameText(m pgproto3.BackendMessage) string {
	if row, ok := m.(*pgproto3.DataRow); ok {
		return fmt.Sprintf("DataRow of %d", len(row.Values))
	}
	return BesideValues(requests.ReplaceAllString(moments.ReplaceAllString(fmt.Sprintf("%T %+v", m, m), "as of its moment"), "Request number"))
}

// Words is a text with one blank between words: what EXPLAIN says, wherever its lines are broken.
func Words(text string) string { return strings.Join(strings.Fields(text), " ") }

// Plan is what EXPLAIN says, in one line.
func Plan(a Answer) string {
	var text strings.Builder
	for _, row := range a.Rows {
		text.WriteString(" " + strings.Join(row, " "))
	}
	return Words(text.String())
}

// BesideValues is a notice without what it says of the values that it comes with, which are noised.
func BesideValues(notice string) string { return lostInNoise.ReplaceAllString(notice, "") }

// The sign before the error is one character of the client's encoding: ± where that is UTF-8, else a byte.
var lostInNoise = regexp.MustCompile(`; mostly noise: .[0-9.]+ on values near [0-9.]+( \((?:[^()]|\([^()]*\))*\))?` +
	`|; \d+ % of .*? is where .*? is NULL, which [^?]*\?` +
	`|; \w+ .[0-9.]+ a value at [0-9.]+ % of (what \w+ add up to [0-9. and]+ each, which about \d+ exceed` +
	`|what \w+ add up to, whose groups' squares come to [0-9. and]+² each` +
	`|all that \w+ add up to, but for those who(se groups' squares come to| add) more than [0-9.]+²?, if any do)` +
	`|; [^;]* about .[0-9.,]+[^;]*? a value at [0-9.]+ %` +
	`|; no . is known for (column \d+|\w+)(, (column \d+|\w+))*( and \d+ more)?` +
	`|; (\w+|in what some values are made of,) NULL: too few \w+ show: at this cost it takes about \d+ ` +
	`with a like total other than 0(, and ten at \d+ times it)?`)

// The number of a statement begins with its session's, which is random.
var requests = regexp.MustCompile(`Request [0-9a-f]{16}-\d+`)

var moments = regexp.MustCompile(`as of \d{4}-\d\d-\d\d \d\d:\d\d UTC`)

// Bare is a connection of alice's that sends what it is given, and can be cut off.
func Bare(t *testing.T, p *Program) *pgconn.PgConn {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), p.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// Charges is how many charges a user has, by another connection of hers.
func (w *Wire) Charges() int {
	w.T.Helper()
	return Count(w.T, w.Ask(`SELECT count(*) FROM dp.charges`))
}

// Count is the answer of a count.
func Count(t *testing.T, a Answer) int {
	t.Helper()
	if a.Err != nil {
		t.Fatalf("no answer: %s %s", a.Err.Code, a.Err.Message)
	}
	n, err := strconv.Atoi(a.Rows[0][0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Spent is what a user has spent, as dp.budget says.
func (w *Wire) Spent() string {
	w.T.Helper()
	a := w.Ask(`SELECT spent FROM dp.budget WHERE user_name = current_user`)
	if a.Err != nil {
		w.T.Fatal(a.Err)
	}
	return a.Rows[0][0]
}

// SameFrames is the first difference between two answers to a statement, but for noised cells; "" for none.
func SameFrames(sql string, a, b Answer) string {
	if slices.Equal(a.Frames, b.Frames) {
		return ""
	}
	for i := range min(len(a.Frames), len(b.Frames)) {
		if a.Frames[i] != b.Frames[i] {
			return fmt.Sprintf("%s\n  with:    %s\n  without: %s", sql, a.Frames[i], b.Frames[i])
		}
	}
	return fmt.Sprintf("%s: %d frames against %d", sql, len(a.Frames), len(b.Frames))
}

// Psql is a real psql whose statements are fed one by one.
type Psql struct {
	t     *testing.T
	in    io.WriteCloser
	out   chan string
	notes chan string
}

// StartPsql starts a real psql against a proxy, as a user whose password is her name; without one on the machine the
// test is skipped.
func StartPsql(t *testing.T, address, user, dataset string) *Psql {
	t.Helper()
	return StartPsqlWith(t, address, user, user, dataset)
}

// StartPsqlWith does it for a user with another password.
func StartPsqlWith(t *testing.T, address, user, password, dataset string) *Psql {
	t.Helper()
	path, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("no psql on this machine")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-X", "-h", host, "-p", port, "-U", user, dataset)
	cmd.Env = append(os.Environ(), "PGPASSWORD="+password, "PAGER=", "PGSSLMODE=prefer", "LC_ALL=C.UTF-8", "PGCLIENTENCODING=UTF8")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	notes, _ := cmd.StderrPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Psql{t: t, in: in, out: lines(out), notes: lines(notes)}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return s
}

func lines(r io.Reader) chan string {
	c := make(chan string, 1000)
	go func() {
		scan := bufio.NewScanner(r)
		scan.Buffer(nil, 1<<22)
		for scan.Scan() {
			c <- scan.Text()
		}
		close(c)
	}()
	return c
}

const endMark = "--end-of-answer--"

// Run feeds one statement or backslash command and returns what psql printed: standard error first, as a terminal shows
// notices before rows.
func (s *Psql) Run(statement string) string {
	s.t.Helper()
	fmt.Fprintf(s.in, "%s\n\\echo %s\n\\warn %s\n", statement, endMark, endMark)
	var text strings.Builder
	for _, stream := range []chan string{s.notes, s.out} {
		for done := false; !done; {
			select {
			case line, open := <-stream:
				if !open {
					s.t.Fatalf("%s: psql ended:\n%s", statement, text.String())
				}
				if done = line == endMark; !done {
					text.WriteString(line + "\n")
				}
			case <-time.After(60 * time.Second):
				s.t.Fatalf("%s: no answer from psql:\n%s", statement, text.String())
			}
		}
	}
	return text.String()
}

// left is in the statement that begins a transaction: the milliseconds that the deadline of two minutes leaves, which
// depend on when the query had its turn.
var left = regexp.MustCompile(`'statement_timeout', '(11[0-9]{4}|120000)'`)

// braced is a list of names in a statement's arguments.
var braced = regexp.MustCompile(`\{[^}]*\}`)

// Statements are the lines of a server's log, but for the pool's pings, which depend on the clock; lists are sorted,
// because the look at the schema before a charge asks for its columns in any order.
func Statements(t *testing.T, s *pgtest.Server) []string {
	t.Helper()
	lines, _ := StatementsSince(t, s, 0)
	return lines
}

// StatementsSince are those from a place of the log on, and the place where it ends now.
func StatementsSince(t *testing.T, s *pgtest.Server, at int) (lines []string, end int) {
	t.Helper()
	log, err := os.Open(s.Log())
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(io.NewSectionReader(log, int64(at), math.MaxInt64-int64(at)))
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	if whole == 0 {
		return nil, at
	}
	text, end = text[:whole], at+whole
	lines = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	for i := range lines {
		lines[i] = braced.ReplaceAllStringFunc(lines[i], func(list string) string {
			names := strings.Split(strings.Trim(list, "{}"), ",")
			slices.Sort(names)
			return strings.Join(names, ",")
		})
		lines[i] = left.ReplaceAllString(lines[i], "what is left of two minutes")
	}
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasSuffix(line, "statement: -- ping") }), end
}
