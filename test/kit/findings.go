package kit

import (
	"context"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// Findings is what a procedure of the kit found wrong with a proxy. Of the real program each must find nothing, and of
// the substitute with its defence switched off something.
type Findings []string

// Add notes one.
func (f *Findings) Add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// None fails the test for each finding.
func (f Findings) None(t *testing.T) {
	t.Helper()
	for i, text := range f {
		if i == 20 {
			t.Errorf("and %d more", len(f)-i)
			return
		}
		t.Error(text)
	}
}

// Some fails the test where a planted fault was not found.
func (f Findings) Some(t *testing.T, fault string) {
	t.Helper()
	if len(f) == 0 {
		t.Errorf("not found: %s", fault)
		return
	}
	t.Logf("%s: %d findings, the first: %.300s", fault, len(f), f[0])
}

// FreeAddress is one that nobody listens on.
func FreeAddress(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	return free.Addr().String()
}

// Eventually asks until ok or ten seconds are over.
func Eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 200 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("not within ten seconds: %s", what)
}

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

// Length is how much a test does: little in `make test`, which shows that it works and finds gross faults; some in
// `make safety` and `make night`, where a planted fault is found; all of it in `make safety-full`.
func Length(little, some, full int) int {
	if os.Getenv("DPPROXY_SAFETY") == "" && !threats.Night() {
		some = little
	}
	return threats.Length(some, full)
}

// Beside has a test run at the same time as others that call it, after all that do not: those measure times, count what
// this process has open, or depend on what was drawn in it before. At full length each test runs alone.
func Beside(t *testing.T) {
	t.Helper()
	if !threats.Full() {
		t.Parallel()
	}
}
