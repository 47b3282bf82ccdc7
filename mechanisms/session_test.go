package mechanisms

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/histograms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

func onlineSpec(t testing.TB, rule OnlineRule, updates int, epsilon int64) Spec {
	t.Helper()
	s, err := NewOnline(Online{Rule: rule, Contribution: Contribution{Rows: 1, Neighbors: privacy.AddRemove}, Rows: 40, Spare: 40, Updates: updates,
		Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(epsilon)}}, 4)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// byCell is the placement of groups that are cells.
func byCell(cells []int32, _ int) int { return int(cells[0]) }

func cellGroups(counts ...int64) []privacy.Group {
	groups := make([]privacy.Group, len(counts))
	for i, n := range counts {
		groups[i] = privacy.Group{Cells: []int32{int32(i)}, Counts: []int64{n}}
	}
	return groups
}

// TestSessionsGoOnFromTheirSteps: hard answers are released again for nothing, a restart takes an update, a session
// whose updates are gone guesses and says so, and the hypothesis is the same function of the steps in every process.
func TestSessionsGoOnFromTheirSteps(t *testing.T) {
	for _, rule := range []OnlineRule{MultiplicativeWeights, Median} {
		s, random := onlineSpec(t, rule, 6, 40_000_000), seeded(31)
		var steps [][]byte
		save := func(step []byte) error { steps = append(steps, step); return nil }
		session, err := Open(s, byCell, privacy.Seal(cellGroups(30, 0, 5, 0)), random, save)
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]int64{}
		ask := func(spans ...Span) SessionAnswer {
			a, err := session.Answer(Question{Spans: spans})
			if err != nil {
				t.Fatal(err)
			}
			return a.Value()
		}
		for life := range 8 {
			for _, q := range [][]Span{{{0, 1}}, {{1, 2}}, {{0, 2}}, {{2, 4}}, {{1, 3}}} {
				a := ask(q...)
				if name := fmt.Sprint(q); a.Hard {
					if was, known := told[name]; known && was != a.Value {
						t.Errorf("%s: %s was %d, is %d", rule, name, was, a.Value)
					}
					told[name] = a.Value
				}
			}
			left, err := s.LeftAfter(steps, false)
			if err != nil || left != session.Left() {
				t.Fatalf("%s: %d updates left by the steps (%v), %d by the session", rule, left, err, session.Left())
			}
			if again, _ := s.LeftAfter(steps, true); again == 0 {
				break
			} else if life == 7 {
				t.Errorf("%s: eight lives, and %d updates left", rule, again)
			}
			if _, err := Restore(s, steps, byCell, privacy.Seal(cellGroups(30)), random, save); err == nil {
				t.Error("restored without a step of its own")
			}
			steps = append(steps, RestartStep())
			if session, err = Restore(s, steps, byCell, privacy.Seal(cellGroups(30, 0, 5, 0)), random, save); err != nil {
				t.Fatal(err)
			}
		}
		one, err1 := s.Believe(steps)
		two, err2 := s.Believe(steps)
		if err := errors.Join(err1, err2); err != nil || fmt.Sprint(one.Rows(50).Value()) != fmt.Sprint(two.Rows(50).Value()) {
			t.Errorf("%s: %v, one state has two hypotheses", rule, err)
		}
		for _, bad := range [][]byte{{}, {'x'}, {'r', 1}, {'h'}, {'h', 0, 9}} {
			if _, err := s.LeftAfter(append(steps[:len(steps):len(steps)], bad), false); err == nil {
				t.Errorf("step %v passes", bad)
			}
		}
	}
}

// TestSessionsWithholdWhatIsNotSaved: a hard answer whose step cannot be saved is not released, and neither is another.
func TestSessionsWithholdWhatIsNotSaved(t *testing.T) {
	s := onlineSpec(t, MultiplicativeWeights, 6, 90_000_000)
	failing := errors.New("disk")
	session, err := Open(s, byCell, privacy.Seal(cellGroups(40, 0, 0, 0)), seeded(32), func([]byte) error { return failing })
	if err != nil {
		t.Fatal(err)
	}
	if a, err := session.Answer(Question{Spans: []Span{{0, 1}}}); !errors.Is(err, failing) || a.Valid() {
		t.Errorf("told %v (%v)", a, err)
	}
	if a, err := session.Answer(Question{Spans: []Span{{1, 2}}}); err == nil || a.Valid() {
		t.Error("a session goes on after its state was lost")
	}
}

// transcripts are the scores of sessions over one database that are lost before their first question and restored: of
// two questions whose answers are hard, the more, the lower they are.
func transcripts(t *testing.T, s Spec, groups []privacy.Group, answers int, stream byte) []float64 {
	t.Helper()
	random := seeded(stream)
	scores := make([]float64, answers)
	for i := range scores {
		var steps [][]byte
		save := func(step []byte) error { steps = append(steps, step); return nil }
		if _, err := Open(s, byCell, privacy.Seal(groups), random, save); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, RestartStep())
		session, err := Restore(s, steps, byCell, privacy.Seal(groups), random, save)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range [][]Span{{{0, 1}}, {{0, 2}}} {
			a, err := session.Answer(Question{Spans: q})
			if err != nil {
				t.Fatal(err)
			}
			scores[i] -= float64(a.Value().Value)
		}
	}
	return scores
}

