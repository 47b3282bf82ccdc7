package hostile

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// What is compared is the slowest of her answers in the storm with the slowest without. The slowest of many is slower
// than the slowest of few, whatever the storm does: so she asks as many rounds quietly as in the storm, at the same
// beat, and each question is asked as often. A beat, as a dashboard that refreshes itself has, keeps her own load out
// of the comparison: without one she would ask fewer rounds where she is slowed, and so be slowed less often. A round
// that is late is followed at once.
//
// Most of what a dashboard shows is held: bought on the first day and free since, read again each time. A part is
// fresh: a figure that nobody asked before is charged, counted by the private database and saved, which waits for other
// things (places of the database, the disk), and takes fifty times as long. So the slowest answer of all is a fresh
// one; of each kind 99 % are compared too, for the slowest of ten thousand answers of some milliseconds tells when the
// system last ran another process.

// beat is the time from one refresh of the dashboard to the next.
const beat = 500 * time.Millisecond

// question is one panel of the dashboard.
type question struct {
	sql   string
	fresh bool // sql has a place for a number, and each is another question
}

// freshEvery is how many rounds go by between two fresh figures.
const freshEvery = 4

// dashboard is what the other analyst asks: counts that she holds, arithmetic in the sandbox, public tables, catalogs,
// and counts that she has not asked before.
var dashboard = []question{
	{sql: `SELECT region, count(*) FROM customer GROUP BY region ORDER BY 2 DESC`},
	{sql: `SELECT date_trunc('month', day) AS month, count(*), sum(amount) FROM orders GROUP BY 1 ORDER BY 1`},
	{sql: `SELECT status, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM orders GROUP BY status ORDER BY 1`},
	{sql: `SELECT avg(amount) FROM orders WHERE day >= date '2024-01-01'`},
	{sql: `WITH m AS (SELECT date_trunc('month', day) AS month, count(*) AS n FROM orders GROUP BY 1) SELECT month, n, sum(n) OVER (ORDER BY month) FROM m`},
	{sql: `SELECT category, count(*), avg(price) FROM product GROUP BY category ORDER BY 1`},
	{sql: `SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' ORDER BY 1`},
	{sql: `SELECT * FROM dp.budget`},
	{sql: `SELECT status, count(*) FROM orders WHERE amount > %d.%02d GROUP BY status`, fresh: true},
}

// text is what is sent the n-th time.
func (q question) text(n int) string {
	if !q.fresh {
		return q.sql
	}
	return fmt.Sprintf(q.sql, n/100, n%100)
}

// reader is the other analyst at her dashboard.
type reader struct {
	t     *testing.T
	s     *shop
	c     *pgconn.PgConn
	times [][]time.Duration // by question
}

func newReader(t *testing.T, s *shop) *reader {
	return &reader{t, s, connect(t, s, "alice"), make([][]time.Duration, len(dashboard))}
}

// bought numbers the fresh questions of the whole test.
var bought int

// rounds asks so many rounds, a beat apart.
func (r *reader) rounds(n int) {
	for range n {
		begun := time.Now()
		r.round()
		time.Sleep(time.Until(begun.Add(beat)))
	}
	r.c.Close(context.Background())
}

// round asks each question once, a fresh one every few rounds.
func (r *reader) round() {
	r.t.Helper()
	for i, q := range dashboard {
		if q.fresh {
			if len(r.times[0])%freshEvery != 1 {
				continue
			}
			bought++
		}
		sql, begun := q.text(bought), time.Now()
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		state := asked(ctx, r.c, sql)
		stop()
		if state == "lost" && r.s.Alive() {
			_ = r.s.Cmd.Process.Signal(syscall.SIGQUIT) // it tells what it was doing
			<-r.s.Exited
			r.t.Fatalf("the other analyst's %.60s: no answer in a minute\n%s", sql, r.s.LogText())
		}
		if state != "" {
			r.t.Fatalf("the other analyst's %.60s: %s\n%s", sql, state, r.s.LogText())
		}
		r.times[i] = append(r.times[i], time.Since(begun).Round(10*time.Microsecond))
	}
}

// all are the times of fresh answers, or of the others.
func (r *reader) all(fresh bool) (list []time.Duration) {
	for i, q := range dashboard {
		if q.fresh == fresh {
			list = append(list, r.times[i]...)
		}
	}
	return list
}

// at is the time within which a share of answers came: 1 is the slowest.
func at(list []time.Duration, share float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[int(share*float64(len(list)-1))]
}
