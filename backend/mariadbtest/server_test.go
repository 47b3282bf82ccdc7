package mariadbtest

import (
	"os"
	"testing"
)

// TestServer starts a server, asks it as root and as a reader, and leaves nothing behind.
func TestServer(t *testing.T) {
	var dir string
	t.Run("server", func(t *testing.T) {
		s := Start(t, "sql_mode=ANSI")
		dir = s.Dir
		database := s.Database(t)
		role := s.Role(t, database)
		s.Exec(t, "CREATE TABLE "+database+".t (a int)", "INSERT INTO "+database+".t VALUES (1), (2)")
		var n int
		var mode string
		if err := s.DB().QueryRow("SELECT count(*), @@sql_mode FROM "+database+".t").Scan(&n, &mode); err != nil || n != 2 || len(mode) < 10 {
			t.Fatalf("%d rows, sql_mode %s: %v", n, mode, err)
		}
		if url := s.URL(role, database); url == "" {
			t.Error("no URL")
		}
	})
	if dir == "" {
		t.Skip("no server")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}
