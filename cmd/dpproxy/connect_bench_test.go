package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/figures"
	"github.com/dpproxy/dpproxy/test/kit"
)

// TestBenchConnect prints what a connection with SCRAM-SHA-256 costs, and a SELECT 1 on an open one, beside PostgreSQL
// itself and pgbouncer (transaction pooling) where that is installed, interleaved.
func TestBenchConnect(t *testing.T) {
	benchOnly(t)
	server := pgtest.Start(t)
	direct := scramURL(t, server)
	sides := []benchSide{{name: "PostgreSQL", url: direct}}
	if url := kit.Pooler(t, direct, "", "bench"); url != "" {
		sides = append(sides, benchSide{name: "pgbouncer", url: url})
	} else {
		fmt.Println("pgbouncer is not installed: left out")
	}
	path, _ := kit.PostgresIn(t, t.TempDir(), server, kit.Budgets{User: "1000", Cap: "1000"}, 0)
	p := kit.Serve(t, path)
	sides = append(sides, benchSide{name: "dpproxy", url: p.URL("alice", "lab")})
	for i := range sides {
		conn, err := pgconn.Connect(t.Context(), sides[i].url)
		if err != nil {
			t.Fatalf("%s: %v", sides[i].name, err)
		}
		defer conn.Close(context.Background())
		sides[i].conn = conn
	}
	for range 300 {
		for i := range sides {
			sides[i].connect(t)
		}
	}
	// Apart from log-ins: what a server does after one that was closed would be counted to the next question.
	for range 1000 {
		for i := range sides {
			sides[i].ask(t)
		}
	}
	for _, s := range sides {
		figures.Row("one client, plain text", s.name, "log-in with SCRAM-SHA-256", fmt.Sprintf("%.2f ms (%.2f ×)", median(s.connects), median(s.connects)/median(sides[0].connects)),
			"`SELECT 1`, sent again and again", fmt.Sprintf("%.3f ms (%.2f ×)", median(s.asks), median(s.asks)/median(sides[0].asks)))
	}
}

// benchSide is one server of a comparison.
type benchSide struct {
	name, url      string
	conn           *pgconn.PgConn
	connects, asks []float64 // milliseconds
}

func (s *benchSide) connect(t *testing.T) {
	s.connects = append(s.connects, timed(t, func() error {
		conn, err := pgconn.Connect(t.Context(), s.url)
		if err != nil {
			return err
		}
		return conn.Close(t.Context())
	}))
}

func (s *benchSide) ask(t *testing.T) {
	s.asks = append(s.asks, timed(t, func() error {
		_, err := s.conn.Exec(t.Context(), "SELECT 1").ReadAll()
		return err
	}))
}

// scramURL makes a role that logs in by SCRAM.
func scramURL(t *testing.T, server *pgtest.Server) string {
	t.Helper()
	server.Exec(t, "postgres", "CREATE ROLE bench LOGIN PASSWORD 'bench'")
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var file string
	if err := conn.QueryRow(t.Context(), "SHOW hba_file").Scan(&file); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the server's access rules cannot be read: %v", err)
	}
	if err := os.WriteFile(file, append([]byte("host all bench 127.0.0.1/32 scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_reload_conf()"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // the server reads its rules after the answer
	config := conn.Config()
	return fmt.Sprintf("postgres://bench:bench@127.0.0.1:%d/postgres?sslmode=disable", config.Port)
}
