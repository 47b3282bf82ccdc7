package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/sandbox"
)

// TestDrawnOnce: the pipeline answers once per Bind and Execute, however the rows are fetched.
func TestDrawnOnce(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.play("fetch", []step{
		one(query("begin"), "C(BEGIN) Z(T)"),
		many("1 2 D D s D D s T1 D D s Z(T)", parseMessage("s", "select n from ten"), bind("c", "s"), execute("c", 2), execute("c", 2), describing('P', "c"), execute("c", 2), syncs),
	})
	if n := b.pipeline.answers.Load(); n != 1 {
		t.Errorf("%d answers", n)
	}
	r.play("again", []step{many("2 D s Z(T)", bind("d", "s"), execute("d", 1), syncs)})
	if n := b.pipeline.answers.Load(); n != 2 {
		t.Errorf("%d answers", n)
	}
}

func TestPgxModes(t *testing.T) {
	b := start(t)
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		conn := b.pgx(t, "default_query_exec_mode="+mode)
		for range 3 {
			if mode == "simple_protocol" || mode == "exec" {
				break // pgx itself rewrites or guesses parameters there
			}
			var a int32
			var s string
			if err := conn.QueryRow(t.Context(), "select $1::int as a, $2::text", 5, "it's").Scan(&a, &s); err != nil || a != 5 || s != "it's" {
				t.Errorf("%s: %d %q %v", mode, a, s, err)
			}
		}
		var n int64
		if err := conn.QueryRow(t.Context(), "select count(*) from people").Scan(&n); err != nil || n != 1234 {
			t.Errorf("%s: %d %v", mode, n, err)
		}
		var count int
		rows, err := conn.Query(t.Context(), "select n from many")
		for err == nil && rows.Next() {
			count++
		}
		if err != nil || rows.Err() != nil || count != 100_000 {
			t.Errorf("%s: %d rows, %v", mode, count, err)
		}
		var pg *pgconn.PgError
		if _, err := conn.Exec(t.Context(), "select nope"); !errors.As(err, &pg) || pg.Code != "42703" || pg.Position != 8 {
			t.Errorf("%s: %v", mode, err)
		}
	}
	conn := b.pgx(t, "")
	batch := &pgx.Batch{}
	for i := range 50 {
		batch.Queue("select $1::int", i)
	}
	results := conn.SendBatch(t.Context(), batch)
	for i := range 50 {
		var n int
		if err := results.QueryRow().Scan(&n); err != nil || n != i {
			t.Fatalf("%d: %d, %v", i, n, err)
		}
	}
	if err := results.Close(); err != nil {
		t.Error(err)
	}
}

// TestFaults: what goes wrong inside gets one constant text, and where it was a panic ends that session and no other.
func TestFaults(t *testing.T) {
	b := start(t)
	other := b.raw(t)
	r := b.raw(t)
	r.play("error", []step{one(query("select error"), "E(XX000) Z(I)")})
	r.play("panic", []step{one(query("select panic"), "E(XX000) EOF")})
	other.play("other", []step{one(query("select 1"), "T1 D C(SELECT 1) Z(I)")})
	if log := b.log.String(); !strings.Contains(log, "panic") || strings.Contains(log, "secret 42") {
		t.Errorf("log: %s", log)
	}
}

func TestCancel(t *testing.T) {
	b := start(t)
	conn := b.pgx(t, "")
	pid, key := conn.PgConn().PID(), conn.PgConn().SecretKey()
	cancel := func(pid uint32, key []byte) {
		c := b.dial(t)
		_, _ = c.Write(startupPacketOf(pid, key))
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Error("a cancel request was answered")
		}
	}
	cancel(pid, key) // nothing runs: nothing happens
	if err := conn.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "select slow")
		ended <- err
	}()
	for b.pipeline.answers.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for i := range 200 { // wrong keys, and right keys of nobody
		cancel(pid, []byte{key[0], key[1], key[2], key[3] ^ byte(i+1)})
		cancel(pid+1, key)
	}
	cancel(pid, append(key, 0))
	cancel(pid, nil)
	select {
	case err := <-ended:
		t.Fatalf("cancelled by a wrong key: %v", err)
	default:
	}
	cancel(pid, key)
	var pg *pgconn.PgError
	if err := <-ended; !errors.As(err, &pg) || pg.Code != "57014" || pg.Message != "canceling statement due to user request" {
		t.Errorf("%v", err)
	}
	if err := conn.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

