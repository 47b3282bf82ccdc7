package planner

import (
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// What a solved question adds up.

// summed lists what each measured counter adds up; nil: all of them count rows.
func (s *solved) summed() []*Sum {
	sums, some := make([]*Sum, len(s.counts)), false
	for c, sum := range s.sums {
		if s.values[c] != nil {
			some, sums[c] = true, &Sum{Bound: mechanisms.Bound{Low: 0, High: 1}, Values: s.shown(c)}
		}
		if sum == nil {
			continue
		}
		some = true
		sums[c] = &Sum{Bound: sum.weights.bound}
		if sum.expr == nil {
			sums[c] = &Sum{Terms: s.ownTerms(sum.terms), Over: sum.over, Bound: sum.bound}
		}
	}
	if !some {
		return nil
	}
	return sums
}

// ownTerms are terms over the question's table. When they were made it may have been another, to which a condition has
// added a column since: the columns of that are the first here.
func (s *solved) ownTerms(terms []SumTerm) []SumTerm {
	out := slices.Clone(terms)
	for n, term := range out {
		own := slices.Clone(term.Factors)
		for i, f := range own {
			if t := f.Column.Table; t != s.table {
				own[i].Column = s.table.Columns[columnIndex(t, f.Column)]
			}
		}
		out[n].Factors = own
	}
	return out
}

// encodeWeights adds the weights of a counter to a description, and which part they are of: two parts may be alike.
func (s *solved) encodeWeights(b []byte, counter int) []byte {
	for i, p := range s.parts {
		w := p.weights[counter]
		if w != nil {
			b = binary.AppendUvarint(b, uint64(i))
		}
		eachRun(p, w, func(n int, weight int64) {
			b = binary.AppendVarint(binary.AppendUvarint(b, uint64(n)), weight)
		})
	}
	return b
}

// spread are a summand's weights by combination of a part, whose pieces lie within those of its expression.
func (v *solver) spread(sum *summand, p *part) []int64 {
	out := make([]int64, len(p.class))
	cells := make([]int, len(p.columns))
	for at := range out {
		decode(at, p.sizes, cells)
		own := 0
		for _, c := range sum.expr.cols {
			i := slices.Index(p.columns, c)
			cell, size := p.firstOf(i, cells[i]), v.table.Columns[c].Domain.Size()
			if of := sum.weights.pieces; of != nil {
				k := slices.Index(of.columns, c)
				cell, size = of.pieceOf(k, cell), of.sizes[k]
			}
			own = own*size + cell
		}
		out[at] = sum.weights.values[own]
	}
	return out
}

// weighing looks a group's weight up; nil where no counter has weights.
func (s *solved) weighing() Weighing {
	some := false
	for _, sum := range s.sums {
		some = some || sum != nil && sum.expr != nil
	}
	if !some {
		return nil
	}
	parts := s.parts
	return func(cells []int32, counter int) int64 {
		weight, from := int64(1), 0
		for _, p := range parts {
			at := p.combination(cells[min(from, len(cells)):])
			if at < 0 {
				return 0
			}
			from += len(p.sizes)
			if counter < 0 || counter >= len(p.weights) {
				return 0
			}
			if w := p.weights[counter]; w != nil {
				weight = w[at]
			}
		}
		return weight
	}
}

// fresh is the spec that counts and adds up at the given cost.
func (s *solved) fresh(share privacy.Cost) (mechanisms.Spec, error) {
	sums, strategy := s.summed(), mechanisms.Strategy{Kind: mechanisms.Identity}
	if s.marginals != nil {
		strategy = s.marginals.strategy
	}
	if sums == nil && s.marginals != nil {
		return mechanisms.OfStrategy(len(s.counts), s.cells, strategy, s.contribution(), share)
	}
	if sums == nil {
		return mechanisms.Plain(len(s.counts), s.cells, s.contribution(), share)
	}
	return mechanisms.SumsBy(strategy, countersOf(sums), s.cells, s.contribution(), share)
}

// countersOf are sums as the mechanism plans them.
func countersOf(sums []*Sum) []mechanisms.Counter {
	counters := make([]mechanisms.Counter, len(sums))
	for c, sum := range sums {
		counters[c] = mechanisms.Counter{Bound: mechanisms.Bound{Low: 0, High: 1}, Weight: countWeight}
		if sum != nil {
			counters[c] = mechanisms.Counter{Bound: sum.Bound}
		}
		if sum != nil && sum.Values > 0 {
			counters[c] = mechanisms.Counter{Bound: sum.Bound, Weight: countWeight, Values: sum.Values}
		}
	}
	return counters
}

// countWeight is how much the squared error of a count matters beside that of sums, which matters in proportion to their
// squared range (mechanisms.Counter): a mean m = S/n errs by (δS − m·δn)/n, and m², in units of the squared half-range, is
// a third on average over the range.
const countWeight = 1. / 3
