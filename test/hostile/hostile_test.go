// Package hostile is a hostile analyst's hour: a search finds the statements that cost most, fifty sessions of one user
// send them, and beside them another analyst asks her dashboard. It asserts what must hold on any machine: nothing
// crashes, memory stays under the policy's limit, everybody is answered. How much slower the other's dashboard is it
// prints, and asserts where it is given a bound, on a machine that does nothing else (`make hostile`).
package hostile

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

var (
	length  = flag.Duration("hostile", 20*time.Second, "how long quiet, search and storm take, a third each")
	slowest = flag.Float64("slower", 0, "how many times her slowest quiet answer the other analyst's slowest one may take, and her 99 % of each kind; 0: it is printed alone")
)

func TestMain(m *testing.M) {
	if plan := os.Getenv(stormVariable); plan != "" {
		os.Exit(storm(plan))
	}
	os.Exit(kit.Main(m, nil))
}

func connect(t *testing.T, s *shop, user string) *pgconn.PgConn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, s.URL(user, "shop"))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.LogText())
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// asked sends a text and reads all that comes. It returns what the server said of it: a SQLSTATE, "" for an answer, or
// "lost".
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

// found is a statement with what it cost.
type found struct {
	gene
	took   time.Duration
	memory int64
	state  string
}

func (f found) cost() float64 { return f.took.Seconds() + float64(f.memory)/(100<<20) }

// patience is how long the search waits for one message.
const patience = 20 * time.Second

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
		limit, stop := context.WithTimeout(context.Background(), patience)
		state := asked(limit, c, g.text())
		if limit.Err() != nil { // many statements in one message, each within its limits
			state, c = "late", connect(t, s, "mallory")
		}
		stop()
		took := time.Since(begun)
		cancel()
		one := found{g, took, max(<-peak-before, 0), state}
		if !s.Alive() {
			t.Fatalf("%s: the process died\n%s", g, s.LogText())
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
	seed, third := uint64(26), *length/3
	t.Logf("seed %d, %v", seed, *length)
	s := open(t, "2s", "2GiB")
	first := newReader(t, s)
	first.round() // buys, and fills the caches
	for i, q := range dashboard {
		t.Logf("%v at first: %s", first.times[i][0].Round(time.Millisecond), q.text(0))
	}
	peak, watched := context.WithCancel(context.Background())
	memory := s.watch(peak)
	rounds := max(int(third/beat), 3)
	quiet := newReader(t, s)
	quiet.rounds(rounds)
	dearest := search(t, s, rand.New(rand.NewPCG(seed, 1)), third)
	tried := len(dearest)
	dearest = best(dearest, 40)
	texts := make([]string, len(dearest))
	for i, f := range dearest {
		if texts[i] = f.text(); i < 12 {
			t.Logf("%6.2f s %5d MiB %6s  %s", f.took.Seconds(), f.memory>>20, f.state, f.gene)
		}
	}
	end := begin(t, s, seed, sessions, texts)
	during := newReader(t, s)
	during.rounds(rounds)
	told := end()
	watched()
	most := <-memory
	if !s.Alive() || strings.Contains(s.LogText(), "panic") {
		t.Errorf("the process died or panicked\n%s", s.LogText())
	}
	if most > limit {
		t.Errorf("the process and its children took %d MiB, may take %d", most>>20, limit>>20)
	}
	if told.Lost > 0 {
		t.Errorf("%d connections were lost", told.Lost)
	}
	t.Logf("the storm: %s", told)
	for line := range strings.Lines(s.LogText()) {
		if strings.Contains(line, "level=ERROR") {
			t.Logf("the log: %.300s", line)
		}
	}
	for i, q := range dashboard {
		t.Logf("slowest %8v, quiet %8v; median %8v, quiet %8v: %.70s", at(during.times[i], 1), at(quiet.times[i], 1), at(during.times[i], 0.5), at(quiet.times[i], 0.5), q.text(0))
	}
	for _, bought := range []bool{false, true} {
		a, b := during.all(bought), quiet.all(bought)
		ratio := float64(at(a, 1)) / float64(at(b, 1))
		what := "held answers"
		if bought {
			what = "fresh answers"
		}
		t.Logf("%s: slowest %v of %d, quiet %v of %d: %.1f times; 99 %% within %v, quiet %v; median %v, quiet %v", what, at(a, 1), len(a), at(b, 1), len(b), ratio,
			at(a, 0.99), at(b, 0.99), at(a, 0.5), at(b, 0.5))
		if usual := float64(at(a, 0.99)) / float64(at(b, 0.99)); *slowest > 0 && usual > *slowest {
			t.Errorf("%s: 99 %% took up to %.1f times as long as 99 %% of the quiet ones, may take %.1f", what, usual, *slowest)
		}
	}
	a, b := slices.Concat(during.times...), slices.Concat(quiet.times...)
	if ratio := float64(at(a, 1)) / float64(at(b, 1)); *slowest > 0 && ratio > *slowest {
		t.Errorf("the slowest answer took %.1f times as long as the slowest quiet one, may take %.1f", ratio, *slowest)
	}
	threats.Reached(t, "T69", "%d statements tried by the search, %d sent by %d sessions: the other analyst's slowest answer took %v of %d, quiet %v of %d: %.1f times (median %v, quiet %v); %d MiB at most of the process and its children, may be %d; 0 crashes",
		tried, told.Sent, sessions, at(a, 1), len(a), at(b, 1), len(b), float64(at(a, 1))/float64(at(b, 1)), at(a, 0.5), at(b, 0.5), most>>20, limit>>20)
}
