package clients

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/test/kit"
)

// clientsProxy serves the demo's data with TLS, to dba with a small budget and to all others with plenty; from a
// PostgreSQL server and with a twin where that is asked for. It returns the environment in which libpq and the scripts
// find it.
func clientsProxy(t *testing.T, postgres bool) (*kit.Program, []string) {
	t.Helper()
	dir := memory.Dir(t)
	kit.Demo(t, dir, "5000").Stop(syscall.SIGTERM)
	certificate := writeCertificate(t, dir)
	path := filepath.Join(dir, "policy.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	listen := "server:\n  tls: {cert: cert.pem, key: key.pem}\n"
	changed := strings.NewReplacer("server:\n", listen, `"*": {epsilon: 10,`, `dba: {epsilon: 1, delta: 0}`+"\n      "+`"*": {epsilon: 10000,`,
		"cap: {epsilon: 100,", "cap: {epsilon: 100000,").Replace(string(text))
	// A user for assistants, with the analyst's password and settings of its own.
	const analyst = "- {name: analyst, "
	_, line, _ := strings.Cut(changed, analyst)
	line, _, _ = strings.Cut(line, "\n")
	assistant := "- {name: assistant, settings: {hints: message, error_columns: true, digits: significant}, " + line
	changed = strings.Replace(changed, analyst, assistant+"\n  "+analyst, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if postgres {
		demoInPostgres(t, path)
	}
	p := kit.Serve(t, path)
	_, port, err := net.SplitHostPort(p.Address)
	if err != nil {
		t.Fatal(err)
	}
	return p, []string{"PGHOST=localhost", "PGPORT=" + port, "PGUSER=analyst", "PGPASSWORD=analyst", "PGDATABASE=demo",
		"PGPOOR=dba", "PGASSISTANT=assistant",
		"PGSSLMODE=verify-full", "PGSSLROOTCERT=" + certificate, "LC_ALL=C.UTF-8"}
}

// writeCertificate writes a certificate for localhost that signs itself.
func writeCertificate(t *testing.T, dir string) (path string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "cert.pem")
}

// pgxModes asks through each of pgx's ways to send a query; the answers must be the same.
func pgxModes(t *testing.T, env []string, sslMode string) {
	url := "sslmode=" + sslMode
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		if key := map[string]string{"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password", "PGDATABASE": "dbname", "PGSSLROOTCERT": "sslrootcert"}[name]; key != "" {
			url += fmt.Sprintf(" %s='%s'", key, value)
		}
	}
	ctx := t.Context()
	type row struct {
		count int64
		day   time.Time
		text  string
		share float64
	}
	var first *row
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		told := 0
		config.DefaultQueryExecMode = mode
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { told++ }
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		defer conn.Close(ctx)
		for range 3 {
			var r row
			err := conn.QueryRow(ctx, `SELECT count(*), DATE '2024-02-03', 'x', 0.5::float8 FROM people WHERE age >= $1 AND sex = $2 AND hired < $3
				AND region = ANY($4)`, 30, "Female", time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), []string{"north", "south"}).Scan(&r.count, &r.day, &r.text, &r.share)
			if err != nil {
				t.Fatalf("%v: %v", mode, err)
			}
			if first == nil {
				first = &r
			}
			if r != *first {
				t.Errorf("%v: %+v, want %+v", mode, r, *first)
			}
		}
		var visits int64
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM visits WHERE visited_at < $1`, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)).Scan(&visits); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		if told == 0 {
			t.Errorf("%v: no notice", mode)
		}
		pgxRefusals(t, conn, mode)
		pgxSettings(t, conn, mode)
		pgxCancels(t, conn, mode)
		if err := conn.Ping(ctx); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		if _, err := conn.Exec(ctx, "DISCARD ALL"); err != nil {
			t.Errorf("%v: %v", mode, err)
		}
		if mode != pgx.QueryExecModeSimpleProtocol && mode != pgx.QueryExecModeExec { // these prepare nothing
			pgxBrowses(t, conn)
		}
	}
}

// pgxBrowses reads catalogs and types, which is free.
func pgxBrowses(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	var before, after, columns string
	const spent = `SELECT coalesce(sum(spent), 0)::text FROM dp.budget WHERE user_name = current_user`
	if err := conn.QueryRow(t.Context(), spent).Scan(&before); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), `SELECT string_agg(column_name, ' ') FROM information_schema.columns WHERE table_name = $1`, "people").Scan(&columns); err != nil || !strings.Contains(columns, "age") {
		t.Errorf("%s %v", columns, err)
	}
	if d, err := conn.Prepare(t.Context(), "", `SELECT * FROM people LIMIT 0`); err != nil || d.Fields[0].Name != "age" {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := conn.LoadType(t.Context(), "_int4"); err != nil {
		t.Error(err)
	}
	if err := conn.QueryRow(t.Context(), spent).Scan(&after); err != nil || after != before {
		t.Errorf("browsing cost: %s, was %s: %v", after, before, err)
	}
}

func pgxRefusals(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
	t.Helper()
	for _, c := range []struct{ sql, state string }{
		{"SELECT count(*) FROM people WHERE wage > 1", "42703"}, {"SELECT count(*) FROM nobody", "42P01"},
		{"SELECT age FROM people", "42501"}, {"SELECT array_agg(income) FROM people", "DP002"},
	} {
		_, err := conn.Exec(t.Context(), c.sql)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != c.state || refused.Hint == "" && c.state != "42703" {
			t.Errorf("%v: %s: %v", mode, c.sql, err)
		}
	}
}

// pgxCancels cancels a statement that takes long, by pgx's own request: the wait ends, the connection stays.
func pgxCancels(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), `SELECT pg_sleep(120)`)
		ended <- err
	}()
	for { // a request that comes before the statement runs does nothing
		select {
		case err := <-ended:
			var cancelled *pgconn.PgError
			if !errors.As(err, &cancelled) || cancelled.Code != "57014" {
				t.Errorf("%v: cancelled: %v", mode, err)
			}
			var one int
			if err := conn.QueryRow(t.Context(), `SELECT 1`).Scan(&one); err != nil || one != 1 {
				t.Errorf("%v: after a cancel: %d %v", mode, one, err)
			}
			return
		case <-time.After(50 * time.Millisecond):
			if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
				t.Errorf("%v: %v", mode, err)
			}
		}
	}
}

// pgxSettings sets a variable as asyncpg does, in a SELECT.
func pgxSettings(t *testing.T, conn *pgx.Conn, mode pgx.QueryExecMode) {
	t.Helper()
	var before, now, then string
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('jit'), set_config('jit', $1, false)`, "on").Scan(&before, &now); err != nil {
		t.Fatalf("%v: %v", mode, err)
	}
	if err := conn.QueryRow(t.Context(), `SELECT current_setting('jit')`).Scan(&then); err != nil {
		t.Fatalf("%v: %v", mode, err)
	}
	if before != "off" || now != "on" || then != "on" {
		t.Errorf("%v: jit was %s, set to %s, is %s", mode, before, now, then)
	}
	_, err := conn.Exec(t.Context(), `SELECT set_config('statement_timeout', 'soon', false)`)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "22023" {
		t.Errorf("%v: %v", mode, err)
	}
}

// TestBinaryNames: what is a name in text is an oid in binary, alone and in a list.
func TestBinaryNames(t *testing.T) {
	p := kit.Serve(t, kit.DuckDB(t, kit.Budgets{User: "1", Cap: "1"}, 0))
	conn, err := pgconn.Connect(t.Context(), p.URL("alice", "lab"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	ask := func(sql string) []byte {
		r := conn.ExecParams(t.Context(), sql, nil, nil, nil, []int16{1}).Read()
		if r.Err != nil || len(r.Rows) != 1 {
			t.Fatalf("%s: %d rows, %v", sql, len(r.Rows), r.Err)
		}
		return r.Rows[0][0]
	}
	for _, name := range []string{"'people'::regclass", "'dp.budget'::regclass", "'int4'::regtype", "'int4in'::regproc", "'public'::regnamespace", "0::regclass"} {
		want := ask("SELECT " + name + "::oid")
		if got := ask("SELECT " + name); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
		if got := ask("SELECT ARRAY[" + name + "]"); !bytes.HasSuffix(got, want) {
			t.Errorf("ARRAY[%s]: %x, want …%x", name, got, want)
		}
	}
}
