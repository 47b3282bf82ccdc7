package pgtest

import (
	"context"
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/daemon"
)

// Standby starts a standby of the server, a copy made by pg_basebackup that follows it by streaming, stopped when the test
// ends. It goes by the name standby.
func (s *Server) Standby(t testing.TB, settings ...string) *Server {
	t.Helper()
	copied, err := launch(func(c *Server, bin string, owner *syscall.Credential) error {
		if err := own(c.Dir, owner); err != nil {
			return err
		}
		return c.fill(bin, owner, "pg_basebackup", "-D", c.data(), "-d", fmt.Sprintf("host=127.0.0.1 port=%d user=%s application_name=standby", s.Port, superuser),
			"-X", "stream", "-c", "fast", "-R", "--no-sync")
	}, settings)
	return daemon.UntilTheEnd(t, copied, err, ErrNoBinaries)
}

// Detach has a standby no longer be sent anything; Attach has it follow again.
func (s *Server) Detach(t testing.TB) {
	t.Helper()
	s.Exec(t, "postgres", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	s.Until(t, "SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")
}

func (s *Server) Attach(t testing.TB, primary *Server) {
	t.Helper()
	s.Exec(t, "postgres", "ALTER SYSTEM SET primary_conninfo = 'host=127.0.0.1 port="+strconv.Itoa(primary.Port)+" user="+superuser+" application_name=standby'",
		"SELECT pg_reload_conf()")
	s.Until(t, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')")
}

// Promote has a standby take over, with what it was sent.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "postgres", "SELECT pg_promote(true, 60)")
	s.Until(t, "SELECT NOT pg_is_in_recovery()")
}

// Until waits until a query is answered by true.
func (s *Server) Until(t testing.TB, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer conn.Close(context.Background())
	for met := false; !met; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(ctx, query).Scan(&met); err != nil {
			t.Fatalf("pgtest: %s: %v", query, err)
		}
	}
}
