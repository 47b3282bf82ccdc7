package stattest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Audit is what a black box said of two neighbouring databases, every answer drawn independently: one number an answer.
// Of answers that are no numbers, give a statistic of them, best their likelihood ratio or something that rises with
// it.
type Audit struct {
	One, Other []float64
	Delta      float64
}

// Epsilon returns a lower bound of the black box's ε, wrong (above it) with probability at most a.
//
// The audit plays a guessing game. On the first quarter of the answers a rule is chosen: answers up to some number are
// said to come from One, those from some other number on from Other (or the other way round), of the rest nothing is
// said. Then fair coins decide, for each of m draws, which database the next unused answer is taken from, and the rule
// guesses. With c the probability of a right guess, w of a wrong one, an (ε, δ) black box has c ≤ e^ε·w + δ' (the two
// databases are asked with probability ½ each, so δ' is δ, or δ/2 where the rule names one database alone). Split c in
// c' ≤ e^ε·w and d ≤ δ'. Of all draws, those of the part d are Binomial(m, d): more than D of them come with
// probability at most a/10. The others are right, given their number, with a binomial of at most e^ε/(1+e^ε). So the
// Clopper-Pearson bound, at 9a/10, of right−D in right−D+wrong is at most e^ε/(1+e^ε), unless one of the two failed.
// Without δ, D is 0.
func (t Audit) Epsilon(a Alarm) (float64, error) {
	Spend(a)
	return t.epsilon(a)
}

// LeastAnswers are so many answers a side that a bound says something.
const LeastAnswers = 1000

func (t Audit) epsilon(a Alarm) (float64, error) {
	n := min(len(t.One), len(t.Other))
	if n < LeastAnswers {
		return 0, fmt.Errorf("audit: %d answers a side, must be at least %d", n, LeastAnswers)
	}
	first := n / 4
	rule := t.choose(ladderOf(t.One[:first], t.Other[:first]), a)
	right, wrong, draws := rule.play(t.One[first:n], t.Other[first:n])
	return rule.bound(right, wrong, draws, t.Delta, a), nil
}

// Choices is an Audit of answers that are outcomes without an order: which candidate was selected, which branch taken,
// an answer's hash. The first quarter of the answers orders the outcomes by their likelihood ratio; an outcome that it
// did not hold is never guessed upon.
type Choices struct {
	One, Other []int
	Delta      float64
}

// Epsilon is Audit's: a lower bound of the black box's ε, wrong with probability at most a.
func (c Choices) Epsilon(a Alarm) (float64, error) {
	Spend(a)
	return c.epsilon(a)
}

func (c Choices) epsilon(a Alarm) (float64, error) {
	first := min(len(c.One), len(c.Other)) / 4
	counts := map[int][2]float64{}
	for _, k := range c.One[:first] {
		counts[k] = [2]float64{counts[k][0] + 1, counts[k][1]}
	}
	for _, k := range c.Other[:first] {
		counts[k] = [2]float64{counts[k][0], counts[k][1] + 1}
	}
	outcomes := make([]int, 0, len(counts))
	for k := range counts {
		outcomes = append(outcomes, k)
	}
	ratio := func(k int) float64 { return (counts[k][1] + 1) / (counts[k][0] + 1) }
	slices.SortFunc(outcomes, func(x, y int) int { return cmp.Or(cmp.Compare(ratio(x), ratio(y)), cmp.Compare(x, y)) })
	rank := map[int]float64{}
	for i, k := range outcomes {
		rank[k] = float64(i)
	}
	ranks := func(answers []int) []float64 {
		numbers := make([]float64, len(answers))
		for i, k := range answers {
			if r, known := rank[k]; known {
				numbers[i] = r
			} else {
				numbers[i] = math.NaN()
			}
		}
		return numbers
	}
	return Audit{One: ranks(c.One), Other: ranks(c.Other), Delta: c.Delta}.epsilon(a)
}

// rule guesses "One" for answers ≤ low and "Other" for answers ≥ high, or both the other way round.
type rule struct {
	low, high float64
	reversed  bool
}

// step is a number and how many answers of each database are at most that.
type step struct{ at, one, other float64 }

