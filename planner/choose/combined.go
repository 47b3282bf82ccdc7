package choose

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// combined finds the sum or difference of releases of one epoch that answers a question. Of all that do as exactly as
// asked, those held longest: the same question keeps its answer when more is bought (docs/adr/0022). Nothing younger
// than oldest is looked at; where that leaves one release, which does by itself, there is nothing to combine it with.
func (ch *Optimizer) combined(q *goal, oldest int) []alternative {
	views := ch.views(q.Table)
	if views == nil || q.Marginals != nil || q.Cells*len(q.Counts) > reuse.MaxMixedRows || q.Table.MaxGroups > 0 {
		return nil
	}
	find := func() (list []reuse.CombinedReading) {
		rows := ch.mixings(views, q, oldest)
		t := &reuse.Combining{Views: views, Confidence: ch.Context.Settings.Confidence}
		for _, of := range reuse.EpochsOf(rows) {
			if m := t.Within(q.Query, rows, of); m != nil {
				list = append(list, *m)
			}
		}
		return list
	}
	var found []reuse.CombinedReading
	extent := views.Extent()
	if extent.Read == 0 || extent.Eldest == oldest {
		return nil
	}
	if extent.Ages {
		found = find()
	} else {
		found = views.Remembered(reuse.MixKey{Of: q.own.Digest, At: fmt.Sprint(q.share, ch.Context.Settings.Confidence, ch.Context.Settings.MaxError, oldest)}, find)
	}
	list := make([]alternative, len(found))
	for i, m := range found {
		w := &Path{Reading: m.Reading, counts: m.Counts, Others: m.Measures, Measure: m.Measures[0]}
		list[i] = alternative{path: w, variance: m.Variance, holding: m.Holding, order: m.Order, preferred: !slices.ContainsFunc(m.Measures, func(m *plans.Measure) bool { return !ch.preferred(m) }), enough: m.Enough || ch.asExact(q, w, m.Variance)}
	}
	return list
}

// mixings are the rows of a question; nil where one of them is nothing that releases add up to.
func (ch *Optimizer) mixings(views *reuse.Views, q *goal, oldest int) []reuse.Mixing {
	var rows []reuse.Mixing
	for c := range q.Counts {
		adds, ok := q.AddsUp(c)
		if !ok {
			return nil
		}
		limit := ch.variance(q.fresh.Only(c))
		if ch.Context.Settings.MaxError != 0 {
			limit = ch.varianceWithin(ch.bound(q.Query, c))
		}
		for cell := range q.Cells {
			wanted, ok := q.ConditionOf(c, cell)
			if _, never := wanted.(predicate.Never); !ok || never {
				return nil
			}
			rows = append(rows, reuse.Mixing{Counter: c, Cell: cell, Wanted: wanted, Adds: adds, Limit: limit, Near: nil})
			last := &rows[len(rows)-1]
			last.Near = slices.DeleteFunc(views.Near(wanted), func(s *reuse.View) bool { return s.Order > oldest || ch.isStale(s.Holding, s.Declared) })
			if len(last.Near) == 0 {
				return nil
			}
		}
	}
	return rows
}
