package embedded_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/rewrite/outer"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// raw sends SQL to the engine as it is, which no analyst can do: what reaches the engine is regenerated. These tests show
// what holds even if that failed.
func raw(e sandbox.Engine, sql string) (sandbox.Rows, error) {
	rows, err := e.Query(context.Background(), sandboxtest.Session, outer.Query{SQL: sql, Columns: []outer.Column{{Name: "x", Type: policy.Text}}}, nil)
	if err != nil {
		return sandbox.Rows{}, err
	}
	return rows.Value(), nil
}

func TestLockdown(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("a,b\n1,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DPPROXY_SECRET", "hunter2")
	for _, sql := range []string{
		"SELECT count(*)::VARCHAR FROM read_csv('" + secret + "')",
		"SELECT content FROM read_text('" + secret + "')",
		"SELECT content::VARCHAR FROM read_blob('/etc/passwd')",
		"SELECT count(*)::VARCHAR FROM '" + secret + "'",
		"SELECT file FROM glob('/etc/*')",
		"SELECT count(*)::VARCHAR FROM read_parquet('x.parquet')",
		"SELECT count(*)::VARCHAR FROM read_json('x.json')",
		"ATTACH '" + secret + ".db' AS other",
		"COPY (SELECT 1) TO '" + secret + ".out'",
		"EXPORT DATABASE '" + secret + ".dir'",
		"INSTALL httpfs", "LOAD httpfs",
		"SET enable_external_access = true", "SET lock_configuration = false", "RESET memory_limit", "PRAGMA threads=8", "PRAGMA database_list",
		"CREATE TABLE t (x INT)", "INSERT INTO \"pg_catalog.pg_class\" DEFAULT VALUES", "DELETE FROM \"pg_catalog.pg_class\"",
		"DROP TABLE \"pg_catalog.pg_class\"", "CREATE MACRO pg_pretty(b) AS 'x'", "CALL pragma_version()", "CHECKPOINT",
		"SELECT getenv('DPPROXY_SECRET')", "SELECT 1; SELECT 2", "DROP TABLE \"pg_catalog.pg_class\"; SELECT 1", "SELECT 1 -- x", "",
	} {
		if rows, err := raw(sandboxtest.Embedded(t), sql); err == nil {
			t.Errorf("%s: answered %v", sql, rows.Data)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error tells: %v", sql, err)
		}
	}
	if _, err := sandboxtest.Ask(t, sandboxtest.Embedded(t), "SELECT relname FROM pg_class"); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// TestEngineTextStaysInside: no word of the engine's own errors reaches an analyst.
func TestEngineTextStaysInside(t *testing.T) {
	for _, sql := range []string{"SELECT nope", "SELECT * FROM nope", "SELEC", "SELECT CAST('abc' AS INTEGER)::VARCHAR", "SELECT nope(1)",
		"SELECT (9223372036854775807 + 1)::VARCHAR", "SELECT error('inside')"} {
		_, err := raw(sandboxtest.Embedded(t), sql)
		var fault *scalar.Error
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		for _, word := range []string{"nope", "abc", "Error", "LINE", "inside", "922337"} {
			if strings.Contains(fault.Message, word) {
				t.Errorf("%s: %s", sql, fault.Message)
			}
		}
	}
}

// TestHostileQueries: a query that would take all the time or all the memory harms itself alone.
func TestHostileQueries(t *testing.T) {
	e, err := embedded.Start(context.Background(), sandbox.Options{Children: 2, Deadline: 3 * time.Second, Memory: 128 << 20,
		AddressSpace: 2 << 30, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Catalog(context.Background(), sandboxtest.Census()); err != nil {
		t.Fatal(err)
	}
	series := "generate_series(1, 100000)"
	for _, c := range []struct{ sql, state string }{
		{"SELECT count(*) FROM " + series + " a, " + series + " b WHERE (a * b) % 7 = 3 AND (a + b) % 11 = 5", "57014"},
		{"WITH RECURSIVE r(i) AS (SELECT 1::bigint UNION ALL SELECT (i + 1) % 10 FROM r) SELECT count(*) FROM r", "57014 54000"},
		{"SELECT array_agg(a + b) FROM generate_series(1, 20000) a, generate_series(1, 20000) b", "54000 57014"},
		{"SELECT sum(length(repeat('x', 500000000 + a))) FROM generate_series(1, 40) a", "0A000 54000 57014 DP002"},
		{"SELECT a FROM generate_series(1, 3000000) a", "54000"},
		{"SELECT string_agg(a || '" + strings.Repeat("y", 5000) + "', '') FROM generate_series(1, 2000000) a", "54000 57014"},
	} {
		_, err := sandboxtest.Ask(t, e, c.sql)
		var fault *scalar.Error
		var state string
		if errors.As(err, &fault) {
			state = fault.SQLState
		} else if err != nil {
			state = "DP002"
		}
		if state == "" || !strings.Contains(c.state, state) {
			t.Errorf("%s: %v (%s), want %s", c.sql, err, state, c.state)
		}
		if rows, err := sandboxtest.Ask(t, e, "SELECT count(*) FROM pg_class WHERE relname = 'people'"); err != nil || rows.Data[0][0] != int64(1) {
			t.Fatalf("after %s: %v %v", c.sql, rows.Data, err)
		}
	}
}

// TestCancelledQuery: a client that goes away ends its own query, and the next one is answered.
func TestCancelledQuery(t *testing.T) {
	e, err := embedded.Start(context.Background(), sandbox.Options{Children: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Catalog(context.Background(), sandboxtest.Census()); err != nil {
		t.Fatal(err)
	}
	q, refusal := outer.Render(sandboxtest.Parse(t, "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b WHERE (a + b) % 7 = 3"), dialect.DuckDB)
	if refusal != nil {
		t.Fatal(refusal)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		time.Sleep(200 * time.Millisecond)
		cancel()
	}()
	if _, err := e.Query(ctx, sandboxtest.Session, q, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled query: %v", err)
	}
	if _, err := sandboxtest.Ask(t, e, "SELECT 1"); err != nil {
		t.Errorf("after it: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := sandboxtest.Ask(t, e, "SELECT 1"); err == nil {
		t.Error("a closed engine answers")
	}
}

// TestChildKnowsNothing: the child's environment holds nothing of the parent's, and its address space is bounded.
func TestChildKnowsNothing(t *testing.T) {
	t.Setenv("DPPROXY_SECRET", "hunter2")
	e, err := embedded.Start(context.Background(), sandbox.Options{Children: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	found := 0
	for _, pid := range childrenOf(t, os.Getpid()) {
		command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		if !strings.Contains(string(command), "__sandbox") {
			continue
		}
		found++
		environment, err := os.ReadFile("/proc/" + pid + "/environ")
		if err != nil {
			t.Fatal(err)
		}
		if s := string(environment); strings.Contains(s, "hunter2") || strings.Contains(s, "PATH=") || strings.Count(s, "\x00") > 2 {
			t.Errorf("the child's environment is %q", s)
		}
	}
	if found == 0 {
		t.Error("no child was found")
	}
}

func childrenOf(t *testing.T, parent int) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(dirs) == 0 {
		t.Skip("no /proc")
	}
	var out []string
	for _, path := range dirs {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			out = append(out, filepath.Base(filepath.Dir(path)))
		}
	}
	return out
}
