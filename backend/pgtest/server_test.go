package pgtest

import (
	"context"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestSharedServerGivesDatabasesAndRoles(t *testing.T) {
	s := Shared(t)
	role := s.Role(t, "NOSUPERUSER")
	db := s.Database(t)
	s.Exec(t, db, "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); GRANT SELECT ON t TO "+role)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URLFor(role, db))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var n int
	var super bool
	if err := conn.QueryRow(ctx, "SELECT (SELECT count(*) FROM t), rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&n, &super); err != nil {
		t.Fatal(err)
	}
	if n != 2 || super {
		t.Errorf("got %d rows and superuser %v, want 2 and false", n, super)
	}
	if Shared(t) != s {
		t.Error("the shared server is not shared")
	}
}

func TestOwnServerTakesSettingsAndCrashes(t *testing.T) {
	s := Start(t, "fsync=on", "log_statement=all")
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var fsync string
	if err := conn.QueryRow(ctx, "SHOW fsync").Scan(&fsync); err != nil || fsync != "on" {
		t.Errorf("fsync is %q (%v), want on", fsync, err)
	}
	if err := s.Crash(); err != nil {
		t.Fatal(err)
	}
	if _, err := pgx.Connect(ctx, s.URL()); err == nil {
		t.Error("a crashed server answers")
	}
}
