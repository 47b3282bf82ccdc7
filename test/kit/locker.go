package kit

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
)

// Locker holds a catalog so that a paid query is between its charge and its answer for as long as the test likes:
// whether a constraint proves the bound of rows is read from it, when the query has been planned and charged.
type Locker struct {
	t    *testing.T
	conn *pgx.Conn
}

// LockPeople is one on a database of a fixture.
func LockPeople(t *testing.T, server *pgtest.Server, database string) *Locker {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	l := &Locker{t, conn}
	l.Exec(`BEGIN`)
	l.Exec(`LOCK TABLE pg_catalog.pg_inherits IN ACCESS EXCLUSIVE MODE`)
	return l
}

// Exec runs a statement on its connection.
func (l *Locker) Exec(sql string) {
	l.t.Helper()
	if _, err := l.conn.Exec(l.t.Context(), sql); err != nil {
		l.t.Fatal(err)
	}
}

// Waiting returns the process of the query that waits for the lock.
func (l *Locker) Waiting() (pid int) {
	l.t.Helper()
	for range 500 {
		l.Exec(`SELECT pg_stat_clear_snapshot()`) // or the list of connections stays as it was first seen in this transaction
		err := l.conn.QueryRow(l.t.Context(), `SELECT pid FROM pg_stat_activity WHERE application_name = 'dpproxy' AND wait_event_type = 'Lock'`).Scan(&pid)
		if err == nil {
			return pid
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.t.Fatal("no paid query waits for the table")
	return 0
}
