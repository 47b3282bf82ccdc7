package proxy

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

func query(text string) pgproto3.FrontendMessage { return &pgproto3.Query{String: text} }

func parseMessage(name, text string, oids ...uint32) pgproto3.FrontendMessage {
	return &pgproto3.Parse{Name: name, Query: text, ParameterOIDs: oids}
}

func bind(portal, stmt string, values ...string) pgproto3.FrontendMessage {
	b := &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: stmt, ResultFormatCodes: []int16{0}}
	for _, v := range values {
		b.Parameters = append(b.Parameters, []byte(v))
	}
	return b
}

func execute(portal string, most uint32) pgproto3.FrontendMessage {
	return &pgproto3.Execute{Portal: portal, MaxRows: most}
}

func describing(kind byte, name string) pgproto3.FrontendMessage {
	return &pgproto3.Describe{ObjectType: kind, Name: name}
}

var (
	syncs   = &pgproto3.Sync{}
	flushed = &pgproto3.Flush{}
)

// step is some messages sent at once, what ends the reply, and the reply.
type step struct {
	send []pgproto3.FrontendMessage
	want string
}

func one(m pgproto3.FrontendMessage, want string) step {
	return step{[]pgproto3.FrontendMessage{m}, want}
}

func many(want string, m ...pgproto3.FrontendMessage) step { return step{m, want} }

// play sends the steps on one session; each reply ends with the last word of what is wanted.
func (r *raw) play(name string, steps []step) {
	r.t.Helper()
	for i, s := range steps {
		for _, m := range s.send {
			r.Send(m)
		}
		words := strings.Split(s.want, " ")
		last := words[len(words)-1]
		times := strings.Count(" "+s.want, " "+last)
		var got []string
		for range times {
			part := r.upTo(last)
			got = append(got, part)
			if strings.HasSuffix(part, "EOF") {
				break
			}
			if strings.HasPrefix(strings.Join(got, " "), s.want) {
				break
			}
		}
		if all := strings.Join(got, " "); all != s.want {
			r.t.Errorf("%s, step %d:\ngot  %s\nwant %s", name, i+1, all, s.want)
			return
		}
	}
}

