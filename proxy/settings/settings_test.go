package settings

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// censusOf are the settings of a session in a dataset with dp.epsilon 0.1, at most 1.
func censusOf(t *testing.T) *Settings {
	t.Helper()
	confidence, err := mechanisms.NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	s := New("alice", false)
	s.Adopt(&policy.Dataset{ID: "census", Defaults: policy.Defaults{Epsilon: privacy.MicroEpsilon(100_000), MaxEpsilon: privacy.MicroEpsilon(1_000_000), Confidence: confidence}}, &policy.User{Name: "alice"})
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
		{"timezone", "../../etc/passwd", "!22023"}, {"timezone", "Local", "!22023"}, {"timezone", "99", "<+99>-99"}, {"timezone", "168", "!22023"}, {"timezone", "", "!22023"},
		{"client_min_messages", "WARNING", "warning"}, {"client_min_messages", "loud", "!22023"},
		{"standard_conforming_strings", "on", "on"}, {"standard_conforming_strings", "true", "on"}, {"standard_conforming_strings", "off", "!22023"},
		{"transform_null_equals", "off", "off"}, {"transform_null_equals", "on", "!22023"}, {"array_nulls", "true", "on"}, {"array_nulls", "off", "!22023"}, {"lc_time", "posix", "POSIX"}, {"lc_time", "en_US.UTF-8", "en_US.UTF-8"}, {"lc_time", "de_DE.UTF-8", "!22023"},
		{"lc_numeric", "de_DE", "!22023"}, {"lc_monetary", "c", "C"},
		{"bytea_output", "escape", "escape"}, {"intervalstyle", "postgres", "postgres"}, {"intervalstyle", "ISO_8601", "iso_8601"}, {"intervalstyle", "iso", "!22023"},
		{"jit", "f", "off"}, {"jit", "o", "!22023"}, {"enable_seqscan", "YES", "on"}, {"synchronous_commit", "false", "off"},
		{"default_transaction_isolation", "repeatable read", "repeatable read"}, {"transaction_isolation", "chaos", "!22023"},
		{"random_page_cost", "1.1", "1.1"}, {"random_page_cost", "NaN", "!22023"}, {"random_page_cost", "-1", "!22023"},
		{"server_version", "16", "!55P02"}, {"is_superuser", "on", "!55P02"}, {"no_such_thing", "1", "!42704"}, {"a.b", "x", "x"}, {"a.", "x", "!42704"}, {"a.b c", "x", "!42704"},
		{"role", "none", "none"}, {"role", "dba", "!42501"}, {"role", "alice", "alice"}, {"session_authorization", "alice", "alice"}, {"session_authorization", "dba", "!42501"},
		{"dp.epsilon", "0.25", "0.25"}, {"DP.Epsilon", "1", "1"}, {"dp.epsilon", "1.000001", "!22023"}, {"dp.epsilon", "0", "!22023"}, {"dp.epsilon", "-1", "!22023"}, {"dp.epsilon", "NaN", "!22023"},
		{"dp.epsilon", "0.0000001", "!22023"}, {"dp.confidence", "0.99", "0.99"}, {"dp.confidence", "1", "!22023"}, {"dp.confidence", "x", "!22023"}, {"dp.confidence", "NaN", "!22023"},
		{"dp.error_columns", "yes", "on"}, {"dp.release", "1", "on"}, {"dp.max_error", "50", "50"}, {"dp.delta", " 1e-7", "1e-7"}, {"dp.delta", "AUTO", "auto"}, {"dp.delta", "0", "!22023"}, {"dp.delta", "1", "!22023"}, {"dp.delta", "1e-19", "!22023"}, {"dp.alarms", "3", "3"}, {"dp.alarms", "-1", "!22023"}, {"dp.alarms", "1001", "!22023"}, {"dp.max_cost", "0", "0"}, {"dp.max_cost", "OFF", "off"}, {"dp.max_cost", " 0.10", "0.1"}, {"dp.max_cost", "-1", "!22023"}, {"dp.max_cost", "1e-13", "!22023"}, {"dp.max_cost", "cheap", "!22023"}, {"dp.max_error", "0", "off"}, {"dp.max_error", "OFF", "off"}, {"dp.max_error", "2.50", "2.5"}, {"dp.max_error", "-1", "!22023"}, {"dp.max_error", "NaN", "!22023"}, {"dp.max_error", "1e99", "!22023"}, {"dp.dialect", "MySQL", "mysql"}, {"dp.dialect", "oracle", "!22023"}, {"dp.offgrid", "Snap", "snap"}, {"dp.offgrid", "round", "!22023"}, {"dp.freshness", "1h", "!42704"}, {"dp.epsilno", "1", "!42704"},
		{"application_name", strings.Repeat("x", 2000), "!22023"},
	} {
		s := censusOf(t)
		got := ""
		if f := s.Set(c.name, c.value, false); f != nil {
			got = "!" + f.SQLState
		} else if value, f := s.Show(c.name); f != nil {
			got = "shows " + f.Message
		} else {
			got = value
		}
		if got != c.want {
			t.Errorf("SET %s = %q: %s, want %s", c.name, c.value, got, c.want)
		}
	}
	s := censusOf(t)
	for i := range 2 * maxCustom {
		if f := s.Set(fmt.Sprintf("my.var%d", i), "x", false); (f == nil) != (i < maxCustom) {
			t.Fatalf("variable %d: %v", i, f)
		}
	}
	if f := s.Set("my.var0", "y", false); f != nil {
		t.Errorf("a variable that is there cannot be set again: %v", f)
	}
	if f := s.Set("my.var0", "z", true); f != nil {
		t.Errorf("nor in a transaction: %v", f)
	}
	s.EndTransaction()
	if f := s.Set("my.more", "x", true); f == nil {
		t.Error("one more is taken")
	}
	for name, hint := range map[string]string{"dp.epsilom": "Perhaps you meant dp.epsilon.", "dp.budgt": "Perhaps you meant dp.budget."} {
		if f := Unknown(name, "dp.budget"); f.SQLState != "42704" || f.Hint != hint {
			t.Errorf("SHOW %s: %+v, want the hint %s", name, f, hint)
		}
	}
	if f := Unknown("dp.epsilno"); !strings.Contains(f.Hint, "dp.epsilon") {
		t.Error(f.Hint)
	}
}

