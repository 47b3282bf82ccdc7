package synthetic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// naive lists all multisets as counts, by counting through all vectors in the order of their sorted sequences.
func naive(cells int, m int64) [][]int64 {
	if m == 0 {
		return [][]int64{make([]int64, cells)}
	}
	all := [][]int64{}
	for first := range cells {
		for _, rest := range naive(cells-first, m-1) {
			y := append(make([]int64, first), rest...)
			y[first]++
			all = append(all, y)
		}
	}
	return all
}

// TestCandidatesAgainstRecursion: every candidate, its number and its loss, against the definition.
func TestCandidatesAgainstRecursion(t *testing.T) {
	random := rand.New(seeded(1))
	for _, c := range []struct {
		cells int
		m     int64
	}{{1, 1}, {1, 5}, {2, 3}, {3, 4}, {5, 3}, {4, 1}, {6, 6}} {
		q := predicates(t, c.cells, 12, random)
		s := small(t, q, c.m, 1000, epsilon(1))
		truth := q.truth(data(c.cells, 900, random))
		losses, all := s.losses(truth), naive(c.cells, c.m)
		if int64(len(all)) != s.count || len(losses) != len(all) {
			t.Fatalf("%v: %d candidates, %d by recursion", c, s.count, len(all))
		}
		errs := make([]int64, len(all))
		for i, y := range all {
			if !slices.Equal(s.candidate(int64(i)), y) {
				t.Fatalf("%v: candidate %d is %v, by recursion %v", c, i, s.candidate(int64(i)), y)
			}
			for j, a := range q.truth(y) {
				errs[i] = max(errs[i], c.m*truth[j]-1000*a, 1000*a-c.m*truth[j])
			}
		}
		least := slices.Min(errs)
		for i := range errs {
			if losses[i] != uint64(errs[i]-least) {
				t.Errorf("%v: loss of %d is %d, by definition %d", c, i, losses[i], errs[i]-least)
			}
		}
		if floor, err := s.floor(truth); err != nil || floor != float64(least)/float64(c.m) {
			t.Errorf("%v: floor is %g (%v)", c, floor, err)
		}
	}
}

// TestSensitivity: no neighbour moves a score by more than m·R.
func TestSensitivity(t *testing.T) {
	random := rand.New(seeded(2))
	q := predicates(t, 4, 20, random)
	s := small(t, q, 3, 50, epsilon(1))
	for range 200 {
		one := data(4, 40, random)
		other := slices.Clone(one)
		other[random.IntN(4)]++
		if i := random.IntN(4); random.IntN(2) == 0 && other[i] > 0 { // replace-one
			other[i]--
		}
		a, b := []int64{}, []int64{}
		s.each(q.truth(one), func(_, w int64) { a = append(a, w) })
		s.each(q.truth(other), func(_, w int64) { b = append(b, w) })
		for i := range a {
			if d := a[i] - b[i]; d > 3 || d < -3 {
				t.Fatalf("a score moved by %d, at most 3", d)
			}
		}
	}
}

// TestReleasedLaw: the exponential mechanism's probabilities by definition, chi-square with the usual alarm of 1e-7.
func TestReleasedLaw(t *testing.T) {
	random := rand.New(seeded(3))
	q := predicates(t, 3, 8, random)
	truth := []int64{40, 11, 9}
	s := small(t, q, 3, 60, rho(.125)) // ε = 1
	losses := s.losses(q.truth(truth))
	total := 0.0
	for _, l := range losses {
		total += math.Exp(-float64(l) / 6)
	}
	source := seeded(4)
	all := naive(3, 3)
	samples := make([]int64, 20_000)
	for i := range samples {
		d, err := s.Release(privacy.Seal(truth), source)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]int64, 3)
		for j, x := range d.Value().Cells {
			y[j] = int64(math.Round(x / 20))
		}
		samples[i] = int64(slices.IndexFunc(all, func(z []int64) bool { return slices.Equal(y, z) }))
	}
	err := stattest.ChiSquare(samples, func(k int64) float64 {
		if k < 0 || k >= int64(len(losses)) {
			return 0
		}
		return math.Exp(-float64(losses[k])/6) / total
	}, stattest.Usual)
	if err != nil {
		t.Errorf("seed %q: %v", seed, err)
	}
}

const auditAlarm = 1e-6

// audited bounds the ε of two black boxes from below.
func audited(t *testing.T, answers int, one, other func() float64) float64 {
	t.Helper()
	return auditedAt(t, answers, 0, one, other)
}

