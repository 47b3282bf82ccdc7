package linear

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// price - cost, l_receiptdate - l_shipdate, 2 * a + 3: a sum of products of columns is added up by the database as a
// sum of products of whole numbers, so that nothing is evaluated on combinations of cells, of which there may be
// billions.
//
// Claim: what a row adds is a whole number in the Bound that is stated with it, or nothing. Proof: each factor is moved
// into [Low, High] by the database, row by row, whatever the row holds (rewrite/sum.go), so a product lies between the
// least and the largest product of such ends, times its constant between the times of these, and the sum of terms
// between the sums of their ends: boundOf and boundOfTerms, in whole numbers below 2^62. The square of a sum of terms
// is not below 0 and at most the square of the larger end; what is divided by Over and rounded lies between the ends
// that are divided and rounded, as that keeps the order. A factor is NULL where its column is, and so are the product
// and the sum, which adds nothing; one that is filled is its Fill there, which lies in [Low, High] as well. Only
// nearness to what SQL means depends on the grids: a column is rounded to its own, which is that of its type where the
// largest sum has room for it.
//
// price - 41.2518394201743, (price - 3) / 1.2: a constant that has more digits than there is room for makes no grid
// finer. The nearest value of the columns' grid stays among the terms, and what is left of it is added above the
// counters, times the rows; so is what a single product is multiplied by: x = Times·10^Exponent·k + Plus, and Σx =
// Times·10^Exponent·Σk + Plus·n over the n rows in which x is not NULL. Both are functions of the statement alone, or
// of what was released before, and the bound is that of k.

// The most terms of a sum that is squared, rounds of looking for a grid, and what a term may be multiplied by.
const (
	maxTermsSquared = 4
	maxLinearRounds = 200
	maxTimes        = 1 << 31
)

// splitOf takes constants that are on no grid of their columns out of a product: 2 * (income + 1.5), as which productOf
// reads 2 * income + 3, is 2 * income and 3 again.
func splitOf(p semantics.Product, t *policy.Table) []semantics.Product {
	for i, m := range p.Of {
		f, ok := semantics.FactorOf(t.Columns[m.Column], false, math.MaxInt64/4)
		if !ok || new(big.Rat).Mul(m.By, semantics.Power10(-f.Exponent, 1)).IsInt() {
			continue
		}
		bare := slices.Clone(p.Of)
		bare[i].By = new(big.Rat)
		rest := semantics.Product{Times: new(big.Rat).Mul(p.Times, new(big.Rat).Neg(m.By)), Of: slices.Delete(slices.Clone(p.Of), i, i+1)}
		return append(splitOf(semantics.Product{Times: p.Times, Of: bare}, t), splitOf(rest, t)...)
	}
	return []semantics.Product{p}
}

// sumGrid is a sum of products and a constant while its grids are looked for.
type sumGrid struct {
	table     *policy.Table
	products  []semantics.Product
	exponents [][]int  // of each product's columns
	times     *big.Rat // of all; nil means one
	constant  *big.Rat
	within    bool     // the constant is on the grid
	rest      *big.Rat // of a constant that is not, which onGrid leaves out
}

// sumGridOf takes the constants of a sum together, and out of it what its only product is multiplied by where that has
// too many digits.
func sumGridOf(t *policy.Table, list []semantics.Product) *sumGrid {
	l := &sumGrid{table: t, constant: new(big.Rat), within: true}
	for _, p := range list {
		if len(p.Of) == 0 {
			l.constant.Add(l.constant, p.Times)
		} else if p.Times.Sign() != 0 || len(list) == 1 {
			l.products = append(l.products, p)
		}
	}
	if len(l.products) == 1 && l.products[0].Times.Sign() != 0 {
		p := &l.products[0]
		if v, exact := semantics.Valuation(p.Times); !exact || new(big.Rat).Quo(p.Times, semantics.Power10(v, 1)).Num().CmpAbs(big.NewInt(maxTimes)) > 0 {
			l.times = p.Times
			l.constant.Quo(l.constant, p.Times)
			p.Times = big.NewRat(1, 1)
		}
	}
	_, exact := semantics.Valuation(l.constant)
	l.within = exact
	l.exponents = make([][]int, len(l.products))
	return l
}

