package selection

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// units returns all that a unit's rows can add to the cells within c: rows one by one, each into no cell, one cell, or
// any set of cells where they overlap.
func units(cells int, c privacy.Contribution, overlapping bool) [][]int64 {
	steps := [][]int64{make([]int64, cells)}
	for set := 1; set < 1<<cells; set++ {
		step := make([]int64, cells)
		for j := range step {
			step[j] = int64(set >> j & 1)
		}
		if overlapping || set&(set-1) == 0 {
			steps = append(steps, step)
		}
	}
	found := [][]int64{make([]int64, cells)}
	for range c.Rows {
		next := [][]int64{}
		for _, f := range found {
			for _, step := range steps {
				sum := make([]int64, cells)
				for j := range sum {
					sum[j] = f[j] + step[j]
				}
				next = append(next, sum)
			}
		}
		found = next
	}
	kept := [][]int64{}
	for _, f := range found {
		groups, ok := int64(0), true
		for _, n := range f {
			ok = ok && (c.PerGroup == 0 || n <= c.PerGroup)
			if n > 0 {
				groups++
			}
		}
		if ok && (c.Groups == 0 || groups <= c.Groups || overlapping) {
			kept = append(kept, f)
		}
	}
	return kept
}

// TestSpreadIsAttainedAndNeverExceeded: against all units on small scores.
func TestSpreadIsAttainedAndNeverExceeded(t *testing.T) {
	source := rand.New(rand.NewPCG(7, 8))
	all := []Scores{mustOf(Counts(3))(t), mustOf(Columns(3))(t), mustOf(Counts(1))(t), mustOf(Tails(3, []int64{1, 2, 5}, []int{0, 1, 2}))(t), mustOf(Tails(3, []int64{7, 3}, []int{2, 0}))(t), mustOf(Weighted([]int64{2, 5, 3}))(t), mustOf(Weighted([]int64{0, 4}))(t)}
	attained := 0
	for n, s := range all {
		for _, c := range []privacy.Contribution{{Rows: 1}, {Rows: 2}, {Rows: 2, PerGroup: 1}, {Rows: 2, Groups: 1}} {
			overlapping := s.kind == columns || s.kind == scaled
			if overlapping && (c.PerGroup != 0 || c.Groups != 0) {
				continue
			}
			for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
				c.Neighbors = kind
				claim := mustOf(s.Spread(c))(t)
				worst := int64(0)
				base := make([]int64, s.cells)
				for j := range base {
					base[j] = source.Int64N(5)
				}
				sets := units(s.cells, c, overlapping)
				others := sets[:1]
				if kind == privacy.ReplaceOne {
					others = sets
				}
				for _, a := range sets {
					for _, b := range others {
						x, y := make([]int64, s.cells), make([]int64, s.cells)
						for j := range x {
							x[j], y[j] = base[j]+a[j], base[j]+b[j]
						}
						one, other := s.of(x), s.of(y)
						low, high := one[0]-other[0], one[0]-other[0]
						for i := range one {
							low, high = min(low, one[i]-other[i]), max(high, one[i]-other[i])
						}
						worst = max(worst, high-low)
					}
				}
				if worst > claim {
					t.Errorf("scores %d (kind %d), %+v: a unit attains %d, claimed %d", n, s.kind, c, worst, claim)
				}
				if worst == claim {
					attained++
				}
				if n < 2 && worst != claim {
					t.Errorf("scores %d, %+v: the spread is %d, claimed %d", n, c, worst, claim)
				}
			}
		}
	}
	t.Logf("attained in %d cases", attained)
}

// TestTailsAreSums: each score is its weight times the sum of the cells from its own on.
func TestTailsAreSums(t *testing.T) {
	scores := mustOf(Tails(4, []int64{1, 2, 3, 4}, []int{0, 1, 2, 3}))(t)
	if got, want := scores.of([]int64{7, 0, 3, 9}), []int64{19, 24, 36, 36}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		if x := mustOf(scores.Spread(privacy.Contribution{Rows: 1, Neighbors: kind}))(t); x != 4 {
			t.Errorf("%v: spread %d, want 4", kind, x)
		}
	}
}