// recordedFlows follow the recordings of psql, psycopg, asyncpg, pgjdbc, node-postgres and pgx against PostgreSQL, and
// go where those do not.
var recordedFlows = map[string][]step{
	"psql": {
		one(query("begin;"), "C(BEGIN) Z(T)"),
		one(query("select count(*) from people;"), "N(00000) T1 D C(SELECT 1) Z(T)"),
		one(query("savepoint a;"), "C(SAVEPOINT) Z(T)"),
		one(query("select bad;"), "E(42703) Z(E)"),
		one(query("select 1;"), "E(25P02) Z(E)"),
		one(query(";"), "I Z(E)"),
		one(query("rollback to savepoint a;"), "C(ROLLBACK) Z(T)"),
		one(query("release a;"), "C(RELEASE) Z(T)"),
		one(query("commit;"), "C(COMMIT) Z(I)"),
		one(query("select 1; select 2;"), "T1 D C(SELECT 1) T1 D C(SELECT 1) Z(I)"),
		one(query("x"), "E(42601) Z(I)"),
		one(query(""), "I Z(I)"), one(query("-- ping"), "I Z(I)"), one(query(";;"), "I Z(I)"),
		one(query("commit"), "N(25P01) C(COMMIT) Z(I)"),
		one(query("rollback"), "N(25P01) C(ROLLBACK) Z(I)"),
		one(query("begin; begin"), "C(BEGIN) N(25001) C(BEGIN) Z(T)"),
		one(query("select bad"), "E(42703) Z(E)"),
		one(query("commit"), "C(ROLLBACK) Z(I)"),
		one(query("start transaction isolation level repeatable read read only"), "C(START TRANSACTION) Z(T)"),
		one(query("show transaction_isolation"), "T1 D C(SHOW) Z(T)"),
		one(query("abort"), "C(ROLLBACK) Z(I)"),
		one(query("savepoint a"), "E(25P01) Z(I)"), one(query("release a"), "E(25P01) Z(I)"), one(query("rollback to a"), "E(25P01) Z(I)"),
		one(query("begin; savepoint a; rollback to b"), "C(BEGIN) C(SAVEPOINT) E(3B001) Z(E)"),
		one(query("end"), "C(ROLLBACK) Z(I)"),
		one(query("select 1; select bad; select 2"), "T1 D C(SELECT 1) E(42703) Z(I)"),
		one(query("insert into people values (1)"), "E(42501) Z(I)"),
		one(query("select 'x'"), "T1 D C(SELECT 1) Z(I)"),
		one(query("select \xff"), "E(22021) Z(I)"),
		one(&pgproto3.FunctionCall{}, "E(0A000) Z(I)"),
		many("T1 D C(SELECT 1) Z(I)", &pgproto3.CopyDone{}, &pgproto3.CopyFail{}, &pgproto3.CopyData{Data: []byte("x")}, query("select 1")),
	},
	"psql 18, extended": {
		many("1 2 T2 D C(SELECT 1) Z(I)", parseMessage("", "select $1::int as a, $2::text"), bind("", "", "1", "x"), describing('P', ""), execute("", 0), syncs),
		many("1 Z(I)", parseMessage("st1", "select count(*) from people where sex = $1"), syncs),
		many("2 T1 D C(SELECT 1) Z(I)", bind("", "st1", "Female"), describing('P', ""), execute("", 0), syncs),
		many("E(42P05) Z(I)", parseMessage("st1", "select 1"), syncs),
		many("3 Z(I)", &pgproto3.Close{ObjectType: 'S', Name: "st1"}, syncs),
		many("E(26000) Z(I)", bind("", "st1", "x"), syncs),
		many("3 Z(I)", &pgproto3.Close{ObjectType: 'S', Name: "never was"}, syncs),
		many("1 2 T1 D C(SELECT 1) 1 2 T1 D C(SELECT 1) Z(I) E(42703) Z(I)",
			parseMessage("", "select 1"), bind("", ""), describing('P', ""), execute("", 0),
			parseMessage("", "select $1::int"), bind("", "", "5"), describing('P', ""), execute("", 0), syncs,
			parseMessage("", "select nope"), bind("", ""), describing('P', ""), execute("", 0),
			parseMessage("", "select 1"), bind("", ""), execute("", 0), query("select 2"), syncs),
	},
	"asyncpg": {
		many("1 t[23] T1", parseMessage("s1", "select $1::int"), describing('S', "s1"), flushed),
		many("2 D C(SELECT 1) Z(I)", bind("", "s1", "7"), execute("", 0), syncs),
		many("1 t[] T1", parseMessage("s2", "select n from ten"), describing('S', "s2"), flushed),
		many("2 D s Z(I)", bind("", "s2"), execute("", 1), syncs),
		many("E(34000) Z(I)", execute("", 1), syncs),
	},
	"portals": {
		one(query("begin"), "C(BEGIN) Z(T)"),
		many("1 2 D D D D s Z(T)", parseMessage("s", "select n from ten"), bind("c", "s"), execute("c", 4), syncs),
		one(query("select 1"), "T1 D C(SELECT 1) Z(T)"),
		many("T1 D D D D s Z(T)", describing('P', "c"), execute("c", 4), syncs),
		many("E(42P03) Z(E)", bind("c", "s"), syncs),
		one(query("rollback"), "C(ROLLBACK) Z(I)"),
		many("E(34000) Z(I)", execute("c", 4), syncs),
		one(query("begin"), "C(BEGIN) Z(T)"),
		many("2 D D D D D D D D D D s C(SELECT 0) C(SELECT 0) Z(T)", bind("c", "s"), execute("c", 10), execute("c", 0), execute("c", 0), syncs),
		many("3 E(34000) Z(E)", &pgproto3.Close{ObjectType: 'P', Name: "c"}, describing('P', "c"), syncs),
		one(query("rollback"), "C(ROLLBACK) Z(I)"),
		many("2 D D D D D D D s D D D C(SELECT 3) Z(I)", bind("", "s"), execute("", 7), execute("", 7), syncs),
	},
	"commands by extended messages": {
		many("1 t[] n 2 n C(BEGIN) Z(T)", parseMessage("", "begin"), describing('S', ""), bind("", ""), describing('P', ""), execute("", 0), syncs),
		many("1 2 C(SET) E(55000) Z(E)", parseMessage("", "set dp.epsilon = 0.3"), bind("", ""), execute("", 0), execute("", 0), syncs),
		many("E(25P02) Z(E)", parseMessage("", "select 1"), syncs),
		many("1 2 C(ROLLBACK) Z(I)", parseMessage("", "rollback"), bind("", ""), execute("", 0), syncs),
		many("1 t[] n 2 n I Z(I)", parseMessage("", ""), describing('S', ""), bind("", ""), describing('P', ""), execute("", 0), syncs),
		many("1 t[] T1 2 D C(SHOW) Z(I)", parseMessage("", "show dp.epsilon"), describing('S', ""), bind("", ""), execute("", 0), syncs),
		many("E(42601) Z(I)", parseMessage("", "select 1; select 2"), syncs),
		many("1 Z(I)", parseMessage("keep", "select 1"), syncs),
		one(query("deallocate keep"), "C(DEALLOCATE) Z(I)"),
		one(query("deallocate keep"), "E(26000) Z(I)"),
		many("1 Z(I)", parseMessage("keep", "select 1"), syncs),
		one(query("deallocate all"), "C(DEALLOCATE ALL) Z(I)"),
		many("1 2 Z(I)", parseMessage("keep", "select 1"), bind("", "keep"), syncs),
		one(query("discard all"), "C(DISCARD ALL) Z(I)"),
		many("E(26000) Z(I)", bind("", "keep"), syncs),
		many("1 E(08P01) Z(I)", parseMessage("", "select $1::int"), bind("", ""), syncs),
		many("1 E(08P01) Z(I)", parseMessage("", "select 1"), &pgproto3.Bind{ResultFormatCodes: []int16{0, 1}}, syncs),
		many("1 E(22023) Z(I)", parseMessage("", "select 1"), &pgproto3.Bind{ResultFormatCodes: []int16{2}}, syncs),
		many("1 E(08P01) Z(I)", parseMessage("", "select $1::int"), &pgproto3.Bind{ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{1, 2}}}, syncs),
		many("1 E(22P02) Z(I)", parseMessage("", "select $1::int"), bind("", "", "x"), syncs),
		many("1 2 D C(SELECT 1) Z(I)", parseMessage("", "select $1::int"), &pgproto3.Bind{Parameters: [][]byte{nil}}, execute("", 0), syncs),
		many("E(42501) Z(I)", parseMessage("", "drop table people"), syncs),
		many("E(08P01) Z(I)", describing('X', ""), syncs),
		many("E(26000) Z(I)", describing('S', "none"), syncs),
	},
	"cursors": {
		one(query("declare c cursor for select n from ten"), "E(25P01) Z(I)"),
		one(query("declare c cursor for select n from ten; fetch 4 c; fetch all c"), "C(DECLARE CURSOR) T1 D D D D C(FETCH 4) T1 D D D D D D C(FETCH 6) Z(I)"),
		one(query("fetch c"), "E(34000) Z(I)"),
		one(query("begin"), "C(BEGIN) Z(T)"),
		one(query("declare c scroll cursor for select n from ten"), "C(DECLARE CURSOR) Z(T)"),
		one(query("declare d no scroll cursor for select n from ten"), "C(DECLARE CURSOR) Z(T)"),
		one(query("move 3 in c; fetch prior from c; fetch relative 0 from c; fetch absolute -1 c; fetch c; fetch backward 2 c; move backward all c; fetch first c; move last c"),
			"C(MOVE 3) T1 D C(FETCH 1) T1 D C(FETCH 1) T1 D C(FETCH 1) T1 C(FETCH 0) T1 D D C(FETCH 2) C(MOVE 8) T1 D C(FETCH 1) C(MOVE 1) Z(T)"),
		many("T1 C(SELECT 0) Z(T)", describing('P', "c"), execute("c", 0), syncs),
		many("1 t[] T1 2 D D s D C(FETCH 1) Z(T)", parseMessage("", "fetch backward 3 from c"), describing('S', ""), bind("", ""), execute("", 2), execute("", 2), syncs),
		one(query("savepoint a"), "C(SAVEPOINT) Z(T)"),
		one(query("fetch 2 d; fetch backward 1 d"), "T1 D D C(FETCH 2) E(55000) Z(E)"),
		one(query("rollback to a"), "C(ROLLBACK) Z(T)"),
		one(query("fetch 2 d"), "E(55000) Z(E)"), one(query("rollback to a"), "C(ROLLBACK) Z(T)"),
		one(query("declare h cursor with hold for select n from ten"), "C(DECLARE CURSOR) Z(T)"),
		one(query("declare h cursor for select 1"), "E(42P03) Z(E)"),
		one(query("rollback to a; fetch h"), "C(ROLLBACK) E(34000) Z(E)"),
		one(query("rollback"), "C(ROLLBACK) Z(I)"),
		one(query("begin; declare h cursor with hold for select n from ten; declare g cursor for select n from ten; commit"), "C(BEGIN) C(DECLARE CURSOR) C(DECLARE CURSOR) C(COMMIT) Z(I)"),
		one(query("fetch 2 h"), "T1 D D C(FETCH 2) Z(I)"),
		one(query("begin; fetch g"), "C(BEGIN) E(34000) Z(E)"), one(query("rollback"), "C(ROLLBACK) Z(I)"),
		one(query("fetch forward all in h; close h; close h"), "T1 D D D D D D D D C(FETCH 8) C(CLOSE CURSOR) E(34000) Z(I)"),
		one(query("declare h cursor with hold for select bad"), "E(42703) Z(I)"),
		one(query("begin; declare b binary cursor for select n from ten; fetch 1 b; close all; fetch b"), "C(BEGIN) C(DECLARE CURSOR) T1 D C(FETCH 1) C(CLOSE CURSOR ALL) E(34000) Z(E)"),
		one(query("rollback"), "C(ROLLBACK) Z(I)"),
		one(query("declare c scroll no scroll cursor for select 1"), "E(42P11) Z(I)"),
		one(query("declare c cursor for delete from people"), "E(42601) Z(I)"),
		many("1 2 C(DECLARE CURSOR) 1 2 T1 D C(FETCH 1) Z(I)", parseMessage("", "declare c cursor with hold for select $1::int"), bind("", "", "7"), execute("", 0),
			parseMessage("", "fetch c"), bind("", ""), describing('P', ""), execute("", 0), syncs),
		one(query("begin"), "C(BEGIN) Z(T)"),
		many("1 2 Z(T)", parseMessage("", "select n from ten"), bind("mine", ""), syncs),
		one(query("fetch 3 mine; move 2 mine"), "T1 D D D C(FETCH 3) C(MOVE 2) Z(T)"),
		many("D D D D D C(SELECT 5) Z(T)", execute("mine", 0), syncs),
		one(query("commit"), "C(COMMIT) Z(I)"),
	},
	"copy": {
		one(query("copy (select n from ten) to stdout"), "H d d d d d d d d d d c C(COPY 10) Z(I)"),
		one(query("copy (select n from ten) to stdout (format csv, header)"), "H d d d d d d d d d d d c C(COPY 10) Z(I)"),
		one(query("copy (select n from ten) to stdout (format binary)"), "H d d d d d d d d d d d c C(COPY 10) Z(I)"),
		one(query("select 1; copy (select 2) to stdout; select 1"), "T1 D C(SELECT 1) H d c C(COPY 1) T1 D C(SELECT 1) Z(I)"),
		one(query("copy (select count(*) from people) to stdout"), "N(00000) H d c C(COPY 1) Z(I)"),
		one(query("copy (select bad) to stdout"), "E(42703) Z(I)"),
		one(query("copy people from stdin"), "E(42501) Z(I)"), one(query("copy people to '/tmp/x'"), "E(42501) Z(I)"), one(query("copy people to program 'x'"), "E(42501) Z(I)"),
		one(query("copy (delete from people) to stdout"), "E(42501) Z(I)"),
		one(query("copy (select n from ten) to stdout (format csv, force_quote (m))"), "E(42703) Z(I)"),
		many("1 t[] n 2 n H d d d d d d d d d d c C(COPY 10) E(55000) Z(I)", parseMessage("", "copy (select n from ten) to stdout"), describing('S', ""), bind("", ""), describing('P', ""), execute("", 3), execute("", 0), syncs),
	},
	"prepare": {
		one(query("prepare a as select $1::int as a, $2::text"), "C(PREPARE) Z(I)"),
		one(query("prepare a as select 1"), "E(42P05) Z(I)"),
		one(query("execute a"), "E(42601) Z(I)"), one(query("execute b"), "E(26000) Z(I)"), one(query("execute a((select 1), 2)"), "E(DP002) Z(I)"),
		one(query("prepare b(int, nothing) as select 1"), "E(42704) Z(I)"), one(query("prepare b as delete from people"), "E(42501) Z(I)"), one(query("prepare b as select bad"), "E(42703) Z(I)"),
		many("2 T2 D C(SELECT 1) Z(I)", bind("", "a", "1", "x"), describing('P', ""), execute("", 0), syncs),
		one(query("prepare t as select n from ten"), "C(PREPARE) Z(I)"),
		one(query("execute t; execute t"), "T1 D D D D D D D D D D C(SELECT 10) T1 D D D D D D D D D D C(SELECT 10) Z(I)"),
		many("1 t[] T1 2 D D D s Z(I)", parseMessage("", "execute t"), describing('S', ""), bind("", ""), execute("", 3), syncs),
		one(query("deallocate t; deallocate t"), "C(DEALLOCATE) E(26000) Z(I)"),
		many("1 Z(I)", parseMessage("s", "select n from ten"), syncs),
		one(query("execute s"), "T1 D D D D D D D D D D C(SELECT 10) Z(I)"),
		many("1 Z(I)", parseMessage("loop", "execute loop"), syncs),
		one(query("execute loop"), "E(DP002) Z(I)"),
		one(query("begin; prepare k as select 1; rollback; execute k"), "C(BEGIN) C(PREPARE) C(ROLLBACK) T1 D C(SELECT 1) Z(I)"),
	},
	"pgjdbc, everything in one flight": {
		many("C(BEGIN) Z(T) 1 2 T1 D C(SELECT 1) Z(T)", query("BEGIN"), parseMessage("", "select 1"), bind("", ""), describing('P', ""), execute("", 0), syncs),
		one(query("COMMIT"), "C(COMMIT) Z(I)"),
	},
}

func TestMessageOrder(t *testing.T) {
	b := start(t)
	for name, steps := range recordedFlows {
		b.raw(t).play(name, steps)
	}
}
