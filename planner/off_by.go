package planner

import (
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// offBy is the largest half-width over the rows of a leaf of a column that is some of its counts times constants; nil: it is
// not known. The counts are observed apart from one another, so their errors are those of a mixture.
func (p assembly) offBy(leaf *plans.Leaf, terms []outerquery.WeighedCount) *big.Rat {
	if len(terms) == 0 {
		return nil
	}
	unit := terms[0].Worth
	for _, w := range terms {
		if leaf.Counts[w.Column].Type != 0 || len(leaf.Counts[w.Column].Runs) != len(leaf.Counts[terms[0].Column].Runs) {
			return nil
		}
		if w.Worth.Cmp(unit) < 0 {
			unit = w.Worth
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
	return new(big.Rat).Mul(unit, new(big.Rat).SetInt64(most))
}

// runOff is that of one run, in units.
func (p assembly) runOff(leaf *plans.Leaf, terms []outerquery.WeighedCount, r int, unit *big.Rat) (width int64, known bool) {
	first := &leaf.Counts[terms[0].Column].Runs[r]
	if len(terms) == 1 {
		if first.Selected != nil || first.Threshold != nil {
			return 0, false
		}
		return p.RunError(first).HalfWidth, true
	}
	row := -1
	var parts []mechanisms.Weighted
	for _, w := range terms {
		run := &leaf.Counts[w.Column].Runs[r]
		if run.Measure < 0 && run.Selected == nil && run.Mix == nil { // a public fact
			continue
		}
		if run.Mix != nil || run.Selected != nil || run.Threshold != nil || len(run.Spans) != len(first.Spans) || mechanisms.Is[*mechanisms.Online](p.Measures[run.Measure].Spec) {
			return 0, false
		}
		spec := p.Measures[run.Measure].Spec
		if row < 0 {
			if row, _ = plans.WorstRow(spec.Only(run.Counter), run.Spans, p.Confidence); row < 0 {
				return 0, true
			}
		}
		for _, have := range parts {
			if have.Counter == run.Counter && p.Measures[first.Measure] == p.Measures[run.Measure] {
				return 0, false
			}
		}
		weight, _ := new(big.Rat).Quo(w.Worth, unit).Float64()
		parts = append(parts, mechanisms.Weighted{Spec: spec, Counter: run.Counter, Spans: run.Spans[row], Weight: weight})
	}
	if len(parts) == 0 {
		return 0, true
	}
	return mechanisms.MixedError(parts, p.Confidence).HalfWidth, true
}
