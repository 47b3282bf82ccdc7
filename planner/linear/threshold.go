package linear

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// SELECT count(*) > 500 FROM visits WHERE …, with dp.alarms on, compares a count with a constant and tells yes or no.

// ThresholdTest is a comparison of a count with a constant.
type ThresholdTest struct {
	Where []*semantics.Expr
	Least int64 // the count is compared with, from below
	Any   bool  // of bool_or: it is enough that a row is there, so noise alone must not say so
}

// ThresholdColumn says which column of which leaf plan shows an alarm.
type ThresholdColumn struct {
	Leaf, Counter int
	*ThresholdTest
}

// Bound is what the count is compared with: that of bool_or is so much higher that, where no row has it, the answer is
// no at the confidence.
func (a *ThresholdTest) Bound(spec mechanisms.Spec, c mechanisms.Confidence) int64 {
	if a.Any {
		return a.Least + spec.Margin(c)
	}
	return a.Least
}
