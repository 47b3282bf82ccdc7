package answers

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// calendar is a proxy in this process whose time is set by hand.
type calendar struct {
	*kit.Program
	now  atomic.Int64
	stop func()
}

// servedBy serves a policy from a time on.
func servedBy(t *testing.T, path string, at time.Time) *calendar {
	t.Helper()
	c := &calendar{Program: &kit.Program{T: t, Policy: path}}
	c.now.Store(at.UnixNano())
	c.begin()
	t.Cleanup(func() { c.stop() })
	return c
}

// begin starts the proxy; stop ends it.
func (c *calendar) begin() {
	c.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended := make(chan string, 1), make(chan error, 1)
	o := ledger.Options{Clock: func() time.Time { return time.Unix(0, c.now.Load()) }}
	go func() {
		ended <- service.Run(ctx, c.Policy, o, slog.New(slog.DiscardHandler), func(address string) { listening <- address })
	}()
	c.stop = func() {
		cancel()
		<-ended
		ended <- nil
	}
	select {
	case c.Address = <-listening:
	case err := <-ended:
		c.T.Fatal(err)
	}
}

func (c *calendar) set(at time.Time) { c.now.Store(at.UnixNano()) }

// pgHires is the table in PostgreSQL, with an index on the date.
func pgHires(t *testing.T, server *pgtest.Server, accountant string) (path, database string) {
	t.Helper()
	role := server.Role(t, "")
	database = server.Database(t)
	server.Exec(t, database, fmt.Sprintf(hiresSQL, 0), `CREATE INDEX ON public.hires (hired)`, `ANALYZE public.hires`, `GRANT SELECT ON public.hires TO `+role)
	return writeHires(t, memory.Dir(t), server.URLFor(role, database), accountant, "public"), database
}

// TestGrowingReleaseThroughPsql: EXPLAIN names the mechanism, the reason, cost and error; the first question pays,
// every later one is free, on later days too, and after a restart; another analyst pays for herself and reads the same.
func TestGrowingReleaseThroughPsql(t *testing.T) {
	path, _ := pgHires(t, pgtest.Shared(t), "zcdp")
	c := servedBy(t, path, date("2025-06-01").Add(13*time.Hour))
	s := kit.StartPsql(t, c.Address, "alice", "firm")
	const sofar = "SELECT count(*) FROM hires WHERE hired >= DATE '2025-01-01';"
	told := kit.Words(s.Run("EXPLAIN VERBOSE " + sofar))
	for _, want := range []string{"range over public.hires", "Answered from: release hires_hired, bought by this query", "within dp.epsilon",
		"continual square root: the band has the length 256; paid for once with all 1096 cells, of which 517 are closed, and each drawn once when it is; discrete Gaussian noise",
		"Cost: ρ 0.125", "at 95 %", "at most 2 rows a unit", "(t.\"hired\" OPERATOR(pg_catalog.<) '2025-06-01'::pg_catalog.date)", "rows of which hired is 2025-06-01 or later are left out"} {
		if !strings.Contains(told, want) {
			t.Errorf("EXPLAIN does not say %q:\n%s", want, told)
		}
	}
	first := s.Run(sofar)
	if !strings.Contains(first, "first use of release hires_hired: ρ 0.125; every range over hired is free from now on") {
		t.Errorf("the first use:\n%s", first)
	}
	again := s.Run(sofar)
	if countIn(again) != countIn(first) || !strings.Contains(again, "free: answered from hires_hired, which you have paid for") {
		t.Errorf("the same day:\n%s\nand\n%s", first, again)
	}
	c.set(date("2025-06-08").Add(13 * time.Hour))
	later := s.Run(sofar)
	if !strings.Contains(later, "free: answered from hires_hired") || !strings.Contains(later, "rows of which hired is 2025-06-08 or later are left out") || countIn(later) == countIn(first) {
		t.Errorf("a week later:\n%s", later)
	}
	c.stop()
	c.begin()
	s = kit.StartPsql(t, c.Address, "alice", "firm")
	if after := s.Run(sofar); countIn(after) != countIn(later) {
		t.Errorf("after a restart:\n%s\nbefore it\n%s", after, later)
	}
	months := s.Run("SELECT date_trunc('month', hired), count(*) FROM hires WHERE hired < DATE '2025-06-01' GROUP BY 1 ORDER BY 1;")
	if !strings.Contains(months, "(17 rows)") || !strings.Contains(months, "free: answered from hires_hired") || strings.Contains(months, "or later are left out") {
		t.Errorf("by month:\n%s", months)
	}
	b := kit.StartPsql(t, c.Address, "bob", "firm")
	if his := b.Run(sofar); countIn(his) != countIn(later) || !strings.Contains(his, "first use of release hires_hired") {
		t.Errorf("bob:\n%s\nalice\n%s", his, later)
	}
	t.Logf("%s%s%s", told, first, later)
}

// countIn is the number in the row that psql printed under a head and a line.
func countIn(printed string) string {
	lines := strings.Split(printed, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "----") || strings.HasPrefix(line, "-------") {
			return strings.TrimSpace(lines[i+1])
		}
	}
	return "none"
}

// TestGrowthShowsNobodysChoices: what alice has asked on which days changes no frame that bob gets, nor what he is
// charged (privacy rule 1).
func TestGrowthShowsNobodysChoices(t *testing.T) {
	kit.Beside(t)
	ask := func(alice ...string) (frames []string) {
		path, _ := duckHires(t, "pure")
		c := servedBy(t, path, date("2024-05-05").Add(13*time.Hour))
		if len(alice) > 0 {
			w := c.Connect("alice", "firm")
			for i, day := range alice {
				c.set(date(day).Add(13 * time.Hour))
				if a := w.Ask("SELECT count(*) FROM hires WHERE hired >= DATE '2024-02-01'"); a.Err != nil || len(a.Rows) != 1 {
					t.Fatalf("alice's question %d: %v", i, a)
				}
			}
		}
		w := c.Connect("bob", "firm")
		for _, day := range []string{"2024-08-01", "2024-08-02", "2024-09-03"} {
			c.set(date(day).Add(13 * time.Hour))
			for _, sql := range []string{"EXPLAIN SELECT count(*) FROM hires WHERE hired >= DATE '2024-03-01'", "SELECT count(*) FROM hires WHERE hired >= DATE '2024-03-01'",
				"EXPLAIN (ALTERNATIVES) SELECT hired, count(*) FROM hires GROUP BY 1", "SELECT * FROM dp.releases", "SELECT * FROM dp.charges"} {
				a := w.Ask(sql)
				frames = append(frames, a.Frames...)
				if strings.HasPrefix(sql, "EXPLAIN") || strings.Contains(sql, "dp.") {
					for _, row := range a.Rows {
						frames = append(frames, strings.Join(row, "|"))
					}
				}
			}
		}
		return frames
	}
	none := ask()
	for _, alice := range [][]string{{"2024-06-01"}, {"2024-06-01", "2024-06-02", "2024-08-01"}} {
		if got := ask(alice...); !slices.Equal(got, none) {
			for i := range min(len(got), len(none)) {
				if got[i] != none[i] {
					t.Errorf("alice has asked on %v:\n%s\nand without her\n%s", alice, got[i], none[i])
					break
				}
			}
		}
	}
}