func auditedAt(t *testing.T, answers int, delta float64, one, other func() float64) float64 {
	t.Helper()
	sample := func(f func() float64) []float64 {
		out := make([]float64, answers)
		for i := range out {
			out[i] = f()
		}
		return out
	}
	bound, err := stattest.Audit{One: sample(one), Other: sample(other), Delta: delta}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// tenOrNone are two candidates between which one row decides: all rows in the first cell, or in the second.
func tenOrNone(t *testing.T, c privacy.Contribution, cost privacy.Cost) Small {
	t.Helper()
	q, err := NewQueries(2, [][]int32{{0}, {1}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSmall(q, 1, 20, c, cost)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAuditSmall: four audits of replaced and added rows at ε = 1 (ρ = 1/8), and the planted fault that the score is
// taken to move one way, or by one row a unit where there are two.
func TestAuditSmall(t *testing.T) {
	answers := stattest.Length(30_000, 400_000)
	source := seeded(5)
	side := func(s Small, cells ...int64) func() float64 {
		return func() float64 {
			d, err := s.Release(privacy.Seal(cells), source)
			if err != nil {
				t.Fatal(err)
			}
			return d.Value().Cells[0]
		}
	}
	replace := privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}
	for name, cost := range map[string]privacy.Cost{"pure": epsilon(1), "zcdp": rho(.125)} {
		s := tenOrNone(t, replace, cost)
		for neighbors, other := range map[string][]int64{"replaced": {7, 13}, "added": {8, 13}} {
			bound := audited(t, answers, side(s, 8, 12), side(s, other...))
			t.Logf("%s, %s: epsilon at least %.3f of 1", name, neighbors, bound)
			if bound > 1 {
				t.Errorf("seed %q: %s, %s: epsilon is at least %.3f, paid 1", seed, name, neighbors, bound)
			}
		}
	}
	faulty := tenOrNone(t, replace, epsilon(1))
	if bound := audited(t, answers, side(faulty, 8, 12), side(faulty, 6, 14)); bound <= 1 {
		t.Errorf("seed %q: two rows a unit passed: %.3f", seed, bound)
	}
	faulty = tenOrNone(t, replace, epsilon(2)) // rate ε/(mR) in place of ε/(2mR)
	if bound := audited(t, answers, side(faulty, 8, 12), side(faulty, 7, 13)); bound <= 1 {
		t.Errorf("seed %q: half of the sensitivity passed: %.3f", seed, bound)
	}
}

// TestSmallFigures: 1000 random predicates; the largest error of any, as a share of the rows, with the best candidate's
// and the plain histogram's beside. Known figures (one simulation): |X| = 8, m = 12: floor 0.10–0.11, at ε = 0.1 0.16
// (n = 1000) and 0.102 (n = 10,000), histogram 0.053 and 0.006; |X| = 16, m = 6: floor 0.28.
func TestSmallFigures(t *testing.T) {
	random := rand.New(seeded(6))
	source := seeded(7)
	for _, c := range []struct {
		cells int
		m     int64
		rows  int
		known [2]float64 // floor, released
	}{{8, 12, 1000, [2]float64{.105, .16}}, {8, 12, 10_000, [2]float64{.105, .102}}, {16, 6, 10_000, [2]float64{.28, .28}}} {
		q := predicates(t, c.cells, 1000, random)
		const trials = 2
		released, floor, histogram := 0.0, 0.0, 0.0
		for range trials {
			truth := data(c.cells, c.rows, random)
			s := small(t, q, c.m, Total(c.rows), epsilon(.1))
			d, err := s.Release(privacy.Seal(truth), source)
			if err != nil {
				t.Fatal(err)
			}
			most, _ := worst(t, q, truth, d.Value().Cells)
			best, err := s.floor(q.truth(truth))
			if err != nil {
				t.Fatal(err)
			}
			released, floor = released+most/float64(c.rows)/trials, floor+best/float64(c.rows)/trials
			noisy := floats(truth)
			for i := range noisy {
				noisy[i] += 10 * (random.ExpFloat64() - random.ExpFloat64())
			}
			most, _ = worst(t, q, truth, noisy)
			histogram += most / float64(c.rows) / trials
		}
		t.Logf("|X| %d, m %d, n %d, epsilon 0.1: small database %.3f (known %.3f), best candidate %.3f (known %.3f), plain histogram %.3f", c.cells, c.m, c.rows, released, c.known[1], floor, c.known[0], histogram)
		if floor > c.known[0]*1.25 || released > c.known[1]*1.35 || released < floor {
			t.Errorf("|X| %d, m %d, n %d: %.3f, best candidate %.3f, known %v", c.cells, c.m, c.rows, released, floor, c.known)
		}
	}
}

func TestSmallRefuses(t *testing.T) {
	q := predicates(t, 4, 3, rand.New(seeded(8)))
	big := predicates(t, 64, 3, rand.New(seeded(8)))
	for want, f := range map[string]func() error{
		"rows of the small database is 0, must be from 1 to 64":                            func() error { _, err := NewSmall(q, 0, 1, oneRow, epsilon(1)); return err },
		"candidates are more than 1048576: 5 rows of 64 cells":                             func() error { _, err := NewSmall(big, 5, 1, oneRow, epsilon(1)); return err },
		"candidates are more than 1048576: 64 rows of 64 cells":                            func() error { _, err := NewSmall(big, 64, 1, oneRow, epsilon(1)); return err },
		"total is 0, must be from 1 to 1099511627776":                                      func() error { _, err := NewSmall(q, 1, 0, oneRow, epsilon(1)); return err },
		"rows of a unit is 0, must be from 1 to 4194304":                                   func() error { _, err := NewSmall(q, 1, 1, privacy.Contribution{}, epsilon(1)); return err },
		"neighbor relation is 0, must be add-remove or replace-one":                        func() error { _, err := NewSmall(q, 1, 1, privacy.Contribution{Rows: 1}, epsilon(1)); return err },
		"cost is ε 0 and ρ 0, must be greater than 0 in one of the two and 0 in the other": func() error { _, err := NewSmall(q, 1, 1, oneRow, epsilon(0)); return err },
		"delta of the cost is 1e-18, must be 0: a selection has none": func() error {
			c := epsilon(1)
			c.Delta = privacy.AttoDelta(1)
			_, err := NewSmall(q, 1, 1, oneRow, c)
			return err
		},
		"queries were not made by NewQueries":       func() error { _, err := NewSmall(Queries{}, 1, 1, oneRow, epsilon(1)); return err },
		"mechanism was not made by its constructor": func() error { _, err := Small{}.Release(privacy.Seal([]int64{1}), seeded(0)); return err },
		"truth was never sealed": func() error {
			_, err := small(t, q, 1, 1, epsilon(1)).Release(privacy.Sensitive[[]int64]{}, seeded(0))
			return err
		},
		"noise: the source of randomness failed: broken": func() error {
			_, err := small(t, q, 1, 1, epsilon(1)).Release(privacy.Seal([]int64{1}), iotest.ErrReader(errors.New("broken")))
			return err
		},
		"number of cells is 0, must be from 1 to 1048576":           func() error { _, err := NewQueries(0, nil); return err },
		"number of queries is 0, must be from 1 to 1048576":         func() error { _, err := NewQueries(1, nil); return err },
		"query 0 has cell 1 in place 1, must be rising and below 4": func() error { _, err := NewQueries(4, [][]int32{{1, 1}}); return err },
		"query 0 has cell 4 in place 0, must be rising and below 4": func() error { _, err := NewQueries(4, [][]int32{{4}}); return err },
	} {
		if err := f(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// BenchmarkSmall: enumerations of half a million to a million candidates, 1000 queries.
func BenchmarkSmall(b *testing.B) {
	random := rand.New(seeded(9))
	for _, c := range []struct {
		cells int
		m     int64
	}{{8, 12}, {16, 6}, {16, 8}, {64, 4}} {
		q := predicates(b, c.cells, 1000, random)
		s := small(b, q, c.m, 10_000, epsilon(.1))
		truth := privacy.Seal(data(c.cells, 10_000, random))
		b.Run(fmt.Sprintf("X=%d/m=%d/candidates=%d", c.cells, c.m, s.count), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Release(truth, seeded(10)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestChoiceTakesWhatItCosts: scores that move by m for each of a unit's rows are twice that apart.
func TestChoiceTakesWhatItCosts(t *testing.T) {
	for _, rows := range []int64{1, 3} {
		for _, unit := range []int64{1, 5} {
			c := privacy.Contribution{Rows: rows, Neighbors: privacy.ReplaceOne}
			for paid, cost := range map[float64]privacy.Cost{.7: epsilon(.7), 2: rho(.5)} {
				_, rate, err := chooser(c, cost, unit)
				if err != nil {
					t.Fatal(err)
				}
				if lost := rate.Float() * float64(2*rows*unit); lost > paid*(1+1e-12) || lost < paid*(1-1e-6) {
					t.Errorf("%d rows, %d: ε %g of %g", rows, unit, lost, paid)
				}
			}
		}
	}
}

// TestOddCellsCountAsNone: negative cells are empty, and none is so large that sums overflow.
func TestOddCellsCountAsNone(t *testing.T) {
	q, err := NewQueries(3, [][]int32{{0}, {1, 2}, {0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if got := q.truth([]int64{-5, math.MinInt64, math.MaxInt64}); got[0] != 0 || got[1] != maxCell || got[2] != maxCell {
		t.Errorf("answers %v", got)
	}
}

// floor returns the largest error, in rows, of the best candidate for public answers: what no budget can better.
func (s Small) floor(answers []int64) (float64, error) {
	if s.count == 0 || len(answers) != s.queries.Len() {
		return 0, errNotMade
	}
	best := int64(math.MaxInt64)
	s.each(answers, func(_ int64, worst int64) { best = min(best, worst) })
	return float64(best) / float64(s.rows), nil
}
