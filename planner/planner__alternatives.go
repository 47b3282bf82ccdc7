package planner

// tellAlternatives keeps every candidate of every question of the plan.
func (p assembly) tellAlternatives(ch *chooser, sheets []*sheet, ways [][]*way) {
	for i, sh := range sheets {
		name := leafName(i)
		for j, a := range sh.asks {
			w := ways[i][j]
			if w == nil {
				continue
			}
			if a.chosen != nil {
				name = leafName(a.chosen.sheet)
			}
			if a.alarm != nil {
				p.Alternatives = append(p.Alternatives, Alternative{Leaf: leafName(a.alarm.sheet), Kind: w.measure.Kind, Name: w.measure.Name, Held: w.measure.Held, Cost: w.measure.Cost, Taken: true, Why: w.measure.Why})
				continue
			}
			quiet := *ch // what it notes was noted when the ways were chosen
			p.Alternatives = append(p.Alternatives, quiet.alternatives(name, a.solved, w)...)
		}
	}
}
