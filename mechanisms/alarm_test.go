package mechanisms

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// sealedCount are the groups of a count, at one place.
func sealedCount(n int64) privacy.Sensitive[[]privacy.Group] {
	return privacy.Seal([]privacy.Group{{Counts: []int64{n}}})
}

func onePlace([]int32, int) int { return 0 }

func alarmSpec(t *testing.T, positives int, kind privacy.Neighbors, cost privacy.Cost) Spec {
	t.Helper()
	s, err := NewAlarm(AlarmFor(positives, Contribution{Rows: 2, Neighbors: kind}, cost))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRunsOfAlarms: clear answers, the end at the last yes, and a step before each yes alone.
func TestRunsOfAlarms(t *testing.T) {
	s := alarmSpec(t, 2, privacy.AddRemove, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	confidence, _ := NewConfidence(.999999)
	margin := s.Margin(confidence)
	var steps [][]byte
	w, err := Open(s, nil, privacy.Sensitive[[]privacy.Group]{}, rand.NewChaCha8([32]byte{4}), func(step []byte) error { steps = append(steps, step); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 0 {
		t.Error("opening takes a step")
	}
	ask := func(w Live, n int64) bool {
		t.Helper()
		a, err := w.Answer(Question{Place: onePlace, Groups: sealedCount(n), Least: 500})
		if err != nil {
			t.Fatal(err)
		}
		return a.Value().Value != 0
	}
	for range 200 {
		if ask(w, 500-margin) {
			t.Fatal("a count far below is a yes")
		}
	}
	if len(steps) != 0 || w.Left() != 2 {
		t.Errorf("a no took a step: %d steps, %d left", len(steps), w.Left())
	}
	if !ask(w, 500+margin) || len(steps) != 1 || w.Left() != 1 {
		t.Errorf("a yes: %d steps, %d left", len(steps), w.Left())
	}
	for _, test := range []struct {
		restored bool
		left     int
	}{{false, 1}, {true, 0}} {
		if left, err := s.LeftAfter(steps, test.restored); err != nil || left != test.left {
			t.Errorf("restored %v: %d left (%v), want %d", test.restored, left, err, test.left)
		}
	}
	if _, err := Restore(s, steps, nil, privacy.Sensitive[[]privacy.Group]{}, rand.NewChaCha8([32]byte{5}), func([]byte) error { return nil }); !errors.Is(err, ErrAlarmsSpent) {
		t.Errorf("a restart takes the last yes: %v", err)
	}
	if !ask(w, 500+margin) || w.Left() != 0 {
		t.Error("the last yes is not said")
	}
	if _, err := w.Answer(Question{Place: onePlace, Groups: sealedCount(9000), Least: 500}); !errors.Is(err, ErrAlarmsSpent) {
		t.Errorf("after the end: %v", err)
	}
}

// TestRunsGoOn: a restart saves its step first and takes a yes; a step that cannot be saved withholds the answer.
func TestRunsGoOn(t *testing.T) {
	for name, cost := range map[string]privacy.Cost{"ε": {Epsilon: privacy.MicroEpsilon(1_000_000)}, "ρ": {Rho: privacy.PicoRho(500_000_000_000)}} {
		s := alarmSpec(t, 3, privacy.ReplaceOne, cost)
		var steps [][]byte
		save := func(step []byte) error { steps = append(steps, step); return nil }
		w, err := Restore(s, nil, nil, privacy.Sensitive[[]privacy.Group]{}, rand.NewChaCha8([32]byte{6}), save)
		if err != nil || len(steps) != 1 || w.Left() != 2 {
			t.Fatalf("%s: %v, %d steps", name, err, len(steps))
		}
		if left, err := s.LeftAfter(steps, false); err != nil || left != 2 {
			t.Errorf("%s: %d left (%v), want 2", name, left, err)
		}
		w, err = Restore(s, nil, nil, privacy.Sensitive[[]privacy.Group]{}, rand.NewChaCha8([32]byte{6}), func(step []byte) error {
			if len(step) > 0 && step[0] > 1 {
				return errors.New("disk full")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Answer(Question{Place: onePlace, Groups: sealedCount(1 << 20), Least: 5}); err == nil || w.Left() != 0 {
			t.Errorf("%s: a yes is said that was not saved", name)
		}
	}
	s := alarmSpec(t, 3, privacy.AddRemove, privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)})
	for _, steps := range [][][]byte{{nil}, {{1}}, {{1, 2, 3}}, {{0x80, 0x80}}} {
		if _, err := s.LeftAfter(steps, false); err == nil {
			t.Errorf("step %v is read", steps[0])
		}
	}
	if left, err := s.LeftAfter([][]byte{{1, 2}}, true); err != nil || left != 0 {
		t.Errorf("a second restart: %d left (%v), want 0: one is paid for", left, err)
	}
}

// TestAlarmsKeepTheirClaim: the yes and no answers to a stream of counts that one unit moves by all it can, at ε = 1; a
// run that was paid for half of that moves them further. Each audit accuses a right mechanism with probability at most
// 1e-6.
func TestAlarmsKeepTheirClaim(t *testing.T) {
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}
	for _, kind := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		s := alarmSpec(t, 2, kind, cost)
		one, other := []int64{3, 5, 4, 6}, []int64{5, 7, 6, 8}
		if kind == privacy.ReplaceOne {
			other = []int64{5, 3, 6, 4}
		}
		if bound := alarmsOften(t, s, one, other, audits); bound > 1 || bound < .15 {
			t.Errorf("%v: ε is at least %.3f, must be at most 1 and not far below", kind, bound)
		}
		s.Kind.(*Alarm).Cost.Epsilon = privacy.MicroEpsilon(4_000_000) // noise of a fourth
		if bound := alarmsOften(t, s, one, other, audits); bound <= 1 {
			t.Errorf("%v: no more than %.3f was found", kind, bound)
		}
	}
}

// alarmsOften bounds ε from below by the outcomes of many runs on two streams.
func alarmsOften(t *testing.T, s Spec, one, other []int64, runs int) float64 {
	t.Helper()
	random := seeded(37)
	sample := func(stream []int64) []int {
		out := make([]int, runs)
		for i := range out {
			w, err := Open(s, nil, privacy.Sensitive[[]privacy.Group]{}, random, func([]byte) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range stream {
				out[i] *= 3
				switch a, err := w.Answer(Question{Place: onePlace, Groups: sealedCount(n), Least: 5}); {
				case err != nil:
					out[i] += 2 // it has ended
				case a.Value().Value != 0:
					out[i]++
				}
			}
		}
		return out
	}
	bound, err := stattest.Choices{One: sample(one), Other: sample(other)}.Epsilon(auditAlarm)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}
