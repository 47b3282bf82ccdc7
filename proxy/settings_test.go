package proxy

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/proxy/settings"
)

// TestSettingsTransactions: SET, SET LOCAL and what COMMIT, ROLLBACK and savepoints leave of them.
func TestSettingsTransactions(t *testing.T) {
	b := start(t)
	for _, c := range []struct{ script, want string }{
		{"begin; set dp.epsilon = 0.2; commit", "0.2"},
		{"begin; set dp.epsilon = 0.2; rollback", "0.1"},
		{"begin; set local dp.epsilon = 0.2; commit", "0.1"},
		{"begin; set dp.epsilon = 0.2; set local dp.epsilon = 0.3; commit", "0.2"},
		{"begin; set local dp.epsilon = 0.3; set dp.epsilon = 0.2; commit", "0.2"},
		{"set dp.epsilon = 0.5; begin; set local dp.epsilon to default; commit", "0.5"},
		{"set dp.epsilon = 0.5; reset dp.epsilon", "0.1"}, {"set dp.epsilon = 0.5; reset all", "0.1"}, {"set dp.epsilon = 0.5; set dp.epsilon to default", "0.1"},
		{"begin; savepoint a; set dp.epsilon = 0.2; rollback to a; commit", "0.1"},
		{"begin; set dp.epsilon = 0.2; savepoint a; set dp.epsilon = 0.3; rollback to a; commit", "0.2"},
		{"begin; savepoint a; set dp.epsilon = 0.2; release a; commit", "0.2"},
		{"begin; savepoint a; set dp.epsilon = 0.2; savepoint a; set dp.epsilon = 0.3; rollback to a; commit", "0.2"},
		{"begin; set dp.epsilon = 0.2; savepoint a; select bad", "(failed)"},
		{"set dp.epsilon = 0.2; select bad", "0.1"}, // one message is one transaction
		{"set local dp.epsilon = 0.2", "0.1"},
		{"begin; set dp.epsilon = 0.2; commit and chain; set dp.epsilon = 0.3; rollback", "0.2"},
	} {
		r := b.raw(t)
		r.Send(query(c.script))
		r.upTo("Z")
		r.Send(query("show dp.epsilon"))
		r.flush()
		got := "(failed)"
		for msg := r.next(); brief(msg)[0] != 'Z'; msg = r.next() {
			if value, ok := dataRow(msg); ok {
				got = value
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.script, got, c.want)
		}
	}
}