// ladderOf returns the steps of the answers, thinned out: each adds a fiftieth to the weight of the shorter tail.
func ladderOf(one, other []float64) []step {
	type answer struct {
		at    float64
		other bool
	}
	var all []answer
	for _, x := range one {
		all = append(all, answer{x, false})
	}
	for _, x := range other {
		all = append(all, answer{x, true})
	}
	slices.SortFunc(all, func(x, y answer) int { return cmp.Compare(x.at, y.at) })
	ladder := []step{{at: math.Inf(-1)}}
	last := step{}
	for i, x := range all {
		if last.at = x.at; x.other {
			last.other++
		} else {
			last.one++
		}
		if i+1 < len(all) && all[i+1].at == x.at {
			continue
		}
		top, tail := ladder[len(ladder)-1], min(i+1, len(all)-i-1)
		if last.one+last.other-top.one-top.other >= float64(tail)/50 {
			ladder = append(ladder, last)
		}
	}
	return ladder
}

// choose returns the rule with the best bound on the answers of the ladder itself, by Wilson's approximation: up to
// step i one guess, above step j ≥ i the other above j, each at least half a percent of a database's answers or none.
func (t Audit) choose(ladder []step, a Alarm) rule {
	end := ladder[len(ladder)-1]
	// z standard errors of the three times as many answers to come, and two of these, which also err.
	n, z := end.one, math.Sqrt(a.z()*a.z()/3+4)
	best, chosen := math.Inf(-1), rule{math.Inf(-1), math.Inf(1), false}
	for i, low := range ladder {
		for j := i; j < len(ladder); j++ {
			high := ladder[j]
			for _, reversed := range []bool{false, true} {
				first := [2]float64{low.one, low.other}
				second := [2]float64{end.other - high.other, end.one - high.one}
				if reversed {
					first[0], first[1], second[0], second[1] = first[1], first[0], second[1], second[0]
				}
				if tooRare(first[0], n) || tooRare(second[0], n) {
					continue
				}
				leak := 0.0
				for _, side := range [][2]float64{first, second} {
					if side[0]+side[1] > 0 {
						leak += n * t.Delta
					}
				}
				if value := wilson(first[0]+second[0]-leak-z*math.Sqrt(leak), first[1]+second[1], z); value > best {
					best, chosen = value, rule{low.at, next(ladder, j), reversed}
				}
			}
		}
	}
	return chosen
}

// wilson returns the share right/(right+wrong), lowered by z standard errors.
func wilson(right, wrong, z float64) float64 {
	if right <= 0 {
		return 0
	}
	all := right + wrong
	return (right + z*z/2 - z*math.Sqrt(right*wrong/all+z*z/4)) / (all + z*z)
}

func tooRare(hits, n float64) bool { return hits > 0 && hits*200 < n }

// next returns the number above which a guess starts, when step j is the last that does not belong to it.
func next(ladder []step, j int) float64 {
	if j+1 == len(ladder) {
		return math.Inf(1)
	}
	return math.Nextafter(ladder[j].at, math.Inf(1))
}

// play draws with fair coins from the two databases and counts right and wrong guesses.
func (g rule) play(one, other []float64) (right, wrong, draws int) {
	n := len(one)
	draws = max(0, 2*n-int(8*math.Sqrt(float64(n)))) // a side is asked too often with a probability below 1e-14
	coins := rand.New(rand.NewPCG(uint64(n), 20240607))
	sides := [2][]float64{one, other}
	for range draws {
		side := coins.IntN(2)
		if len(sides[side]) == 0 {
			return 0, 0, draws // says nothing, which is never wrong
		}
		x := sides[side][0]
		sides[side] = sides[side][1:]
		switch {
		case x <= g.low:
			right, wrong = count(g.reversed == (side == 1), right, wrong)
		case x >= g.high:
			right, wrong = count(g.reversed == (side == 0), right, wrong)
		}
	}
	return right, wrong, draws
}

func count(hit bool, right, wrong int) (int, int) {
	if hit {
		return right + 1, wrong
	}
	return right, wrong + 1
}

func (g rule) bound(right, wrong, draws int, delta float64, a Alarm) float64 {
	if delta > 0 {
		leak := delta
		if math.IsInf(g.low, -1) || math.IsInf(g.high, 1) {
			leak /= 2
		}
		right = max(0, right-binomialQuantile(draws, leak, a/10))
		a *= .9
	}
	low, _ := interval(right, right+wrong, a)
	return max(0, math.Log(low/(1-low)))
}

// binomialQuantile returns the least k with P(Binomial(n, p) > k) ≤ a.
func binomialQuantile(n int, p float64, a Alarm) int {
	least, most := 0, n
	for least < most {
		k := (least + most) / 2
		if atLeast(k+1, n, p) <= float64(a) {
			most = k
		} else {
			least = k + 1
		}
	}
	return least
}
