package online

import (
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// auditAlarm is for one audit: a session that keeps its claim is accused with at most this probability.
const auditAlarm = 1e-6

// The neighbours are 9 and 10 rows in the first of two cells; guesses for 13 rows are 7 and 13, so that the gap of the
// first cell grows from 2 to 3 and that of both cells shrinks from 4 to 3.
var auditOne, auditOther = []int64{9, 0}, []int64{10, 0}

// transcript is what an analyst sees who asks for the first cell many times and then for both: how many of the first
// were easy, and what the hard answers were.
type transcript struct {
	easy  int
	hards []int64
}

// judged turns transcripts into the number that the audit looks at: 0 if one of the early queries was hard; otherwise
// the more, the lower the hard answers, which on the first database are one lower. They are cut where nothing is to be
// learned.
func (r transcript) judged(asked int) float64 {
	if r.easy < asked || len(r.hards) == 0 {
		return 0
	}
	score := 1.0
	for _, v := range r.hards {
		if v <= 9 {
			score += 1
		}
	}
	return score + 10*float64(len(r.hards))
}

// asks is the analyst, before a session or a faulty one.
func asks(q0, q01 Query, early, late int, answer func(q Query) (Answer, error)) transcript {
	r := transcript{}
	for i := range early + late {
		q := q0
		if i >= early {
			q = q01
		}
		a, err := answer(q)
		if err != nil {
			return r
		}
		if a.Hard {
			r.hards = append(r.hards, a.Value)
		} else if i < early {
			r.easy++
		}
		if a.Hard && i < early {
			return r
		}
	}
	return r
}

// audited compares transcripts on the neighbours. open makes a new session for one of them.
func audited(t *testing.T, answers int, delta float64, judge func(transcript) float64, early, late int, open func(cells []int64) func(Query) (Answer, error)) float64 {
	t.Helper()
	first, both := only(t, 2, 0), only(t, 2, 0, 1)
	sample := func(cells []int64) []float64 {
		scores := make([]float64, answers)
		for i := range scores {
			scores[i] = judge(asks(first, both, early, late, open(cells)))
		}
		return scores
	}
	bound, err := stattest.Audit{One: sample(auditOne), Other: sample(auditOther), Delta: delta}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

func sessions(t *testing.T, p Plan, stream byte) func(cells []int64) func(Query) (Answer, error) {
	random := seeded(stream)
	return func(cells []int64) func(Query) (Answer, error) {
		session, err := open(p, nil, cells, random, keep)
		if err != nil {
			t.Fatal(err)
		}
		return func(q Query) (Answer, error) {
			a, err := session.Answer(q)
			if err != nil {
				return Answer{}, err
			}
			return a.Value(), nil
		}
	}
}

// TestAuditOfSessions: the audit finds no more than is paid. Two alarms of 1e-6 each.
func TestAuditOfSessions(t *testing.T) {
	p := handmade(t, 1, 1, 13, micros(1_000_000, 1_000_000, 1_000_000))
	cost, err := p.Cost()
	if err != nil {
		t.Fatal(err)
	}
	judge := func(r transcript) float64 { return r.judged(3) }
	bound := audited(t, stattest.Length(30_000, 1_000_000), 0, judge, 3, 1, sessions(t, p, 5))
	t.Logf("pure: epsilon at least %.3f of %s", bound, cost)
	if bound > cost.Epsilon.Float() {
		t.Errorf("seed %q: epsilon is at least %.3f, paid %s", seed, bound, cost)
	}
	if bound < .3*cost.Epsilon.Float() {
		t.Errorf("seed %q: the audit found %.3f of %s: it is blind", seed, bound, cost)
	}
	p.spec.Accountant = privacy.ZCDP
	p.split = split{privacy.MicroEpsilon(100_000), privacy.MicroEpsilon(100_000), privacy.Epsilon{}, privacy.PicoRho(500e9)}
	if cost, err = p.Cost(); err != nil {
		t.Fatal(err)
	}
	converted := stattest.LeastEpsilon(cost.Rho, privacy.AttoDelta(1e16)) // δ = 0.01
	judge = func(r transcript) float64 {
		if len(r.hards) == 0 {
			return -100
		}
		return float64(-r.hards[0])
	}
	bound = audited(t, stattest.Length(40_000, 1_000_000), .01, judge, 0, 1, sessions(t, p, 6))
	t.Logf("zcdp: epsilon at least %.3f of %v at δ 0.01", bound, converted)
	if bound > converted.Float() {
		t.Errorf("seed %q: epsilon is at least %.3f, paid %v", seed, bound, converted)
	}
}

// TestAuditOfAnswers: with next to nothing spent on the bits, the audit of the answer is sharp enough to see a
// sensitivity that is off by 1.2. One alarm of 1e-6.
func TestAuditOfAnswers(t *testing.T) {
	judge := func(r transcript) float64 { return r.judged(0) }
	for _, c := range []struct {
		name   string
		answer int64
		caught bool
	}{{"kept", 1_000_000, false}, {"off by 1.2", 1_200_000, true}} {
		p := handmade(t, 1, 0, 13, micros(10_000, 10_000, c.answer))
		bound := audited(t, stattest.Length(90_000, 1_000_000), 0, judge, 0, 1, sessions(t, p, 7))
		t.Logf("%s: epsilon at least %.3f of 1.02", c.name, bound)
		if caught := bound > 1.02; caught != c.caught {
			t.Errorf("seed %q: a sensitivity that is %s: epsilon is at least %.3f of 1.02", seed, c.name, bound)
		}
	}
}

// faulty is a session with a planted fault, over the same instance.
func faulty(t *testing.T, p Plan, stream byte, fault func(n *instance, y int64), answer func(sum, guess, noisyGap, fresh int64) int64, halt bool) func(cells []int64) func(Query) (Answer, error) {
	random := noise.NewReader(seeded(stream))
	return func(cells []int64) func(Query) (Answer, error) {
		s, err := p.sources()
		if err != nil {
			t.Fatal(err)
		}
		n, w, done := &instance{sources: s, above: p.threshold}, newWeights(p), false
		return func(q Query) (Answer, error) {
			if done {
				return Answer{}, &Stopped{Spent}
			}
			y, err := n.draw(random)
			if err != nil {
				t.Fatal(err)
			}
			if fault != nil {
				fault(n, y)
				y = 0
			}
			sum, guess := q.sum(cells), w.value(q)
			gap := max(sum-guess, guess-sum)
			if !n.hard(gap, y) {
				return Answer{Value: guess}, nil
			}
			done = halt
			return Answer{Value: answer(sum, guess, gap+y, n.take()), Hard: true}, nil
		}
	}
}

// TestAuditCatchesFaults plants what the notes and the literature got wrong, with the scales of the proof.
func TestAuditCatchesFaults(t *testing.T) {
	fresh := func(sum, _, _, fresh int64) int64 { return sum + fresh }
	even := micros(1_000_000, 1_000_000, 1_000_000)
	const early = 60
	for _, c := range []struct {
		name        string
		early, late int
		claim       float64
		judge       func(transcript) float64
		open        func(cells []int64) func(Query) (Answer, error)
	}{
		// The lecture notes' Sparse: the compared noisy value is the answer. A low one, after many easy queries, tells
		// that the threshold's noise was as low all the time, and so how unlikely they were to be easy.
		{"the compared value answered", early, 30, 2.31, func(r transcript) float64 {
			if r.easy < early || len(r.hards) == 0 {
				return -100
			}
			return float64(13 - r.hards[0])
		}, faulty(t, handmade(t, 1, 4, 13, micros(300_000, 2_000_000, 10_000)), 8, nil, func(_, guess, noisyGap, _ int64) int64 { return guess + noisyGap }, true)},
		{"comparisons without noise", 1, 1, 3, func(r transcript) float64 { return r.judged(1) },
			faulty(t, handmade(t, 1, 3, 13, even), 9, func(*instance, int64) {}, fresh, true)},
		{"no stop after the cap", 0, 12, 3, func(r transcript) float64 {
			low := 0.0
			for _, v := range r.hards {
				if v <= 9 {
					low++
				}
			}
			return low
		}, faulty(t, handmade(t, 1, -20, 13, even), 10, nil, fresh, false)},
	} {
		bound := audited(t, stattest.Length(120_000, 1_000_000), 0, c.judge, c.early, c.late, c.open)
		t.Logf("%s: epsilon at least %.3f of %.3f", c.name, bound, c.claim)
		if bound <= c.claim {
			t.Errorf("seed %q: %s passed: epsilon at least %.3f of %.3f", seed, c.name, bound, c.claim)
		}
	}
}
