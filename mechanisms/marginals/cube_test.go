package marginals

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// cubes are strategies small enough to be written out as matrices.
func cubes() map[string]ranges.Description {
	marginal := func(attributes uint64, residual bool, weight int64) ranges.Marginal {
		return ranges.Marginal{Attributes: attributes, Residual: residual, Weight: weight}
	}
	tree := ranges.Description{Kind: ranges.KindTree, Cells: 6, Radices: []int{2, 3}, Weights: []int64{3, 2}}
	pair := ranges.Description{Kind: ranges.KindMarginals, Cells: 6, Radices: []int{2, 3}, Marginals: []ranges.Marginal{marginal(0, false, 2), marginal(1, false, 3), marginal(2, false, 1)}}
	return map[string]ranges.Description{
		"histograms":         {Kind: ranges.KindMarginals, Cells: 24, Radices: []int{2, 3, 4}, Marginals: []ranges.Marginal{marginal(3, false, 5), marginal(6, false, 2), marginal(0, false, 9)}},
		"residuals":          {Kind: ranges.KindMarginals, Cells: 24, Radices: []int{2, 3, 4}, Marginals: []ranges.Marginal{marginal(0, true, 40), marginal(1, true, 17), marginal(2, true, 9), marginal(4, true, 6), marginal(3, true, 5), marginal(6, true, 2)}},
		"both":               {Kind: ranges.KindMarginals, Cells: 12, Radices: []int{3, 2, 2}, Marginals: []ranges.Marginal{marginal(7, false, 2), marginal(5, true, 3), marginal(0, true, 8)}},
		"twos":               {Kind: ranges.KindMarginals, Cells: 8, Radices: []int{2, 2, 2}, Marginals: []ranges.Marginal{marginal(0, true, 2), marginal(1, true, 3), marginal(2, true, 3), marginal(3, true, 7)}},
		"ranges × cells":     {Kind: ranges.KindProduct, Cells: 18, Factors: []ranges.Description{tree, {Kind: ranges.KindIdentity, Cells: 3}}},
		"ranges × marginals": {Kind: ranges.KindProduct, Cells: 36, Factors: []ranges.Description{tree, pair}},
		"three":              {Kind: ranges.KindProduct, Cells: 48, Factors: []ranges.Description{tree, {Kind: ranges.KindTree, Cells: 4, Radices: []int{2, 2}}, {Kind: ranges.KindIdentity, Cells: 2}}},
	}
}

// matrixOf writes a strategy out by observing single rows.
func matrixOf(s ranges.Strategy) *mat.Dense {
	b := mat.NewDense(s.Observations(), s.Cells(), nil)
	for i := range s.Cells() {
		cells := make([]int64, s.Cells())
		cells[i] = 1
		for j, n := range s.Observe(cells) {
			b.Set(j, i, float64(n))
		}
	}
	return b
}

// norms are those of a difference of columns j and k; k is −1 for column j alone.
func norms(b *mat.Dense, j, k int) (l1, l2 float64) {
	rows, _ := b.Dims()
	for r := range rows {
		d := b.At(r, j)
		if k >= 0 {
			d -= b.At(r, k)
		}
		l1 += math.Abs(d)
		l2 += d * d
	}
	return l1, l2
}

// TestCubeSensitivity holds the sensitivities against all single rows and all pairs of rows: exact for add-remove,
// never below for replace-one, where L2 of marginals is exact too.
func TestCubeSensitivity(t *testing.T) {
	for name, d := range cubes() {
		s, err := OpenCube(d)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := matrixOf(s)
		var one, two [2]float64
		for j := range s.Cells() {
			for k := -1; k < j; k++ {
				l1, l2 := norms(b, j, k)
				if k < 0 {
					one = [2]float64{max(one[0], l1), max(one[1], l2)}
				}
				two = [2]float64{max(two[0], l1), max(two[1], l2)}
			}
		}
		if got := s.Sensitivity(privacy.AddRemove); float64(got.L1) != one[0] || float64(got.L2Squared) != one[1] {
			t.Errorf("%s: add-remove %+v, brute force %v", name, got, one)
		}
		got := s.Sensitivity(privacy.ReplaceOne)
		if float64(got.L1) < two[0] || float64(got.L2Squared) < two[1] || d.Kind == ranges.KindMarginals && float64(got.L2Squared) != two[1] {
			t.Errorf("%s: replace-one %+v, brute force %v", name, got, two)
		}
	}
}

