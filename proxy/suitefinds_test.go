package proxy

import (
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// What the public suites of drivers and servers (see TestSuites) found here, and no test of ours had.

func bound(raw ...byte) pgproto3.FrontendMessage {
	return &pgproto3.Bind{ParameterFormatCodes: []int16{1}, Parameters: [][]byte{raw}}
}

// TestDiscardAlone: DISCARD ALL runs in no transaction, of several statements of a message or of a pipeline neither.
func TestDiscardAlone(t *testing.T) {
	b := start(t)
	run := func(text string) []pgproto3.FrontendMessage {
		return []pgproto3.FrontendMessage{parseMessage("", text), bind("", ""), execute("", 0)}
	}
	flight := func(want string, texts ...string) step {
		var m []pgproto3.FrontendMessage
		for _, text := range texts {
			m = append(m, run(text)...)
		}
		return step{append(m, syncs), want}
	}
	b.raw(t).play("discard", []step{
		one(query("discard all"), "C(DISCARD ALL) Z(I)"),
		one(query("select 1; discard all"), "T1 D C(SELECT 1) E(25001) Z(I)"),
		one(query("discard all; select 1"), "E(25001) Z(I)"),
		flight("1 2 C(DISCARD ALL) Z(I)", "discard all"),
		flight("1 2 D C(SELECT 1) 1 2 E(25001) Z(I)", "select 1", "discard all"),
		flight("1 2 C(BEGIN) 1 2 D C(SELECT 1) 1 2 C(COMMIT) 1 2 C(DISCARD ALL) Z(I)", "begin", "select 1", "commit", "discard all"),
		flight("1 2 C(DISCARD ALL) Z(I)", "discard all"),
		one(query("begin"), "C(BEGIN) Z(T)"),
		one(query("discard all"), "E(25001) Z(E)"),
	})
}

// TestStaleStatementRoutine: asyncpg and pgjdbc prepare a statement again after an error of this routine, and after no
// other.
func TestStaleStatementRoutine(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.play("prepare", []step{many("1 Z(I)", parseMessage("s", "select 1"), syncs)})
	f := b.pipeline.fixtures["select 1"]
	f.columns, f.rows = []sandbox.Column{column("a", policy.Text)}, [][]policy.Value{{"x"}}
	b.pipeline.fixtures["select 1"] = f
	for _, m := range []pgproto3.FrontendMessage{bind("", "s"), execute("", 0), syncs} {
		r.Send(m)
	}
	r.flush()
	for {
		switch m := r.next().(type) {
		case *pgproto3.ErrorResponse:
			if m.Code != "0A000" || m.Routine != "RevalidateCachedQuery" {
				t.Errorf("%s %q of %q", m.Code, m.Message, m.Routine)
			}
			return
		case *pgproto3.ReadyForQuery, nil:
			t.Fatal("no error")
		}
	}
}

// TestBinaryParametersRefused: each way in which a binary parameter is wrong has PostgreSQL's SQLSTATE.
func TestBinaryParametersRefused(t *testing.T) {
	b := start(t)
	echo := b.pipeline.fixtures["select $1::int"].answer
	for name, kind := range map[string]policy.Type{"date": policy.DateType, "text": policy.Text, "bytea": 17, "inet": 869, "int[]": 1007} {
		b.pipeline.fixtures["select $1::"+name] = fixture{params: []policy.Type{kind}, columns: []sandbox.Column{column(name, kind)}, answer: echo}
	}
	b.raw(t).play("binary", []step{
		many("1 E(08P01) Z(I)", parseMessage("", "select $1::int"), bound(1, 2), syncs),
		many("1 E(22P03) Z(I)", parseMessage("", "select $1::int"), bound(0, 0, 0, 1, 2), syncs),
		many("1 2 D C(SELECT 1) Z(I)", parseMessage("", "select $1::date"), bound(0x80, 0, 0, 0), execute("", 0), syncs),
		many("1 2 D C(SELECT 1) Z(I)", parseMessage("", "select $1::date"), bound(0, 0, 0, 0), execute("", 0), syncs),
		many("1 E(22021) Z(I)", parseMessage("", "select $1::text"), bound('a', 0), syncs),
		many("1 E(22021) Z(I)", parseMessage("", "select $1::text"), bound(0xff), syncs),
		many("1 2 Z(I)", parseMessage("", "select $1::bytea"), bound(0xff), syncs),
		many("1 E(DP002) Z(I)", parseMessage("", "select $1::inet"), bound(0xff), syncs), // a type whose binary form is not read
		many("1 E(DP002) Z(I)", parseMessage("", "select $1::int[]"), bound(0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 23), syncs),
		many("1 E(22023) Z(I)", parseMessage("", "select $1::int"), &pgproto3.Bind{ParameterFormatCodes: []int16{2}, Parameters: [][]byte{{'1'}}}, syncs),
		many("1 E(08P01) Z(I)", parseMessage("", "select $1::int"), &pgproto3.Bind{ParameterFormatCodes: []int16{0, 0}, Parameters: [][]byte{{'1'}}}, syncs),
	})
}

// TestIntervalStyleOfSession: a value is written in the style that the session set, and the client is sent the style.
func TestIntervalStyleOfSession(t *testing.T) {
	b := start(t)
	b.pipeline.fixtures["select i"] = fixture{columns: []sandbox.Column{column("i", policy.IntervalT)}, rows: [][]policy.Value{{policy.Interval{Days: 2}}}}
	conn := b.pgx(t, "").PgConn()
	for _, c := range [][2]string{{"", "2 days"}, {"SET intervalstyle = iso_8601", "P2D"}, {"RESET ALL", "2 days"}} {
		results, err := conn.Exec(t.Context(), c[0]+"; SELECT i").ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		if got := string(results[len(results)-1].Rows[0][0]); got != c[1] {
			t.Errorf("%s: %s, want %s", c[0], got, c[1])
		}
	}
	if got := conn.ParameterStatus("IntervalStyle"); got != "postgres" {
		t.Error(got)
	}
}

// TestCancelWhileSending: a cancel request ends an answer that is on its way, as rows and as COPY. What was drawn and
// paid for is not drawn again.
func TestCancelWhileSending(t *testing.T) {
	b := start(t)
	var rows [][]policy.Value
	for range 400 {
		rows = append(rows, []policy.Value{strings.Repeat("x", 100<<10)})
	}
	b.pipeline.fixtures["select long"] = fixture{columns: []sandbox.Column{column("long", policy.Text)}, rows: rows}
	for name, flight := range map[string][]pgproto3.FrontendMessage{
		"rows":     {query("select long")},
		"extended": {parseMessage("", "select long"), bind("", ""), execute("", 0), syncs},
		"copy":     {query("copy (select long) to stdout")},
	} {
		r := b.raw(t)
		if err := r.conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
			t.Fatal(err)
		}
		for _, m := range flight {
			r.Send(m)
		}
		r.flush()
		sent := map[string]int{}
		for sent["Z(I)"] == 0 && sent["EOF"] == 0 {
			m := r.next()
			if m == nil {
				t.Fatalf("%s: the session ended", name)
			}
			kind := brief(m)
			if sent[kind]++; (kind == "D" || kind == "d") && sent[kind] == 1 {
				c := b.dial(t)
				_, _ = c.Write(startupPacketOf(r.key.ProcessID, r.key.SecretKey))
				_, _ = c.Read(make([]byte, 1)) // closed once the request was heard
			}
		}
		if sent["E(57014)"] != 1 || sent["D"]+sent["d"] >= len(rows) {
			t.Errorf("%s: %v", name, sent)
		}
	}
}

// TestBoundPortalForward: a portal that Bind opened goes forward under FETCH and MOVE, and not back.
func TestBoundPortalForward(t *testing.T) {
	b := start(t)
	b.raw(t).play("forward", []step{
		one(query("begin"), "C(BEGIN) Z(T)"),
		many("1 2 D D s Z(T)", parseMessage("s", "select n from ten"), bind("p", "s"), execute("p", 2), syncs),
		one(query("fetch 1 from p"), "T1 D C(FETCH 1) Z(T)"),
		one(query("move 1 in p"), "C(MOVE 1) Z(T)"),
		many("D D D D D D C(SELECT 6) Z(T)", execute("p", 0), syncs),
		one(query("fetch backward 2 from p"), "E(55000) Z(E)"),
	})
	if n := b.pipeline.answers.Load(); n != 1 {
		t.Errorf("drawn %d times", n)
	}
}