func startupPacketOf(pid uint32, key []byte) []byte {
	m := &pgproto3.CancelRequest{ProcessID: pid, SecretKey: key}
	b, err := m.Encode(nil)
	if err != nil {
		return short(codeCancel)
	}
	return b
}

func TestStatementTimeout(t *testing.T) {
	b := start(t)
	r := b.raw(t, "statement_timeout", "50ms")
	r.play("timeout", []step{
		one(query("select slow"), "E(57014) Z(I)"),
		many("1 2 E(57014) Z(I)", parseMessage("", "select slow"), bind("", ""), execute("", 0), syncs),
		one(query("copy (select slow) to stdout"), "E(57014) Z(I)"),
		one(query("begin; declare c cursor for select slow"), "C(BEGIN) E(57014) Z(E)"),
		one(query("rollback; fetch c"), "C(ROLLBACK) E(34000) Z(I)"),
		one(query("prepare q as select slow; execute q"), "C(PREPARE) E(57014) Z(I)"),
		one(query("select 1"), "T1 D C(SELECT 1) Z(I)"),
		one(query("set idle_session_timeout = 30"), "C(SET) Z(I) E(57P05) EOF"),
	})
	r = b.raw(t, "options", "-c idle_in_transaction_session_timeout=30ms")
	r.play("idle in transaction", []step{one(query("begin"), "C(BEGIN) Z(T) E(25P03) EOF")})
}