// linear makes v the value of a sum of products; false where its argument is none, or is on no grid.
func (v *Argument) linear(t *policy.Table) bool {
	var products []semantics.Product
	for _, p := range semantics.LinearOf(v.Arg) {
		products = append(products, splitOf(p, t)...)
	}
	if products == nil || len(products) > semantics.MaxTerms || v.Use == semantics.Rounded && len(products) > maxTermsSquared {
		return false
	}
	l := sumGridOf(t, products)
	for i, p := range l.products {
		for _, m := range p.Of {
			f, ok := semantics.FactorOf(t.Columns[m.Column], false, math.MaxInt64/4)
			if !ok {
				return false
			}
			l.exponents[i] = append(l.exponents[i], f.Exponent)
		}
	}
	for range maxLinearRounds {
		terms, exponent, ok := l.onGrid()
		if !ok {
			return false
		}
		bound, fits := plans.BoundOfTerms(terms)
		fits = fits && terms != nil
		centre := int64(0)
		if fits && v.Centred {
			centre = bound.Low + (bound.High-bound.Low)/2
		}
		if fits && max(centre-bound.Low, bound.High-centre) <= v.Largest && (v.Use != semantics.Rounded || small(moveTerms(terms, -centre))) {
			v.settle(moveTerms(terms, -centre), bound, semantics.Grid{Exponent: exponent, Centre: centre}, l)
			return true
		}
		if !l.coarsen() {
			return false
		}
	}
	return false
}

// small tells terms whose products with each other add up to what is calculated in.
func small(terms []plans.SumTerm) bool {
	size := new(big.Int)
	for _, t := range terms {
		least, most := plans.EndsOf(t)
		if least.CmpAbs(most) > 0 {
			most = least
		}
		size.Add(size, new(big.Int).Abs(most))
	}
	return size.Cmp(big.NewInt(semantics.MaxSquare)) <= 0
}

// settle keeps the terms of a value, which are less the grid's centre.
func (v *Argument) settle(terms []plans.SumTerm, bound mechanisms.Bound, g semantics.Grid, l *sumGrid) {
	v.Grid, v.terms, v.Times = g, terms, l.times
	v.bound = mechanisms.Bound{Low: bound.Low - g.Centre, High: bound.High - g.Centre}
	if v.Plus = nil; l.rest.Sign() != 0 {
		v.Plus = l.rest
		if v.Times != nil {
			v.Plus = new(big.Rat).Mul(l.rest, v.Times)
		}
	}
	ends := []*big.Rat{semantics.Power10(g.Exponent, bound.Low), semantics.Power10(g.Exponent, bound.High)}
	for _, x := range ends {
		if x.Add(x, l.rest); v.Times != nil {
			x.Mul(x, v.Times)
		}
	}
	v.Least, v.Most = semantics.Extremes(ends)
}

// onGrid are the terms as whole numbers of 10^exponent; nil means some are too large. It is not ok where what a product
// is multiplied by is on no grid.
func (l *sumGrid) onGrid() (terms []plans.SumTerm, exponent int, ok bool) {
	units := make([]*big.Rat, len(l.products))
	exponent = math.MaxInt32
	for i, p := range l.products {
		sum := 0
		for _, e := range l.exponents[i] {
			sum += e
		}
		units[i] = new(big.Rat).Mul(p.Times, semantics.Power10(sum, 1))
		if units[i].Sign() == 0 {
			continue
		}
		v, exact := semantics.Valuation(units[i])
		if !exact {
			return nil, 0, false
		}
		exponent = min(exponent, v)
	}
	if l.within && l.constant.Sign() != 0 {
		v, _ := semantics.Valuation(l.constant)
		exponent = min(exponent, v)
	}
	if exponent == math.MaxInt32 {
		exponent = 0
	}
	for i, p := range l.products {
		times := new(big.Rat).Quo(units[i], semantics.Power10(exponent, 1))
		if times.Num().CmpAbs(big.NewInt(maxTimes)) > 0 {
			return nil, 0, true
		}
		t := plans.SumTerm{Times: times.Num().Int64()}
		for at, m := range p.Of {
			f, ok := m.Factor(l.table.Columns[m.Column], l.exponents[i][at])
			if !ok {
				return nil, 0, false
			}
			t.Factors = append(t.Factors, f)
		}
		slices.SortFunc(t.Factors, plans.CompareFactors)
		terms = append(terms, t)
	}
	whole := semantics.Nearest10(l.constant, exponent)
	if max(whole, -whole) > maxTimes {
		if whole = 0; l.within {
			return nil, 0, true
		}
	}
	terms = append(terms, plans.SumTerm{Times: whole})
	l.rest = new(big.Rat).Sub(l.constant, semantics.Power10(exponent, whole))
	if terms = merged(terms); terms == nil {
		terms = []plans.SumTerm{}
	}
	return terms, exponent, true
}

