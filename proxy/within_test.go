package proxy

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy/pgerror"
)

var browser = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}

// within connects over a connection that Dial has opened.
func within(t *testing.T, p *Proved, user, database string) (*pgx.Conn, error) {
	t.Helper()
	config, err := pgx.ParseConfig("postgres://" + user + "@within/" + database + "?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return p.Dial(), nil }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

// TestProve: who proves her name within the process does so as on the wire, and gets sessions like any other, in her
// name alone.
func TestProve(t *testing.T) {
	b := start(t)
	for _, c := range []struct{ user, password, state string }{{"alice", "wrong", "28P01"}, {"nobody", "wonderland", "28P01"}, {"alice", "", "28P01"}} {
		var f *pgerror.Fatal
		if _, err := b.Prove(t.Context(), c.user, c.password, browser, false); !errors.As(err, &f) || f.SQLState != c.state {
			t.Errorf("%s with %q: %v", c.user, c.password, err)
		}
	}
	away := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4711}
	if _, err := b.Prove(t.Context(), "alice", "wonderland", away, false); err == nil || !strings.Contains(err.Error(), "must be encrypted") {
		t.Errorf("from another machine in plain: %v", err)
	}
	if _, err := b.Prove(t.Context(), "alice", "wonderland", away, true); err != nil {
		t.Errorf("from another machine: %v", err)
	}
	alice, err := b.Prove(t.Context(), "alice", "wonderland", browser, false)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := within(t, alice, "alice", "census")
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM people").Scan(&n); err != nil || n != 1234 {
		t.Errorf("%d, %v", n, err)
	}
	var told *pgconn.PgError
	for _, c := range [][3]string{{"grafana", "census", "28000"}, {"alice", "secret", "3D000"}} {
		if _, err := within(t, alice, c[0], c[1]); !errors.As(err, &told) || told.Code != c[2] {
			t.Errorf("alice as %s in %s: %v", c[0], c[1], err)
		}
	}
	changed := *b.policy.Load()
	changed.Users = append([]policy.User{{Name: "alice", Verifier: verifier(t, "other", 4096)}}, changed.Users[1:]...)
	b.policy.Store(&changed)
	if _, err := within(t, alice, "alice", "census"); !errors.As(err, &told) || told.Code != "28000" || alice.Holds() {
		t.Errorf("with a password that is hers no more: %v", err)
	}
}

// TestLostWithin: a connection within the process that is closed ends what its session waits for, and nothing else.
func TestLostWithin(t *testing.T) {
	b := start(t)
	alice, err := b.Prove(t.Context(), "alice", "wonderland", browser, false)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := within(t, alice, "alice", "census")
	if err != nil {
		t.Fatal(err)
	}
	raw := conn.PgConn().Conn()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SELECT slow")
		ended <- err
	}()
	b.answering()
	raw.Close()
	<-ended
	for end := time.Now().Add(5 * time.Second); len(b.keys.of("alice")) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the session goes on")
		}
	}
	if _, err := within(t, alice, "alice", "census"); err != nil {
		t.Error(err)
	}
}
