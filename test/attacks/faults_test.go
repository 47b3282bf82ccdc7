package attacks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// databaseFaults are what may happen to a database after the charge.
var databaseFaults = map[string]func(t *testing.T, s *pgtest.Server, l *kit.Locker){
	"table dropped": func(_ *testing.T, _ *pgtest.Server, l *kit.Locker) {
		l.Exec(`DROP TABLE public.people`)
		l.Exec(`COMMIT`)
	},
	"column dropped": func(_ *testing.T, _ *pgtest.Server, l *kit.Locker) {
		l.Exec(`ALTER TABLE public.people DROP COLUMN city`)
		l.Exec(`COMMIT`)
	},
	"backend killed": func(_ *testing.T, _ *pgtest.Server, l *kit.Locker) {
		l.Exec(fmt.Sprintf(`SELECT pg_terminate_backend(%d)`, l.Waiting()))
		l.Exec(`ROLLBACK`)
	},
	"rights revoked": func(_ *testing.T, _ *pgtest.Server, l *kit.Locker) {
		l.Exec(`ALTER TABLE public.people RENAME TO hidden`)
		l.Exec(`COMMIT`)
	},
	"owner's deadline": func(*testing.T, *pgtest.Server, *kit.Locker) {},
	"server crashed": func(t *testing.T, s *pgtest.Server, _ *kit.Locker) {
		if err := s.Crash(); err != nil {
			t.Fatal(err)
		}
	},
}

// TestRule5AfterTheChargeOnlyAnAnswer: whatever happens to the database between the charge and the answer, she gets an
// answer of the same shape, with the same notices, and it is saved: asked again it is free and the same.
func TestRule5AfterTheChargeOnlyAnAnswer(t *testing.T) {
	kit.Beside(t)
	const sql = `SELECT city, count(*) FROM people WHERE age > 20 GROUP BY city ORDER BY city`
	for name, fault := range databaseFaults {
		t.Run(name, func(t *testing.T) {
			server := pgtest.Start(t)
			path, database := kit.Postgres(t, server, kit.Budgets{User: "5", Cap: "50"}, 0)
			kit.Edit(t, path, "backend: {url:", "backend: {deadline: 2s, url:")
			p := kit.Serve(t, path)
			healthy := p.Connect("bob", "lab").Ask(sql)
			if healthy.Err != nil {
				t.Fatal(healthy.Err)
			}
			alice := p.Connect("alice", "lab")
			l := kit.LockPeople(t, server, database)
			answered := make(chan kit.Answer, 1)
			go func() {
				a, err := alice.TryAsk(sql)
				if err != nil {
					t.Errorf("the connection died: %v", err)
				}
				answered <- a
			}()
			l.Waiting()
			fault(t, server, l)
			a := <-answered
			if !slices.Equal(a.Frames, healthy.Frames) {
				t.Errorf("a fault shows:\n%v\n%v", a.Frames, healthy.Frames)
			}
			for _, row := range a.Rows {
				// The true count is taken as zero; P(|noise| > 210) < 10⁻⁹ at scale 10.
				if n, err := strconv.Atoi(row[1]); err != nil || n > 210 || n < -210 {
					t.Errorf("%v is not the noise on zero", row)
				}
			}
			again := alice.Ask(sql)
			if fmt.Sprint(again.Rows) != fmt.Sprint(a.Rows) || alice.Spent() != "0.1" {
				t.Errorf("asked again: %v, spent %s; at first %v", again.Rows, alice.Spent(), a.Rows)
			}
			var found kit.Findings
			for _, word := range []string{"does not exist", "terminating", "permission"} {
				if strings.Contains(p.LogText(), word) {
					found.Add("the log holds the database's text: %s", p.LogText())
				}
			}
			found.None(t)
			if !strings.Contains(p.LogText(), "a paid query failed") {
				t.Error("the operator was not told")
			}
		})
	}
}

// TestRule5UnreachableBeforeDispatch: a database that cannot be reached before the charge is a plain error, and free;
// what she holds is still answered, and once the database is back so is the rest.
func TestRule5UnreachableBeforeDispatch(t *testing.T) {
	kit.Beside(t)
	server := pgtest.Start(t)
	path, database := kit.Postgres(t, server, kit.Budgets{User: "5", Cap: "50"}, 0)
	p := kit.Serve(t, path)
	w := p.Connect("alice", "lab")
	const held, fresh = `SELECT count(*) FROM people`, `SELECT count(*) FROM people WHERE hiv`
	first := kit.Count(t, w.Ask(held))
	server.Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS false`, database),
		fmt.Sprintf(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '%s'`, database))
	if a := w.Ask(fresh); a.Err == nil || a.Err.Code != "DP004" || strings.Contains(a.Err.Message+a.Err.Detail+a.Err.Hint, database) {
		t.Errorf("unreachable: %v", a.Err)
	}
	if again := kit.Count(t, w.Ask(held)); again != first || w.Spent() != "0.1" {
		t.Errorf("held: %d, then %d; spent %s", first, again, w.Spent())
	}
	if a := w.Ask(`EXPLAIN ` + fresh); a.Err != nil {
		t.Errorf("EXPLAIN needs the database: %v", a.Err)
	}
	server.Exec(t, "postgres", fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS true`, database))
	if a := w.Ask(fresh); a.Err != nil || w.Spent() != "0.2" {
		t.Errorf("after the database is back: %v, spent %s", a.Err, w.Spent())
	}
}