// coarsen makes the grid of one column ten times as coarse: the largest of the product that the common grid is as fine
// for. Where that is the constant's, it is on the grid no longer.
func (l *sumGrid) coarsen() bool {
	at, least := -1, math.MaxInt32
	for i, p := range l.products {
		if p.Times.Sign() == 0 {
			continue
		}
		sum := 0
		for _, e := range l.exponents[i] {
			sum += e
		}
		if v, exact := semantics.Valuation(new(big.Rat).Mul(p.Times, semantics.Power10(sum, 1))); exact && v < least {
			at, least = i, v
		}
	}
	if at < 0 {
		return false
	}
	if v, _ := semantics.Valuation(l.constant); l.within && l.constant.Sign() != 0 && v < least {
		l.within = false
		return true
	}
	of, largest := -1, int64(0)
	for i, m := range l.products[at].Of {
		f, ok := m.Factor(l.table.Columns[m.Column], l.exponents[at][i])
		if !ok {
			return false
		}
		if size := max(-f.Low, f.High); size > largest {
			of, largest = i, size
		}
	}
	if of < 0 || largest <= 1 {
		return false
	}
	l.exponents[at][of]++
	return true
}

// merged adds up terms of equal products, in a fixed order, and leaves out those of nothing.
func merged(terms []plans.SumTerm) (out []plans.SumTerm) {
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b plans.SumTerm) int { return slices.CompareFunc(a.Factors, b.Factors, plans.CompareFactors) })
	for _, t := range terms {
		if n := len(out); n > 0 && slices.Equal(out[n-1].Factors, t.Factors) {
			out[n-1].Times += t.Times
			continue
		}
		out = append(out, t)
	}
	return slices.DeleteFunc(out, func(t plans.SumTerm) bool { return t.Times == 0 })
}

// moveTerms adds a whole number.
func moveTerms(terms []plans.SumTerm, by int64) []plans.SumTerm {
	return merged(append(slices.Clone(terms), plans.SumTerm{Times: by}))
}

// squaredTerms is the square of a sum of terms.
func squaredTerms(terms []plans.SumTerm) (out []plans.SumTerm) {
	for _, a := range terms {
		for _, b := range terms {
			factors := append(slices.Clone(a.Factors), b.Factors...)
			slices.SortFunc(factors, plans.CompareFactors)
			out = append(out, plans.SumTerm{Times: a.Times * b.Times, Factors: factors})
		}
	}
	return merged(out)
}

// What a solved question adds up.

// Summed lists what each measured counter adds up; nil means all of them count rows.
func (s *Query) Summed() []*plans.Sum {
	sums, some := make([]*plans.Sum, len(s.Counts)), false
	for c, sum := range s.Sums {
		switch {
		case s.Values[c] != nil && sum == nil:
			sums[c] = &plans.Sum{Bound: mechanisms.Bound{Low: 0, High: 1}, Values: s.Shown(c)}
		case sum == nil:
			continue
		case sum.Expr == nil:
			sums[c] = &plans.Sum{Terms: s.ownTerms(sum.Terms), Over: sum.Over, Bound: sum.Bound}
		default:
			sums[c] = &plans.Sum{Bound: sum.Weights.Bound, Values: s.Shown(c)}
		}
		some = true
	}
	if !some {
		return nil
	}
	return sums
}

