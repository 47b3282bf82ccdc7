package planner

import "github.com/dpproxy/dpproxy/mechanisms"

// alarmed is a comparison of a count with a constant.
type alarmed struct {
	where []*expr
	least int64 // the count is compared with, from below
	any   bool  // of bool_or: it is enough that a row is there, so noise alone must not say so
}

// alarmOf says which column of which sheet shows an alarm.
type alarmOf struct {
	sheet, counter int
	*alarmed
}

// threshold is what the count is compared with: that of bool_or is so much higher that, where no row has it, the answer is no
// at the confidence.
func (a *alarmed) threshold(spec mechanisms.Spec, c mechanisms.Confidence) int64 {
	if a.any {
		return a.least + spec.Margin(c)
	}
	return a.least
}
