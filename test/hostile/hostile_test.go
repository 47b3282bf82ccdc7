// Package hostile is a hostile analyst's hour: a search finds the statements that cost most, fifty sessions of one user send
// them, and beside them another analyst asks her dashboard. It asserts what must hold on any machine: nothing crashes, memory
// stays under the policy's limit, everybody is answered. How much slower the other's dashboard is, it prints (`make hostile`).
package hostile

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
)

var length = flag.Duration("hostile", 20*time.Second, "how long the search and the storm take, half each")

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// dashboard is what the other analyst asks: counts that she holds, arithmetic in the sandbox, public tables, catalogs.
var dashboard = []string{
	`SELECT region, count(*) FROM customer GROUP BY region ORDER BY 2 DESC`,
	`SELECT date_trunc('month', day) AS month, count(*), sum(amount) FROM orders GROUP BY 1 ORDER BY 1`,
	`SELECT status, count(*) * 100.0 / sum(count(*)) OVER () AS share FROM orders GROUP BY status ORDER BY 1`,
	`SELECT avg(amount) FROM orders WHERE day >= date '2024-01-01'`,
	`WITH m AS (SELECT date_trunc('month', day) AS month, count(*) AS n FROM orders GROUP BY 1) SELECT month, n, sum(n) OVER (ORDER BY month) FROM m`,
	`SELECT category, count(*), avg(price) FROM product GROUP BY category ORDER BY 1`,
	`SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' ORDER BY 1`,
	`SELECT * FROM dp.budget`,
}

func connect(t *testing.T, s *shop, user string) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.url(user))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.told())
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// asked sends a text and reads all that comes. It returns what the server said of it: a SQLSTATE, "" for an answer, or "lost".
func asked(ctx context.Context, c *pgconn.PgConn, text string) string {
	var buffer strings.Builder
	var e *pgconn.PgError
	var err error
	if strings.HasPrefix(text, "COPY") {
		_, err = c.CopyTo(ctx, counter{&buffer}, text)
	} else {
		r := c.Exec(ctx, text)
		for r.NextResult() {
			for reader := r.ResultReader(); reader.NextRow(); {
			}
		}
		err = r.Close()
	}
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return "lost"
}

// counter takes a copy and keeps nothing.
type counter struct{ *strings.Builder }

func (counter) Write(b []byte) (int, error) { return len(b), nil }

// rounds asks the dashboard again and again until ctx ends, at least so often, and returns the times of each question's
// answers.
func rounds(t *testing.T, s *shop, ctx context.Context, least int) (times [][]time.Duration) {
	c := connect(t, s, "alice")
	times = make([][]time.Duration, len(dashboard))
	for n := 0; n < least || ctx != context.Background() && ctx.Err() == nil; n++ {
		for i, sql := range dashboard {
			begun := time.Now()
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			state := asked(ctx, c, sql)
			stop()
			if state == "lost" && s.alive() {
				_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it tells what it was doing
				<-s.exited
				t.Fatalf("the other analyst's %.60s: no answer in a minute\n%s", sql, s.told())
			}
			if state != "" {
				t.Errorf("the other analyst's %.60s: %s", sql, state)
				return times
			}
			times[i] = append(times[i], time.Since(begun))
		}
	}
	return times
}

func slowest(times [][]time.Duration) (all time.Duration) {
	for _, list := range times {
		all = max(all, slices.Max(list))
	}
	return all
}

func at(times [][]time.Duration, share float64) time.Duration {
	all := slices.Concat(times...)
	slices.Sort(all)
	return all[int(share*float64(len(all)-1))]
}

// found is a statement with what it cost.
type found struct {
	gene
	took   time.Duration
	memory int64
	state  string
}

func (f found) cost() float64 { return f.took.Seconds() + float64(f.memory)/(100<<20) }

// search tries statements and lets the dearest breed, until the time is over.
func search(t *testing.T, s *shop, r *rand.Rand, long time.Duration) []found {
	var all []found
	c := connect(t, s, "mallory")
	until := time.Now().Add(long)
	for n := 0; time.Now().Before(until); n++ {
		g := gene{shape: n % len(shapes), size: 1, extra: r.IntN(200)} // each shape once at its largest, then those that come of them
		switch {
		case n < len(shapes):
		case n%5 == 0 || len(all) < 4:
			g = random(r)
		default:
			best := all[:min(len(all), 24)]
			g = best[r.IntN(len(best))].mutated(r)
		}
		before := s.taken()
		ctx, cancel := context.WithCancel(context.Background())
		peak := s.watch(ctx)
		begun := time.Now()
		limit, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		state := asked(limit, c, g.text())
		late := limit.Err() != nil
		stop()
		took := time.Since(begun)
		cancel()
		one := found{g, took, max(<-peak-before, 0), state}
		if late || !s.alive() {
			t.Fatalf("%s: no answer in 2 minutes, or the process died (alive: %v)\n%s", g, s.alive(), s.told())
		}
		if state == "lost" || c.IsClosed() {
			t.Errorf("%s: the connection was lost", g)
			c = connect(t, s, "mallory")
		}
		if asked(context.Background(), c, "ROLLBACK; CLOSE ALL; DEALLOCATE ALL; RESET ALL") == "lost" {
			c = connect(t, s, "mallory")
		}
		if state == "XX000" || state == "58000" {
			t.Errorf("%s: %s", g, state)
		}
		all = append(all, one)
		slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.cost(), a.cost()) })
	}
	return all
}

