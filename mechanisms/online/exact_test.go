package online

import (
	"math"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// handmade is a plan with a split of choice, in micro-units, on a universe of few rows.
func handmade(t *testing.T, updates int, threshold int64, rows int64, s split) Plan {
	t.Helper()
	p := Plan{
		spec: Spec{
			Cells: 2, Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Rows: rows,
			Updates: updates, Accountant: privacy.Pure,
		},
		moves: 1, split: s, threshold: threshold, width: float64(threshold), valid: true,
	}
	if _, err := p.sources(); err != nil {
		t.Fatal(err)
	}
	return p
}

func micros(threshold, comparison, answer int64) split {
	return split{threshold: privacy.MicroEpsilon(threshold), comparison: privacy.MicroEpsilon(comparison), answer: privacy.MicroEpsilon(answer)}
}

// tails is the twin of an instance: its probabilities, summed up from the noise's masses.
type tails struct {
	z     []float64 // P(z = i − reach)
	below []float64 // P(y < i − 2·reach)
	reach int64
}

func tailsOf(t *testing.T, p Plan) tails {
	t.Helper()
	d, err := p.sources()
	if err != nil {
		t.Fatal(err)
	}
	const reach = 400
	x := tails{z: make([]float64, 2*reach+1), below: make([]float64, 4*reach+1), reach: reach}
	for i := range x.z {
		x.z[i] = side(d.threshold, int64(i)-reach)
	}
	sum := 0.0
	for k := int64(-20 * reach); k < 2*reach; k++ {
		if k >= -2*reach {
			x.below[k+2*reach] = sum
		}
		sum += side(d.comparison, k)
	}
	x.below[4*reach] = sum
	return x
}

// side is the mass of noise of one side.
func side(d noise.Distribution, k int64) float64 {
	if k < 0 {
		return 0
	}
	return float64(d.Mass(k)) / (.5 + float64(d.Mass(0))/2)
}

// probability of bits for gaps: hard[i] tells of query i.
func (x tails) probability(threshold int64, gaps []int64, hard []bool) float64 {
	total := 0.0
	for i, pz := range x.z {
		at := threshold + int64(i) - x.reach
		for j, g := range gaps {
			easy := x.below[min(max(at-g+2*x.reach, 0), 4*x.reach)]
			if hard[j] {
				easy = 1 - easy
			}
			pz *= easy
		}
		total += pz
	}
	return total
}

// patterns calls f with all bits of at most length queries that end where the instance does: at the hards-th hard one.
func patterns(length, hards int, f func(bits []bool)) {
	var walk func(bits []bool, left int)
	walk = func(bits []bool, left int) {
		if left == 0 || len(bits) == length {
			f(bits)
			return
		}
		walk(append(bits, false), left)
		walk(append(bits, true), left-1)
	}
	walk(make([]bool, 0, length), hards)
}

// TestExactLossOfTheBits sums up the probability of every transcript of seven queries on neighbouring gaps, for gaps
// that move alike, against each other, or one at a time, and finds no loss above ε₁ + c·ε₂; and on the sequence that
// the proof is sharp for, a loss close to it.
func TestExactLossOfTheBits(t *testing.T) {
	for _, hards := range []int{1, 2} {
		for _, s := range []split{micros(500_000, 1_000_000, 1), micros(900_000, 300_000, 1), micros(200_000, 1_500_000, 1)} {
			p := handmade(t, hards, 4, 13, s)
			x := tailsOf(t, p)
			claim := s.threshold.Float() + float64(hards)*s.comparison.Float()
			worst := 0.0
			for _, moves := range [][]int64{{1, 1, 1, 1, 1, 1, 1}, {1, 1, 1, -1, -1, -1, -1}, {1, -1, 1, -1, 1, -1, 1}, {0, 0, 1, 0, 0, -1, 0}} {
				gaps, others := []int64{2, 3, 2, 5, 2, 7, 4}, make([]int64, 7)
				for i := range gaps {
					others[i] = gaps[i] + moves[i]
				}
				patterns(len(gaps), hards, func(bits []bool) {
					a, b := x.probability(4, gaps[:len(bits)], bits), x.probability(4, others[:len(bits)], bits)
					worst = max(worst, math.Abs(math.Log(a/b)))
				})
			}
			if worst > claim+1e-6 {
				t.Errorf("%d hard, %v: the loss is %.4f, claimed %.4f", hards, s, worst, claim)
			}
			sharp := x.sharpLoss(hards)
			t.Logf("%d hard, %v: claimed %.3f, worst of all transcripts %.3f, of the sharp sequence %.3f", hards, s, claim, worst, sharp)
			if sharp > claim+1e-6 || sharp < .9*claim {
				t.Errorf("%d hard, %v: the sharp sequence loses %.4f, claimed %.4f", hards, s, sharp, claim)
			}
		}
	}
}

// sharpLoss is that of many easy queries, whose gap is one more on the neighbour, then hard ones far below the
// threshold, whose gap is one less.
func (x tails) sharpLoss(hards int) float64 {
	gaps, others, bits := []int64{}, []int64{}, []bool{}
	for range 400 {
		gaps, others, bits = append(gaps, 20), append(others, 21), append(bits, false)
	}
	for range hards {
		gaps, others, bits = append(gaps, 1), append(others, 0), append(bits, true)
	}
	return math.Log(x.probability(24, gaps, bits) / x.probability(24, others, bits))
}

// TestExactLossCatchesSmallerNoise plants the fault: noise for 1/1.2 of the sensitivity is more than is claimed.
func TestExactLossCatchesSmallerNoise(t *testing.T) {
	s := micros(500_000, 1_000_000, 1)
	p := handmade(t, 1, 4, 13, micros(600_000, 1_200_000, 1))
	if loss, claim := tailsOf(t, p).sharpLoss(1), s.threshold.Float()+s.comparison.Float(); loss <= claim {
		t.Errorf("noise for a sensitivity off by 1.2 loses %.4f, not above %.4f", loss, claim)
	}
}

// TestSessionsHaveTheExactProbabilities holds the bits of real sessions against the sums. False alarm: 1e-7.
func TestSessionsHaveTheExactProbabilities(t *testing.T) {
	p := handmade(t, 1, 4, 13, micros(500_000, 1_000_000, 500_000))
	x := tailsOf(t, p)
	first, both := only(t, 2, 0), only(t, 2, 0, 1)
	queries := []Query{first, both, first, first, both}
	gaps := []int64{2, 4, 2, 2, 4} // of 9 rows against guesses of 7 and 13
	samples := make([]int64, stattest.Length(20_000, 200_000))
	random := seeded(3)
	for i := range samples {
		session, err := open(p, nil, []int64{9, 0}, random, keep)
		if err != nil {
			t.Fatal(err)
		}
		samples[i] = int64(len(queries))
		for j, q := range queries {
			a, err := session.Answer(q)
			if err != nil {
				t.Fatal(err)
			}
			if a.Value().Hard {
				samples[i] = int64(j)
				break
			}
		}
	}
	mass := func(k int64) float64 {
		bits := make([]bool, min(k+1, int64(len(queries))))
		if k < 0 || k > int64(len(queries)) {
			return 0
		}
		if k < int64(len(queries)) {
			bits[k] = true
		}
		return x.probability(4, gaps[:len(bits)], bits)
	}
	if err := stattest.ChiSquare(samples, mass, stattest.Usual); err != nil {
		t.Error(err)
	}
}

// only is the query for some cells.
func only(t testing.TB, cells int, in ...int) Query {
	t.Helper()
	q, err := Members(cells, func(i int) bool {
		for _, x := range in {
			if x == i {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestPlansReachTheirWidth: of queries whose guess is off by just the width, and of hard answers, no more than miss are
// off by more. False alarm: 1e-7 each.
func TestPlansReachTheirWidth(t *testing.T) {
	const miss = noise.Probability(.02)
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		s := Spec{
			Cells: 2, Contribution: privacy.Contribution{Rows: 2, Neighbors: privacy.AddRemove}, Rows: 2000,
			Updates: 20, Accountant: accountant,
		}
		p, err := planFor(s, Target{Width: 300, Miss: miss})
		if err != nil {
			t.Fatal(err)
		}
		if w := p.Width(miss); w < 290 || w > 305 {
			t.Errorf("%s: asked for a width of 300, got %d", accountant, w)
		}
		q, random := only(t, 2, 0), seeded(4)
		easy := stattest.Coverage{Claim: 1 - float64(miss) - 1e-3}
		hard := easy
		for range stattest.Length(4_000, 100_000) {
			session, err := open(p, nil, []int64{1000 + 300, 5}, random, keep)
			if err != nil {
				t.Fatal(err)
			}
			a, err := session.Answer(q)
			if err != nil {
				t.Fatal(err)
			}
			off := a.Value().Value - 1300
			easy.Trials++
			if a.Value().Hard {
				easy.Hits++
				hard.Trials++
				if off <= 300 && off >= -300 {
					hard.Hits++
				}
			}
		}
		for name, c := range map[string]stattest.Coverage{"easy": easy, "hard": hard} {
			if err := c.AtLeast(stattest.Usual); err != nil {
				t.Errorf("%s, %s: %v", accountant, name, err)
			}
		}
	}
}