// TestReported: clients hear of the variables they follow, at start-up and after each change.
func TestReported(t *testing.T) {
	b := start(t)
	conn := b.pgx(t, "application_name=grafana&timezone=Europe/Berlin&datestyle=ISO,DMY&extra_float_digits=3&lock_timeout=5&options=-c%20dp.epsilon%3D0.07")
	status := conn.PgConn().ParameterStatus
	for name, want := range map[string]string{"client_encoding": "UTF8", "server_version": "15.0 (dpproxy)", "TimeZone": "Europe/Berlin", "DateStyle": "ISO, DMY",
		"standard_conforming_strings": "on", "integer_datetimes": "on", "server_encoding": "UTF8", "IntervalStyle": "postgres", "is_superuser": "off",
		"session_authorization": "alice", "application_name": "grafana", "default_transaction_read_only": "off", "in_hot_standby": "off"} {
		if got := status(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	check := func(sql, name, want string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		if got := status(name); got != want {
			t.Errorf("after %s: %s = %q, want %q", sql, name, got, want)
		}
	}
	check("set timezone = 'UTC'", "TimeZone", "UTC")
	check("set dp.epsilon = 0.08", "dp.epsilon", "0.08")
	check("reset dp.epsilon", "dp.epsilon", "0.07")
	check("begin; set application_name = 'x'", "application_name", "x")
	check("rollback", "application_name", "grafana")
	check("reset timezone", "TimeZone", "Europe/Berlin")
	var e string
	if err := conn.QueryRow(t.Context(), "show dp.epsilon").Scan(&e); err != nil || e != "0.07" {
		t.Errorf("dp.epsilon %s, %v", e, err)
	}
	s := b.rawUser(t, "grafana", "panel")
	s.Send(query("show dp.epsilon"))
	s.flush()
	s.next()
	if got, _ := dataRow(s.next()); got != "0.05" {
		t.Errorf("the policy's setting for grafana: %q", got)
	}
}

func TestStartupSettings(t *testing.T) {
	b := start(t)
	for _, c := range []struct{ name, value, want string }{
		{"options", "-c dp.epsilon=5", "E(22023) EOF"}, {"options", "-c=", "E(42601) EOF"}, {"nonsense", "1", "E(42704) EOF"},
		{"client_encoding", "MULE_INTERNAL", "E(22023) EOF"}, {"client_encoding", "LATIN1", ""}, {"server_version", "9", "E(55P02) EOF"}, {"search_path", "a, b", ""}, {"geqo", "off", ""},
	} {
		conn := b.dial(t)
		r := &raw{t: t, conn: conn, Frontend: newFrontend(conn)}
		_, _ = conn.Write(startupPacket(3<<16, "user", "alice", "database", "census", c.name, c.value))
		r.login("wonderland")
		got := r.upTo("Z")
		if c.want != "" && !strings.HasSuffix(got, c.want) || c.want == "" && !strings.HasSuffix(got, "Z(I)") {
			t.Errorf("%s=%s: %s", c.name, c.value, got)
		}
	}
}

func TestShowAll(t *testing.T) {
	b := start(t)
	conn := b.pgx(t, "")
	rows, err := conn.Query(t.Context(), "show all")
	if err != nil {
		t.Fatal(err)
	}
	n, last := 0, ""
	for rows.Next() {
		var name, setting, about string
		if err := rows.Scan(&name, &setting, &about); err != nil || about == "" || strings.ToLower(name) < last {
			t.Errorf("%q %q %q %v", name, setting, about, err)
		}
		n, last = n+1, strings.ToLower(name)
	}
	if want := len(settings.New("alice", false).All()); n != want || rows.Err() != nil {
		t.Errorf("%d of %d, %v", n, want, rows.Err())
	}
}

// TestQuietClients: client_min_messages is obeyed.
func TestQuietClients(t *testing.T) {
	b := start(t)
	r := b.raw(t, "client_min_messages", "warning")
	r.play("warning", []step{
		one(query("select count(*) from people"), "T1 D C(SELECT 1) Z(I)"),
		one(query("commit"), "N(25P01) C(COMMIT) Z(I)"),
		one(query("set client_min_messages = error"), "C(SET) Z(I)"),
		one(query("commit"), "C(COMMIT) Z(I)"),
		one(query("reset client_min_messages; set client_min_messages = debug"), "C(RESET) C(SET) Z(I)"),
		one(query("select count(*) from people"), "N(00000) T1 D C(SELECT 1) Z(I)"),
	})
}

// TestSettingsEndWithTransaction: with settings_scope: transaction nothing that a client set is there for the next one
// that a pooler gives the connection to, and a SET that would end with itself is refused.
func TestSettingsEndWithTransaction(t *testing.T) {
	b := start(t)
	p := testPolicy(t)
	p.Users[0].Scoped = true
	b.policy.Store(p)
	for _, c := range []struct{ script, want, state, after string }{
		{"set dp.epsilon = 0.2", "", "25P01", "0.1"},
		{"begin; set dp.epsilon = 0.2; show dp.epsilon; commit", "0.2", "", "0.1"},
		{"begin; set dp.epsilon = 0.2; savepoint a; set dp.epsilon = 0.3; rollback to a; show dp.epsilon; rollback", "0.2", "", "0.1"},
		{"set dp.epsilon = 0.2; show dp.epsilon", "0.2", "", "0.1"},
		{"begin; set dp.epsilon = 0.2; reset dp.epsilon; show dp.epsilon; commit", "0.1", "", "0.1"},
		{"begin; set local dp.epsilon = 0.2; show dp.epsilon; commit", "0.2", "", "0.1"},
		{"set dp.epsilon to default", "", "", "0.1"},
		{"reset all", "", "", "0.1"},
	} {
		r := b.raw(t)
		got, state := r.last(c.script)
		if got != c.want || state != c.state {
			t.Errorf("%s: %q %s, want %q %s", c.script, got, state, c.want, c.state)
		}
		if after, _ := r.last("show dp.epsilon"); after != c.after {
			t.Errorf("after %s: %s, want %s", c.script, after, c.after)
		}
	}
	r := b.raw(t)
	if got, state := r.last("set timezone = 'Europe/Berlin'; show timezone"); got != "Europe/Berlin" || state != "" {
		t.Errorf("timezone %s %s", got, state)
	}
	if after, _ := r.last("show timezone"); after != "Europe/Berlin" {
		t.Errorf("timezone %s: what costs nothing lasts as ever", after)
	}
}

// TestScopeOfRunningSession: a policy that begins to end settings with the transaction does so for sessions that are
// there.
func TestScopeOfRunningSession(t *testing.T) {
	b := start(t)
	r := b.raw(t)
	r.last("set dp.epsilon = 0.2")
	p := testPolicy(t)
	p.Users[0].Scoped = true
	b.policy.Store(p)
	r.last("select 1")
	if got, _ := r.last("show dp.epsilon"); got != "0.1" {
		t.Errorf("dp.epsilon %s, want 0.1", got)
	}
}

// TestScopeOfOpenBlock: a block that was open when the policy began to end settings with the transaction brings nothing
// back when it ends.
func TestScopeOfOpenBlock(t *testing.T) {
	scoped := testPolicy(t)
	scoped.Users[0].Scoped = true
	for _, end := range []string{"rollback", "select 1/0; rollback", "rollback to a; commit", "rollback and chain; commit"} {
		b := start(t)
		r := b.raw(t)
		r.last("set dp.epsilon = 0.2")
		r.last("begin; savepoint a")
		b.policy.Store(scoped)
		r.last("select 1")
		for _, part := range strings.Split(end, "; ") {
			r.last(part)
		}
		if got, _ := r.last("show dp.epsilon"); got != "0.1" {
			t.Errorf("after %s: dp.epsilon %s, want 0.1", end, got)
		}
	}
}

// last sends a script, and returns its last row's value and the SQLSTATE of its error.
func (r *raw) last(script string) (value, state string) {
	r.Send(query(script))
	r.flush()
	for msg := r.next(); brief(msg)[0] != 'Z'; msg = r.next() {
		if v, ok := dataRow(msg); ok {
			value = v
		}
		if e, ok := msg.(*pgproto3.ErrorResponse); ok {
			state = e.Code
		}
	}
	return value, state
}