// TestCubeReading holds readings, variances and terms against the pseudo-inverse of the matrix, for random sums of
// cells: products of sides and any; sums that cannot be read have an infinite variance (marginals).
func TestCubeReading(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	for name, d := range cubes() {
		s, err := OpenCube(d)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := matrixOf(s)
		var svd mat.SVD
		if !svd.Factorize(b, mat.SVDThin) {
			t.Fatal(name)
		}
		rank := svd.Rank(1e-9)
		rows, cells := b.Dims()
		inverse := mat.NewDense(cells, rows, nil)
		identity := mat.NewDense(rows, rows, nil)
		for i := range rows {
			identity.Set(i, i, 1)
		}
		svd.SolveTo(inverse, identity, rank)
		observations := make([]int64, rows)
		for i := range observations {
			observations[i] = random.Int64N(2000) - 1000
		}
		fitted := s.Fit(observations)
		for i := range cells {
			want := 0.0
			for j, n := range observations {
				want += inverse.At(i, j) * float64(n)
			}
			if math.Abs(fitted[i]-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("%s: cell %d is read as %g, by the pseudo-inverse %g", name, i, fitted[i], want)
			}
		}
		readable := 0
		for range 400 {
			if againstInverse(t, name, d.Kind, s, b, inverse, someSpans(random, d)) {
				readable++
			}
		}
		if readable < 50 {
			t.Errorf("%s: only %d sums were readable", name, readable)
		}
	}
}

// againstInverse compares the variance and the terms of a sum; false means it cannot be read.
func againstInverse(t *testing.T, name string, kind ranges.Kind, s ranges.Strategy, b, inverse *mat.Dense, spans []ranges.Span) bool {
	t.Helper()
	rows, cells := b.Dims()
	weights, back := make([]float64, rows), 0.0
	for _, span := range spans {
		for i := span.From; i < span.To; i++ {
			for j := range rows {
				weights[j] += inverse.At(i, j)
			}
		}
	}
	variance := 0.0
	for _, w := range weights {
		variance += w * w
	}
	for i := range cells { // what the reading makes of the cells themselves
		x := 0.0
		for j, w := range weights {
			x += w * b.At(j, i)
		}
		back = max(back, math.Abs(x-indicatorOf(spans, i)))
	}
	got := s.Variance(spans)
	if back > 1e-6 {
		if kind == ranges.KindMarginals && !math.IsInf(got, 1) {
			t.Errorf("%s: %v cannot be read and has variance %g", name, spans, got)
		}
		return false
	}
	if math.Abs(got-variance) > 1e-8*(1e-9+variance) {
		t.Errorf("%s: variance of %v is %g, by the pseudo-inverse %g", name, spans, got, variance)
	}
	squares := 0.0
	for _, term := range s.Terms(spans) {
		squares += float64(term.Count) * term.Weight * term.Weight
	}
	if math.Abs(squares-variance) > 1e-8*(1e-9+variance) {
		t.Errorf("%s: terms of %v have variance %g, want %g", name, spans, squares, variance)
	}
	return true
}

func indicatorOf(spans []ranges.Span, i int) float64 {
	for _, s := range spans {
		if s.From <= i && i < s.To {
			return 1
		}
	}
	return 0
}

// someSpans draws cells of a cube: by sides of its attributes, of which some are whole, or any.
func someSpans(random *rand.Rand, d ranges.Description) []ranges.Span {
	shape := d.Radices
	for _, f := range d.Factors {
		if f.Kind == ranges.KindMarginals {
			shape = append(shape, f.Radices...)
		} else {
			shape = append(shape, f.Cells)
		}
	}
	sides := make([][]bool, len(shape))
	for i, n := range shape {
		sides[i] = make([]bool, n)
		whole := random.IntN(2) == 0
		for j := range sides[i] {
			sides[i][j] = whole || random.IntN(2) == 0
		}
	}
	any := random.IntN(8) == 0
	var spans []ranges.Span
	for cell := range d.Cells {
		on, rest := true, cell
		for i := len(shape) - 1; i >= 0; i-- {
			on = on && sides[i][rest%shape[i]]
			rest /= shape[i]
		}
		if any {
			on = random.IntN(2) == 0
		}
		if n := len(spans); on && n > 0 && spans[n-1].To == cell {
			spans[n-1].To++
		} else if on {
			spans = append(spans, ranges.Span{From: cell, To: cell + 1})
		}
	}
	return spans
}

