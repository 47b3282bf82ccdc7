package attacks

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/internal/threats"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
	"github.com/dpproxy/dpproxy/test/kit"
)

// likelier is how much likelier an answer is where the truth is with than where it is without, as the logarithm of the
// ratio, if it has the discrete Laplace noise of ε. What a clever attacker makes of an answer.
func likelier(answer, with, without, epsilon float64) float64 {
	return epsilon * (math.Abs(answer-without) - math.Abs(answer-with))
}

// guessed is how many of the answers' sums on the side with number 7 are above a threshold, and below it on the other
// side, a sum at the threshold counting half.
func guessed(with, without []float64, threshold float64) (right float64) {
	for _, x := range with {
		right += above(x, threshold)
	}
	for _, x := range without {
		right += 1 - above(x, threshold)
	}
	return right
}

func above(x, threshold float64) float64 {
	switch {
	case x > threshold:
		return 1
	case x < threshold:
		return 0
	}
	return 0.5
}

// sums adds up what an attacker makes of each user's answers to some probes.
func sums(answers [][]float64, what func(probe int, answer float64) float64) []float64 {
	out := make([]float64, len(answers[0]))
	for i, list := range answers {
		for u, x := range list {
			out[u] += what(i, x)
		}
	}
	return out
}

// guessesHeld holds a share of right guesses against the most that an ε allows, and three standard errors of it. It
// returns the most.
func guessesHeld(t *testing.T, what string, right float64, guesses int, epsilon float64) float64 {
	t.Helper()
	most := 1 / (1 + math.Exp(-epsilon))
	most += 3 * math.Sqrt(most*(1-most)/float64(guesses))
	share := right / float64(guesses)
	t.Logf("%s: right %.4f of %d times, at most %.4f", what, share, guesses, most)
	if share > most {
		t.Errorf("%s: right %.4f of %d times, at most %.4f", what, share, guesses, most)
	}
	return most
}

// differencingPairs are pairs of questions of which the difference, or the sum, reports whether number 7 is there:
// trackers by AND, OR, NOT and a join. shift is by how much she moves each of the answers.
var differencingPairs = []struct {
	name     string
	one, two string
	truth    [2]float64 // without her
	shift    [2]float64
}{
	{"AND", `SELECT count(*) FROM people WHERE hiv`, `SELECT count(*) FROM people WHERE hiv AND city IN ('c0', 'c1', 'c2', 'c3')`, [2]float64{0, 0}, [2]float64{1, 0}},
	{"OR", `SELECT count(*) FROM people WHERE hiv OR age < 20`, `SELECT count(*) FROM people WHERE age < 20`, [2]float64{2, 2}, [2]float64{1, 0}},
	{"NOT", `SELECT count(*) FROM people WHERE age < 70`, `SELECT count(*) FROM people WHERE NOT hiv AND age < 70`, [2]float64{51, 51}, [2]float64{1, 0}},
	{"both hold her", `SELECT count(*) FROM people WHERE hiv`, `SELECT count(*) FROM people WHERE hiv AND age = 25`, [2]float64{0, 0}, [2]float64{1, 1}},
}

// TestT64Differencing asks pairs of questions at ε each, every one as a user who has asked nothing else. The guess is
// the likelier of the two sides, which is the best that can be made of the answers; and the plain one, by the
// difference. PostgreSQL itself is always right. False alarm: three standard errors of the largest that is allowed,
// 0.13 % a pair that attains it.
func TestT64Differencing(t *testing.T) {
	kit.Beside(t)
	const epsilon = 0.5
	n := kit.Length(60, 1000, 1000)
	l := kit.Lab{Users: n, People: 60, Engine: "postgres", Change: kit.Undeclared}
	with, without := l.Pair(t)
	var probes []kit.Probe
	for _, p := range differencingPairs {
		probes = append(probes, kit.Probe{Name: p.name, SQL: p.one, Epsilon: epsilon, Number: nil}, kit.Probe{Name: p.name, SQL: p.two, Epsilon: epsilon, Number: nil})
	}
	sides, err := kit.DrawnByBoth(with.Program, without.Program, n, probes)
	if err != nil {
		t.Fatal(err)
	}
	raw := rawDifferences(t, with, without)
	worst, most := 0.0, 0.0
	for i, p := range differencingPairs {
		best := func(answers [][]float64) []float64 {
			return sums(answers[2*i:2*i+2], func(k int, x float64) float64 { return likelier(x, p.truth[k]+p.shift[k], p.truth[k], epsilon) })
		}
		plain := func(answers [][]float64) []float64 {
			return sums(answers[2*i:2*i+2], func(k int, x float64) float64 { return (x - p.truth[k]) * float64(1-2*k) })
		}
		right := guessed(best(sides[0]), best(sides[1]), 0)
		most = guessesHeld(t, p.name+", the likelier", right, 2*n, 2*epsilon)
		if p.shift[1] == 0 {
			guessesHeld(t, p.name+", the difference", guessed(plain(sides[0]), plain(sides[1]), 0.5), 2*n, 2*epsilon)
		}
		worst = max(worst, right/float64(2*n))
	}
	threats.Reached(t, "T64", "%d pairs of each of %d forms at ε %g each: right at most %.3f of the time, where %.3f may be; PostgreSQL itself %.0f %%", 2*n, len(differencingPairs), epsilon, worst, most, 100*raw)
}

