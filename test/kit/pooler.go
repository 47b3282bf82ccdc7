package kit

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// poolerBinary is pgbouncer, or what DPPROXY_PGBOUNCER names; empty means neither is there.
func poolerBinary() string {
	name := os.Getenv("DPPROXY_PGBOUNCER")
	if name == "" {
		name = "pgbouncer"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// PoolerVersion is pgbouncer's, such as 1.18; 0, 0 where it is not installed.
func PoolerVersion(t *testing.T) (major, minor int) {
	t.Helper()
	if poolerBinary() == "" {
		return 0, 0
	}
	out, err := exec.Command(poolerBinary(), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Sscanf(string(out), "PgBouncer %d.%d", &major, &minor)
	return major, minor
}

// Pooler starts pgbouncer in front of a server, with one connection a user that goes from client to client at each
// transaction's end; more are lines of its configuration, users those whose passwords are their names. It returns the
// server's URL through it, empty where it is not installed.
func Pooler(t *testing.T, server, more string, users ...string) (url string) {
	t.Helper()
	binary := poolerBinary()
	if binary == "" {
		return ""
	}
	config, err := pgconn.ParseConfig(server)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	dir, err := os.MkdirTemp("", "pooler")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ini := fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%d\nauth_type=scram-sha-256\nauth_file=%s/users\n"+
		"pool_mode=transaction\ndefault_pool_size=1\nunix_socket_dir=\nlogfile=%s/log\n%s\n", config.Port, port, dir, dir, more)
	passwords := ""
	for _, name := range users {
		passwords += fmt.Sprintf("%[1]q %[1]q\n", name)
	}
	for name, text := range map[string]string{"ini": ini, "users": passwords} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	args := []string{filepath.Join(dir, "ini")}
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "nobody"}, args...) // it does not run as root
	}
	cmd := exec.Command(binary, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	url = strings.Replace(server, fmt.Sprint(config.Port), fmt.Sprint(port), 1)
	for range 50 {
		if conn, err := pgconn.Connect(t.Context(), url); err == nil {
			conn.Close(t.Context())
			return url
		}
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "log"))
	t.Fatalf("pgbouncer does not answer: %s", text)
	return ""
}
