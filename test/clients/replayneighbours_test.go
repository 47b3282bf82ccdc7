package clients

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// privateRows tells, by its look, that a statement asks about private rows, so that its answers are noisy; ofProcess,
// that its answer tells about the session or the clock.
var (
	privateRows = regexp.MustCompile(`(?is)(from|join|copy)\s+\(*\s*("?shop"?\.)?("?public"?\.)?"?(orders|users|events)"?\b`)
	ofProcess   = regexp.MustCompile(`(?i)pid|now\(\)|current_timestamp|pg_postmaster_start_time|inet_|pg_stat_activity`)
)

// TestReplayTellsNothing: every recorded statement has the same fate, columns, errors and notices over a database, over
// its neighbour, and over one with a million rows more; what asks about no private rows has byte-identical answers, and
// sends nothing to the private database.
func TestReplayTellsNothing(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("plays every recorded statement three times")
	}
	material.Of(t, "psql")
	changes := [][]string{nil,
		{`DELETE FROM events WHERE user_id = 7`, `DELETE FROM orders WHERE user_id = 7`, `DELETE FROM users WHERE id = 7`},
		{`ALTER TABLE events DROP CONSTRAINT events_user_id_fkey`,
			`INSERT INTO events SELECT i, 1 + i % 300, timestamptz '2024-03-01 00:00:00Z', 'view', 1 FROM generate_series(1, 1000000) s(i)`, `ANALYZE events`}}
	var programs []*kit.Program
	var servers []*pgtest.Server
	for _, more := range changes {
		server := pgtest.Start(t, kit.Logged...)
		servers = append(servers, server)
		programs = append(programs, shopProxy(t, server, more...))
	}
	compared, exact, heard := 0, 0, 0
	for _, client := range recordedClients {
		var conns []*replayer
		for _, p := range programs {
			conns = append(conns, newReplayer(t, p))
		}
		for i, text := range material.Of(t, client) {
			private := privateRows.MatchString(text)
			_, before := kit.StatementsSince(t, servers[0], heard)
			want := conns[0].play(t, text)
			after, end := kit.StatementsSince(t, servers[0], before)
			if heard = end; !private && len(after) != 0 {
				t.Errorf("%s %d reached the private database: %s", client, i+1, after)
			}
			for _, other := range conns[1:] {
				got := other.play(t, text)
				compared++
				if !slices.Equal(got.results, want.results) || got.params != want.params || failure(got) != failure(want) || kit.BesideValues(got.notices) != kit.BesideValues(want.notices) {
					t.Errorf("%s %d differs between neighbours:\n%+v\n%+v", client, i+1, want, got)
				}
				if private || ofProcess.MatchString(text) {
					continue
				}
				if exact++; got.rows != want.rows {
					t.Errorf("%s %d: rows differ between neighbours:\n%s\n%s", client, i+1, want.rows, got.rows)
				}
			}
		}
	}
	threats.Reached(t, "T9", "%d recorded statements of psql and drivers compared on neighbours: %d by shape, %d byte for byte, 0 of these at the database", compared/2, compared, exact)
	if exact < 1000 {
		t.Error("too few exact comparisons: the test tested little")
	}
}

// failure is an outcome's error, whole.
func failure(o outcome) string {
	if o.err == nil {
		return ""
	}
	return fmt.Sprintf("%+v", *o.err)
}

// replayer is a connection that gathers its notices.
type replayer struct {
	conn    *pgconn.PgConn
	notices strings.Builder
}

func newReplayer(t *testing.T, p *kit.Program) *replayer {
	t.Helper()
	config, err := pgconn.ParseConfig(p.URL("analyst", "shop"))
	if err != nil {
		t.Fatal(err)
	}
	r := &replayer{}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { r.notices.WriteString(n.Message + "\n" + n.Detail) }
	if r.conn, err = pgconn.ConnectConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.conn.Close(context.Background()) })
	return r
}

// play runs one block and rolls a failed transaction back.
func (r *replayer) play(t *testing.T, text string) outcome {
	t.Helper()
	r.notices.Reset()
	o := replay(t, r.conn, text, false)
	o.notices = r.notices.String()
	if r.conn.TxStatus() == 'E' {
		if _, err := r.conn.Exec(t.Context(), "ROLLBACK").ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	return o
}
