package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

func session0(t *testing.T) *settings {
	t.Helper()
	p := testPolicy(t)
	s := newSettings("alice")
	s.adopt(p.Dataset("census"), p.User("alice"))
	return s
}

// TestVariables: values as PostgreSQL 15 takes and shows them.
func TestVariables(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"statement_timeout", "5000", "5s"}, {"statement_timeout", "5s", "5s"}, {"statement_timeout", "1500ms", "1500ms"}, {"statement_timeout", "90 min", "90min"},
		{"statement_timeout", "1d", "1d"}, {"statement_timeout", "0", "0"}, {"statement_timeout", "-1", "!22023"}, {"statement_timeout", "5 parsec", "!22023"}, {"statement_timeout", "abc", "!22023"},
		{"work_mem", "8MB", "8MB"}, {"work_mem", "4096", "4MB"}, {"work_mem", "1", "!22023"}, {"effective_cache_size", "4GB", "4GB"},
		{"extra_float_digits", "3", "3"}, {"extra_float_digits", "4", "!22023"}, {"extra_float_digits", "-15", "-15"},
		{"client_encoding", "'utf-8'", "UTF8"}, {"client_encoding", "UNICODE", "UTF8"}, {"client_encoding", "latin1", "LATIN1"}, {"client_encoding", "windows-1252", "WIN1252"}, {"client_encoding", "iso-8859-15", "LATIN9"}, {"client_encoding", "EUC_TW", "!22023"}, {"client_encoding", "sql_ascii", "SQL_ASCII"},
		{"DATESTYLE", "iso, dmy", "ISO, DMY"}, {"datestyle", "ISO", "ISO, MDY"}, {"datestyle", "German", "!22023"}, {"datestyle", "ymd", "ISO, YMD"},
		{"TimeZone", "Europe/Berlin", "Europe/Berlin"}, {"timezone", "utc", "UTC"}, {"timezone", "+05:30", "+05:30"}, {"timezone", "-3", "<-03>+03"}, {"timezone", "5.5", "<+05:30>-05:30"},
		{"timezone", "america/new_york", "America/New_York"}, {"timezone", "<-03>+03", "<-03>+03"}, {"timezone", "INTERVAL '+05:30'", "<+05:30>-05:30"}, {"timezone", "<x>", "!22023"}, {"timezone", "Mars/Base", "!22023"},
		{"timezone", "../../etc/passwd", "!22023"}, {"timezone", "Local", "!22023"}, {"timezone", "99", "!22023"}, {"timezone", "", "!22023"},
		{"client_min_messages", "WARNING", "warning"}, {"client_min_messages", "loud", "!22023"},
		{"standard_conforming_strings", "on", "on"}, {"standard_conforming_strings", "true", "on"}, {"standard_conforming_strings", "off", "!22023"},
		{"bytea_output", "escape", "escape"}, {"intervalstyle", "postgres", "postgres"}, {"intervalstyle", "ISO_8601", "iso_8601"}, {"intervalstyle", "iso", "!22023"},
		{"jit", "f", "off"}, {"jit", "o", "!22023"}, {"enable_seqscan", "YES", "on"}, {"synchronous_commit", "false", "off"},
		{"default_transaction_isolation", "repeatable read", "repeatable read"}, {"transaction_isolation", "chaos", "!22023"},
		{"random_page_cost", "1.1", "1.1"}, {"random_page_cost", "NaN", "!22023"}, {"random_page_cost", "-1", "!22023"},
		{"server_version", "16", "!55P02"}, {"is_superuser", "on", "!55P02"}, {"no_such_thing", "1", "!42704"}, {"a.b", "x", "x"}, {"a.", "x", "!42704"}, {"a.b c", "x", "!42704"},
		{"role", "none", "none"}, {"role", "dba", "!42501"}, {"session_authorization", "alice", "alice"}, {"session_authorization", "dba", "!42501"},
		{"dp.epsilon", "0.25", "0.25"}, {"DP.Epsilon", "1", "1"}, {"dp.epsilon", "1.000001", "!22023"}, {"dp.epsilon", "0", "!22023"}, {"dp.epsilon", "-1", "!22023"}, {"dp.epsilon", "NaN", "!22023"},
		{"dp.epsilon", "0.0000001", "!22023"}, {"dp.confidence", "0.99", "0.99"}, {"dp.confidence", "1", "!22023"}, {"dp.confidence", "x", "!22023"}, {"dp.confidence", "NaN", "!22023"},
		{"dp.error_columns", "yes", "on"}, {"dp.release", "1", "on"}, {"dp.max_error", "50", "50"}, {"dp.alarms", "3", "3"}, {"dp.alarms", "-1", "!22023"}, {"dp.alarms", "1001", "!22023"}, {"dp.max_error", "0", "off"}, {"dp.max_error", "OFF", "off"}, {"dp.max_error", "2.50", "2.5"}, {"dp.max_error", "-1", "!22023"}, {"dp.max_error", "NaN", "!22023"}, {"dp.max_error", "1e99", "!22023"}, {"dp.dialect", "MySQL", "mysql"}, {"dp.dialect", "oracle", "!22023"}, {"dp.offgrid", "Snap", "snap"}, {"dp.offgrid", "round", "!22023"}, {"dp.freshness", "1h", "!42704"}, {"dp.epsilno", "1", "!42704"},
		{"application_name", strings.Repeat("x", 2000), "!22023"},
	} {
		s := session0(t)
		got := ""
		if f := s.set(c.name, c.value, false); f != nil {
			got = "!" + f.SQLState
		} else if _, value, f := s.show(c.name); f != nil {
			got = "shows " + f.Message
		} else {
			got = value
		}
		if got != c.want {
			t.Errorf("SET %s = %q: %s, want %s", c.name, c.value, got, c.want)
		}
	}
	s := session0(t)
	for i := range 2 * mostCustom {
		if f := s.set(fmt.Sprintf("my.var%d", i), "x", false); (f == nil) != (i < mostCustom) {
			t.Fatalf("variable %d: %v", i, f)
		}
	}
	for name, hint := range map[string]string{"dp.epsilom": "Perhaps you meant dp.epsilon.", "dp.budgt": "Perhaps you meant dp.budget."} {
		if f := pgerror.Describe(notShown(name)); f.SQLState != "42704" || f.Hint != hint {
			t.Errorf("SHOW %s: %+v, want the hint %s", name, f, hint)
		}
	}
	if f := unknownSetting("dp.epsilno"); !strings.Contains(f.Hint, "dp.epsilon") {
		t.Error(f.Hint)
	}
}

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
	for name, want := range map[string]string{"client_encoding": "UTF8", "server_version": serverVersion, "TimeZone": "Europe/Berlin", "DateStyle": "ISO, DMY",
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
	if n != len(known) || rows.Err() != nil {
		t.Errorf("%d of %d, %v", n, len(known), rows.Err())
	}
}

// TestZones: a number counts east, POSIX's offset west.
func TestZones(t *testing.T) {
	for name, want := range map[string]int{"UTC": 0, "-3": -3 * 3600, "3": 3 * 3600, "+05:30": -19800, "INTERVAL '+05:30'": 19800, "INTERVAL '-08:00'": -8 * 3600, "<-03>+03": -3 * 3600, "<+05:30>-05:30": 19800} {
		zone, kept, ok := parseZone(name)
		if !ok {
			t.Errorf("%s refused", name)
			continue
		}
		again, _, ok := parseZone(kept)
		_, seconds := time.Unix(0, 0).In(zone).Zone()
		if _, second := time.Unix(0, 0).In(again).Zone(); !ok || seconds != want || second != want {
			t.Errorf("%s: %d, kept as %s: %d, want %d", name, seconds, kept, second, want)
		}
	}
}

func TestSearchPath(t *testing.T) {
	for text, want := range map[string]string{`"$user", public`: "[alice public]", `A, "B c", "q""q"`: `[a B c q"q]`, "": "[]", " , ": "[]"} {
		if got := fmt.Sprint(searchPath(text, "alice")); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
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
