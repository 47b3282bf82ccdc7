package planner

import "github.com/dpproxy/dpproxy/mechanisms"

// mostErrors bounds how many rows' errors a plan computes.
const mostErrors = 256

// worst is the largest expected squared error over the rows of a reading.
func (ch *chooser) worst(spec mechanisms.Spec, r *reading) float64 {
	most := 0.0
	for _, rows := range r.spans {
		most = max(most, largestError(spec, rows, ch.c.Settings.Confidence).Variance)
	}
	return most
}

// largestError is the largest expected error over rows, over evenly chosen ones where there are very many.
func largestError(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) mechanisms.Error {
	var out mechanisms.Error
	if spec.Strategy.Kind == mechanisms.Identity {
		most := -1
		for i, spans := range rows {
			if most < 0 || countCells(spans) > countCells(rows[most]) {
				most = i
			}
		}
		if most < 0 {
			return out
		}
		return spec.Error(rows[most], confidence)
	}
	errors := spec.Errors(confidence)
	for i := 0; i < len(rows); i += 1 + len(rows)/mostErrors {
		if e := errors.Of(rows[i]); e.Variance > out.Variance {
			out = e
		}
	}
	return out
}

func countCells(spans []mechanisms.Span) int {
	n := 0
	for _, s := range spans {
		n += s.To - s.From
	}
	return n
}
