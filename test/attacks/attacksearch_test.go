package attacks

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/test/kit"
)

// attacker is a set of questions among which a search looks for the set that tells most of number 7. They share a
// budget of 1.
type attacker struct {
	questions []string
	auc       float64
}

// invent is a random question: an aggregate over people, or over their events, within random conditions.
func invent(r *rand.Rand) string {
	of := func(list ...string) string { return list[r.IntN(len(list))] }
	condition := func() string {
		from := 18 + r.IntN(50)
		return of("hiv", "NOT hiv", "hiv", fmt.Sprintf("age BETWEEN %d AND %d", from, from+r.IntN(20)), fmt.Sprintf("age = %d", 20+r.IntN(12)), fmt.Sprintf("income < %d", 1000*r.IntN(100)),
			fmt.Sprintf("income >= %d", 1000*r.IntN(100)), "city NOT IN ('c0', 'c1', 'c2', 'c3')", "city = 'c3'", "city IS NULL", "note = 'n2'", "note NOT IN ('n0', 'n1', 'n2', 'n3', 'n4')")
	}
	conditions := condition()
	for range r.IntN(3) {
		conditions += of(" AND ", " AND ", " OR ") + condition()
	}
	return of("SELECT count(*) FROM people WHERE ", "SELECT count(*) FROM people WHERE ", "SELECT sum(income) FROM people WHERE ", "SELECT avg(age) FROM people WHERE ",
		"SELECT count(*) FROM people JOIN events USING (uid) WHERE ", "SELECT count(DISTINCT city) FROM people WHERE ") + conditions
}

// mutated is another set of questions: one is another, one more, one less, or what two attackers ask.
func (a attacker) mutated(r *rand.Rand, other attacker) attacker {
	questions := slices.Clone(a.questions)
	switch n := r.IntN(4); {
	case n == 0 && len(questions) > 1:
		questions = slices.Delete(questions, 0, 1)
	case n == 1 && len(questions) < 6:
		questions = append(questions, invent(r))
	case n == 2:
		questions = append(questions[:1], other.questions[r.IntN(len(other.questions))])
	default:
		questions[r.IntN(len(questions))] = invent(r)
	}
	slices.Sort(questions)
	return attacker{questions: slices.Compact(questions)}
}

// tried asks the questions of both sides as n users each, trains a classifier on half of the answers, and measures it
// on the other half: the area under its ROC curve. One whose questions are not answered is worth nothing.
func (a attacker) tried(t *testing.T, with, without *kit.Program, first, n int) float64 {
	t.Helper()
	var probes []kit.Probe
	for _, q := range a.questions {
		probes = append(probes, kit.Probe{Name: q, SQL: q, Epsilon: math.Floor(1e6/float64(len(a.questions))) / 1e6, Number: nil})
	}
	var answers [2][][]float64
	var errs [2]error
	var both sync.WaitGroup
	for i, p := range []*kit.Program{with, without} {
		both.Add(1)
		go func() {
			defer both.Done()
			answers[i], errs[i] = drawnFrom(p, first, n, probes)
		}()
	}
	both.Wait()
	for _, err := range errs {
		if err != nil {
			return 0
		}
	}
	var scores [2][]float64
	weigh := trained(answers, n/2)
	for i := range answers {
		for u := n / 2; u < n; u++ {
			scores[i] = append(scores[i], weigh(answers[i], u))
		}
	}
	return area(scores[0], scores[1])
}

// area is that under the ROC curve of two sides' scores.
func area(one, other []float64) float64 {
	sum := 0.0
	for _, x := range one {
		for _, y := range other {
			sum += above(x, y)
		}
	}
	return sum / float64(len(one)*len(other))
}