// best keeps the dearest of each shape, the dearest first.
func best(all []found, most int) (kept []found) {
	seen := map[int]int{}
	for _, f := range all {
		if seen[f.shape]++; seen[f.shape] <= 2 && len(kept) < most {
			kept = append(kept, f)
		}
	}
	return kept
}

// TestHostileAnalyst is threat T69.
func TestHostileAnalyst(t *testing.T) {
	if testing.Short() {
		t.Skip("a storm")
	}
	const limit, sessions = 2 << 30, 50
	seed := uint64(26)
	t.Logf("seed %d, %v", seed, *length)
	s := open(t, "2s", "2GiB")
	for i, list := range rounds(t, s, context.Background(), 1) { // buys, and fills the caches
		t.Logf("%v at first: %s", list[0].Round(time.Millisecond), dashboard[i])
	}
	peak, watched := context.WithCancel(context.Background())
	memory := s.watch(peak)
	quiet := rounds(t, s, context.Background(), 30)
	dearest := search(t, s, rand.New(rand.NewPCG(seed, 1)), *length/2)
	tried := len(dearest)
	dearest = best(dearest, 40)
	for i, f := range dearest {
		if i < 12 {
			t.Logf("%6.2f s %5d MiB %6s  %s", f.took.Seconds(), f.memory>>20, f.state, f.gene)
		}
	}
	texts := make([]string, len(dearest))
	for i, f := range dearest {
		texts[i] = f.text()
	}
	storm, calm := context.WithTimeout(context.Background(), *length/2)
	defer calm()
	var wait sync.WaitGroup
	var sent, lost atomic.Int64
	states := sync.Map{}
	for i := range sessions {
		wait.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			var c *pgconn.PgConn
			for storm.Err() == nil && s.alive() {
				if c == nil || c.IsClosed() {
					var err error
					if c, err = pgconn.Connect(storm, s.url("mallory")); err != nil {
						time.Sleep(20 * time.Millisecond)
						continue
					}
				}
				state := asked(storm, c, texts[r.IntN(len(texts))])
				sent.Add(1)
				if state == "lost" && storm.Err() == nil {
					lost.Add(1)
				}
				n, _ := states.LoadOrStore(state, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
				if state == "25P02" || r.IntN(8) == 0 { // else what it opened stays open
					asked(storm, c, "ROLLBACK")
				}
			}
			if c != nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				c.Close(ctx)
				cancel()
			}
		})
	}
	during := rounds(t, s, storm, 3)
	calm()
	wait.Wait()
	watched()
	most := <-memory
	if !s.alive() || strings.Contains(s.told(), "panic") {
		t.Errorf("the process died or panicked\n%s", s.told())
	}
	if most > limit {
		t.Errorf("the process and its children took %d MiB, may take %d", most>>20, limit>>20)
	}
	if lost.Load() > 0 {
		t.Errorf("%d connections were lost", lost.Load())
	}
	var outcomes []string
	states.Range(func(state, n any) bool {
		outcomes = append(outcomes, fmt.Sprintf("%s: %d", cmp.Or(state.(string), "answered"), n.(*atomic.Int64).Load()))
		return true
	})
	slices.Sort(outcomes)
	t.Logf("the storm: %s", strings.Join(outcomes, ", "))
	ratio := float64(slowest(during)) / float64(slowest(quiet))
	threats.Reached(t, "T69", "%d statements tried by the search, %d sent by %d sessions: the other analyst's slowest answer took %v of %d, quiet %v: %.1f times (median %v, quiet %v); %d MiB at most of the process and its children, may be %d; 0 crashes",
		tried, sent.Load(), sessions, slowest(during).Round(time.Millisecond), len(slices.Concat(during...)), slowest(quiet).Round(time.Millisecond), ratio,
		at(during, 0.5).Round(100*time.Microsecond), at(quiet, 0.5).Round(100*time.Microsecond), most>>20, limit>>20)
}
