package mechanisms

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// endsSpec is a histogram of so many cells, one row a unit.
func endsSpec(t testing.TB, cells int, cost privacy.Cost) Spec {
	t.Helper()
	s, err := Plain(1, cells, Contribution{Rows: 1, Neighbors: privacy.AddRemove}, cost)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func histogramGroups(counts []int64) (groups []privacy.Group) {
	for i, n := range counts {
		if n > 0 {
			groups = append(groups, privacy.Group{Cells: []int32{int32(i)}, Counts: []int64{n}})
		}
	}
	return groups
}

func total(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// wrong says which of the claims of an answer does not hold; empty means none.
func (e Ends) wrong(truth []int64) string {
	if !e.Found() {
		return ""
	}
	if e.MostAbove < total(truth[e.To:]) || e.MostBelow < total(truth[:e.From]) {
		return "more units beyond an end than said"
	}
	occupied := func(n int64) bool { return n > 0 }
	first := slices.IndexFunc(truth, occupied)
	last := len(truth) - 1
	for last >= 0 && truth[last] == 0 {
		last--
	}
	if first < 0 || e.From < first && e.To-e.From > 1 || e.To > last+1 && e.To-e.From > 1 {
		return "an end beyond all values"
	}
	return ""
}

// skewed are histograms: what values there are of nothing, of one place, of a bell, of money and its long tail, with
// one outlier.
func skewed(cells int) map[string][]int64 {
	out := map[string][]int64{"nothing": make([]int64, cells), "one place": make([]int64, cells), "bell": make([]int64, cells), "money": make([]int64, cells), "sparse": make([]int64, cells)}
	out["one place"][cells/3] = 5000
	for i := range cells {
		x := float64(i - cells/2)
		out["bell"][i] = int64(3000 * math.Exp(-x*x/40))
		if i > cells/4 {
			out["money"][i] = int64(2000 * math.Exp(-float64(i-cells/4)/4))
		}
		if i%7 == 0 && i > 20 && i < cells-20 {
			out["sparse"][i] = 60
		}
	}
	out["money"][cells-1]++
	return out
}

// TestEndsHoldTogether: all that is said of a histogram holds together with the probability that is said, under both
// noises. Half-widths that were of one window each would not, and are found.
func TestEndsHoldTogether(t *testing.T) {
	const cells = 120
	failure, err := NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	runs := stattest.Length(500, 20_000)
	for name, truth := range skewed(cells) {
		for _, cost := range []privacy.Cost{{Epsilon: privacy.MicroEpsilon(100_000)}, {Rho: privacy.PicoRho(5e9)}} {
			s := endsSpec(t, cells+1, cost) // one is of NULL
			random := seeded(30)
			windows, err := s.scan(cells, 0, failure)
			if err != nil {
				t.Fatal(err)
			}
			naive := scan{values: cells}
			alone := s.Errors(failure)
			for j := range windows.widths {
				w := alone.Of([]Span{{0, 1 << j}}).HalfWidth
				naive.widths, naive.threshold = append(naive.widths, w), append(naive.threshold, w)
			}
			held, naively, said := 0, 0, map[string]int{}
			for range runs {
				released := mustRelease(t, s, histogramGroups(truth), random)
				found, err := s.ReadEnds(released, cells, 0, failure)
				if err != nil {
					t.Fatal(err)
				}
				if why := found.Value().wrong(truth); why == "" {
					held++
				} else {
					said[why]++
				}
				e := mustEstimate(t, s, released)
				if naive.read(func(from, to int) int64 { return e.Sum(0, []Span{{from, to}}).Value() }, alone).wrong(truth) == "" {
					naively++
				}
			}
			if err := (stattest.Coverage{Hits: held, Trials: runs, Claim: 0.95}).AtLeast(auditAlarm); err != nil {
				t.Errorf("%s, %s: %v: %v", name, cost, err, said)
			}
			if err := (stattest.Coverage{Hits: naively, Trials: runs, Claim: 0.95}).AtLeast(auditAlarm); err == nil && (name == "nothing" || name == "one place") {
				t.Errorf("%s, %s: half-widths of one window each were not found out: %d of %d", name, cost, naively, runs)
			}
		}
	}
}

// TestEndsAudit: that one unit is there or not is revealed by the ends, and all numbers beside them, no better than the
// cost says; with half the noise it is.
func TestEndsAudit(t *testing.T) {
	const cells = 24
	failure, err := NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	with, without := make([]int64, cells), make([]int64, cells)
	for i := 5; i < 12; i++ {
		with[i], without[i] = 12, 12
	}
	with[12] = 1
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(1_000_000)}
	for _, planted := range []bool{false, true} {
		s := endsSpec(t, cells, cost)
		drawn := s
		if planted {
			drawn = s.scaled(func(n Noise) Noise { n.Den *= 3; return n })
		}
		random := seeded(31)
		// What is released beside the ends is a noisy number of those above: that rises most with the likelihood ratio
		// where the ends are as they mostly are.
		sample := func(truth []int64) []float64 {
			out := make([]float64, audits)
			for i := range out {
				found, err := s.ReadEnds(mustRelease(t, drawn, histogramGroups(truth), random), cells, 0, failure)
				if err != nil {
					t.Fatal(err)
				}
				e := found.Value()
				out[i] = float64(100*e.To) + float64(min(max(e.Above, -40), 40))
				if e.To == 12 {
					out[i] = 5000 + float64(e.Units)
				}
			}
			return out
		}
		bound, err := stattest.Audit{One: sample(with), Other: sample(without)}.Epsilon(auditAlarm)
		if err != nil {
			t.Fatal(err)
		}
		ratio := audited(t, drawn, histogramGroups(with), histogramGroups(without), 0, audits)
		t.Logf("planted %t: ε at least %.3f by what is said, %.3f by what is drawn", planted, bound, ratio)
		if !planted && (bound > 1 || ratio > 1) || planted && ratio <= 1 {
			t.Errorf("planted %t: ε is at least %.3f, %.3f, claimed 1", planted, bound, ratio)
		}
	}
}

// TestEndsOfLongTails prints, of skewed values, where each way to find the upper end puts it, how many units lie above,
// and by how much a sum at ε 0.1 is off that is clamped there, on average over draws. No other way is better by more
// than a tenth on all of them together.
func TestEndsOfLongTails(t *testing.T) {
	const draws = 40
	failure, err := NewConfidence(0.95)
	if err != nil {
		t.Fatal(err)
	}
	var edges []float64 // 230 cells, eight for each power of ten
	for k := -6; k < 18; k++ {
		for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
			edges = append(edges, m*math.Pow(10, float64(k)))
		}
	}
	r := rand.New(rand.NewPCG(130, 7))
	laws := []struct {
		name string
		draw func() float64
	}{
		{"money (lognormal, σ 1)", func() float64 { return math.Exp(8 + r.NormFloat64()) }},
		{"long tail (lognormal, σ 2)", func() float64 { return math.Exp(5 + 2*r.NormFloat64()) }},
		{"Pareto 1.5", func() float64 { return 10 * math.Pow(1-r.Float64(), -1/1.5) }},
		{"even, to 95", func() float64 { return 95 * r.Float64() }},
	}
	cost := privacy.Cost{Epsilon: privacy.MicroEpsilon(100_000)}
	s := endsSpec(t, len(edges), cost)
	ranges, err := Ranges(len(edges), Contribution{Rows: 1, Neighbors: privacy.AddRemove}, cost)
	if err != nil {
		t.Fatal(err)
	}
	each, err := NewConfidence(1 - 0.05/float64(2*len(edges)))
	if err != nil {
		t.Fatal(err)
	}
	rangeWidth := int64(0)
	for i := range edges {
		rangeWidth = max(rangeWidth, ranges.Errors(each).Of([]Span{{i, len(edges)}}).HalfWidth)
	}
	oneCell := s.Errors(each).Of([]Span{{0, 1}}).HalfWidth
	ways := []string{"windows", "one cell", "ranges", "exponential"}
	worst := map[string]float64{}
	for _, n := range []int{2_000, 20_000, 200_000} {
		for _, law := range laws {
			values, truth, exact := make([]float64, n), make([]int64, len(edges)), 0.
			for i := range values {
				values[i] = law.draw()
				exact += values[i]
				truth[min(len(edges)-1, max(0, searchFrom(edges, values[i])))]++
			}
			random := seeded(32)
			lines := make([]string, len(ways))
			for w, way := range ways {
				end, above, off := 0., 0., 0.
				for range draws {
					to := 0
					switch way {
					case "windows":
						found, err := s.ReadEnds(mustRelease(t, s, histogramGroups(truth), random), len(edges), 10, failure)
						if err != nil {
							t.Fatal(err)
						}
						to = found.Value().To
					case "one cell", "ranges":
						spec, threshold := s, oneCell
						if way == "ranges" {
							spec, threshold = ranges, rangeWidth
						}
						e := mustEstimate(t, spec, mustRelease(t, spec, histogramGroups(truth), random))
						for to = len(edges); to > 0; to-- {
							until := to
							if way == "ranges" {
								until = len(edges)
							}
							if e.Sum(0, []Span{{to - 1, until}}).Value() > threshold {
								break
							}
						}
					default: // the end beyond which so many units lie that it is beyond all of them with 5 % at most
						half := 0.1 / 2
						rank := 2 / half * math.Log(float64(len(edges))/0.05)
						best := math.Inf(-1)
						for i := range edges {
							score := -half/2*math.Abs(float64(total(truth[i:]))-rank) - math.Log(-math.Log(r.Float64()))
							if score > best {
								best, to = score, i
							}
						}
					}
					hi := edges[min(to, len(edges)-1)]
					lost := 0.
					for _, v := range values {
						if v > hi {
							lost += v - hi
							above++
						}
					}
					end += math.Log(hi)
					off += math.Hypot(lost, math.Sqrt2*hi/0.1) / exact
				}
				lines[w] = fmt.Sprintf("%s %.3g: %.0f above, ±%.2f %%", way, math.Exp(end/draws), above/draws, 100*off/draws)
				worst[way] += math.Log(off / draws)
			}
			t.Logf("%d units, %s: %s", n, law.name, strings.Join(lines, "; "))
		}
	}
	for _, way := range ways[1:] {
		if ratio := math.Exp((worst["windows"] - worst[way]) / float64(3*len(laws))); ratio > 1.1 {
			t.Errorf("%s is nearer: windows are off by %.2f times as much", way, ratio)
		} else {
			t.Logf("windows are off by %.2f times what %s is", ratio, way)
		}
	}
}

// searchFrom is the cell of a value: from which edge on.
func searchFrom(edges []float64, v float64) int {
	at, found := slices.BinarySearch(edges, v)
	if found {
		return at
	}
	return at - 1
}