// trained is a logistic regression on the first n answers of each side, each answer cut at three spreads of its
// question, so that the tails of the noise do not drown the rest.
func trained(answers [2][][]float64, n int) func(of [][]float64, user int) float64 {
	k := len(answers[0])
	middle, spread, weights, bias := make([]float64, k), make([]float64, k), make([]float64, k), 0.0
	for j := range k {
		all := append(slices.Clone(answers[0][j][:n]), answers[1][j][:n]...)
		slices.Sort(all)
		middle[j], spread[j] = all[len(all)/2], max(all[len(all)*3/4]-all[len(all)/4], 1e-9)
	}
	feature := func(of [][]float64, j, user int) float64 {
		x := of[j][user]
		if math.IsNaN(x) {
			return 0
		}
		return min(max((x-middle[j])/spread[j], -3), 3)
	}
	score := func(of [][]float64, user int) float64 {
		sum := bias
		for j := range k {
			sum += weights[j] * feature(of, j, user)
		}
		return sum
	}
	for range 300 {
		gradient, shift := make([]float64, k), 0.0
		for i, label := range []float64{1, 0} {
			for user := range n {
				miss := label - 1/(1+math.Exp(-score(answers[i], user)))
				for j := range k {
					gradient[j] += miss * feature(answers[i], j, user)
				}
				shift += miss
			}
		}
		for j := range k {
			weights[j] += gradient[j] / float64(2*n)
		}
		bias += shift / float64(2*n)
	}
	return score
}

// TestT67AttackSearch has an evolution look for the questions that tell most of whether number 7 is there, at ε 1
// together, by the answers of many users and a classifier that learns from them. What it finds is tried once more, on
// answers that it has not seen: the area under its ROC curve is at most e/(1+e), the largest that ε = 1 allows, and
// three standard errors (false alarm 0.13 % for an attack that attains it). A search among attacks can be no better
// than the best of them.
func TestT67AttackSearch(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("thousands of answers")
	}
	const seed, epsilon = 67, 1.0
	t.Logf("seed %d", seed)
	generations, size, users, last := kit.Length(2, 6, 120), kit.Length(4, 8, 20), kit.Length(24, 40, 60), kit.Length(200, 400, 4000)
	r := rand.New(rand.NewPCG(seed, 1))
	start := func(n int) (*kit.Program, *kit.Program) {
		l := kit.Lab{Users: n, People: 60, Keyed: true, Change: kit.Undeclared, Budgets: kit.Budgets{User: "1", Cap: "900000"}}
		with, without := l.Pair(t)
		return with.Program, without.Program
	}
	var living []attacker
	tried := 0
	for g := range generations {
		with, without := start(size * users)
		var young []attacker
		for i := range size {
			a := attacker{questions: []string{invent(r)}}
			if g > 0 && i > 0 {
				a = living[r.IntN(len(living))].mutated(r, living[r.IntN(len(living))])
			}
			a.auc = a.tried(t, with, without, i*users, users)
			tried++
			young = append(young, a)
		}
		living = append(living, young...)
		slices.SortFunc(living, func(a, b attacker) int { return cmp.Compare(b.auc, a.auc) })
		living = living[:min(len(living), size/2)]
		with.Stop(syscall.SIGTERM)
		without.Stop(syscall.SIGTERM)
		t.Logf("generation %d: the best so far has %.3f in its %d answers: %s", g+1, living[0].auc, users/2, strings.Join(living[0].questions, "; "))
	}
	with, without := start(2 * last)
	most := 1 / (1 + math.Exp(-epsilon))
	limit := most + 3*math.Sqrt(most*(1-most)/float64(last/2))
	found := living[0].tried(t, with, without, 0, last)
	known := attacker{questions: []string{`SELECT count(*) FROM people WHERE hiv`}}.tried(t, with, without, last, last)
	for name, auc := range map[string]float64{"what was found": found, "the question that names her": known} {
		t.Logf("%s: %.3f, at most %.3f", name, auc, limit)
		if auc > limit {
			t.Errorf("%s: the area under the ROC curve is %.3f, at most %.3f", name, auc, limit)
		}
	}
	if known < 0.5+(most-0.5)/3 {
		t.Errorf("the classifier makes %.3f of the question that names her: it is blind", known)
	}
	threats.Reached(t, "T67", "%d sets of questions tried; the best has an area of %.3f under its ROC curve on answers not seen, the question that names her %.3f; at most %.3f may be", tried, found, known, most)
}
