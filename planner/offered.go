package planner

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// What is on offer besides counting afresh: the releases that the policy declares, and a range release of her own.

// declared finds the releases of the policy that she may buy for this: ranges over a column that the question ranges over,
// and histograms that answer it no worse than counting it alone at that price would.
func (ch *chooser) declared(q *asking) (list []candidate) {
	columns, ok := q.columns()
	if !ok {
		return nil
	}
	bought := false
	for _, r := range q.table.Releases {
		if !containsAll(r.Columns, columns) || len(columns) == 0 && !r.Grows() { // of rows that are added, all are those so far
			continue
		}
		held, spec := ch.ofRelease(r)
		if held == nil {
			continue
		}
		reading := cover(q.solved, held)
		if reading == nil {
			continue
		}
		w := &way{reading: reading, measure: held.measure(r.Kind.String(), r.Name)}
		w.measure.Shared, w.measure.Declared, w.measure.Cost = true, r, r.Cost
		w.measure.Why = offered(r)
		held.sold(w.measure, spec)
		c := candidate{way: w, variance: ch.worst(w.measure.Spec, reading)}
		if r.Kind == policy.HistogramRelease {
			alone, err := mechanisms.Plain(len(q.counts), q.cells, q.contribution(), r.Cost)
			if err != nil || c.variance > 1.001*ch.variance(alone) {
				c.not = "further off than counting this alone at its price"
			}
		}
		if c.not == "" && !r.Cost.Fits(q.share) {
			c.not = "dearer than dp.epsilon lets this question be"
			ch.hints.add(hint(r))
		}
		bought = bought || c.not == ""
		list = append(list, c)
	}
	if bought {
		ch.hints = nil
	}
	return list
}

// ownRelease buys a range release over the only column that the question reads: SET dp.release = on.
func (ch *chooser) ownRelease(q *asking) []candidate {
	if !ch.c.Settings.Release && !ch.c.Alternatives {
		return nil
	}
	w := ch.ownRange(q.solved, q.share, q.table.Appends != nil)
	if w == nil {
		return nil
	}
	c := candidate{way: w, variance: ch.worst(w.measure.Spec, w.reading)}
	if !ch.c.Settings.Release {
		c.not = "a release that the policy does not declare is bought with SET dp.release = on"
	}
	return []candidate{c}
}

// ownRange is a range release of her own over the only column that a question reads; one that grows, if that is wanted and
// the column's can.
func (ch *chooser) ownRange(s *solved, share privacy.Cost, grows bool) *way {
	columns, ok := s.columns()
	if !ok || len(columns) != 1 || !columns[0].Domain.Ordered() {
		return nil
	}
	if columns[0].Domain.Size() > maxCells {
		return nil
	}
	held := identity(s.table, columns)
	var spec mechanisms.Spec
	var err error
	if grows = grows && s.table.Grows(columns[0]); grows {
		if held = growing(s.table, columns[0], ch.now()); held.closed == 0 {
			return nil
		}
		spec, err = growingSpec(s.table, held.cells, share)
	} else {
		spec, err = mechanisms.Ranges(held.cells, s.contributionTo(held.cells), share)
	}
	reading := cover(s, held)
	if err != nil || reading == nil {
		return nil
	}
	w := &way{measure: held.measure("range", s.table.Name+"_"+columns[0].Name), reading: reading}
	w.measure.Rows, w.measure.PerGroup = s.rows, s.perGroup // as its noise is made for
	w.measure.Cost, w.measure.Why = share, "dp.release is on: every range over "+columns[0].Name+" is free after it"+stale(s.table, columns)
	held.sold(w.measure, spec)
	return w
}
