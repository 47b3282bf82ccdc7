package planner

import (
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// tellAlternatives keeps every candidate of every question of the plan.
func (p assembly) tellAlternatives(ch *choose.Optimizer, sheets []*choose.LeafPlan, ways [][]*choose.Path) {
	for i, sh := range sheets {
		name := plans.LeafName(i)
		for j, a := range sh.Requests {
			w := ways[i][j]
			if w == nil {
				continue
			}
			if a.Chosen != nil {
				name = plans.LeafName(a.Chosen.Sheet)
			}
			if a.Alarm != nil {
				p.Alternatives = append(p.Alternatives, plans.Alternative{Leaf: plans.LeafName(a.Alarm.Sheet), Kind: w.Measure.Kind, Name: w.Measure.Name, Held: w.Measure.Held, Cost: w.Measure.Cost, Taken: true, Why: w.Measure.Why})
				continue
			}
			quiet := *ch // what it notes was noted when the ways were chosen
			p.Alternatives = append(p.Alternatives, quiet.Alternatives(name, a.Query, w)...)
		}
	}
}
