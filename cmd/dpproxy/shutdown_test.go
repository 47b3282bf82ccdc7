package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
)

// deaf is a pipeline whose planning sees no context, no signal and no end: the worst that a fault of ours could do.
type deaf struct{ undescribed }

func (deaf) Answer(context.Context, *pipeline.Session, parse.Statement, []policy.Value) (pipeline.Result, error) {
	for n := 0; ; n++ {
		if n < 0 {
			return pipeline.Result{}, nil
		}
	}
}

// crossJoin holds a sandbox child for as long as it may run.
const crossJoin = `SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b WHERE (a * b) % 7 = 3`

// busy sends statements on connections of their own and waits for no answer.
func busy(p *program, statements ...string) {
	p.t.Helper()
	for _, sql := range statements {
		w := p.connect("alice", "lab")
		for part := range strings.SplitSeq(sql, ";;") {
			w.Send(&pgproto3.Query{String: part})
		}
		if err := w.Flush(); err != nil {
			p.t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // for the work to begin; which of it has makes no difference
}

// ends sends SIGTERM and tells how long the process lives on.
func ends(t *testing.T, p *program) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(30 * time.Second):
		t.Fatal("the process lives on 30 s after SIGTERM")
	}
	return time.Since(begun)
}

// mostShutdown is exitWithin, and some time for a crowded machine to reap it.
const mostShutdown = exitWithin + 1500*time.Millisecond

// TestShutdownWithinFiveSeconds is threat T71: SIGTERM ends the process within five seconds, whatever it is doing, and
// what was paid and saved is there afterwards.
func TestShutdownWithinFiveSeconds(t *testing.T) {
	beside(t)
	var took []string
	longest := time.Duration(0)
	note := func(t *testing.T, what string, p *program) {
		t.Helper()
		d := ends(t, p)
		if d > mostShutdown {
			t.Errorf("%s: the process ended %v after SIGTERM", what, d)
		}
		longest = max(longest, d)
		took = append(took, fmt.Sprintf("%s %.1f s", what, d.Seconds()))
	}
	t.Run("planning that sees nothing", func(t *testing.T) {
		p := startProcess(t, standInDeaf, "", duckFixture(t, budgets{"10", "10"}, 0))
		busy(p, `SELECT 1`, `SELECT 2`, `SELECT 3`)
		note(t, "deaf planning", p)
	})
	t.Run("children, cursors, a copy that nobody reads, plans", func(t *testing.T) {
		path := duckFixture(t, budgets{"10", "10"}, 0)
		p := serveProcess(t, path)
		paid := p.connect("alice", "lab")
		const sql = `SELECT count(*) FROM people WHERE hiv`
		first := count(t, paid.ask(sql))
		wide := strings.Repeat("age + ", 150) + "age"
		busy(p, crossJoin, crossJoin, `EXPLAIN SELECT sum(`+wide+`), sum(income) FROM people GROUP BY age`,
			`COPY (SELECT a, repeat('x', 200) FROM generate_series(1, 200000) a) TO STDOUT`,
			`BEGIN;;DECLARE c CURSOR FOR SELECT a FROM generate_series(1, 200000) a;;FETCH ALL FROM c`)
		note(t, "children, cursors, copies and plans", p)
		p.restart()
		w := p.connect("alice", "lab")
		if again := count(t, w.ask(sql)); again != first || w.spent() != "0.1" {
			t.Errorf("%d, then %d; spent %s", first, again, w.spent())
		}
	})
	t.Run("a database that hangs", func(t *testing.T) {
		server := pgtest.Start(t)
		path, database := pgFixture(t, server, budgets{"5", "50"}, 0)
		p, l := serveProcess(t, path), lockPeople(t, server, database)
		busy(p, `SELECT count(*) FROM people WHERE hiv`, `SELECT count(*) FROM people WHERE age < 40`)
		l.waiting()
		note(t, "a hanging database", p)
		l.exec(`ROLLBACK`)
		p.restart()
		w := p.connect("alice", "lab")
		spent := w.spent()
		if n := count(t, w.ask(`SELECT count(*) FROM people WHERE note = 'n1'`)); n < 0 || w.spent() == spent {
			t.Errorf("after it: %d, spent %s and then %s", n, spent, w.spent())
		}
	})
	threats.Reached(t, "T71", "ended after SIGTERM: %s; at most 5 s", strings.Join(took, ", "))
}
