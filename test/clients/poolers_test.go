package clients

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/test/kit"
)

// pooled is a client of a pooler whose one connection to dpproxy serves all clients.
type pooled struct {
	*pgx.Conn
	t *testing.T
}

func (p pooled) exec(sql, state string) {
	p.t.Helper()
	got := ""
	_, err := p.PgConn().Exec(p.t.Context(), sql).ReadAll()
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) {
		got = e.Code
	} else if err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
	if got != state {
		p.t.Errorf("%s: %q (%v), want %q", sql, got, err, state)
	}
}

func (p pooled) shows(name, want string) {
	p.t.Helper()
	var got string
	if err := p.QueryRow(p.t.Context(), "SHOW "+name, pgx.QueryExecModeSimpleProtocol).Scan(&got); err != nil || got != want {
		p.t.Errorf("%s: %s (%v), want %s", name, got, err, want)
	}
}

func clientOf(t *testing.T, url string) pooled {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return pooled{conn, t}
}

// TestPoolerHandsNothingOn: pgbouncer in transaction mode gives one session to many clients. What one sets for her
// statements, which says what they cost, is not there for the next: by the policy's settings_scope, or by a pooler that
// follows what it is sent.
func TestPoolerHandsNothingOn(t *testing.T) {
	major, minor := kit.PoolerVersion(t)
	if major == 0 {
		t.Skip("pgbouncer is not installed")
	}
	t.Run("settings_scope", func(t *testing.T) {
		path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
		kit.Edit(t, path, "{name: alice,", "{name: alice, settings_scope: transaction,")
		url := kit.Pooler(t, kit.Serve(t, path).URL("alice", "lab"), "", "alice")
		a, b := clientOf(t, url), clientOf(t, url)
		a.exec("SET dp.epsilon = 0.5", "25P01")
		a.exec("BEGIN", "")
		a.exec("SET dp.epsilon = 0.5", "")
		a.shows("dp.epsilon", "0.5")
		a.exec("COMMIT", "")
		b.shows("dp.epsilon", "0.1")
		a.exec("SET dp.epsilon = 0.5; SELECT count(*) FROM people", "")
		b.shows("dp.epsilon", "0.1")
	})
	t.Run("by session", func(t *testing.T) {
		url := kit.Pooler(t, kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)).URL("alice", "lab"), "pool_mode = session", "alice")
		a := clientOf(t, url)
		a.exec("SET dp.epsilon = 0.5; PREPARE p AS SELECT count(*) FROM people; DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FROM people", "")
		a.shows("dp.epsilon", "0.5")
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := clientOf(t, url) // on the session that was hers, after DISCARD ALL
		b.shows("dp.epsilon", "0.1")
		b.exec("EXECUTE p", "26000")
		b.exec("FETCH c", "34000")
	})
	t.Run("by statement", func(t *testing.T) {
		path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
		kit.Edit(t, path, "{name: alice,", "{name: alice, settings_scope: transaction,")
		url := kit.Pooler(t, kit.Serve(t, path).URL("alice", "lab"), "pool_mode = statement", "alice")
		a, b := clientOf(t, url), clientOf(t, url)
		a.exec("SET dp.epsilon = 0.5", "25P01")
		a.exec("SELECT count(*) FROM people", "")
		b.exec("SELECT count(*) FROM people", "")
		b.shows("dp.epsilon", "0.1")
		a.exec("BEGIN", "08P01") // pgbouncer's own word
	})
	t.Run("tracked", func(t *testing.T) {
		if major == 1 && minor < 20 {
			t.Skipf("pgbouncer %d.%d follows no parameters but PostgreSQL's own; 1.20 does", major, minor)
		}
		path := kit.DuckDB(t, kit.Budgets{User: "10", Cap: "20"}, 0)
		url := kit.Pooler(t, kit.Serve(t, path).URL("alice", "lab"), "track_extra_parameters = dp.epsilon, dp.confidence, dp.max_error, dp.error_columns, dp.release", "alice")
		a, b, c := clientOf(t, url), clientOf(t, url), clientOf(t, url+"&options=-c%20dp.epsilon%3D0.3")
		a.exec("SET dp.epsilon = 0.5", "")
		b.shows("dp.epsilon", "0.1")
		c.shows("dp.epsilon", "0.3")
		a.shows("dp.epsilon", "0.5")
		b.exec("SET dp.error_columns = on", "")
		a.shows("dp.error_columns", "off")
		b.shows("dp.error_columns", "on")
	})
}
