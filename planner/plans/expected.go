package plans

import "github.com/dpproxy/dpproxy/mechanisms"

// LargestError is the largest expected error over rows, over evenly chosen ones where there are very many.
func LargestError(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) mechanisms.Error {
	row, _ := WorstRow(spec, rows, confidence)
	if row < 0 {
		return mechanisms.Error{}
	}
	return spec.Error(rows[row], confidence)
}

// WorstRow finds the row with the largest variance, −1 if there is none. Half-widths take longer and are left alone.
func WorstRow(spec mechanisms.Spec, rows [][]mechanisms.Span, confidence mechanisms.Confidence) (row int, variance float64) {
	row = -1
	errors := spec.Errors(confidence)
	for i := 0; i < len(rows); i += errors.Every(len(rows)) {
		if v := errors.Variance(rows[i]); row < 0 || v > variance {
			row, variance = i, v
		}
	}
	return row, variance
}
