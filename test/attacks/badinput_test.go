package attacks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/test/kit"
)

// frame is one message as its bytes.
func frame(kind byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

// complaint reads until an error, the end of an answer or the connection's end, and returns the error's SQLSTATE.
func complaint(w *kit.Wire) string {
	w.T.Helper()
	_ = w.Conn.SetReadDeadline(time.Now().Add(60 * time.Second))
	for {
		m, err := w.Receive()
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			return m.Severity + " " + m.Code
		case *pgproto3.ReadyForQuery:
			return "no error"
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return "still open"
		}
		if err != nil {
			return "closed without a word"
		}
	}
}

// TestBadFrames: each malformed or oversized message gets one clear error, others go on, and nothing is charged.
func TestBadFrames(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
	other := p.Connect("bob", "lab")
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"unknown type":            {frame('!', ""), "FATAL 08P01"},
		"no terminator":           {frame('Q', "SELECT 1"), "FATAL 08P01"},
		"text after terminator":   {frame('Q', "SELECT 1\x00SELECT count(*) FROM people"), "FATAL 08P01"},
		"not UTF-8":               {frame('Q', "SELECT '\xff'\x00"), "ERROR 22021"},
		"Bind of nothing":         {frame('B', ""), "FATAL 08P01"},
		"Bind of 65,535 values":   {frame('B', "\x00\x00\x00\x00\xff\xff"), "FATAL 08P01"},
		"Bind of negative length": {frame('B', "\x00\x00\x00\x00\x00\x01\xff\xff\xff\xf0\x00\x00"), "FATAL 08P01"},
		"Describe of neither":     {frame('D', "Xname\x00"), "ERROR 08P01"},
		"function call":           {frame('F', "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"), "ERROR 0A000"},
		"password out of place":   {frame('p', "secret\x00"), "FATAL 08P01"},
		"oversized":               {binary.BigEndian.AppendUint32([]byte{'Q'}, 1<<20+5), "FATAL 54000"},
		"huge":                    {binary.BigEndian.AppendUint32([]byte{'Q'}, 1<<31-1), "FATAL 54000"},
		"negative":                {binary.BigEndian.AppendUint32([]byte{'Q'}, 1<<31), "FATAL 08P01"},
	} {
		w := p.Connect("alice", "lab")
		if _, err := w.Conn.Write(append(c.bytes, frame('S', "")...)); err != nil {
			t.Fatal(err)
		}
		if got := complaint(w); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if a := other.Ask("SELECT 1"); a.Err != nil {
			t.Errorf("after %s another session: %v", name, a.Err)
		}
	}
	if !p.Alive() || p.Connect("alice", "lab").Spent() != "0" {
		t.Error("the process ended, or something was charged")
	}
}

// TestDeepText: a query nested ten thousand deep is 54001 or 54000, in the simple and in the extended protocol, and
// free.
func TestDeepText(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
	w := p.Connect("alice", "lab")
	deep := `SELECT count(*) FROM people WHERE ` + strings.Repeat("(", 10_000) + "hiv" + strings.Repeat(")", 10_000)
	if a := w.Ask(deep); a.Err == nil || a.Err.Code != "54001" || a.Err.Hint == "" {
		t.Errorf("simple: %v", a.Err)
	}
	w.Send(&pgproto3.Parse{Query: deep})
	w.Send(&pgproto3.Sync{})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if got := complaint(w); got != "ERROR 54001" {
		t.Errorf("extended: %s", got)
	}
	if got := complaint(w); got != "no error" {
		t.Errorf("after Sync: %s", got)
	}
	if w.Spent() != "0" {
		t.Errorf("charged %s", w.Spent())
	}
}

// TestStartupThatNeverEnds: a client that does not get through its start-up is cut off, while others work.
func TestStartupThatNeverEnds(t *testing.T) {
	p := kit.InProcess(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0), &kit.ReadThenWrite{Left: 10_000_000}, proxy.Limits{LoginTime: 300 * time.Millisecond})
	other := p.Connect("bob", "lab")
	for name, begin := range map[string]string{"nothing": "", "one byte": "\x00", "half": "\x00\x00\x00\x40\x00\x03\x00\x00user", "TLS": "\x16\x03\x01"} {
		conn, err := net.Dial("tcp", p.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, begin)
		_ = conn.SetReadDeadline(time.Now().Add(60 * time.Second))
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: still open", name)
		}
		if a := other.Ask(`SELECT count(*) FROM people`); a.Err != nil {
			t.Errorf("after %s another session: %v", name, a.Err)
		}
	}
}

// TestLoginRefusals: who may not enter is refused with the SQLSTATE that clients know; an unknown user and a wrong
// password look alike.
func TestLoginRefusals(t *testing.T) {
	path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
	kit.Edit(t, path, `"*": {epsilon: 10, delta: 0}`, `alice: {epsilon: 10, delta: 0}`)
	p := kit.Serve(t, path)
	connect := func(user, password, dataset string) pgconn.PgError {
		_, err := pgconn.Connect(t.Context(), fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", user, password, p.Address, dataset))
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			t.Fatalf("%s on %s: %v", user, dataset, err)
		}
		return *e
	}
	wrong, unknown := connect("alice", "no", "lab"), connect("mallory", "no", "lab")
	if wrong.Code != "28P01" || unknown.Code != "28P01" || strings.ReplaceAll(wrong.Message, "alice", "mallory") != unknown.Message {
		t.Errorf("wrong password: %+v\nunknown user: %+v", wrong, unknown)
	}
	absent, closed := connect("alice", "alice", "nowhere"), connect("bob", "bob", "lab")
	if absent.Code != "3D000" || closed.Code != "3D000" || strings.ReplaceAll(absent.Message, "nowhere", "lab") != closed.Message {
		t.Errorf("unknown dataset: %+v\na dataset without a budget: %+v", absent, closed)
	}
	if a := p.Connect("alice", "lab").Ask(`SELECT 1`); a.Err != nil {
		t.Error(a.Err)
	}
}

var placed = regexp.MustCompile(`policy\.yaml:\d+:\d+: \S+`)

// TestBrokenPolicy: each fault of the file is reported with its place; serve ends with 1, check with 3.
func TestBrokenPolicy(t *testing.T) {
	for name, change := range map[string][]string{
		"unknown key":    {"expected_rows:", "expected_row:"},
		"not YAML":       {"users:", "users: ]"},
		"plain password": {`password: "SCRAM`, `password: "plain`},
		"wrong type":     {"max_rows_per_unit: 1", "max_rows_per_unit: many"},
		"reserved":       {"accountant: pure", "accountant: pure\n    population: all"},
	} {
		path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
		kit.Edit(t, path, change...)
		for command, code := range map[string]int{"serve": 1, "check": 3} {
			if out := kit.Run(t, "", command, "--policy", path); out.Code != code || !placed.MatchString(out.Stderr) {
				t.Errorf("%s, %s: exit %d, want %d: %s", name, command, out.Code, code, out.Stderr)
			}
		}
	}
	for _, command := range []string{"serve", "check", "budget"} {
		if out := kit.Run(t, "", command, "--policy", "/nonexistent/policy.yaml"); out.Code == 0 || !strings.Contains(out.Stderr, "/nonexistent/policy.yaml") {
			t.Errorf("%s without a file: exit %d: %s", command, out.Code, out.Stderr)
		}
	}
}
