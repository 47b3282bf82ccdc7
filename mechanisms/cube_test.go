package mechanisms

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
	"github.com/dpproxy/dpproxy/mechanisms/stattest"
)

// someCube asks for two marginals of 6·3·4 cells and prefixes of the first attribute.
func someCube() Cube {
	q := Cube{Shape: []int{6, 3, 4}, Ordered: 1}
	add := func(attributes []int, in func(at [3]int) int) {
		rows := map[int][]Span{}
		order := []int{}
		for cell := range 72 {
			row := in([3]int{cell / 12, cell / 4 % 3, cell % 4})
			if row < 0 {
				continue
			}
			if rows[row] == nil {
				order = append(order, row)
			}
			rows[row] = append(rows[row], Span{cell, cell + 1})
		}
		for _, row := range order {
			q.Asked = append(q.Asked, Asked{Spans: rows[row], Attributes: attributes, Weight: 1})
		}
	}
	add([]int{0, 1}, func(at [3]int) int { return 3*at[0] + at[1] })
	add([]int{2}, func(at [3]int) int { return at[2] })
	for k := range 6 {
		add([]int{0}, func(at [3]int) int {
			if at[0] > k {
				return -1
			}
			return 0
		})
	}
	return q
}

// candidates returns the ways to measure someCube, by accountant.
func candidates(t *testing.T, cost privacy.Cost) []Candidate {
	t.Helper()
	list, err := someCube().Candidates(Contribution{Rows: 1, Neighbors: privacy.AddRemove}, cost)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestCubeErrorsAreMeasured: over fresh releases, what is read is as far off the truth as was said, value by value.
// Each value has its own test of 10,000 releases at a false-alarm rate of 1e-7; some 200 of them are looked at, so that
// a sound build fails once in 50,000 runs. A claim of half the variance is found.
func TestCubeErrorsAreMeasured(t *testing.T) {
	const releases = 10_000
	alarm := stattest.Alarm(1e-7)
	q, truth, counts := someCube(), make([]int64, 72), make([]int64, 72)
	random := rand.New(rand.NewPCG(3, 9))
	for i := range counts {
		counts[i] = random.Int64N(900)
		truth[i] = counts[i]
	}
	names := map[string]bool{}
	sure, _ := NewConfidence(.95)
	for _, cost := range []privacy.Cost{pureOne, zcdpOne} {
		for _, way := range candidates(t, cost) {
			if names[way.Name+cost.String()] {
				continue
			}
			names[way.Name], names[way.Name+cost.String()] = true, true
			off := make([][]float64, len(q.Asked))
			stream := seeded(byte(len(names)))
			for range releases {
				noisy, err := Release(way.Spec, inOrder, privacy.Seal(groupsOf(counts...)), stream)
				if err != nil {
					t.Fatal(err)
				}
				e := mustEstimate(t, way.Spec, noisy)
				for i, a := range q.Asked {
					off[i] = append(off[i], float64(e.Sum(0, a.Spans).Value()-sumOf(truth, a.Spans)))
				}
			}
			said := way.Spec.Errors(sure)
			total := 0.0
			found := false
			for i, a := range q.Asked {
				e := said.Of(a.Spans)
				total += e.Variance
				claim := stattest.Moments{Variance: e.Variance + 1./12, Fourth: 6 * e.Variance * e.Variance}
				if err := stattest.Variance(off[i], claim, alarm); err != nil {
					t.Errorf("%s, %s, value %d: %v", way.Name, cost, i, err)
				}
				missed := 0
				for _, x := range off[i] {
					if math.Abs(x) > float64(e.HalfWidth) {
						missed++
					}
				}
				if missed > 640 { // of 10,000, where 500 may be expected: below 1e-9
					t.Errorf("%s, %s, value %d: ±%d missed %d of %d", way.Name, cost, i, e.HalfWidth, missed, releases)
				}
				half := stattest.Moments{Variance: claim.Variance / 2, Fourth: claim.Fourth / 4}
				found = found || stattest.Variance(off[i], half, alarm) != nil
			}
			if math.Abs(total-way.Error) > 1e-6*total {
				t.Errorf("%s, %s: the candidate's error is %g, its values' %g", way.Name, cost, way.Error, total)
			}
			if !found {
				t.Errorf("%s, %s: half the variance was not found", way.Name, cost)
			}
		}
	}
	for _, name := range []string{"one histogram", "marginals", "marginals by residuals"} {
		if !names[name] {
			t.Errorf("no candidate is %s: %v", name, names)
		}
	}
}

func sumOf(counts []int64, spans []Span) (sum int64) {
	for _, s := range spans {
		for _, n := range counts[s.From:s.To] {
			sum += n
		}
	}
	return sum
}

// TestCubeMoves holds the sensitivity of a Spec of marginals against all ways in which a unit of two rows, with values
// of both signs, may come, go or change. The bounds are attained, or nearly, where the values have one sign.
func TestCubeMoves(t *testing.T) {
	y := Strategy{Kind: Marginals, Radices: []int{2, 3}, Marginals: []ranges.Marginal{{Residual: true, Weight: 4}, {Attributes: 1, Residual: true, Weight: 2}, {Attributes: 2, Residual: true, Weight: 1}}}
	for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		for _, b := range []Bound{{0, 1}, {-3, 5}, {-2, 2}} {
			s := Spec{Counters: 1, Cells: 6, Kind: &Counts{Strategy: y, Sums: []Sum{{Bound: b, Noise: Noise{Kind: DiscreteGaussian, Num: 1, Den: 1}}}}}
			claim := s.Sensitivity(Contribution{Rows: 2, Neighbors: neighbors})
			var l1, l2 int64
			units := unitsOf(b)
			for _, one := range units {
				others := [][]int64{make([]int64, 6)}
				if neighbors == privacy.ReplaceOne {
					others = units
				}
				for _, other := range others {
					a, z := int64(0), int64(0)
					mine, theirs := s.reader().Observe(one), s.reader().Observe(other)
					for i := range mine {
						d := mine[i] - theirs[i]
						a, z = a+max(d, -d), z+d*d
					}
					l1, l2 = max(l1, a), max(l2, z)
				}
			}
			if l1 > claim.L1 || l2 > claim.L2Squared {
				t.Errorf("%v, %v: claimed %+v, found %d and %d", neighbors, b, claim, l1, l2)
			}
			if neighbors == privacy.AddRemove && (l1 != claim.L1 || l2 != claim.L2Squared) {
				t.Errorf("%v, %v: claimed %+v, but the most is %d and %d", neighbors, b, claim, l1, l2)
			}
		}
	}
}