// rawDifferences is the share of the pairs that PostgreSQL itself answers so that her presence shows.
func rawDifferences(t *testing.T, with, without kit.Side) float64 {
	t.Helper()
	right := 0
	for _, p := range differencingPairs {
		var answers [2][2]float64
		for i, s := range []kit.Side{with, without} {
			conn, err := pgx.Connect(t.Context(), s.Server.URLFor("postgres", s.Database))
			if err != nil {
				t.Fatal(err)
			}
			for k, sql := range []string{p.one, p.two} {
				if err := conn.QueryRow(t.Context(), sql).Scan(&answers[i][k]); err != nil {
					t.Fatal(err)
				}
			}
			conn.Close(t.Context())
		}
		for k := range 2 {
			if answers[1][k] != p.truth[k] || answers[0][k] != p.truth[k]+p.shift[k] {
				t.Fatalf("%s: the truth is %v", p.name, answers)
			}
		}
		right++
	}
	return float64(right) / float64(len(differencingPairs))
}

// TestT66Clones are the two attacks on noise that depends on the question: the same set of people by many conditions
// that change nothing, whose mean would lose the noise; and pairs of which one holds a condition on the attribute that
// she alone has, whose differences would show her by their spread. All at ε 1 together, the guess the likelier side.
func TestT66Clones(t *testing.T) {
	kit.Beside(t)
	const clones = 10
	n := kit.Length(20, 500, 2000)
	l := kit.Lab{Users: 2 * n, People: 60, Keyed: true, Change: kit.Undeclared}
	with, without := l.Pair(t)
	var cloned, paired []kit.Probe
	for i := range clones {
		dummy := fmt.Sprintf("age <> %d AND income <> %d", 100+i, 90_000+1000*(i%9))
		cloned = append(cloned, kit.Probe{Name: "clone", SQL: `SELECT count(*) FROM people WHERE hiv AND ` + dummy, Epsilon: 1.0 / clones, Number: nil})
		if i%2 == 0 {
			paired = append(paired, kit.Probe{Name: "one", SQL: `SELECT count(*) FROM people WHERE age = 25 AND ` + dummy, Epsilon: 1.0 / clones, Number: nil},
				kit.Probe{Name: "other", SQL: `SELECT count(*) FROM people WHERE age = 25 AND NOT hiv AND ` + dummy, Epsilon: 1.0 / clones, Number: nil})
		}
	}
	var right [2]float64
	for k, attack := range [][]kit.Probe{cloned, paired} {
		var scores [2][]float64
		for i, p := range []*kit.Program{with.Program, without.Program} {
			answers, err := drawnFrom(p, k*n, n, attack)
			if err != nil {
				t.Fatal(err)
			}
			scores[i] = sums(answers, func(probe int, x float64) float64 {
				if k == 1 && probe%2 == 1 { // both sides are the same here: it tells by the noise alone, if at all
					return 0
				}
				return likelier(x, 1, 0, 1.0/clones)
			})
		}
		right[k] = guessed(scores[0], scores[1], 0)
		guessesHeld(t, []string{"clones", "differences"}[k], right[k], 2*n, 1)
		if k == 1 {
			spread(t, with.Program, without.Program, n)
		}
	}
	threats.Reached(t, "T66", "right %.3f of the time by %d clones, %.3f by differences, of %d guesses; at most %.3f may be", right[0]/float64(2*n), clones, right[1]/float64(2*n), 2*n, 1/(1+math.Exp(-1)))
}

// drawnFrom is drawnBy for n users from one on.
func drawnFrom(p *kit.Program, first, n int, probes []kit.Probe) ([][]float64, error) {
	numbers := make([][]float64, len(probes))
	for i := range numbers {
		numbers[i] = make([]float64, first+n)
	}
	for u := first; u < first+n; u++ {
		if err := kit.AskedBy(p, u, probes, numbers); err != nil {
			return nil, err
		}
	}
	for i := range numbers {
		numbers[i] = numbers[i][first:]
	}
	return numbers, nil
}