// TestAuditOfSessionsAndRestarts: over neighbouring databases, with a restart on the way, no more than the cost is
// found, and not next to nothing; and more, where a unit has twelve rows and the spec says one. Two alarms of 1e-6.
func TestAuditOfSessionsAndRestarts(t *testing.T) {
	const epsilon = 2_000_000
	s := onlineSpec(t, MultiplicativeWeights, 3, epsilon)
	bound := func(other []privacy.Group) float64 {
		b, err := stattest.Audit{One: transcripts(t, s, cellGroups(500, 5, 5, 5), audits, 33), Other: transcripts(t, s, other, audits, 34)}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	kept, broken := bound(cellGroups(499, 5, 5, 5)), bound(cellGroups(488, 5, 5, 5))
	t.Logf("epsilon at least %.3f of %.3f; with twelve rows a unit %.3f", kept, float64(epsilon)/1e6, broken)
	if kept > float64(epsilon)/1e6 || kept < .02*float64(epsilon)/1e6 {
		t.Errorf("epsilon is at least %.3f, paid %.3f", kept, float64(epsilon)/1e6)
	}
	if broken <= float64(epsilon)/1e6 {
		t.Errorf("a unit of twelve rows is not found: epsilon at least %.3f", broken)
	}
}

// TestSyntheticSpecs: rows are cells of the universe, as many as asked, drawn again from other randomness; shapes that
// do not fit are refused.
func TestSyntheticSpecs(t *testing.T) {
	c := Contribution{Rows: 1, Neighbors: privacy.AddRemove}
	for rule, sizes := range map[SyntheticRule][]int{MWEM: {2, 3}, SmallDatabase: {2, 3}, DAWA: {6}} {
		s, err := NewSynthetic(Synthetic{Rule: rule, Contribution: c, Sizes: sizes, Total: 1000, Drawn: 400, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(2_000_000)}})
		if err != nil {
			t.Fatal(err)
		}
		rows := mustRelease(t, s, cellGroups(900, 0, 0, 0, 0, 100), seeded(34)).Value().Observations
		in := map[int64]int{}
		for _, r := range rows {
			in[r]++
		}
		if len(rows) != 400 || in[0] < 250 || in[0] > 400 {
			t.Errorf("%s: %d rows, %v", rule, len(rows), in)
		}
		for r := range in {
			if r < 0 || r > 5 {
				t.Errorf("%s: a row in cell %d", rule, r)
			}
		}
	}
	for _, bad := range []Synthetic{
		{Rule: 9, Contribution: c, Sizes: []int{2}, Drawn: 1, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1)}},
		{Rule: MWEM, Contribution: c, Sizes: []int{0}, Drawn: 1, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1)}},
		{Rule: MWEM, Contribution: c, Sizes: []int{1 << 11, 1 << 11}, Drawn: 1, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1)}},
		{Rule: MWEM, Contribution: c, Sizes: []int{2}, Drawn: 1},
		{Rule: DAWA, Contribution: c, Sizes: []int{2, 3}, Drawn: 1, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}},
		{Rule: MWEM, Contribution: Contribution{}, Sizes: []int{2}, Drawn: 1, Cost: privacy.Cost{Epsilon: privacy.MicroEpsilon(1)}},
	} {
		if _, err := NewSynthetic(bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

// TestDawaRowsWhateverComes: every plan that is made gives rows, whatever the rows and the noise are: where the noise
// leaves none, as it does at a tiny cost over no rows, all cells are alike. Of 200 draws over no rows some must come to
// that.
func TestDawaRowsWhateverComes(t *testing.T) {
	random, planned, none := seeded(35), 0, 0
	for _, rows := range []int64{1, 12, 1 << 12, 1 << 20} {
		for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			for _, cost := range []privacy.Cost{{Epsilon: privacy.MicroEpsilon(10_000)}, {Epsilon: privacy.MicroEpsilon(1_000_000)}, {Rho: privacy.PicoRho(5_000_000)}, {Rho: privacy.PicoRho(500_000_000_000)}} {
				for _, cells := range []int{1, 2, 3, 67, 1000} {
					s, err := NewSynthetic(Synthetic{Rule: DAWA, Contribution: Contribution{Rows: rows, Neighbors: neighbors}, Sizes: []int{cells}, Total: 1, Drawn: 20, Cost: cost})
					if err != nil {
						t.Fatal(err)
					}
					if s.Kind.(*Synthetic).CanRelease(cells) != nil {
						continue
					}
					planned++
					for _, truth := range [][]int64{make([]int64, cells), slices.Repeat([]int64{7, 0, 1 << 40}, (cells+2)/3)[:cells]} {
						if drawn := mustRelease(t, s, cellGroups(truth...), random).Value().Observations; len(drawn) != 20 {
							t.Errorf("%d rows", len(drawn))
						}
					}
				}
			}
		}
	}
	if planned < 100 {
		t.Errorf("%d plans of 160", planned)
	}
	plan, err := histograms.NewDawa(9, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(100_000)})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		d, err := even(plan, privacy.Seal(make([]int64, 9)), random)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, c := range d.Value().Cells {
			total += c
		}
		if d.Value().Total <= 0 {
			none++
		}
		if !(total > 0) {
			t.Errorf("no rows: %+v", d.Value())
		}
	}
	if none < 20 {
		t.Errorf("the noise left no rows in %d of 200 draws: nothing was tested", none)
	}
}
