package online

import (
	"errors"
	"io"
	"math"
	weak "math/rand/v2"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// small is a spec that is easy to drive: 8 cells, 10 updates.
func small(rule Rule, accountant privacy.Accountant) Spec {
	return Spec{
		Cells: 8, Grid: 1, Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Rows: 10_000,
		Updates: 10, Restarts: 3, Rule: rule, Accountant: accountant,
	}
}

func planned(t testing.TB, s Spec, width int64) Plan {
	t.Helper()
	p, err := PlanFor(s, Target{Width: width, Miss: .01})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var keep Checkpoint = func(State) error { return nil }

func opened(t testing.TB, p Plan, cells []int64, random io.Reader, checkpoint Checkpoint) *Session {
	t.Helper()
	s, err := Open(p, privacy.Seal(cells), random, checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// skewed rows, far from even.
var skewed = []int64{5000, 10, 2000, 40, 1500, 0, 900, 550}

func randomQuery(t testing.TB, cells int, random *weak.Rand) Query {
	t.Helper()
	q, err := Members(cells, func(int) bool { return random.IntN(2) == 0 })
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// naive is the dense twin: private multiplicative weights as one would write it on a blackboard, with maps and big steps,
// on the same noise.
type naive struct {
	rows, threshold, left  int64
	belief                 map[int]float64
	step, slab             float64
	random                 *noise.Reader
	d                      sources
	z, answer              int64
	haveZ, haveAnswer, end bool
	zcdp                   bool
	told                   []func(i int) bool
	tolds                  []float64
}

func newNaive(t *testing.T, p Plan, random io.Reader) *naive {
	t.Helper()
	d, err := p.sources()
	if err != nil {
		t.Fatal(err)
	}
	n := &naive{
		rows: p.spec.Rows, threshold: p.threshold, left: int64(p.spec.Updates), belief: map[int]float64{},
		random: noise.NewReader(random), d: d, zcdp: p.spec.Accountant == privacy.ZCDP,
		slab: .2 * p.width / float64(p.spec.Rows),
	}
	if p.spec.Rule == TheoryStep {
		n.step = p.width / float64(p.spec.Rows) / 8
	}
	for i := range p.spec.Cells {
		n.belief[i] = 1 / float64(p.spec.Cells)
	}
	return n
}

func (n *naive) believes(in func(int) bool) float64 {
	sum := 0.0
	for i := range len(n.belief) {
		if in(i) {
			sum += n.belief[i]
		}
	}
	return sum
}

// odds moves the belief in in to target, everything else in proportion.
func (n *naive) odds(in func(int) bool, target float64) {
	target = min(max(target, .25/float64(n.rows)), 1-.25/float64(n.rows))
	now := n.believes(in)
	if now <= 0 || now >= 1 {
		return
	}
	for i := range n.belief {
		if in(i) {
			n.belief[i] *= target / now
		} else {
			n.belief[i] *= (1 - target) / (1 - now)
		}
	}
}

func (n *naive) learn(in func(int) bool, told float64) {
	if n.step > 0 {
		sign := 1.0
		if told < n.believes(in) {
			sign = -1
		}
		total := 0.0
		for i := range n.belief {
			if in(i) {
				n.belief[i] *= math.Exp(sign * n.step)
			}
			total += n.belief[i]
		}
		for i := range n.belief {
			n.belief[i] /= total
		}
		return
	}
	n.told, n.tolds = append(n.told, in), append(n.tolds, told)
	n.odds(in, told)
	for range passes {
		moved := false
		for j, f := range n.told {
			now := n.believes(f)
			if off := now - n.tolds[j]; off > n.slab*(1+1e-6) {
				n.odds(f, n.tolds[j]+n.slab)
				moved = true
			} else if off < -n.slab*(1+1e-6) {
				n.odds(f, n.tolds[j]-n.slab)
				moved = true
			}
		}
		if !moved {
			return
		}
	}
}

func (n *naive) ask(cells []int64, in func(int) bool) (value int64, hard, ok bool) {
	if n.end {
		return 0, false, false
	}
	if !n.haveZ {
		n.z, n.haveZ = n.d.threshold.Sample(n.random), true
	}
	if !n.haveAnswer {
		n.answer, n.haveAnswer = n.d.answer.Sample(n.random), true
	}
	y := n.d.comparison.Sample(n.random)
	truth := int64(0)
	for i, c := range cells {
		if in(i) {
			truth += c
		}
	}
	guess := int64(math.Round(min(n.believes(in), 1) * float64(n.rows)))
	if float64(max(truth-guess, guess-truth)+y) < float64(n.threshold+n.z) {
		return guess, false, true
	}
	value = truth + n.answer
	n.haveAnswer = false
	if n.zcdp {
		n.haveZ = false
	}
	n.left--
	n.end = n.left == 0
	n.learn(in, float64(value)/float64(n.rows))
	return value, true, true
}

// TestSessionsEqualTheNaiveTwin: answer for answer, until both stop, over rules, accountants and seeds.
func TestSessionsEqualTheNaiveTwin(t *testing.T) {
	for _, rule := range []Rule{TheoryStep, Projection} {
		for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
			hards, easies := 0, 0
			for stream := range byte(20) {
				s := small(rule, accountant)
				s.Restarts, s.Updates = 0, 40
				p := planned(t, s, 1000)
				session, twin := opened(t, p, skewed, seeded(stream), nil), newNaive(t, p, seeded(stream))
				random := weak.New(generator(stream + 100))
				for i := range 150 {
					q := randomQuery(t, 8, random)
					in := func(i int) bool { return q.weight(i, 1) == 1 }
					value, hard, ok := twin.ask(skewed, in)
					a, err := session.Answer(q)
					if (err == nil) != ok || ok && (a.Value().Value != value || a.Value().Hard != hard) {
						t.Fatalf("%s, %s, seed %q %d: query %d is answered %v (%v), the twin says %d, %v, %v", rule, accountant, seed, stream, i, a, err, value, hard, ok)
					}
					if hard {
						hards++
					} else if ok {
						easies++
					}
				}
			}
			if hards < 50 || easies < 50 {
				t.Errorf("%s, %s: %d hard and %d easy answers show little", rule, accountant, hards, easies)
			}
		}
	}
}

// TestTheCapHalts: after the last hard answer every query is refused by type, the rows are gone, the hypothesis is not.
func TestTheCapHalts(t *testing.T) {
	for _, rule := range []Rule{TheoryStep, Projection, Median} {
		p := planned(t, small(rule, privacy.Pure), 100)
		p.threshold = 0 // everything is hard, but for noise
		session := opened(t, p, skewed, seeded(1), keep)
		random := weak.New(generator(2))
		hard, last := 0, 10
		for range 1000 {
			a, err := session.Answer(randomQuery(t, 8, random))
			if stopped := (*Stopped)(nil); errors.As(err, &stopped) {
				if stopped.Reason != Spent {
					t.Errorf("stopped because %s", stopped)
				}
				break
			}
			if a.Value().Hard {
				hard++
			}
			if last = a.Value().Left; last != 10-hard {
				t.Fatalf("%d hard answers, %d left of 10", hard, last)
			}
		}
		if hard != 10 || last != 0 {
			t.Errorf("%s: %d hard answers, %d left; want 10 and 0", rule, hard, last)
		}
		if session.truth.Valid() || session.instance.z.Valid() || session.instance.answer.Valid() {
			t.Error("a stopped session still holds rows or noise")
		}
		if _, err := session.Answer(only(t, 8, 1)); err == nil {
			t.Error("a spent session answered")
		}
		if _, err := session.Guess(only(t, 8, 1)); err != nil {
			t.Error(err)
		}
		if _, err := Restore(p, session.State(), privacy.Seal(skewed), seeded(1), keep); !errors.As(err, new(*Stopped)) {
			t.Errorf("a spent session was restored: %v", err)
		}
	}
}

// TestAFailedCheckpointWithholdsTheAnswer: nothing is told, nothing more is answered, and what is restored from the last
// durable state has lost an update for what may have been seen.
func TestAFailedCheckpointWithholdsTheAnswer(t *testing.T) {
	p := planned(t, small(Projection, privacy.Pure), 100)
	p.threshold = -1_000_000 // everything is hard
	broken := errors.New("disk full")
	var durable State
	calls := 0
	session := opened(t, p, skewed, seeded(1), func(s State) error {
		if calls++; calls == 3 {
			return broken
		}
		durable = s
		return nil
	})
	for i := range 3 {
		a, err := session.Answer(only(t, 8, i))
		stopped := (*Stopped)(nil)
		if i < 2 && (err != nil || !a.Value().Hard) || i == 2 && (!errors.Is(err, broken) || !errors.As(err, &stopped) || stopped.Reason != Undurable || a.Valid()) {
			t.Fatalf("answer %d: %v, %v", i, a, err)
		}
	}
	if _, err := session.Answer(only(t, 8, 1)); !errors.As(err, new(*Stopped)) {
		t.Error(err)
	}
	restored, err := Restore(p, durable, privacy.Seal(skewed), seeded(2), func(s State) error { durable = s; return nil })
	if err != nil {
		t.Fatal(err)
	}
	if durable.Restarts() != 1 || restored.left() != 10-2-1 {
		t.Errorf("%d restarts, %d left, want 1 and 7", durable.Restarts(), restored.left())
	}
	if _, err := Restore(p, durable, privacy.Seal(skewed), seeded(2), func(State) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("restored without a durable state: %v", err)
	}
}

// TestNoLifeGivesMoreThanTheCap kills and restores at random moments, also between a checkpoint and its answer, and counts
// what is seen: hard answers and restarts never exceed the updates, and guesses are those of an unbroken transcript.
func TestNoLifeGivesMoreThanTheCap(t *testing.T) {
	for _, rule := range []Rule{TheoryStep, Projection, Median} {
		for stream := range byte(5) {
			p := planned(t, small(rule, privacy.ZCDP), 150)
			random := weak.New(generator(stream))
			var disk []byte
			save := func(s State) error { disk = s.Encode(); return nil }
			session := opened(t, p, skewed, random16(random), save)
			hard, restarts := 0, 0
			for range 300 {
				q := randomQuery(t, 8, random)
				a, err := session.Answer(q)
				if err != nil {
					break
				}
				if a.Value().Hard {
					hard++
				}
				if random.IntN(30) > 0 || disk == nil {
					continue
				}
				state, err := DecodeState(disk)
				if err != nil {
					t.Fatal(err)
				}
				before, err := session.Guess(q)
				if err != nil {
					t.Fatal(err)
				}
				next, err := Restore(p, state, privacy.Seal(skewed), random16(random), save)
				if err != nil {
					break
				}
				restarts++
				session = next
				if after, err := session.Guess(q); err != nil || after != before {
					t.Fatalf("%s: the guess was %d, restored %d (%v)", rule, before, after, err)
				}
			}
			if hard+restarts > 10 || restarts > 3 || session.State().used() != hard+restarts {
				t.Errorf("seed %q %d: %d hard answers and %d restarts of 10 updates, %d counted", seed, stream, hard, restarts, session.State().used())
			}
		}
	}
}

func random16(r *weak.Rand) io.Reader {
	key := [32]byte{}
	for i := range key {
		key[i] = byte(r.Uint32())
	}
	return weak.NewChaCha8(key)
}

// TestRefusedQueriesChangeNothing: between the same queries, some that do not fit draw no noise and cost nothing.
func TestRefusedQueriesChangeNothing(t *testing.T) {
	p := planned(t, small(Projection, privacy.Pure), 200)
	plain, disturbed := opened(t, p, skewed, seeded(5), keep), opened(t, p, skewed, seeded(5), keep)
	heavy, err := Weights([]uint32{2, 0, 0, 0, 0, 0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	random := weak.New(generator(6))
	for range 40 {
		for _, bad := range []Query{{}, only(t, 9, 1), heavy} {
			if _, err := disturbed.Answer(bad); err == nil {
				t.Fatal("a query that does not fit was answered")
			}
			if _, err := disturbed.Guess(bad); err == nil {
				t.Fatal("a query that does not fit was guessed")
			}
		}
		q := randomQuery(t, 8, random)
		a, errA := plain.Answer(q)
		b, errB := disturbed.Answer(q)
		if (errA == nil) != (errB == nil) || a != b {
			t.Fatalf("%v (%v), disturbed %v (%v)", a, errA, b, errB)
		}
	}
}

// TestSourcesThatEnd: whatever byte the source fails at, there is an error and no answer, and the end is final.
func TestSourcesThatEnd(t *testing.T) {
	for _, accountant := range []privacy.Accountant{privacy.Pure, privacy.ZCDP} {
		p := planned(t, small(Projection, accountant), 100)
		p.threshold = 0
		for length := int64(0); length < 6000; length += 509 {
			session := opened(t, p, skewed, io.LimitReader(seeded(1), length), keep)
			ended := false
			for i := range 200 {
				_, err := session.Answer(only(t, 8, i%8))
				stopped := (*Stopped)(nil)
				if ended && !errors.As(err, &stopped) {
					t.Fatal("answered after the end")
				}
				ended = ended || errors.As(err, &stopped)
			}
			if !ended {
				t.Errorf("%d bytes lasted", length)
			}
		}
	}
}

// TestSpareRows: where fewer rows are expected than there are, the further cell lets the hypothesis learn the total.
func TestSpareRows(t *testing.T) {
	for _, rule := range []Rule{Projection, Median} {
		s := small(rule, privacy.Pure)
		s.Rows, s.Spare, s.Updates = 6_000, 8_000, 40
		p := planned(t, s, 500)
		session := opened(t, p, skewed, seeded(1), keep)
		everything := only(t, 8, 0, 1, 2, 3, 4, 5, 6, 7)
		if _, err := session.Answer(everything); err != nil {
			t.Fatal(err)
		}
		if guess, err := session.Guess(everything); err != nil || guess < 9_500 || guess > 10_500 {
			t.Errorf("%s: 10000 rows are guessed to be %d (%v)", rule, guess, err)
		}
	}
}

// TestEarlierAnswersAreLearned: a new session begins where an older one ended.
func TestEarlierAnswersAreLearned(t *testing.T) {
	p := planned(t, small(Projection, privacy.Pure), 200)
	first := opened(t, p, skewed, seeded(1), keep)
	random := weak.New(generator(3))
	for range 100 {
		if _, err := first.Answer(randomQuery(t, 8, random)); err != nil {
			break
		}
	}
	told := first.State().Entries()
	second, err := Open(p, privacy.Seal(skewed), seeded(2), keep, told...)
	if err != nil {
		t.Fatal(err)
	}
	if second.left() != 10 || len(told) == 0 || !slices.Equal(first.hypothesis.(*weights).p, second.hypothesis.(*weights).p) {
		t.Errorf("%d left, learned %d", second.left(), len(told))
	}
	decoded, err := DecodeState(second.State().Encode())
	if err != nil || decoded.used() != 0 || len(decoded.Entries()) != len(told) {
		t.Error(decoded, err)
	}
}

// TestMemoAsksOnce: the second time is free and the same, also after the end.
func TestMemoAsksOnce(t *testing.T) {
	p := planned(t, small(Projection, privacy.Pure), 100)
	p.threshold = -1_000_000
	session := opened(t, p, skewed, seeded(1), keep)
	memo, err := NewMemo(session, 5)
	if err != nil {
		t.Fatal(err)
	}
	first, err := memo.Answer(only(t, 8, 0))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if again, err := memo.Answer(only(t, 8, 0)); err != nil || again != first {
			t.Fatalf("%v, then %v (%v)", first, again, err)
		}
		_, err := memo.Answer(only(t, 8, 1+i%7))
		if (err != nil) != (session.left() == 0) && i < 5 {
			t.Fatal(err)
		}
	}
	if _, err := NewMemo(nil, 5); err == nil {
		t.Error("a memo before nothing")
	}
	if _, err := NewMemo(session, 0); err == nil {
		t.Error("a memo of nothing")
	}
}

func TestUnmadeValuesAreRefused(t *testing.T) {
	if _, err := Open(Plan{}, privacy.Seal(skewed), seeded(1), nil); err == nil {
		t.Error("zero plan opened")
	}
	if _, err := (Plan{}).Cost(); err == nil || (Plan{}).Width(.1) != 0 {
		t.Error("zero plan has a cost")
	}
	p := planned(t, small(Projection, privacy.Pure), 100)
	if _, err := Open(p, privacy.Sensitive[[]int64]{}, seeded(1), keep); err == nil {
		t.Error("unsealed truth opened")
	}
	if _, err := Open(p, privacy.Seal(skewed), seeded(1), nil); err == nil {
		t.Error("restarts without a checkpoint")
	}
	if _, err := Restore(p, State{}, privacy.Seal(skewed), seeded(1), keep); err == nil {
		t.Error("zero state restored")
	}
	if _, err := Restore(Plan{}, State{}, privacy.Seal(skewed), seeded(1), keep); err == nil {
		t.Error("zero plan restored")
	}
	if _, err := Better(Plan{}, .1); err == nil {
		t.Error("zero plan compared")
	}
	short := opened(t, p, []int64{-5, 1 << 62, 3}, seeded(1), keep) // cells are made valid, never refused
	if _, err := short.Answer(only(t, 8, 0, 1, 2, 7)); err != nil {
		t.Error(err)
	}
}
