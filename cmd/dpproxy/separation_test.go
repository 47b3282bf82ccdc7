package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpproxy/dpproxy/backend/pgtest"
	"github.com/dpproxy/dpproxy/internal/threats"
)

// separation is the chance that a random number of one list is above a random one of the other (ties count half): 0.5 where
// the lists tell nothing, 0 or 1 where they tell all. Its standard error without any difference is √(1/6n) for n each.
func separation(one, other []float64) float64 {
	type number struct {
		at  float64
		one bool
	}
	var all []number
	for _, x := range one {
		all = append(all, number{x, true})
	}
	for _, x := range other {
		all = append(all, number{x, false})
	}
	slices.SortFunc(all, func(a, b number) int { return cmp.Compare(a.at, b.at) })
	wins := 0.0
	for i, below := 0, 0.0; i < len(all); {
		ones, others := 0.0, 0.0
		for j := i; i < len(all) && all[i].at == all[j].at; i++ {
			if all[i].one {
				ones++
			} else {
				others++
			}
		}
		wins += ones * (below + others/2)
		below += others
	}
	return wins / float64(len(one)) / float64(len(other))
}

// interleaved is procedure P3: it runs both n times in random order and returns how far the separation of their times is from
// telling nothing.
func interleaved(n int, with, without func(i int) error) (float64, error) {
	r := rand.New(rand.NewPCG(36, 6))
	times := [2][]float64{}
	for i := range n {
		first := r.IntN(2)
		for _, side := range []int{first, 1 - first} {
			begun := time.Now()
			if err := []func(int) error{with, without}[side](i); err != nil {
				return 0, err
			}
			times[side] = append(times[side], float64(time.Since(begun)))
		}
	}
	return math.Abs(separation(times[0], times[1]) - 0.5), nil
}

// mostSeparation is what P3 passes with: the figure at the lengths of the threat table, and five standard errors where fewer
// questions are asked (false alarm 6e-7).
func mostSeparation(n int) float64 {
	switch {
	case n >= 5000:
		return 0.02
	case n >= 1200:
		return 0.05
	}
	return 5 * math.Sqrt(1/(6*float64(n)))
}

// TestP3Calibrated: the procedure tells the databases themselves apart by a fraction of a millisecond, and a database from
// itself not at all.
func TestP3Calibrated(t *testing.T) {
	server := pgtest.Shared(t)
	var ask [2]func(i int) error
	for side, without := range []int{0, 7} {
		database := server.Database(t)
		server.Exec(t, database, lab{}.sql(without)...)
		conn, err := pgx.Connect(t.Context(), server.URLFor("postgres", database))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		ask[side] = func(int) error {
			var n int
			return conn.QueryRow(t.Context(), `SELECT count(*) FROM people WHERE hiv AND (SELECT sum(x) FROM generate_series(1, 20000 + uid - uid) x) > 0`).Scan(&n)
		}
	}
	n := 300
	apart, err := interleaved(n, ask[0], ask[1])
	if err != nil {
		t.Fatal(err)
	}
	same, err := interleaved(n, ask[0], ask[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the databases themselves: %.3f from 0.5; one from itself: %.3f", apart, same)
	if apart < 0.4 {
		t.Errorf("the databases themselves are told apart by %.3f from 0.5 only, must be 0.4: the procedure sees nothing", apart)
	}
	if same > mostSeparation(n) {
		t.Errorf("a database is told from itself by %.3f from 0.5, must be below %.3f", same, mostSeparation(n))
	}
}

// timedLab is a pair whose time tells them apart: number 7 has thousands of events. What reads rows leaves after a step above
// the deadline.
func timedLab(t *testing.T, engine string) (with, without side) {
	t.Helper()
	l := lab{engine: engine, events: 20_000, timing: "{grid: 20ms, fresh: 120ms}",
		change: []string{"backend: {url:", "backend: {deadline: 100ms, url:", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}
	return l.pair(t)
}

// timedQuestions are those whose time is compared; %d makes each a question of its own.
var timedQuestions = []string{
	`SELECT count(*) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT sum(amount) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT count(DISTINCT uid) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT count(*) FROM people JOIN events USING (uid) WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT count(*) FROM events WHERE 1 / (uid - 7) > %d AND day < DATE '2024-01-02' + %d`,
	`SELECT count(*) FROM events /* %d %d: held from the second time on */`,
}

// TestT6ResponseTime: with the grid, how long an answer takes does not tell neighbours apart: what reads rows, what is refused,
// what is free. The questions run side by side, each on connections of its own.
func TestT6ResponseTime(t *testing.T) {
	if testing.Short() {
		t.Skip("some minutes of waiting")
	}
	with, without := timedLab(t, "duckdb")
	n := length(100, 1200, 5000)
	apart := make([]float64, len(timedQuestions))
	errs := make([]error, len(timedQuestions))
	var all sync.WaitGroup
	for q, form := range timedQuestions {
		ask := func(w *wire) func(i int) error {
			return func(i int) error {
				_, err := w.tryAsk(fmt.Sprintf(form, i%100, i/100))
				return err
			}
		}
		a, b := with.connect("alice", "lab"), without.connect("alice", "lab")
		all.Add(1)
		go func() {
			defer all.Done()
			apart[q], errs[q] = interleaved(n, ask(a), ask(b))
		}()
	}
	all.Wait()
	var figures []string
	for q, form := range timedQuestions {
		if errs[q] != nil {
			t.Fatal(errs[q])
		}
		figures = append(figures, fmt.Sprintf("%.3f", apart[q]))
		if apart[q] > mostSeparation(n) {
			t.Errorf("%s: told apart by %.3f from 0.5, must be at most %.3f", form, apart[q], mostSeparation(n))
		}
	}
	threats.Reached(t, "T6", "AUC from 0.5 of %d questions, %d an arm: %s", len(figures), n, strings.Join(figures, ", "))
	if spent := count(t, with.connect("alice", "lab").ask(`SELECT count(*) FROM dp.charges`)); spent < 4*n {
		t.Errorf("%d charges: of %d questions some were not asked of the rows", spent, 4*n)
	}
}