// TestShutdown: the running statement ends, then the session; idle sessions end at once.
func TestShutdown(t *testing.T) {
	b := start(t)
	release := make(chan struct{})
	b.pipeline.fixtures["select held"] = fixture{columns: standardFixtures()["select 1"].columns,
		answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
			<-release
			return [][]policy.Value{{int64(1)}}, nil
		}}
	idle, busy := b.raw(t), b.raw(t)
	busy.Send(query("select held"))
	busy.flush()
	for b.pipeline.answers.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		ended <- b.Shutdown(ctx)
	}()
	if got := idle.upTo("EOF"); got != "E(57P01) EOF" {
		t.Error(got)
	}
	close(release)
	if got := busy.upTo("EOF"); got != "T1 D C(SELECT 1) Z(I) E(57P01) EOF" {
		t.Error(got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPolicyChange: a session lives by the policy in force at each statement.
func TestPolicyChange(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.play("before", []step{one(query("set dp.epsilon = 0.9"), "C(SET) Z(I)"), one(query("select 1"), "T1 D C(SELECT 1) Z(I)")})
	tighter := testPolicy(t)
	tighter.Datasets[0].Defaults.MaxEpsilon = epsilon(t, "0.5")
	b.policy.Store(tighter)
	r.play("tighter", []step{one(query("select 1"), "T1 D C(SELECT 1) Z(I)")})
	if s := b.pipeline.last; s.Policy != tighter || s.Settings.Epsilon != epsilon(t, "0.5") {
		t.Errorf("epsilon %s", s.Settings.Epsilon)
	}
	removed := testPolicy(t)
	removed.Users = removed.Users[1:]
	b.policy.Store(removed)
	r.play("removed", []step{one(query("show dp.epsilon"), "E(28000) EOF")})
	threats.Reached(t, "T59", "a removed user is refused at her next statement")
	r2 := b.rawUser(t, "grafana", "panel")
	closed := testPolicy(t)
	closed.Datasets[0].Budgets = nil
	b.policy.Store(closed)
	r2.play("no budget", []step{many("E(3D000) EOF", parseMessage("", "select 1"), syncs)})
}

func (b *bench) rawUser(t *testing.T, user, password string) *raw {
	t.Helper()
	conn := b.dial(t)
	r := &raw{t: t, conn: conn, Frontend: pgproto3.NewFrontend(conn, conn)}
	r.Send(&pgproto3.StartupMessage{ProtocolVersion: 3 << 16, Parameters: map[string]string{"user": user, "database": "census"}})
	r.login(password)
	r.upTo("Z")
	return r
}

// TestCachedTypes: a prepared statement whose columns change under a new setting is prepared again, not misread.
func TestCachedTypes(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.play("prepare", []step{many("1 Z(I)", parseMessage("s", "select 1"), syncs)})
	f := b.pipeline.fixtures["select 1"]
	f.columns = []sandbox.Column{column("a", policy.Text)}
	f.rows = [][]policy.Value{{"x"}}
	b.pipeline.fixtures["select 1"] = f
	r.play("changed", []step{many("2 E(0A000) Z(I)", bind("", "s"), execute("", 0), syncs)})
	r.play("renewed", []step{one(query("set dp.epsilon = 0.3"), "C(SET) Z(I)"), many("2 T1 D C(SELECT 1) Z(I)", bind("", "s"), describing('P', ""), execute("", 0), syncs)})
}

func TestLimits(t *testing.T) {
	b := start(t, func(c *Config) {
		c.Limits = Limits{Statements: 3, Portals: 2}
	})
	b.limit(t, policy.Limits{Connections: 2, UserConnections: 2, UserStatements: 9, StatementsPerSecond: 3})
	r := b.raw(t)
	r.play("statements", []step{
		many("1 1 1 E(53400) Z(I)", parseMessage("a", "select 1"), parseMessage("b", "select 1"), parseMessage("c", "select 1"), parseMessage("d", "select 1"), syncs),
		many("2 2 E(53400) Z(I)", bind("a", "a"), bind("b", "a"), bind("c", "a"), syncs),
		one(query("select 1;select 1;select 1"), "T1 D C(SELECT 1) T1 D C(SELECT 1) T1 D C(SELECT 1) Z(I)"),
		one(query("select 1;select 1"), "E(53400) Z(I)"),
	})
	b.raw(t)
	if _, e := b.attempt(t, "alice", "wonderland", "census"); e == nil || e.Code != "53300" {
		t.Errorf("%+v", e)
	}
}

// limit has other limits of the policy in force.
func (b *bench) limit(t *testing.T, l policy.Limits) {
	p := testPolicy(t)
	p.Server.Limits = l
	b.policy.Store(p)
}

// TestKeptAnswersAreGivenAtOnce: an answer that the pipeline keeps waits for no turn and has its notices, but counts as
// a statement a second, and goes the way of all others where answers leave on a grid.
func TestKeptAnswersAreGivenAtOnce(t *testing.T) {
	b := start(t)
	kept := b.pipeline.fixtures["select count(*) from people"]
	kept.kept = true
	b.pipeline.fixtures["select count(*) from people"] = kept
	answered := func(when string, fromMemory, others int64) {
		t.Helper()
		if memory, all := b.pipeline.remembered.Swap(0), b.pipeline.answers.Swap(0); memory != fromMemory || all != others {
			t.Errorf("%s: %d answers from memory and %d others, must be %d and %d", when, memory, all, fromMemory, others)
		}
	}
	b.limit(t, policy.Limits{Connections: 9, UserConnections: 9, UserStatements: 1})
	release := make(chan struct{})
	b.pipeline.fixtures["select paid"] = fixture{columns: standardFixtures()["select 1"].columns, answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
		<-release
		return numbers(1), nil
	}}
	paid, r := b.raw(t, "statement_timeout", "30"), b.raw(t)
	paid.play("the only turn", []step{one(query("select paid"), "E(57014) Z(I)")})
	r.play("kept", []step{one(query("select count(*) from people"), "N(00000) T1 D C(SELECT 1) Z(I)")})
	close(release)
	answered("while another has the turn", 1, 1)
	b.limit(t, policy.Limits{Connections: 9, UserConnections: 9, UserStatements: 9, StatementsPerSecond: 3})
	r = b.raw(t)
	r.play("often", []step{one(query("select count(*) from people;select count(*) from people;select count(*) from people"), "N(00000) T1 D C(SELECT 1) N(00000) T1 D C(SELECT 1) N(00000) T1 D C(SELECT 1) Z(I)"),
		one(query("select count(*) from people"), "E(53400) Z(I)")})
	answered("often", 3, 0)
	p := testPolicy(t)
	p.Server.Timing.Grid = 20 * time.Millisecond
	b.policy.Store(p)
	b.raw(t).play("on a grid", []step{one(query("select count(*) from people"), "N(00000) T1 D C(SELECT 1) Z(I)")})
	answered("on a grid", 0, 1)
}

// TestRunningLimit: a user's statements beyond the limit wait, also behind one that nobody waits for any more.
func TestRunningLimit(t *testing.T) {
	b := start(t)
	b.limit(t, policy.Limits{Connections: 9, UserConnections: 9, UserStatements: 1})
	release := make(chan struct{})
	b.pipeline.fixtures["select paid"] = fixture{columns: standardFixtures()["select 1"].columns,
		answer: func(context.Context, *pipeline.Session, []policy.Value) ([][]policy.Value, error) {
			<-release // paid: goes on, whatever the client does
			return numbers(1), nil
		}}
	a, c := b.raw(t, "statement_timeout", "30"), b.raw(t, "statement_timeout", "30")
	a.play("paid", []step{one(query("select paid"), "E(57014) Z(I)")})
	c.play("waits", []step{one(query("select 1"), "E(57014) Z(I)")})
	close(release)
	c.play("free", []step{one(query("set statement_timeout = 0; select 1"), "C(SET) T1 D C(SELECT 1) Z(I)")})
}

func TestListenAddress(t *testing.T) {
	p := testPolicy(t)
	c := Config{Listen: "0.0.0.0:0", Policy: func() *policy.Policy { return p }, Pipeline: &fakePipeline{}}
	if _, err := New(c); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("%v", err)
	}
	c.TLS = certificate(t, false)
	if _, err := New(c); err != nil {
		t.Error(err)
	}
	for address, want := range map[string]bool{"127.0.0.1": true, "::1": true, "localhost": true, "0.0.0.0": false, "": false, "10.1.2.3": false, "example.org": false} {
		if isLoopback(address) != want {
			t.Errorf("%q: %v", address, !want)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"set search_path = a, \"B c\", public":           `SET search_path=a, "B c", public`,
		"set datestyle to iso, dmy":                      "SET datestyle=iso, dmy",
		"set time zone interval '+00:00' hour to minute": "SET timezone=INTERVAL '+00:00'",
		"set time zone -3":                               "SET timezone=-3",
		"set names 'utf8'":                               "SET client_encoding=utf8",
		"set session characteristics as transaction isolation level serializable": "SET default_transaction_isolation=serializable",
		"set transaction read only":  "SET LOCAL transaction_read_only=1",
		"set local dp.epsilon = 0.5": "SET LOCAL dp.epsilon=0.5",
		"set dp.error_columns = on":  "SET dp.error_columns=on",
		"begin read only":            "BEGIN transaction_read_only=1",
	} {
		commands, refusal := parseCommands(text)
		if refusal != nil || len(commands) != 1 {
			t.Errorf("%s: %v", text, refusal)
			continue
		}
		k := commands[0]
		got := "SET "
		if k.Kind == parse.KindBegin {
			got = "BEGIN "
		}
		if k.local {
			got += "LOCAL "
		}
		if len(k.modes) > 0 {
			got += fmt.Sprintf("%s=%s", k.modes[0][0], k.modes[0][1])
		} else {
			got += k.name + "=" + k.value
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
