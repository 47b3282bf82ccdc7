package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// locker holds a catalog so that a paid query is between its charge and its answer for as long as the test likes: whether a
// constraint proves the bound of rows is read from it, when the query has been planned and charged.
type locker struct {
	t    *testing.T
	conn *pgx.Conn
}

func lockPeople(t *testing.T, server *pgtest.Server, database string) *locker {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	l := &locker{t, conn}
	l.exec(`BEGIN`)
	l.exec(`LOCK TABLE pg_catalog.pg_inherits IN ACCESS EXCLUSIVE MODE`)
	return l
}

func (l *locker) exec(sql string) {
	l.t.Helper()
	if _, err := l.conn.Exec(l.t.Context(), sql); err != nil {
		l.t.Fatal(err)
	}
}

// waiting returns the process of the query that waits for the lock.
func (l *locker) waiting() (pid int) {
	l.t.Helper()
	for range 500 {
		l.exec(`SELECT pg_stat_clear_snapshot()`) // or the list of connections stays as it was first seen in this transaction
		err := l.conn.QueryRow(l.t.Context(), `SELECT pid FROM pg_stat_activity WHERE application_name = 'dpproxy' AND wait_event_type = 'Lock'`).Scan(&pid)
		if err == nil {
			return pid
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.t.Fatal("no paid query waits for the table")
	return 0
}

// databaseFaults are what may happen to a database after the charge.
var databaseFaults = map[string]func(t *testing.T, s *pgtest.Server, l *locker){
	"table dropped": func(_ *testing.T, _ *pgtest.Server, l *locker) {
		l.exec(`DROP TABLE public.people`)
		l.exec(`COMMIT`)
	},
	"column dropped": func(_ *testing.T, _ *pgtest.Server, l *locker) {
		l.exec(`ALTER TABLE public.people DROP COLUMN city`)
		l.exec(`COMMIT`)
	},
	"backend killed": func(_ *testing.T, _ *pgtest.Server, l *locker) {
		l.exec(fmt.Sprintf(`SELECT pg_terminate_backend(%d)`, l.waiting()))
		l.exec(`ROLLBACK`)
	},
	"rights revoked": func(_ *testing.T, _ *pgtest.Server, l *locker) {
		l.exec(`ALTER TABLE public.people RENAME TO hidden`)
		l.exec(`COMMIT`)
	},
	"owner's deadline": func(*testing.T, *pgtest.Server, *locker) {},
	"server crashed": func(t *testing.T, s *pgtest.Server, _ *locker) {
		if err := s.Crash(); err != nil {
			t.Fatal(err)
		}
	},
}

// TestRule5AfterTheChargeOnlyAnAnswer: whatever happens to the database between the charge and the answer, she gets an
// answer of the same shape, with the same notices, and it is saved: asked again it is free and the same.
func TestRule5AfterTheChargeOnlyAnAnswer(t *testing.T) {
	beside(t)
	const sql = `SELECT city, count(*) FROM people WHERE age > 20 GROUP BY city ORDER BY city`
	for name, fault := range databaseFaults {
		t.Run(name, func(t *testing.T) {
			server := pgtest.Start(t)
			path, database := pgFixture(t, server, budgets{"5", "50"}, 0)
			edit(t, path, "backend: {url:", "backend: {deadline: 2s, url:")
			p := serveProcess(t, path)
			healthy := p.connect("bob", "lab").ask(sql)
			if healthy.err != nil {
				t.Fatal(healthy.err)
			}
			alice := p.connect("alice", "lab")
			l := lockPeople(t, server, database)
			answered := make(chan answer, 1)
			go func() {
				a, err := alice.tryAsk(sql)
				if err != nil {
					t.Errorf("the connection died: %v", err)
				}
				answered <- a
			}()
			l.waiting()
			fault(t, server, l)
			a := <-answered
			if !slices.Equal(a.frames, healthy.frames) {
				t.Errorf("a fault shows:\n%v\n%v", a.frames, healthy.frames)
			}
			for _, row := range a.rows {
				// The true count is taken as zero; P(|noise| > 210) < 10⁻⁹ at scale 10.
				if n, err := strconv.Atoi(row[1]); err != nil || n > 210 || n < -210 {
					t.Errorf("%v is not the noise on zero", row)
				}
			}
			again := alice.ask(sql)
			if fmt.Sprint(again.rows) != fmt.Sprint(a.rows) || alice.spent() != "0.1" {
				t.Errorf("asked again: %v, spent %s; at first %v", again.rows, alice.spent(), a.rows)
			}
			var found findings
			for _, word := range []string{"does not exist", "terminating", "permission"} {
				if strings.Contains(p.logText(), word) {
					found.add("the log holds the database's text: %s", p.logText())
				}
			}
			found.none(t)
			if !strings.Contains(p.logText(), "a paid query failed") {
				t.Error("the operator was not told")
			}
		})
	}
}

// TestRule5UnreachableBeforeDispatch: a database that cannot be reached before the charge is a plain error, and free; what
// she holds is still answered, and once the database is back so is the rest.
func TestRule5UnreachableBeforeDispatch(t *testing.T) {
	beside(t)
	server := pgtest.Start(t)
	path, database := pgFixture(t, server, budgets{"5", "50"}, 0)
	p := serveProcess(t, path)
	w := p.connect("alice", "lab")
	const held, fresh = `SELECT count(*) FROM people`, `SELECT count(*) FROM people WHERE hiv`
	first := count(t, w.ask(held))
	server.Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS false`, database),
		fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, database))
	if a := w.ask(fresh); a.err == nil || a.err.Code != "DP004" || strings.Contains(a.err.Message+a.err.Detail+a.err.Hint, database) {
		t.Errorf("unreachable: %v", a.err)
	}
	if again := count(t, w.ask(held)); again != first || w.spent() != "0.1" {
		t.Errorf("held: %d, then %d; spent %s", first, again, w.spent())
	}
	if a := w.ask(`EXPLAIN ` + fresh); a.err != nil {
		t.Errorf("EXPLAIN needs the database: %v", a.err)
	}
	server.Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS true`, database))
	if a := w.ask(fresh); a.err != nil || w.spent() != "0.2" {
		t.Errorf("after the database is back: %v, spent %s", a.err, w.spent())
	}
}
