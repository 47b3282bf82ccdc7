package planner

import (
	"math/big"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// How far a column is off that is a count or a sum times a constant, or several of them: sum(price) is a sum of cents times
// 0.01, and its error is that of the cents times 0.01.

// weighedCount is a column of counts or sums with what one is worth.
type weighedCount struct {
	column int
	worth  *big.Rat
}

// unitOf is what one of the whole numbers of a sum is worth.
func unitOf(s *summand) *big.Rat {
	if s == nil {
		return nil
	}
	return s.unit
}

// linearShown reads an expression over a leaf's row as count columns times constants; nil: it is something else.
func (b *binder) linearShown(leaf int, e *expr) (out []weighedCount) {
	if leaf < 0 {
		return nil
	}
	decimals := -1
	for len(e.args) > 0 {
		if strings.HasPrefix(e.op, "cast:") && e.Typmod() < 0 && numeric(e) {
			if e.Type().Integer() && !e.args[0].Type().Integer() {
				decimals = 0
			}
			e = e.args[0]
			continue
		}
		if e.op != "round" || len(e.args) != 2 || !e.args[1].isConstant() || e.args[1].parameter > 0 {
			break
		}
		n, ok := mustConstant(e.args[1]).(int64)
		if !ok || n < 0 || n > mostDecimals {
			return nil
		}
		decimals, e = int(n), e.args[0]
	}
	keys := len(b.questions[leaf].keys)
	for _, p := range linearOf(e) {
		switch {
		case p.times.Sign() == 0 || len(p.of) == 0:
			continue
		case len(p.of) > 1 || p.of[0].column < keys || decimals >= 0 && decimalsOf(p.times) > decimals:
			return nil
		}
		out = append(out, weighedCount{p.of[0].column - keys, new(big.Rat).Abs(p.times)})
	}
	return out
}

// offBy is the largest half-width over the rows of a leaf of a column that is some of its counts times constants; nil: it is
// not known. The counts are observed apart from one another, so their errors are those of a mixture.
func (p *Plan) offBy(leaf *Leaf, linear []weighedCount) *big.Rat {
	if len(linear) == 0 {
		return nil
	}
	unit := linear[0].worth
	for _, w := range linear {
		if leaf.Counts[w.column].Type != 0 || len(leaf.Counts[w.column].Runs) != len(leaf.Counts[linear[0].column].Runs) {
			return nil
		}
		if w.worth.Cmp(unit) < 0 {
			unit = w.worth
		}
	}
	most := int64(0)
	for r := range leaf.Counts[linear[0].column].Runs {
		width, known := p.runOff(leaf, linear, r, unit)
		if !known {
			return nil
		}
		most = max(most, width)
	}
	return new(big.Rat).Mul(unit, new(big.Rat).SetInt64(most))
}

// runOff is that of one run, in units.
func (p *Plan) runOff(leaf *Leaf, linear []weighedCount, r int, unit *big.Rat) (width int64, known bool) {
	first := &leaf.Counts[linear[0].column].Runs[r]
	if len(linear) == 1 {
		if first.Pick != nil || first.Alarm != nil {
			return 0, false
		}
		return p.runError(first).HalfWidth, true
	}
	row := -1
	var parts []mechanisms.Weighted
	for _, w := range linear {
		run := &leaf.Counts[w.column].Runs[r]
		if run.Measure < 0 && run.Pick == nil && run.Mix == nil { // a public fact
			continue
		}
		if run.Mix != nil || run.Pick != nil || run.Alarm != nil || len(run.Spans) != len(first.Spans) || mechanisms.Is[*mechanisms.Online](p.Measures[run.Measure].Spec) {
			return 0, false
		}
		spec := p.Measures[run.Measure].Spec
		if row < 0 {
			if row, _ = worstRow(spec.Only(run.Counter), run.Spans, p.Confidence); row < 0 {
				return 0, true
			}
		}
		for _, have := range parts {
			if have.Counter == run.Counter && p.Measures[first.Measure] == p.Measures[run.Measure] {
				return 0, false
			}
		}
		weight, _ := new(big.Rat).Quo(w.worth, unit).Float64()
		parts = append(parts, mechanisms.Weighted{Spec: spec, Counter: run.Counter, Spans: run.Spans[row], Weight: weight})
	}
	if len(parts) == 0 {
		return 0, true
	}
	return mechanisms.MixedError(parts, p.Confidence).HalfWidth, true
}