// TestScoresNeverOverflow: cells and weights at their ends.
func TestScoresNeverOverflow(t *testing.T) {
	huge := []int64{math.MaxInt64, math.MaxInt64, math.MinInt64, 1 << 61}
	for _, s := range []Scores{
		mustOf(Counts(4))(t), mustOf(Columns(5))(t), mustOf(Tails(4, []int64{MaxWeight, 1}, []int{0, 3}))(t),
	} {
		scores := s.of(huge)
		for _, score := range scores {
			if score > MaxScore || score < -MaxScore {
				t.Errorf("kind %d: score %d", s.kind, score)
			}
		}
		for _, loss := range Losses(scores) {
			if loss > 2*MaxScore {
				t.Errorf("kind %d: loss %d", s.kind, loss)
			}
		}
	}
}

// TestPumpkins: the lecture notes' prices. Their figures, with Δu = 2 and exp(ε·u/2Δu), and ours: bids move revenue by
// at most the price and all one way, so exp(ε·u/2) has the same ε.
func TestPumpkins(t *testing.T) {
	scores := mustOf(Tails(2, []int64{1, 2}, []int{0, 1}))(t)
	m := mustOf(New(Exponential, scores, privacy.Contribution{Rows: 1, Neighbors: privacy.ReplaceOne}, epsilon(200_000)))(t)
	if m.Rate() != (Rate{1, 10}) {
		t.Errorf("rate %v, want 1/10", m.Rate())
	}
	for _, c := range []struct {
		bids        []int64
		notes, ours float64
	}{{[]int64{2, 1}, .51, .525}, {[]int64{90, 10}, .982, .9997}} {
		losses := Losses(scores.of(c.bids))
		notes, ours := exponentialTwin(losses, .2/4)[0], exponentialTwin(losses, m.Rate().Float())[0]
		t.Logf("%v bids: price 1 with probability %.4f in the notes, %.4f here", c.bids, notes, ours)
		if math.Abs(notes-c.notes) > .005 || math.Abs(ours-c.ours) > .0005 {
			t.Errorf("%v bids: %.4f and %.4f, want %v and %v", c.bids, notes, ours, c.notes, c.ours)
		}
	}
}

func TestConstructorsRefuse(t *testing.T) {
	three := mustOf(Counts(3))(t)
	for text, err := range map[string]error{
		"candidates is 0":             second(Counts(0)),
		"candidates is 1048577":       second(Columns(MaxCandidates + 1)),
		"weight of score 0 is -1":     second(Tails(1, []int64{-1}, []int{0})),
		"first cell of score 0 is 1":  second(Tails(1, []int64{1}, []int{1})),
		"starts":                      second(Tails(1, []int64{1}, nil)),
		"rule is 0":                   second(New(0, three, one, epsilon(1))),
		"not made by a constructor":   second(New(Exponential, Scores{}, one, epsilon(1))),
		"rows a unit is 0":            second(New(Exponential, three, privacy.Contribution{Neighbors: privacy.AddRemove}, epsilon(1))),
		"neighbors is 0":              second(New(Exponential, three, privacy.Contribution{Rows: 1}, epsilon(1))),
		"cost is ε 0 and ρ 0":         second(New(Exponential, three, one, privacy.Cost{})),
		"in one of the two":           second(New(Exponential, three, one, privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Rho: privacy.PicoRho(1)})),
		"cost is ε -1":                second(New(Exponential, three, one, epsilon(-1000000))),
		"delta of the cost":           second(New(Exponential, three, one, privacy.Cost{Epsilon: privacy.MicroEpsilon(1), Delta: privacy.AttoDelta(1)})),
		"at most 1000000":             second(New(Exponential, three, one, epsilon(math.MaxInt64))),
		"k is 4, must be from 1 to 3": second(NewTop(Gumbel, 4, three, one, epsilon(1))),
		"method is 9":                 second(NewTop(9, 1, three, one, epsilon(1))),
		"counts of disjoint cells":    second(NewTop(Bins, 1, mustOf(Columns(3))(t), one, epsilon(1))),
		"spread of the scores":        second(New(Exponential, mustOf(Weighted([]int64{MaxWeight, 0}))(t), privacy.Contribution{Rows: MaxRows, Neighbors: privacy.ReplaceOne}, epsilon(1))),
		"rate is 0/1":                 second(NewRate(0, 1)),
		"for 1001 draws":              second(NewTop(Gumbel, 1001, mustOf(Counts(2000))(t), one, epsilon(1))),
		"selection was not made":      second((Mechanism{}).Select(privacy.Seal([]int64{1}), seeded(1))),
		"never sealed":                second(mustOf(New(Exponential, three, one, epsilon(1)))(t).Select(privacy.Sensitive[[]int64]{}, seeded(1))),
		"was not made by a":           second((Top{}).Select(privacy.Seal([]int64{1}), seeded(1))),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
