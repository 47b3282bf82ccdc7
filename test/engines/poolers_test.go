package engines

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// behind lays tables into PostgreSQL as inPostgres does, with pgbouncer between it and dpproxy; lines are of its
// configuration.
func behind(lines, more string) func(*testing.T, string, []*table) string {
	return func(t *testing.T, _ string, tables []*table) string {
		return behindOf(t, pgtest.Shared(t), lines, more, tables)
	}
}

func behindOf(t *testing.T, server *pgtest.Server, lines, more string, tables []*table) string {
	role := server.Role(t, "")
	database := server.Database(t)
	server.Exec(t, database, "SET timezone = 'UTC'; "+strings.Join(statements(tables, nil, true), ";\n"), "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+role, "ANALYZE")
	url := kit.Pooler(t, strings.Replace(server.URLFor(role, database), role+"@", role+":"+role+"@", 1), lines, role)
	if url == "" {
		t.Skip("pgbouncer is not installed")
	}
	return fmt.Sprintf("{url: %q%s}", url+"&pool_max_conns=4", more)
}

// TestPoolers asks what TestConformance asks, where pgbouncer hands sessions of PostgreSQL from one transaction of
// dpproxy's to another.
func TestPoolers(t *testing.T) {
	plain := truth(t, shop(false))
	want := map[string][][]string{}
	for _, s := range shapes {
		for _, statement := range s.statements {
			want[statement] = plain(statement)
		}
	}
	for name, e := range map[string]engine{
		"by transaction":         {"", behind("default_pool_size = 20", "")},
		"by session":             {"", behind("default_pool_size = 20\npool_mode = session", "")},
		"by transaction, copied": {"", behind("default_pool_size = 20", ", snapshot: {dir: snapshots, every: 1d}")},
	} {
		t.Run(name, func(t *testing.T) {
			with, without := lay(t, e, shop(true)), lay(t, e, shop(false))
			found := map[string]string{}
			with.settle(t, found)
			without.settle(t, nil)
			with.serve(t)
			without.serve(t)
			for _, s := range shapes {
				askAll(t, s, with, without, want, found)
			}
			for shape, said := range found {
				if strings.HasPrefix(said, "refused") {
					t.Errorf("%s: %s", shape, said)
				}
			}
		})
	}
}

// TestPoolersThatLetTooFewThrough: what could only fail after its charge is refused before there is one: a pooler that
// lets no transaction through, or fewer at a time than dpproxy may have.
func TestPoolersThatLetTooFewThrough(t *testing.T) {
	const few = "of dpproxy's 5 transactions begin at a time"
	for lines, want := range map[string]string{
		"pool_mode = statement": "a pooler before the private database lets no transaction through (pgbouncer's pool_mode = statement)",
		"default_pool_size = 1": "the pooler before the database lets 1 " + few, "default_pool_size = 3\npool_mode = session": few, // the look has one of them
		"default_pool_size = 20\nmax_client_conn = 2": "the pooler before the database lets 2 " + few,
	} {
		t.Run(lines, func(t *testing.T) {
			t.Parallel()
			s := lay(t, engine{"", behind(lines+"\nquery_wait_timeout = 2", "")}, shop(false))
			s.write(t)
			for command, code := range map[string]int{"check": 3, "serve": 1} {
				if out := kit.Run(t, "", command, "--policy", s.path); out.Code != code || !strings.Contains(out.Stdout+out.Stderr, want) {
					t.Errorf("%s: exit %d: %s%s", command, out.Code, out.Stdout, out.Stderr)
				}
			}
		})
	}
}

// TestPoolerThatLosesTheServer: a session that PostgreSQL ends within a paid query leaves it noise on nothing, which is
// reported to the operator, and the next question is answered as ever.
func TestPoolerThatLosesTheServer(t *testing.T) {
	server := pgtest.Start(t)
	s, database := lay(t, engine{"", func(t *testing.T, dir string, tables []*table) string {
		return behindOf(t, server, "default_pool_size = 20", "", tables)
	}}, shop(false)), ""
	s.write(t)
	s.serve(t)
	if a := s.w.Ask("SELECT count(*) FROM people"); a.Err != nil || kit.Count(t, a) != people {
		t.Fatal(a.Rows, a.Err)
	}
	_, database, _ = strings.Cut(strings.TrimPrefix(s.backend, `{url: "postgres://`), "/")
	database, _, _ = strings.Cut(database, "?")
	l := kit.LockPeople(t, server, database)
	answered := make(chan kit.Answer, 1)
	go func() { answered <- s.w.Ask("SELECT count(*) FROM people WHERE age >= 0") }()
	l.Exec(fmt.Sprintf("SELECT pg_terminate_backend(%d)", l.Waiting()))
	l.Exec("ROLLBACK")
	if a := <-answered; a.Err != nil || kit.Count(t, a) != 0 {
		t.Errorf("%v, %v", a.Rows, a.Err)
	}
	if a := s.w.Ask("SELECT count(*) FROM people WHERE age >= 1"); a.Err != nil || kit.Count(t, a) == 0 {
		t.Errorf("%v, %v", a.Rows, a.Err)
	}
	if said := s.program.LogText(); strings.Count(said, "a paid query failed") != 1 || s.w.Spent() != "30000" {
		t.Errorf("spent %s\n%s", s.w.Spent(), said)
	}
}
