package planner

// mixedRow are the terms of a row that is made up of some cells of a question.
func (p assembly) mixedRow(w *way, counter int, cells []int) []Term {
	var row []Term
	for _, cell := range cells {
		for _, t := range w.reading.mix.terms[counter][cell] {
			t.Measure = p.measure(w.others[t.Measure])
			row = append(row, t)
		}
	}
	return row
}
