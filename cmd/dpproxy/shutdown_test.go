package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/test/kit"
)

// deaf is a pipeline whose planning sees no context, no signal and no end: the worst that a fault of ours could do.
type deaf struct{ kit.Undescribed }

func (deaf) Answer(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, error) {
	for n := 0; ; n++ {
		if n < 0 {
			return pipeline.Result{}, nil
		}
	}
}

// crossJoin holds a session of the sandbox for as long as it may run.
const crossJoin = `SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE (a * b) % 7 = 3`

// busy sends statements on connections of their own and waits for no answer.
func busy(p *kit.Program, statements ...string) {
	p.T.Helper()
	for _, sql := range statements {
		w := p.Connect("alice", "lab")
		for part := range strings.SplitSeq(sql, ";;") {
			w.Send(&pgproto3.Query{String: part})
		}
		if err := w.Flush(); err != nil {
			p.T.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // for the work to begin; which of it has makes no difference
}

// ends sends SIGTERM and tells how long the process lives on.
func ends(t *testing.T, p *kit.Program) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Exited:
	case <-time.After(30 * time.Second):
		t.Fatal("the process lives on 30 s after SIGTERM")
	}
	return time.Since(begun)
}

// maxShutdown is exitWithin, and some time for a crowded machine to reap it.
const maxShutdown = exitWithin + 1500*time.Millisecond

// TestShutdownWithinFiveSeconds is threat T71: SIGTERM ends the process within five seconds, whatever it is doing, and
// what was paid and saved is there afterwards.
func TestShutdownWithinFiveSeconds(t *testing.T) {
	kit.Beside(t)
	var took []string
	longest := time.Duration(0)
	note := func(t *testing.T, what string, p *kit.Program) {
		t.Helper()
		d := ends(t, p)
		if d > maxShutdown {
			t.Errorf("%s: the process ended %v after SIGTERM", what, d)
		}
		longest = max(longest, d)
		took = append(took, fmt.Sprintf("%s %.1f s", what, d.Seconds()))
	}
	t.Run("planning that sees nothing", func(t *testing.T) {
		p := kit.Start(t, "deaf", "", kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0))
		busy(p, `SELECT 1`, `SELECT 2`, `SELECT 3`)
		note(t, "deaf planning", p)
	})
	t.Run("children, cursors, a copy that nobody reads, plans", func(t *testing.T) {
		path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "10"}, 0)
		p := kit.Serve(t, path)
		paid := p.Connect("alice", "lab")
		const sql = `SELECT count(*) FROM people WHERE hiv`
		first := kit.Count(t, paid.Ask(sql))
		wide := strings.Repeat("age + ", 150) + "age"
		busy(p, crossJoin, crossJoin, `EXPLAIN SELECT sum(`+wide+`), sum(income) FROM people GROUP BY age`,
			`COPY (SELECT a, repeat('x', 200) FROM generate_series(1, 200000) a) TO STDOUT`,
			`BEGIN;;DECLARE c CURSOR FOR SELECT a FROM generate_series(1, 200000) a;;FETCH ALL FROM c`)
		note(t, "children, cursors, copies and plans", p)
		p.Restart()
		w := p.Connect("alice", "lab")
		if again := kit.Count(t, w.Ask(sql)); again != first || w.Spent() != "0.1" {
			t.Errorf("%d, then %d; spent %s", first, again, w.Spent())
		}
	})
	t.Run("a database that hangs", func(t *testing.T) {
		server := pgtest.Start(t)
		path, database := kit.Postgres(t, server, kit.Budgets{User: "5", Cap: "50"}, 0)
		p, l := kit.Serve(t, path), kit.LockPeople(t, server, database)
		busy(p, `SELECT count(*) FROM people WHERE hiv`, `SELECT count(*) FROM people WHERE age < 40`)
		l.Waiting()
		note(t, "a hanging database", p)
		l.Exec(`ROLLBACK`)
		p.Restart()
		w := p.Connect("alice", "lab")
		spent := w.Spent()
		if n := kit.Count(t, w.Ask(`SELECT count(*) FROM people WHERE note = 'n1'`)); n < 0 || w.Spent() == spent {
			t.Errorf("after it: %d, spent %s and then %s", n, spent, w.Spent())
		}
	})
	threats.Reached(t, "T71", "ended after SIGTERM: %s; at most 5 s", strings.Join(took, ", "))
}

// deafServer is the real program around it.
func deafServer(ctx context.Context, _, path string, listening func(net.Addr)) error {
	return untilSignal(func(ctx context.Context) error {
		return kit.ServePipeline(ctx, path, deaf{}, proxy.Limits{}, listening)
	}, syscall.SIGTERM)
}
