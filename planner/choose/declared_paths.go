package choose

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// What is on offer besides counting afresh: the releases that the policy declares, and a range release of her own.

// offered are all that is on offer for a question.
func (ch *Optimizer) offered(q *goal) []alternative {
	list := append(append(ch.openOnline(q), ch.declared(q)...), ch.ownRelease(q)...)
	if least(list) != nil {
		return list
	}
	if best := leastOf(list, func(c *alternative) bool { return c.hint != "" }); best != nil {
		ch.Hints.Add(best.hint)
	}
	return list
}

// judged says whether a release on offer may be bought for a question: one that costs no more than the question may,
// and that is as exact as counting afresh or that somebody has said is wanted. Of what is dearer and more exact than
// what she gets now, it says how she gets it.
func (ch *Weigher) judged(q *goal, c *alternative) {
	r := c.path.Measure.Declared
	switch priced := (privacy.Cost{Epsilon: r.Cost.Epsilon, Rho: r.Cost.Rho}); { // δ is the budget's alone
	case !priced.Fits(q.share):
		c.not = "dearer than dp.epsilon lets this question be"
		if !ch.asExact(q, c.path, c.variance) {
			return
		}
		wanted := ch.preferred(c.path.Measure)
		if alone, err := q.Fresh(priced); !wanted && err == nil {
			wanted = ch.noWider(q, c.path, c.variance, alone)
		}
		c.hint = hint(r, ch.off(c.path).HalfWidth, wanted)
	case !ch.preferred(c.path.Measure) && !ch.asExact(q, c.path, c.variance):
		c.not = lessExact
	}
}

// hint says how a release that is more exact than what she gets is bought.
func hint(r *policy.Release, within int64, wanted bool) string {
	what := "count by " + plans.ColumnNames(r.Columns)
	if r.Kind == policy.RangeRelease {
		what = "range over " + plans.ColumnNames(r.Columns)
	}
	how := ""
	if !wanted {
		how = "; SET dp.release = on"
	}
	return fmt.Sprintf("release %s: ε %s makes every %s free, this one within ±%d; SET dp.epsilon = %s%s", r.Name, r.Epsilon, what, within, r.Epsilon, how)
}

// declared finds the range releases and histograms of the policy that answer a question.
func (ch *Optimizer) declared(q *goal) (list []alternative) {
	columns, ok := q.Columns()
	if !ok {
		return nil
	}
	for _, r := range q.Table.Releases {
		if !reuse.ContainsAll(r.Columns, columns) || len(columns) == 0 && !r.Grows() { // of rows that are added, all are those so far
			continue
		}
		held, spec := ch.ofRelease(r)
		if held == nil {
			continue
		}
		reading := reuse.Cover(q.Query, held)
		if reading == nil {
			continue
		}
		w := declaredPath(r, held, spec, reading)
		c := alternative{path: w, variance: ch.worst(w.Measure.Spec, reading)}
		ch.judged(q, &c)
		list = append(list, c)
	}
	return list
}

// declaredPath reads a question from a release of the policy, bought now.
func declaredPath(r *policy.Release, measured *linear.Query, spec mechanisms.Spec, reading *reuse.Reading) *Path {
	w := &Path{Reading: reading, Measure: measured.Measure(r.Kind.String(), r.Name)}
	w.Measure.Shared, w.Measure.Declared, w.Measure.Cost = true, r, r.Cost
	w.Measure.Why = whyOffered(r)
	measured.Sold(w.Measure, spec)
	return w
}

// onlyOnRequest is why a release of her own is not bought.
const onlyOnRequest = "a release that the policy does not declare is bought with SET dp.release = on"

// ownRelease buys a range release over the only column that the question reads: SET dp.release = on.
func (ch *Optimizer) ownRelease(q *goal) []alternative {
	if !ch.Context.Settings.Release && !ch.Context.Alternatives {
		return nil
	}
	w := ch.ownRange(q.Query, q.share, q.Table.Appends != nil)
	if w == nil {
		return nil
	}
	c := alternative{path: w, variance: ch.worst(w.Measure.Spec, w.Reading)}
	if !ch.Context.Settings.Release {
		c.not = onlyOnRequest
	}
	return []alternative{c}
}

// ownRange is a range release of her own over the only column that a question reads; one that grows, if that is wanted
// and the column's can.
func (ch *Optimizer) ownRange(s *linear.Query, share privacy.Cost, grows bool) *Path {
	columns, ok := s.Columns()
	if !ok || len(columns) != 1 || !columns[0].Domain.Ordered() {
		return nil
	}
	if columns[0].Domain.Size() > plans.MaxCells {
		return nil
	}
	held := linear.Identity(s.Table, columns)
	var spec mechanisms.Spec
	var err error
	if grows = grows && s.Table.Grows(columns[0]); grows {
		if held = growing(s.Table, columns[0], ch.Now()); held.Closed == 0 {
			return nil
		}
		spec, err = reuse.ContinualSpec(s.Table, held.Cells, share)
	} else {
		spec, err = mechanisms.Ranges(held.Cells, s.ContributionTo(held.Cells), share)
	}
	reading := reuse.Cover(s, held)
	if err != nil || reading == nil {
		return nil
	}
	w := &Path{Measure: held.Measure("range", s.Table.Name+"_"+columns[0].Name), Reading: reading}
	w.Measure.Rows, w.Measure.PerGroup = s.Rows, s.PerGroup // as its noise is made for
	w.Measure.Cost, w.Measure.Why = share, "dp.release is on: every range over "+columns[0].Name+" is free after it"+stale(s.Table, columns)
	held.Sold(w.Measure, spec)
	return w
}
