package planner

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/planner/predicate"
)

// combined finds the sum or difference of releases of one epoch that answers a question. Of all that do as exactly as
// asked, those held longest: the same question keeps its answer when more is bought (docs/adr/0022).
func (ch *chooser) combined(q *asking) []candidate {
	stock := ch.stock(q.table)
	if stock == nil || stock.read() == 0 || q.marginals != nil || q.cells*len(q.counts) > mostMixedRows || q.table.MaxGroups > 0 {
		return nil
	}
	find := func() (list []mixedReading) {
		rows := ch.mixings(stock, q)
		t := &combining{stock, ch.c.Settings.Confidence}
		for _, of := range epochsOf(rows) {
			if m := t.within(q.solved, rows, of); m != nil {
				list = append(list, *m)
			}
		}
		return list
	}
	var found []mixedReading
	if stock.ages() {
		found = find()
	} else {
		found = stock.remembered(mixKey{q.own.Digest, fmt.Sprint(q.share, ch.c.Settings.Confidence, ch.c.Settings.MaxError)}, find)
	}
	list := make([]candidate, len(found))
	for i, m := range found {
		w := &way{reading: m.reading, counts: m.counts, others: m.measures, measure: m.measures[0]}
		list[i] = candidate{way: w, variance: m.variance, holding: m.holding, order: m.order, released: m.released, enough: m.enough}
	}
	return list
}

// mixings are the rows of a question; nil where one of them is nothing that releases add up to.
func (ch *chooser) mixings(stock *Stock, q *asking) []mixing {
	var rows []mixing
	for c := range q.counts {
		adds, ok := q.addsUp(c)
		if !ok {
			return nil
		}
		limit := ch.variance(q.fresh.Only(c))
		if ch.c.Settings.MaxError != 0 {
			limit = ch.varianceWithin(ch.bound(q.solved, c))
		}
		for cell := range q.cells {
			wanted, ok := q.conditionOf(c, cell)
			if _, never := wanted.(predicate.Never); !ok || never {
				return nil
			}
			rows = append(rows, mixing{c, cell, wanted, adds, limit, nil})
			last := &rows[len(rows)-1]
			last.near = slices.DeleteFunc(stock.near(wanted), func(s *stocked) bool { return ch.isStale(s.holding, s.declared) })
			if len(last.near) == 0 {
				return nil
			}
		}
	}
	return rows
}