// ownTerms are terms over the question's table. When they were made it may have been another, to which a condition has
// added a column since: the columns of that are the first here.
func (s *Query) ownTerms(terms []plans.SumTerm) []plans.SumTerm {
	out := slices.Clone(terms)
	for n, term := range out {
		own := slices.Clone(term.Factors)
		for i, f := range own {
			if t := f.Column.Table; t != s.Table {
				own[i].Column = s.Table.Columns[plans.ColumnIndex(t, f.Column)]
			}
		}
		out[n].Factors = own
	}
	return out
}

// encodeWeights adds the weights of a counter to a description, and which factor they are of: two factors may be alike.
func (s *Query) encodeWeights(b []byte, counter, most int) []byte {
	from := len(b)
	for i, p := range s.Factors {
		w := p.Weights[counter]
		if w != nil {
			b = binary.AppendUvarint(b, uint64(i))
		}
		eachRun(p, w, func(n int, weight int64) {
			b = binary.AppendVarint(binary.AppendUvarint(b, uint64(n)), weight)
		})
	}
	return shortened(b, from, most)
}

// spread are a summand's weights by combination of a factor, whose pieces lie within those of its expression.
func (v *Solver) spread(sum *Summand, p *Factor) []int64 {
	out := make([]int64, len(p.Class))
	cells := make([]int, len(p.Columns))
	for at := range out {
		Decode(at, p.Sizes, cells)
		own := 0
		for _, c := range sum.Expr.Cols {
			i := slices.Index(p.Columns, c)
			cell, size := p.firstOf(i, cells[i]), v.Table.Columns[c].Domain.Size()
			if of := sum.Weights.pieces; of != nil {
				k := slices.Index(of.Columns, c)
				cell, size = of.PieceOf(k, cell), of.Sizes[k]
			}
			own = own*size + cell
		}
		out[at] = sum.Weights.values[own]
	}
	return out
}

// weighing looks a group's weight up; nil where no counter has weights.
func (s *Query) weighing() plans.Weighing {
	some := false
	for _, sum := range s.Sums {
		some = some || sum != nil && sum.Expr != nil
	}
	if !some {
		return nil
	}
	parts := s.Factors
	return func(cells []int32, counter int) int64 {
		weight, from := int64(1), 0
		for _, p := range parts {
			at := p.combination(cells[min(from, len(cells)):])
			if at < 0 {
				return 0
			}
			from += len(p.Sizes)
			if counter < 0 || counter >= len(p.Weights) {
				return 0
			}
			if w := p.Weights[counter]; w != nil {
				weight = w[at]
			}
		}
		return weight
	}
}

// Fresh is the spec that counts and adds up at the given cost.
func (s *Query) Fresh(share privacy.Cost) (mechanisms.Spec, error) {
	sums, strategy := s.Summed(), mechanisms.Strategy{Kind: mechanisms.Identity}
	if s.Marginals != nil {
		strategy = s.Marginals.Strategy
	}
	if sums == nil && s.Marginals != nil {
		return mechanisms.OfStrategy(len(s.Counts), s.Cells, strategy, s.Contribution(), share)
	}
	if sums == nil {
		return mechanisms.Plain(len(s.Counts), s.Cells, s.Contribution(), share)
	}
	return mechanisms.SumsBy(strategy, CountersOf(sums), s.Cells, s.Contribution(), share)
}

// CountersOf are sums as the mechanism plans them.
func CountersOf(sums []*plans.Sum) []mechanisms.Counter {
	counters := make([]mechanisms.Counter, len(sums))
	for c, sum := range sums {
		counters[c] = mechanisms.Counter{Bound: mechanisms.Bound{Low: 0, High: 1}, Weight: countWeight}
		if sum != nil {
			counters[c] = mechanisms.Counter{Bound: sum.Bound}
		}
		if sum != nil && sum.Values > 0 {
			if counters[c].Values = sum.Values; sum.IsNumberOfValues() {
				counters[c].Weight = countWeight
			}
		}
	}
	return counters
}

// countWeight is how much the squared error of a count matters beside that of sums, which matters in proportion to
// their squared range (mechanisms.Counter): a mean m = S/n errs by (δS − m·δn)/n, and m², in units of the squared
// half-range, is a third on average over the range.
const countWeight = 1. / 3

// UnitOf is what one of the whole numbers of a sum is worth.
func UnitOf(s *Summand) *big.Rat {
	if s == nil {
		return nil
	}
	return s.Unit
}
