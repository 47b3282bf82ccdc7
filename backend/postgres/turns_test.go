package postgres

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dpproxy/dpproxy/backend/backendtest"
	"github.com/dpproxy/dpproxy/backend/internal/execute"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// TestTurnsOfAPaidQuery counts what a paid query asks of the server besides its rows: one line is one message, to whose
// end the server answers.
func TestTurnsOfAPaidQuery(t *testing.T) {
	t.Parallel()
	const ranks = "DELETE FROM visits WHERE person_id IS NULL; ALTER TABLE visits ADD rank int; UPDATE visits v SET rank = (SELECT count(*) FROM visits w WHERE w.person_id = v.person_id AND w.ctid <= v.ctid); " +
		"ALTER TABLE visits ALTER person_id SET NOT NULL, ADD UNIQUE (person_id, rank), ADD CHECK (rank >= 1)"
	for name, c := range map[string]struct {
		change func(p *policy.Policy)
		before string
		table  string
		joined bool
		want   []string
	}{
		"a row a unit":            {table: "people", want: []string{"begin, settings, key", "rows, changed, commit"}},
		"a row a unit, no longer": {before: "ALTER TABLE people DROP CONSTRAINT people_pkey", table: "people", want: []string{"begin, settings, key", "rows, changed, commit"}},
		"rows are units": {change: func(p *policy.Policy) {
			p.Datasets[0].Unit = policy.Unit{Row: true}
			p.Datasets[0].Tables = p.Datasets[0].Tables[:1]
			p.Datasets[0].Tables[0].UnitColumn = ""
		}, table: "people", want: []string{"begin, settings, rows, changed, commit"}},
		"units of another table": {change: func(p *policy.Policy) {
			people, visits := p.Datasets[0].Tables[0], p.Datasets[0].Tables[1]
			visits.Via, visits.UnitColumn = &policy.Via{Column: "person_id", Key: "person_id", Table: people}, ""
		}, table: "visits", want: []string{"begin, settings, key", "rows, changed, commit"}},
		"ranks": {change: func(p *policy.Policy) { p.Datasets[0].Tables[1].RowRank = "rank" },
			before: ranks, table: "visits", want: []string{"begin, settings, key, ranks, ranks, ranks", "rows, changed, commit"}},
		"a join": {table: "visits", joined: true, want: []string{"begin, settings, key", "no loops, rows, changed, commit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := backendtest.PostgresHouse(t)
			if c.before != "" {
				h.Change(c.before)
			}
			if c.change != nil {
				c.change(h.Policy)
			}
			m := backendtest.Measure(t, h.Policy, c.table)
			if c.joined {
				m.Table = derived.NewMarked(&derived.Marked{From: h.Policy.Datasets[0].Tables[1], Other: h.Policy.Datasets[0].Tables[0]})
			}
			q := backendtest.Render(t, m, h)
			heard := listen(t, h)
			backendtest.Counts(t, h, q) // which opens the connection
			heard.take()
			got := backendtest.Counts(t, h, q)
			if turns := heard.take(); !slices.Equal(turns, c.want) || len(got) != 1 || got[0] == "[]: [0]" || h.Faults("clinic") != 0 {
				t.Errorf("%d turns: %q, want %q; %v", len(turns), turns, c.want, got)
			}
		})
	}
}

// heard is what a server was asked on all connections of paid queries.
type heard struct {
	mu    sync.Mutex
	turns []string
	texts []string // of the turn that has not ended
}

// listen has the connections of paid queries heard.
func listen(t testing.TB, h *backendtest.House) *heard {
	t.Helper()
	b, by := h.Backend.(*DB), new(heard)
	config := b.pool.Config()
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &overheard{Conn: conn, by: by}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	b.pool.Close()
	b.pool = pool
	return by
}

// take returns what was asked since the last time, each turn as the kinds of its statements.
func (h *heard) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	turns := h.turns
	h.turns = nil
	return turns
}

// overheard is a connection of a client.
type overheard struct {
	net.Conn
	by   *heard
	sent []byte // and not yet understood
	open bool   // the greeting, which has no letter before it, is over
}