// spread holds that a question asked by several users has independent noise: noise that depends on the question, or on
// the set of people that it counts, would give the same answer twice.
func spread(t *testing.T, with, without *kit.Program, n int) {
	t.Helper()
	for _, p := range []*kit.Program{with, without} {
		equal := 0
		for u := range 40 {
			w, err := dialAs(p, u)
			if err != nil {
				t.Fatal(err)
			}
			a := w.Ask(`SET dp.epsilon = 0.01; SELECT count(*) FROM people WHERE income < 50000`)
			b := w.Ask(`SELECT count(*) FROM people WHERE income < 50000 AND age <> 101`)
			if a.Err != nil || b.Err != nil {
				t.Fatal(a.Err, b.Err)
			}
			if a.Rows[0][0] == b.Rows[0][0] {
				equal++
			}
			w.Conn.Close()
		}
		if equal > 10 { // of 40, each with a probability of about ε/4
			t.Errorf("two questions with the same people have the same noise in %d of 40 times", equal)
		}
	}
}

// changes is what happens to the data between two questions of T68.
var changes = []kit.Probe{
	{Name: "before", SQL: `SELECT count(*) FROM people WHERE hiv`, Epsilon: 0.5, Number: nil},
	{Name: "the same, after", SQL: `SELECT count(*) FROM people WHERE hiv`, Epsilon: 0.5, Number: nil},
	{Name: "another, after", SQL: `SELECT count(*) FROM people WHERE hiv AND age < 100`, Epsilon: 0.5, Number: nil},
}

// TestT68DataThatChange: a person is inserted between two questions. The same question again is the same answer, of the
// data as they were, and free; another one counts her, and is charged. All answers together tell of her by no more than
// was charged, and of one who was there all along by no more than the sum. False alarm: 3 in 100,000.
func TestT68DataThatChange(t *testing.T) {
	kit.Beside(t)
	if testing.Short() {
		t.Skip("thousands of answers")
	}
	n := kit.Length(150, 2000, 50_000)
	l := kit.Lab{Users: n, People: 60, Engine: "postgres", Change: kit.Undeclared, Budgets: kit.Budgets{User: "10", Cap: "900000"}}
	sides := []kit.Side{l.Serve(t, 7), l.Serve(t, 7), l.Serve(t, 0)} // she comes, she stays away, she was there and another comes
	var numbers [3][][]float64
	for i, s := range sides {
		before, err := kit.DrawnBy(s.Program, n, changes[:1])
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			s.Server.Exec(t, s.Database, `INSERT INTO people VALUES (7, 25, 99500, 'xyz', 'Zzyzx', true)`)
		case 2:
			s.Server.Exec(t, s.Database, `INSERT INTO people VALUES (2007, 26, 5, 'n1', 'c0', false)`) // the attacker's row
		}
		after, err := kit.DrawnBy(s.Program, n, changes[1:])
		if err != nil {
			t.Fatal(err)
		}
		numbers[i] = append(before, after...)
		for u := range n {
			if numbers[i][0][u] != numbers[i][1][u] {
				t.Fatalf("user %d heard %g before, and %g of the same question after the data changed", u, numbers[i][0][u], numbers[i][1][u])
			}
		}
		w, err := dialAs(s.Program, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a := w.Ask(`SELECT count(*), sum(cost) FROM dp.charges`); fmt.Sprint(a.Rows) != "[[2 1.0]]" {
			t.Errorf("two releases of ε 0.5 each were bought, the ledger says %v %v", a.Rows, a.Err)
		}
	}
	if n < stattest.LeastAnswers {
		return // what the answers say together is a part of make safety
	}
	total := func(i int) []float64 { // what an attacker who knows all but her makes of the answers
		return sums([][]float64{numbers[i][0], numbers[i][2]}, func(_ int, x float64) float64 { return likelier(x, 1, 0, 0.5) })
	}
	var figures []string
	for _, c := range []struct {
		name       string
		one, other []float64
		epsilon    float64
	}{{"she comes", numbers[0][2], numbers[1][2], 0.5}, {"she comes, by the difference", minus(numbers[0][2], numbers[0][0]), minus(numbers[1][2], numbers[1][0]), 0.5}, {"she was there", total(2), total(1), 1}} {
		bound, err := stattest.Audit{One: c.one, Other: c.other}.Epsilon(kit.BoundsAlarm)
		if err != nil {
			t.Fatal(err)
		}
		figures = append(figures, fmt.Sprintf("%s %.2f of %g", c.name, bound, c.epsilon))
		if bound > c.epsilon {
			t.Errorf("%s: ε is at least %.3f, charged were %g", c.name, bound, c.epsilon)
		}
	}
	threats.Reached(t, "T68", "both charged; ε by %d answers a side, at least: %s", n, strings.Join(figures, ", "))
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] - b[i]
	}
	return out
}

// dialAs connects a probe user.
func dialAs(p *kit.Program, u int) (*kit.Wire, error) {
	conn, err := pgconn.Connect(context.Background(), p.ProbeURL(u))
	if err != nil {
		return nil, err
	}
	raw, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	return &kit.Wire{T: p.T, Conn: raw.Conn, Frontend: raw.Frontend}, nil
}
