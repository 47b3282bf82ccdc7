package timing

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/dpproxy/dpproxy/test/kit"
)

// separation is the chance that a random number of one list is above a random one of the other (ties count half): 0.5
// where the lists tell nothing, 0 or 1 where they tell all. Its standard error without any difference is √(1/6n) for n
// each.
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

// interleaved asks each arm n times, in each round in another order, and returns their times.
func interleaved(n int, arms ...func(i int) error) ([][]float64, error) {
	r := rand.New(rand.NewPCG(36, 6))
	times := make([][]float64, len(arms))
	for i := range n {
		for _, arm := range r.Perm(len(arms)) {
			begun := time.Now()
			if err := arms[arm](i); err != nil {
				return nil, err
			}
			times[arm] = append(times[arm], float64(time.Since(begun)))
		}
	}
	return times, nil
}

// apartness is how well the times of two arms tell them apart, 0 for not at all: by separation, and by which of the two
// answers of a round came first, where what slows the machine for a while slows both.
type apartness struct {
	apart, paired float64
	n             int
}

func tell(one, other []float64) apartness {
	wins := 0.0
	for i := range one {
		switch {
		case one[i] > other[i]:
			wins++
		case one[i] == other[i]:
			wins += 0.5
		}
	}
	return apartness{math.Abs(separation(one, other) - 0.5), math.Abs(wins/float64(len(one)) - 0.5), len(one)}
}

// passes reports whether the arms may have one distribution: false alarm 6e-7 by rounds.
func (t apartness) passes() bool {
	return t.apart <= maxSeparation(t.n) && t.paired <= 2.5/math.Sqrt(float64(t.n))
}

// plain reports whether what distinguished these arms would surely be seen in others: it lies twice as far from 0.5 as
// what passes.
func (t apartness) plain() bool {
	return t.apart >= 2*maxSeparation(t.n) || t.paired >= 5/math.Sqrt(float64(t.n))
}

func (t apartness) String() string { return fmt.Sprintf("%.3f (by rounds %.3f)", t.apart, t.paired) }

// maxSeparation is what P3 passes with: the figure at the lengths of the threat table, and five standard errors where
// fewer questions are asked (false alarm 6e-7).
func maxSeparation(n int) float64 {
	switch {
	case n >= 5000:
		return 0.02
	case n >= 1200:
		return 0.05
	}
	return 5 * math.Sqrt(1/(6*float64(n)))
}

