package linear

import (
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
)

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
func (s *Query) encodeWeights(b []byte, counter int) []byte {
	for i, p := range s.Factors {
		w := p.Weights[counter]
		if w != nil {
			b = binary.AppendUvarint(b, uint64(i))
		}
		eachRun(p, w, func(n int, weight int64) {
			b = binary.AppendVarint(binary.AppendUvarint(b, uint64(n)), weight)
		})
	}
	return b
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
