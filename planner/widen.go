package planner

// Where a row falls into one cell of a measure, neighbours move it by what a unit's rows move one count, however many
// cells there are (add-remove; privacy rule 10). So a count under a condition costs no more, and errs no more, if the rows
// outside the condition are counted beside it, in cells of their own: the condition's complement, and for
// `sex = 'Female' AND age = 30` every other sex and age. These answer later questions for free. See docs/adr/0026.

// widened is the fresh measure of a question with the cells around its own, none where that is dearer, means something
// else, or has nothing to add. Its own cells are whole cells of the measure, so that they err as they would alone.
func (ch *chooser) widened(q *asking) []candidate {
	most := ch.c.Dataset.Buying.Cells
	if most == 0 || !q.widens() {
		return nil
	}
	wide := q.around(most)
	if wide == nil || q.table.BoundsGroups(q.cells) != q.table.BoundsGroups(wide.cells) {
		return nil
	}
	spec, err := wide.fresh(q.share)
	if err != nil || ch.variance(spec) > ch.variance(q.fresh) {
		return nil
	}
	r := cover(q.solved, wide)
	if r == nil {
		return nil
	}
	m := wide.measure("histogram", q.own.Name)
	m.Spec, m.Cost = spec, q.share
	m.Why = "no release that you have paid for answers it as exactly; the rows around its own are counted too, which costs nothing more"
	return []candidate{{way: &way{measure: m, reading: r, counts: wide}, variance: ch.worst(spec, r)}}
}

// beside reads a question that would be measured from what the statement buys already, where that is no less exact.
func (ch *chooser) beside(s *solved, w *way, ways [][]*way) *way {
	if w.counts == nil || w.measure.Held {
		return w
	}
	for _, list := range ways {
		for _, have := range list {
			if have == nil || have.counts == nil || have.measure.Held || have.counts.table != s.table {
				continue
			}
			if r := cover(s, have.counts); r != nil && ch.worst(have.measure.Spec, r) <= ch.worst(w.measure.Spec, w.reading) {
				return &way{measure: have.measure, reading: r, counts: have.counts}
			}
		}
	}
	return w
}