// unitsOf lists what the two rows of a unit may add up to.
func unitsOf(b Bound) (list [][]int64) {
	for j := range 6 {
		for k := range 6 {
			for _, v := range []int64{b.Low, 0, b.High} {
				for _, w := range []int64{b.Low, 0, b.High} {
					cells := make([]int64, 6)
					cells[j] += v
					cells[k] += w
					list = append(list, cells)
				}
			}
		}
	}
	return list
}

// TestReads: which attributes of a cube can be read together.
func TestReads(t *testing.T) {
	marginal := func(sets ...uint64) (list []ranges.Marginal) {
		for _, s := range sets {
			list = append(list, ranges.Marginal{Attributes: s, Weight: 1})
		}
		return list
	}
	cube := Spec{Counters: 1, Cells: 24, Kind: &Counts{Strategy: Strategy{Kind: Marginals, Radices: []int{2, 3, 4}, Marginals: marginal(3, 4)}, Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}}}
	product := Spec{Counters: 1, Cells: 48, Kind: &Counts{Noise: Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}, Strategy: Strategy{Kind: Product, Factors: []ranges.Description{
		{Kind: Identity, Cells: 2}, {Kind: Marginals, Cells: 24, Radices: []int{2, 3, 4}, Marginals: marginal(3, 4)}}}}}
	for _, c := range []struct {
		spec       Spec
		attributes []int
		want       bool
	}{
		{cube, nil, true}, {cube, []int{0, 1}, true}, {cube, []int{2}, true}, {cube, []int{0, 2}, false}, {cube, []int{0, 1, 2}, false},
		{product, []int{0}, true}, {product, []int{0, 1, 2}, true}, {product, []int{0, 3}, true}, {product, []int{1, 3}, false},
	} {
		if err := c.spec.Check(); err != nil {
			t.Fatal(err)
		}
		if got := c.spec.Reads(c.attributes); got != c.want {
			t.Errorf("%s reads %v: %v", c.spec.Counts().Strategy, c.attributes, got)
		}
	}
}
