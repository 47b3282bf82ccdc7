package planner

import (
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// offBy is the largest half-width over the rows of a leaf of a column that is a linear function of its counts; nil
// means it is not known. Counters are observed apart from one another, so their errors are those of a mixture; what
// occurs twice of one counter is added up first.
func (p assembly) offBy(leaf *plans.Leaf, linear *outerquery.Linear) *big.Rat {
	if linear == nil {
		return nil
	}
	terms := linear.Counts
	unit := new(big.Rat).Abs(terms[0].Worth)
	for _, w := range terms {
		if leaf.Counts[w.Column].Type != 0 || len(leaf.Counts[w.Column].Runs) != len(leaf.Counts[terms[0].Column].Runs) {
			return nil
		}
		if own := new(big.Rat).Abs(w.Worth); own.Cmp(unit) < 0 {
			unit = own
		}
	}
	most := int64(0)
	for r := range leaf.Counts[terms[0].Column].Runs {
		width, known := p.runOff(leaf, terms, r, unit)
		if !known {
			return nil
		}
		most = max(most, width)
	}
	off := new(big.Rat).Mul(unit, new(big.Rat).SetInt64(most))
	return off.Add(off, linear.Rounded)
}

// maxRowsMixed is of how many rows each is looked at; of more it is the one where the first counter errs most.
const maxRowsMixed = 1 << 14

// runOff is that of one run, in units.
func (p assembly) runOff(leaf *plans.Leaf, terms []outerquery.WeighedCount, r int, unit *big.Rat) (width int64, known bool) {
	first := &leaf.Counts[terms[0].Column].Runs[r]
	if len(terms) == 1 {
		if first.Selected != nil || first.Threshold != nil || first.Ladder != nil {
			return 0, false
		}
		return p.RunError(first).HalfWidth, true
	}
	rows := semantics.IdentityOf(len(first.Spans))
	var parts [][]observed
	for _, w := range terms {
		run := &leaf.Counts[w.Column].Runs[r]
		if run.Measure < 0 && run.Selected == nil && run.Mix == nil { // a public fact
			continue
		}
		if !run.IsSum() || len(run.Spans) != len(first.Spans) || mechanisms.Is[*mechanisms.Online](p.Measures[run.Measure].Spec) {
			return 0, false
		}
		spec := p.Measures[run.Measure].Spec
		if parts == nil {
			if len(rows) > maxRowsMixed {
				worst, _ := plans.WorstRow(spec.Only(run.Counter), run.Spans, p.Confidence)
				rows = []int{max(worst, 0)}
			}
			parts = make([][]observed, len(rows))
		}
		weight, _ := new(big.Rat).Quo(w.Worth, unit).Float64()
		for i, row := range rows {
			if len(run.Spans[row]) > 0 {
				parts[i] = append(parts[i], observed{run.Measure, mechanisms.Weighted{Spec: spec, Counter: run.Counter, Spans: run.Spans[row], Weight: weight}})
			}
		}
	}
	sums, known := sumsOf(parts)
	return mechanisms.WidestMixed(sums, p.Confidence).HalfWidth, known
}

// sumsOf are rows, each as what is added up of it, without those that nothing is added up of.
func sumsOf(rows [][]observed) (sums [][]mechanisms.Weighted, known bool) {
	for _, row := range rows {
		sum, known := addedUp(row)
		if !known {
			return nil, false
		}
		if len(sum) > 0 {
			sums = append(sums, sum)
		}
	}
	return sums, true
}

// observed is a part of a sum with the measure whose release it is of.
type observed struct {
	measure int
	mechanisms.Weighted
}

// addedUp are parts of which no two have cells of one counter in common; false means some have, of a release whose
// cells are not observed one by one. The weights of a cell that several have add up, as in count(*) - count(*) FILTER
// (WHERE p), which counts where p does not hold.
func addedUp(parts []observed) (out []mechanisms.Weighted, ok bool) {
	for len(parts) > 0 {
		first := parts[0]
		var same []mechanisms.Weighted
		var rest []observed
		for _, part := range parts {
			if part.measure == first.measure && part.Counter == first.Counter {
				same = append(same, part.Weighted)
			} else {
				rest = append(rest, part)
			}
		}
		if parts = rest; len(same) == 1 {
			out = append(out, first.Weighted)
			continue
		}
		if !mechanisms.Is[*mechanisms.Counts](first.Spec) || first.Spec.Counts().Strategy.Kind != mechanisms.Identity {
			return nil, false
		}
		out = append(out, byWeight(same)...)
	}
	return out, true
}

// byWeight are the cells of parts of one counter by what their weights add up to.
func byWeight(parts []mechanisms.Weighted) (out []mechanisms.Weighted) {
	var ends []int
	for _, part := range parts {
		for _, s := range part.Spans {
			ends = append(ends, s.From, s.To)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	for i := 1; i < len(ends); i++ {
		cells, weight := mechanisms.Span{From: ends[i-1], To: ends[i]}, 0.0
		for _, part := range parts {
			if slices.ContainsFunc(part.Spans, func(s mechanisms.Span) bool { return s.From <= cells.From && cells.To <= s.To }) {
				weight += part.Weight
			}
		}
		if weight == 0 {
			continue
		}
		at := slices.IndexFunc(out, func(have mechanisms.Weighted) bool { return have.Weight == weight })
		if at < 0 {
			at = len(out)
			out = append(out, mechanisms.Weighted{Spec: parts[0].Spec, Counter: parts[0].Counter, Weight: weight})
		}
		out[at].Spans = append(out[at].Spans, cells)
	}
	return out
}