// TestP3Calibrated: the procedure tells the databases themselves apart by a fraction of a millisecond, and a database
// from itself not at all.
func TestP3Calibrated(t *testing.T) {
	server := pgtest.Shared(t)
	var ask [2]func(i int) error
	for side, without := range []int{0, 7} {
		database := server.Database(t)
		server.Exec(t, database, kit.Lab{}.SQL(without)...)
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
	times, err := interleaved(300, ask[0], ask[1], ask[0])
	if err != nil {
		t.Fatal(err)
	}
	apart, same := tell(times[0], times[1]), tell(times[0], times[2])
	t.Logf("from 0.5: the databases themselves %s, one from itself %s", apart, same)
	if apart.apart < 0.4 {
		t.Errorf("the databases themselves are told apart by %s from 0.5 only, must be 0.4: the procedure sees nothing", apart)
	}
	if !same.passes() {
		t.Errorf("a database is told from itself by %s from 0.5", same)
	}
}

// timedLab is a pair whose time tells them apart: number 7 has many events. What reads rows leaves after a step above
// the deadline.
var timedLab = kit.Lab{Engine: "duckdb", Events: 400_000, Timing: "{grid: 20ms, fresh: 120ms}",
	Change: []string{"backend: {url:", "backend: {deadline: 100ms, url:", "    tables:\n", "    buying: {cells: 0}\n    tables:\n"}}

// timedQuestions are those whose time is compared; %d makes each a question of its own.
var timedQuestions = []string{
	`SELECT count(*) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT sum(amount) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT count(DISTINCT uid) FROM events WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT count(*) FROM people JOIN events USING (uid) WHERE amount < %d.25 AND day < DATE '2024-01-02' + %d`,
	`SELECT count(*) FROM events WHERE 1 / (uid - 7) > %d AND day < DATE '2024-01-02' + %d`,
	`SELECT count(*) FROM events /* %d %d: held from the second time on */`,
}

// freely are how many of timedQuestions, the first ones, read rows each time.
const freely = 4

// TestT6ResponseTime: with the grid, how long an answer takes does not tell neighbours apart: what reads rows, what is
// refused, what is free. The questions run side by side, each on connections of its own.
//
// Each round asks a second pair too, over the same rows, whose results are taken when they are there (its step lies
// below the scan). Where the time of that does not tell them apart plainly (twice what passes), the machine hides what
// is looked for, and the run says nothing: it is repeated with twice the rounds, and fails where none says anything.
func TestT6ResponseTime(t *testing.T) {
	if testing.Short() {
		t.Skip("some minutes of waiting")
	}
	open := timedLab
	open.Timing = "{grid: 20ms}"
	var pairs [4]kit.Side
	pairs[0], pairs[1] = timedLab.Pair(t)
	pairs[2], pairs[3] = open.Pair(t)
	const few = 100
	n, asked := kit.Length(few, 1200, 5000), 0
	if n > few { // what few rounds tell apart plainly, ten standard errors from 0.5, fails without the others
		early, _ := responseTimes(t, pairs, asked, few)
		asked += few
		for q, form := range timedQuestions {
			if early[q].plain() {
				t.Fatalf("%s: told apart by %s from 0.5 in %d rounds", form, early[q], few)
			}
		}
	}
	for try := 0; ; try++ {
		rounds := n << try
		held, seen := responseTimes(t, pairs, asked, rounds)
		asked += rounds
		power := true
		for q, form := range timedQuestions {
			if q < freely && !seen[q].plain() {
				power = false
				t.Logf("%d rounds have no power: %s: without the step told apart by %s from 0.5 only", rounds, form, seen[q])
			}
			if !held[q].passes() {
				t.Errorf("%s: told apart by %s from 0.5 in %d rounds, must be at most %.3f", form, held[q], rounds, maxSeparation(rounds))
			}
		}
		if t.Failed() || power {
			threats.Reached(t, "T6", "AUC from 0.5 of %d questions, %d an arm: %s; with a step below the scan: %s", len(held), rounds, figures(held), figures(seen[:freely]))
			break
		}
		if try == 2 {
			t.Fatal("no run had the power to see anything")
		}
	}
	if spent := kit.Count(t, pairs[0].Connect("alice", "lab").Ask(`SELECT count(*) FROM dp.charges`)); spent < min(freely*asked, 10_000) {
		t.Errorf("%d charges: of %d questions some were not asked of the rows", spent, freely*asked)
	}
}

// responseTimes asks each question of both pairs, from a number on, so many times.
func responseTimes(t *testing.T, sides [4]kit.Side, from, rounds int) (held, seen []apartness) {
	t.Helper()
	held, seen = make([]apartness, len(timedQuestions)), make([]apartness, len(timedQuestions))
	errs := make([]error, len(timedQuestions))
	var all sync.WaitGroup
	for q, form := range timedQuestions {
		var arms []func(i int) error
		for _, s := range sides {
			w := s.Connect("alice", "lab")
			arms = append(arms, func(i int) error {
				_, err := w.TryAsk(fmt.Sprintf(form, (from+i)%100, (from+i)/100))
				return err
			})
		}
		all.Go(func() {
			times, err := interleaved(rounds, arms...)
			if errs[q] = err; err == nil {
				held[q], seen[q] = tell(times[0], times[1]), tell(times[2], times[3])
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return held, seen
}

func figures(list []apartness) string {
	var out []string
	rounds := 0.0
	for _, one := range list {
		out = append(out, fmt.Sprintf("%.3f", one.apart))
		rounds = max(rounds, one.paired)
	}
	return fmt.Sprintf("%s (by rounds at most %.3f)", strings.Join(out, ", "), rounds)
}
