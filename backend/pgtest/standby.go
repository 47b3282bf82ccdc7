package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/internal/daemon/daemontest"
)

// Standby starts a standby of the server, a copy of its files that follows it by streaming, stopped when the test
// ends. It goes by the name standby. It is made as pg_basebackup makes one, which not every package of a server has.
func (s *Server) Standby(t testing.TB, settings ...string) *Server {
	t.Helper()
	copied, err := launch(func(c *Server, _ string, owner *syscall.Credential) error { return s.copyTo(c, owner) }, settings)
	return daemontest.UntilTheEnd(t, copied, err, ErrNoBinaries)
}

// copyTo makes a data directory of a running server's that begins as its standby.
func (s *Server) copyTo(c *Server, owner *syscall.Credential) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(ctx, "SELECT pg_backup_start('standby', true)"); err != nil {
		return err
	}
	out, err := exec.Command("cp", "-a", s.data(), c.data()).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if err != nil && !strings.Contains(line, "No such file") { // what is gone meanwhile was temporary
			return fmt.Errorf("cp: %w\n%s", err, out)
		}
	}
	var label string
	if err := conn.QueryRow(ctx, "SELECT labelfile FROM pg_backup_stop(false)").Scan(&label); err != nil {
		return err
	}
	for _, name := range []string{"postmaster.pid", "postmaster.opts"} {
		_ = os.Remove(filepath.Join(c.data(), name))
	}
	for name, text := range map[string]string{"backup_label": label, "standby.signal": "",
		"postgresql.auto.conf": fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=%s application_name=standby'\n", s.Port, superuser)} {
		path := filepath.Join(c.data(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if err := daemontest.Own(path, owner); err != nil {
			return err
		}
	}
	return nil
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