// TestCubeObservesExactly: cells far above 2^31, where floats would round.
func TestCubeObservesExactly(t *testing.T) {
	d := cubes()["residuals"]
	s, _ := OpenCube(d)
	b := matrixOf(s)
	random := rand.New(rand.NewPCG(2, 7))
	cells := make([]int64, s.Cells())
	for i := range cells {
		cells[i] = random.Int64N(1 << 45)
	}
	for j, got := range s.Observe(cells) {
		want := int64(0)
		for i, n := range cells {
			want += int64(b.At(j, i)) * n
		}
		if got != want {
			t.Fatalf("observation %d is %d, want %d", j, got, want)
		}
	}
	for _, n := range []int64{math.MinInt64, -1 << 50, -1, 1 << 59, math.MaxInt64} {
		cells[0] = n
		for j, got := range s.Observe(cells) {
			exact := new(big.Int)
			for i, m := range cells {
				exact.Add(exact, new(big.Int).Mul(big.NewInt(int64(b.At(j, i))), big.NewInt(min(max(m, -maxCell), maxCell))))
			}
			want := int64(ranges.MaxObserved * exact.Sign())
			if exact.CmpAbs(big.NewInt(ranges.MaxObserved)) < 0 {
				want = exact.Int64()
			}
			if got != want {
				t.Fatalf("observation %d of %d is %d, want %d", j, n, got, want)
			}
		}
	}
}

// TestCubeRefuses lists what is no strategy.
func TestCubeRefuses(t *testing.T) {
	of := func(change func(d *ranges.Description)) ranges.Description {
		d := cubes()["residuals"]
		d.Marginals = append([]ranges.Marginal(nil), d.Marginals...)
		change(&d)
		return d
	}
	product := cubes()["ranges × marginals"]
	product.Factors = []ranges.Description{product.Factors[0], cubes()["twos"]}
	product.Cells = 48
	for i, d := range []ranges.Description{
		of(func(d *ranges.Description) { d.Cells = 23 }),
		of(func(d *ranges.Description) { d.Marginals = nil }),
		of(func(d *ranges.Description) { d.Marginals[0].Weight = 0 }),
		of(func(d *ranges.Description) { d.Marginals[0].Weight = 1 << 40 }),
		of(func(d *ranges.Description) { d.Marginals[1].Attributes = 8 }),
		of(func(d *ranges.Description) { d.Marginals = d.Marginals[1:] }), // without the total
		of(func(d *ranges.Description) { d.Version = 1 }),
		of(func(d *ranges.Description) { d.Radices = []int{2, 3, 1, 4} }),
		product, // residuals in a product
		{Kind: ranges.KindProduct, Cells: 6, Factors: []ranges.Description{{Kind: ranges.KindIdentity, Cells: 6}}},
		{Kind: ranges.KindIdentity, Cells: 6},
	} {
		if _, err := OpenCube(d); err == nil {
			t.Errorf("case %d is no strategy and was opened", i)
		}
	}
}

// TestGoalIsResidualPlanner: for whole marginals the weights found for a cube have the error of the plan with noises of
// their own, and for every goal no candidate loses against observing the cells by more than rounding.
func TestGoalIsResidualPlanner(t *testing.T) {
	shape := []int{2, 5, 7}
	d, _ := NewDomain(shape...)
	w, _ := NewWorkload(d, Marginal{3, 1}, Marginal{5, 1}, Marginal{2, 1})
	for _, neighbors := range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
		cost := privacy.Cost{Rho: privacy.PicoRho(1e11)}
		plan, err := Residuals(w, privacy.Contribution{Rows: 1, Neighbors: neighbors}, cost)
		if err != nil {
			t.Fatal(err)
		}
		var wanted []Wanted
		for _, set := range []Set{3, 5, 2} {
			wanted = append(wanted, wantedCells(shape, set)...)
		}
		g, err := NewGoal(shape, wanted, ranges.L2, neighbors)
		if err != nil {
			t.Fatal(err)
		}
		best := math.Inf(1)
		for _, c := range g.Candidates() {
			s, err := OpenCube(c)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, q := range wanted {
				sum += q.Weight * s.Variance(q.Spans)
			}
			if got := g.Error(c); math.Abs(got-sum) > 1e-9*sum {
				t.Errorf("the goal says %g, reading them one by one %g", got, sum)
			}
			sum *= float64(s.Sensitivity(neighbors).L2Squared) / (2 * cost.Rho.Float())
			best = min(best, sum)
		}
		if ratio := best / plan.Loss(); ratio > 1.001 || ratio < .999 {
			t.Errorf("%v: the cube's error is %g of the plan's", neighbors, ratio)
		}
	}
}

// wantedCells asks for each cell of a marginal.
func wantedCells(shape []int, set Set) []Wanted {
	cells := 1
	for _, n := range shape {
		cells *= n
	}
	by := map[string][]ranges.Span{}
	var order []string
	for cell := range cells {
		key, rest := "", cell
		for i := len(shape) - 1; i >= 0; i-- {
			if set.Has(i) {
				key += fmt.Sprint(rest%shape[i], ",")
			}
			rest /= shape[i]
		}
		if by[key] == nil {
			order = append(order, key)
		}
		by[key] = append(by[key], ranges.Span{From: cell, To: cell + 1})
	}
	var list []Wanted
	for _, key := range order {
		list = append(list, Wanted{by[key], set, 1})
	}
	return list
}