func (o *overheard) Write(p []byte) (int, error) {
	o.by.mu.Lock()
	o.sent = append(o.sent, p...)
	for len(o.sent) >= 5 {
		letter, length := byte(0), int(binary.BigEndian.Uint32(o.sent))
		if o.open {
			letter, length = o.sent[0], 1+int(binary.BigEndian.Uint32(o.sent[1:]))
		}
		if len(o.sent) < length {
			break
		}
		body := o.sent[:length]
		o.sent, o.open = o.sent[length:], true
		switch letter {
		case 'P': // Parse: a name, and the text
			o.by.texts = append(o.by.texts, kindOf(strings.Split(string(body[5:]), "\x00")[1]))
		case 'Q':
			o.by.turns = append(o.by.turns, kindOf(string(body[5:])))
		case 'S':
			o.by.turns, o.by.texts = append(o.by.turns, strings.Join(o.by.texts, ", ")), nil
		}
	}
	o.by.mu.Unlock()
	return o.Conn.Write(p)
}

// kindOf says what a statement is for.
func kindOf(text string) string {
	switch {
	case strings.HasPrefix(text, "BEGIN "):
		return "begin"
	case strings.HasPrefix(text, "SELECT 1 OPERATOR(pg_catalog./)"):
		return "settings"
	case text == uniqueSQL:
		return "key"
	case text == rankSQL:
		return "ranks"
	case text == noLoops:
		return "no loops"
	case text == changedSQL:
		return "changed"
	case strings.HasPrefix(strings.ToUpper(text), "COMMIT"):
		return "commit"
	case strings.Contains(text, `"public".`):
		return "rows"
	}
	return text
}

// BenchmarkPaidCount asks a count over forty people by turns as a paid query, as one that asks each thing in a turn of
// its own, and as the same SQL from a client of its own. It reports the median of each in µs, and how many times as
// long as the paid query the second takes, and as the third the paid one.
func BenchmarkPaidCount(b *testing.B) {
	h := backendtest.PostgresHouseOf(b, nil)
	inForce(b, h)
	q, p := backendtest.Render(b, backendtest.Measure(b, h.Policy, "people", "age"), h), h.Backend.(*DB)
	text := execute.FormOf(q.Proven()[0])
	plain, err := pgx.Connect(b.Context(), h.Policy.Backend.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close(context.Background())
	ask := func(tx pgx.Tx, sql string, args ...any) error {
		rows, err := tx.Query(b.Context(), sql, args...)
		for err == nil && rows.Next() {
		}
		if err == nil {
			err = rows.Err()
		}
		return err
	}
	names, all := []string{"paid", "turnwise", "plain"}, map[string][]float64{}
	for b.Loop() {
		for name, do := range map[string]func() error{
			"paid": func() error { _, err := p.groups(b.Context(), q); return err },
			"turnwise": func() error {
				return transaction(b.Context(), p.pool, time.Minute, func(tx pgx.Tx) error {
					for _, one := range p.proofsOf(q) {
						if err := ask(tx, one.sql, one.args...); err != nil {
							return err
						}
					}
					var batch pgx.Batch
					batch.Queue(text.SQL, text.Args...)
					batch.Queue(changedSQL)
					return tx.SendBatch(b.Context(), &batch).Close()
				})
			},
			"plain": func() error {
				rows, err := plain.Query(b.Context(), text.SQL, append([]any{pgx.QueryExecModeExec}, text.Args...)...)
				for err == nil && rows.Next() {
				}
				if err == nil {
					err = rows.Err()
				}
				return err
			},
		} {
			begun := time.Now()
			if err := do(); err != nil {
				b.Fatal(name, err)
			}
			all[name] = append(all[name], float64(time.Since(begun))/1e3)
		}
	}
	median := map[string]float64{}
	for _, name := range names {
		slices.Sort(all[name])
		median[name] = all[name][len(all[name])/2]
		b.ReportMetric(median[name], "µs/"+name)
	}
	b.ReportMetric(median["turnwise"]/median["paid"], "turnwise/paid")
	b.ReportMetric(median["paid"]/median["plain"], "paid/plain")
}
