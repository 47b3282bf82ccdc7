package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/sandbox/embedded"
	"github.com/dpproxy/dpproxy/sandbox/sandboxtest"
)

// limited is an engine whose limits come from a policy.
func limited(t *testing.T, o sandbox.Options, l policy.Limits) sandbox.Engine {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	e, err := embedded.Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	p := sandboxtest.Census()
	p.Server.Limits = l
	if err := e.Catalog(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	return e
}

// sandboxes are the resident bytes of this process's sandbox children, all together.
func sandboxes(t *testing.T) (bytes int64) {
	for _, pid := range childrenOf(t, os.Getpid()) {
		command, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		status, _ := os.ReadFile("/proc/" + pid + "/status")
		for line := range strings.Lines(string(status)) {
			var kib int64
			if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kib); err == nil && strings.Contains(string(command), "__sandbox") {
				bytes += kib << 10
			}
		}
	}
	return bytes
}

// TestMemoryOfAQuery is threat T70: whatever a query makes of strings, lists and joins, its child takes no more than what it
// held before and the policy's statement_memory. DuckDB's own limit alone does not hold string functions.
func TestMemoryOfAQuery(t *testing.T) {
	const memory = 192 << 20
	others := sandboxes(t)
	e := limited(t, sandbox.Options{Children: 1}, policy.Limits{StatementCPU: 3 * time.Second, StatementMemory: memory})
	if _, err := raw(e, "SELECT CAST(1 AS VARCHAR)"); err != nil {
		t.Fatal(err)
	}
	rest := sandboxes(t) - others
	if rest <= 0 {
		t.Skip("no /proc")
	}
	var most atomic.Int64
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(15 * time.Millisecond):
				most.Store(max(most.Load(), sandboxes(t)-others))
			}
		}
	}()
	refused := 0
	queries := []string{
		"SELECT CAST(length(repeat('x', 1500000000)) AS VARCHAR)",
		"SELECT CAST(sum(length(repeat('x', 40000000 + CAST(i AS INTEGER)))) AS VARCHAR) FROM range(100) t(i)",
		"SELECT CAST(length(string_agg(repeat('x', 100000), '')) AS VARCHAR) FROM range(20000)",
		"SELECT CAST(length(rpad('x', 900000000, 'yz')) AS VARCHAR)",
		"SELECT CAST(length(regexp_replace(repeat('x', 50000000), 'x', 'yyyyyyyyyyyyyyyyyyyy', 'g')) AS VARCHAR)",
		"SELECT CAST(length(list(repeat('x', 1000))::VARCHAR) AS VARCHAR) FROM range(2000000)",
		"SELECT repeat('x', 100000) FROM range(1000000)",
		"SELECT CAST(count(*) AS VARCHAR) FROM (SELECT DISTINCT a.range * 1000000 + b.range FROM range(6000) a, range(6000) b)",
	}
	for _, sql := range queries {
		_, err := raw(e, sql)
		var fault *scalar.Error
		switch {
		case err == nil:
		case !errors.As(err, &fault) || fault.SQLState != "54000" && fault.SQLState != "57014" && fault.SQLState != "22023":
			t.Errorf("%.60s: %v", sql, err)
		default:
			if refused++; fault.SQLState == "54000" && !strings.Contains(fault.Message, "192MiB (server.limits.statement_memory)") {
				t.Errorf("%.60s: %v", sql, err)
			}
		}
		if rows, err := raw(e, "SELECT CAST(7 AS VARCHAR)"); err != nil || len(rows.Data) != 1 {
			t.Errorf("after %.60s: %v", sql, err)
		}
	}
	close(stop)
	<-ended
	const slack = 48 << 20 // the text of the program, which is shared, and what a new process has before it is bounded
	if most.Load() > rest+memory+slack {
		t.Errorf("the child took %d MiB, at rest %d MiB, and may take %d MiB more", most.Load()>>20, rest>>20, memory>>20)
	}
	if refused < len(queries)/2 {
		t.Errorf("%d of %d queries were ended: the test tests something else", refused, len(queries))
	}
	threats.Reached(t, "T70", "%d queries that build strings, lists and joins, %d ended: a child had %d MiB at rest and at most %d MiB, may have %d MiB more", len(queries), refused, rest>>20, most.Load()>>20, memory>>20)
}

// TestProcessorTimeOfAQuery: a query ends when its child has taken the processor time that the policy grants, and the error
// names the limit.
func TestProcessorTimeOfAQuery(t *testing.T) {
	e := limited(t, sandbox.Options{Children: 1}, policy.Limits{StatementCPU: 300 * time.Millisecond, StatementMemory: 256 << 20})
	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		_, err := raw(e, "SELECT CAST(count(*) AS VARCHAR) FROM range(1000000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3")
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it runs on")
	}
	var fault *scalar.Error
	if !errors.As(err, &fault) || fault.SQLState != "57014" || !strings.Contains(fault.Message, "300ms of processor time (server.limits.statement_cpu)") {
		t.Errorf("%v", err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if _, err := raw(e, "SELECT CAST(7 AS VARCHAR)"); err != nil {
		t.Errorf("after it: %v", err)
	}
}