// TestSettingErrors: words of PostgreSQL that its drivers' tests look for.
func TestSettingErrors(t *testing.T) {
	s := censusOf(t)
	for _, c := range [][3]string{
		{"standard_conforming_strings", "maybe", `parameter "standard_conforming_strings" requires a Boolean value`},
		{"statement_timeout", "-1", `-1 ms is outside the valid range for parameter "statement_timeout" (0 .. 2147483647)`},
		{"extra_float_digits", "5", `5 is outside the valid range for parameter "extra_float_digits" (-15 .. 3)`},
	} {
		if _, _, f := s.Check(c[0], c[1]); f == nil || f.Message != c[2] {
			t.Errorf("%s = %s: %v, want %s", c[0], c[1], f, c[2])
		}
	}
}

// TestZones: a number counts east, POSIX's offset west.
func TestZones(t *testing.T) {
	for name, want := range map[string]int{"UTC": 0, "-3": -3 * 3600, "3": 3 * 3600, "+05:30": -19800, "INTERVAL '+05:30'": 19800, "INTERVAL '-08:00'": -8 * 3600, "<-03>+03": -3 * 3600, "<+05:30>-05:30": 19800, "<+07>-05": 18000, "<abc>3:30": -12600, "GMT-3": 3 * 3600, "UTC+3": -3 * 3600, "EST5EDT,M3.2.0,M11.1.0": -5 * 3600} {
		zone, kept, ok := scalar.SessionZone(name)
		if !ok {
			t.Errorf("%s refused", name)
			continue
		}
		again, _, ok := scalar.SessionZone(kept)
		_, seconds := time.Unix(0, 0).In(zone).Zone()
		if _, second := time.Unix(0, 0).In(again).Zone(); !ok || seconds != want || second != want {
			t.Errorf("%s: %d, kept as %s: %d, want %d", name, seconds, kept, second, want)
		}
	}
}

func TestSearchPath(t *testing.T) {
	for text, want := range map[string]string{`"$user", public`: "[alice public]", `A, "B c", "q""q"`: `[a B c q"q]`, "": "[]", " , ": "[]"} {
		if got := searchPath(text, "alice"); got == nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %#v, want %s", text, got, want)
		}
	}
}

// TestResetAll: the modes of a transaction outlive it, as they do in PostgreSQL, beside which the frames of
// test/clients ask.
func TestResetAll(t *testing.T) {
	s := censusOf(t)
	set := func(name, value string, local bool) {
		if f := s.Set(name, value, local); f != nil {
			t.Fatal(f)
		}
	}
	check := func(when string, want map[string]string) {
		t.Helper()
		for name, value := range want {
			if got, _ := s.Show(name); got != value {
				t.Errorf("%s: %s is %s, want %s", when, name, got, value)
			}
		}
	}
	set("work_mem", "8MB", false)
	set("dp.epsilon", "0.2", false)
	set("transaction_isolation", "serializable", true)
	set("jit", "on", true)
	s.ResetAll()
	check("after RESET ALL", map[string]string{"work_mem": "4MB", "dp.epsilon": "0.1", "transaction_isolation": "serializable", "jit": "off"})
	s.EndTransaction()
	check("in the next transaction", map[string]string{"transaction_isolation": "read committed"})
}
