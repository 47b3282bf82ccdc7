package online

import (
	"errors"
	"io"
	weak "math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// small is a spec that is easy to drive: 8 cells, 10 updates.
func small(median bool, accountant privacy.Accountant) Spec {
	return Spec{
		Cells: 8, Contribution: privacy.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Rows: 10_000,
		Updates: 10, Restarts: 3, Median: median, Accountant: accountant,
	}
}

func planned(t testing.TB, s Spec, width int64) Plan {
	t.Helper()
	p, err := planFor(s, Target{Width: width, Miss: .01})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func keep([]byte) error { return nil }

func opened(t testing.TB, p Plan, cells []int64, random io.Reader, save func([]byte) error) *Session {
	t.Helper()
	s, err := open(p, nil, cells, random, save)
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

// TestTheCapHalts: after the last hard answer every query is refused by type, the rows are gone, the hypothesis is not.
func TestTheCapHalts(t *testing.T) {
	for _, median := range []bool{false, true} {
		p := planned(t, small(median, privacy.Pure), 100)
		p.threshold = 0 // everything is hard, but for noise
		var steps [][]byte
		session := opened(t, p, skewed, seeded(1), func(step []byte) error {
			steps = append(steps, step)
			return nil
		})
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
			t.Errorf("median %v: %d hard answers, %d left; want 10 and 0", median, hard, last)
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
		if _, err := restore(p, steps, skewed, seeded(1), keep); !errors.As(err, new(*Stopped)) {
			t.Errorf("a spent session was restored: %v", err)
		}
	}
}

// TestAFailedSaveWithholdsTheAnswer: nothing is released, nothing more is answered, and what is restored from the
// last durable state has lost an update for what may have been seen.
func TestAFailedSaveWithholdsTheAnswer(t *testing.T) {
	p := planned(t, small(false, privacy.Pure), 100)
	p.threshold = -1_000_000 // everything is hard
	broken := errors.New("disk full")
	var durable [][]byte
	save := func(step []byte) error {
		durable = append(durable, step)
		return nil
	}
	session := opened(t, p, skewed, seeded(1), func(step []byte) error {
		if len(durable) == 2 {
			return broken
		}
		return save(step)
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
	if n := len(session.Told()); n != 2 {
		t.Errorf("the state tells of %d answers, want the 2 that were given", n)
	}
	restored, err := restore(p, durable, skewed, seeded(2), save)
	if err != nil {
		t.Fatal(err)
	}
	if len(durable) != 3 || restored.state.restarts != 1 || restored.left() != 10-2-1 {
		t.Errorf("%d steps, %d restarts, %d left, want 3, 1 and 7", len(durable), restored.state.restarts, restored.left())
	}
}

// TestNoLifeGivesMoreThanTheCap kills and restores at random moments, also between a save and its answer, and
// counts what is seen: hard answers and restarts never exceed the updates, and guesses are those of an unbroken
// transcript.
func TestNoLifeGivesMoreThanTheCap(t *testing.T) {
	for _, median := range []bool{false, true} {
		for stream := range byte(5) {
			p := planned(t, small(median, privacy.ZCDP), 150)
			random := weak.New(generator(stream))
			var disk [][]byte
			save := func(step []byte) error { disk = append(disk, step); return nil }
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
				if random.IntN(30) > 0 || len(disk) == 0 {
					continue
				}
				before, err := session.Guess(q)
				if err != nil {
					t.Fatal(err)
				}
				next, err := restore(p, disk, skewed, random16(random), save)
				if err != nil {
					break
				}
				restarts++
				session = next
				if after, err := session.Guess(q); err != nil || after != before {
					t.Fatalf("median %v: the guess was %d, restored %d (%v)", median, before, after, err)
				}
			}
			if hard+restarts > 10 || restarts > 3 || session.state.used() != hard+restarts {
				t.Errorf("seed %q %d: %d hard answers and %d restarts of 10 updates, %d counted", seed, stream, hard, restarts, session.state.used())
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
	p := planned(t, small(false, privacy.Pure), 200)
	plain, disturbed := opened(t, p, skewed, seeded(5), keep), opened(t, p, skewed, seeded(5), keep)
	random := weak.New(generator(6))
	for range 40 {
		for _, bad := range []Query{{}, only(t, 9, 1)} {
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
		p := planned(t, small(false, accountant), 100)
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
	for _, median := range []bool{false, true} {
		s := small(median, privacy.Pure)
		s.Rows, s.Spare, s.Updates = 6_000, 8_000, 40
		p := planned(t, s, 500)
		session := opened(t, p, skewed, seeded(1), keep)
		everything := only(t, 8, 0, 1, 2, 3, 4, 5, 6, 7)
		if _, err := session.Answer(everything); err != nil {
			t.Fatal(err)
		}
		if guess, err := session.Guess(everything); err != nil || guess < 9_500 || guess > 10_500 {
			t.Errorf("median %v: 10000 rows are guessed to be %d (%v)", median, guess, err)
		}
	}
}

// TestMemoAsksOnce: the second time is free and the same, also after the end.
func TestMemoAsksOnce(t *testing.T) {
	p := planned(t, small(false, privacy.Pure), 100)
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
	if _, err := open(Plan{}, nil, skewed, seeded(1), keep); err == nil {
		t.Error("zero plan opened")
	}
	if _, err := (Plan{}).Cost(); err == nil || (Plan{}).Width(.1) != 0 {
		t.Error("zero plan has a cost")
	}
	p := planned(t, small(false, privacy.Pure), 100)
	hard := Entry{Query: only(t, 8, 0), Value: 3}
	if _, err := p.Open([][]byte{hard.step()}, privacy.Seal(skewed), seeded(1), keep); err == nil {
		t.Error("a session that goes on without a restart")
	}
	if _, err := p.Open(nil, privacy.Sensitive[[]int64]{}, seeded(1), keep); err == nil {
		t.Error("unsealed truth opened")
	}
	if _, err := open(p, nil, skewed, seeded(1), nil); err == nil {
		t.Error("nothing saves the steps")
	}
	if _, err := restore(Plan{}, nil, skewed, seeded(1), keep); err == nil {
		t.Error("zero plan restored")
	}
	if _, err := better(Plan{}, .1); err == nil {
		t.Error("zero plan compared")
	}
	short := opened(t, p, []int64{-5, 1 << 62, 3}, seeded(1), keep) // cells are made valid, never refused
	if _, err := short.Answer(only(t, 8, 0, 1, 2, 7)); err != nil {
		t.Error(err)
	}
}
