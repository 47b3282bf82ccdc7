package planner

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// contest solves a race; nil: it cannot be run.
func (v *sheeter) contest(r *race, flat *question) *contest {
	weights, scale, ok := r.weights()
	if !ok {
		return nil
	}
	quiet := &sheeter{b: v.b, notes: new(notes), ch: v.ch}
	c := quiet.nested(r, flat, weights)
	if c == nil {
		c = quiet.overlapping(r, flat, weights)
	}
	if c == nil || r.most >= c.candidates() {
		return nil
	}
	c.choice.Most, c.scale, c.bound = r.most, scale, 1
	for i, t := range r.terms {
		c.own = c.own || t.weight.Cmp(big.NewRat(1, 1)) != 0 || t.sum != nil
		if c.at[i] >= 0 {
			c.bound = max(c.bound, t.bound)
		}
	}
	return c
}

// overlapping counts the rows of each candidate.
func (v *sheeter) overlapping(r *race, flat *question, weights []int64) *contest {
	q := &question{table: flat.table, where: flat.where, sql: flat.sql, offGrid: flat.offGrid}
	at := make([]int, len(r.terms))
	for i, t := range r.terms {
		at[i] = q.sumFor(t.where, t.sum)
	}
	if len(q.counters) > mechanisms.MostCounters {
		return nil
	}
	s, refusal := solve(q, v.b.env, v.notes)
	if refusal != nil || !s.measured() || s.cells != 1 {
		return nil
	}
	c := &contest{solved: s, at: at, choice: mechanisms.Choice{Kind: mechanisms.Popular, Blocks: []mechanisms.Block{{Groups: 1, Cells: len(s.counts)}}}}
	own := slices.Repeat([]int64{-1}, len(s.counts))
	for i := range at {
		if at[i] = s.counting[at[i]]; at[i] < 0 {
			continue
		}
		if w := own[at[i]]; w >= 0 && w != weights[i] {
			return nil // one counter, two scores
		}
		own[at[i]] = weights[i]
	}
	if slices.Max(own) != slices.Min(own) {
		c.choice.Weights = own
	}
	return c
}

// mostLevels bounds the work of finding out which candidates each cell meets.
const mostLevels = 1 << 21

// nested counts rows by how many candidates they meet; nil: the cells do not tell, or the candidates' rows are not nested.
func (v *sheeter) nested(r *race, flat *question, weights []int64) *contest {
	own := make([][]*expr, len(r.terms))
	for i, t := range r.terms {
		own[i] = t.where
		if t.sum.name() != r.terms[0].sum.name() {
			return nil
		}
	}
	own, all := inCommon(own)
	q := &question{table: flat.table, where: slices.Concat(flat.where, all), sql: flat.sql, offGrid: flat.offGrid}
	var columns []int
	for _, list := range own {
		for _, e := range list {
			columns = union(columns, e.cols)
		}
	}
	for _, at := range columns {
		if t := q.table.Columns[at]; t.Domain == nil || t.Open != nil {
			return nil
		}
		c := q.table.Columns[at]
		q.keys = append(q.keys, columnExpr(at, c.Type, c.Typmod, -1))
	}
	q.sumFor(nil, r.terms[0].sum)
	s, refusal := solve(q, v.b.env, v.notes)
	if refusal != nil || !s.measured() || s.counting[0] < 0 || s.cells > mostLevels/len(own) {
		return nil
	}
	met := v.meetings(s, own)
	if met == nil {
		return nil
	}
	return s.levelled(met, weights)
}

// meetings tells, by candidate and cell, whether a row in the cell meets the candidate; nil: the cells do not tell.
func (v *sheeter) meetings(s *solved, own [][]*expr) [][]bool {
	l := &solver{lowerer{s.table, v.b.env, newBox(s.table, v.b.env), v.notes, s.offGrid}, s}
	cellOf := s.firstCells()
	met := make([][]bool, len(own))
	for i, list := range own {
		var pred predicate.Pred
		residual, refusal := l.fold(list, &pred)
		if _, onGrid := predicate.Columns(pred, nil); refusal != nil || len(residual) > 0 || !onGrid {
			return nil
		}
		met[i] = make([]bool, s.cells)
		for cell := range met[i] {
			met[i][cell] = predicate.Satisfied(pred, func(c *policy.Column) int { return cellOf(c, cell) })
		}
	}
	return met
}

// oneContest chooses the candidates where she has paid for that, or where it is expected to be nearer than the scores that
// the way of counting gives; nil: it is not. Counting may have no way.
func (ch *chooser) oneContest(c *contest, w *way, share privacy.Cost) *way {
	spec, err := c.spec(share)
	if err != nil {
		return nil
	}
	own := c.measure()
	if w := ch.sameChoice(own, spec); w != nil {
		w.contest = c
		return w
	}
	if w != nil {
		if w.measure.Held || w.measure.Declared != nil || w.measure.Kind == "range" || w.reading.mix != nil {
			return nil
		}
		each, err := mechanisms.NewConfidence(1 - (1-ch.c.Settings.Confidence.Float())/float64(c.candidates()))
		heaviest := int64(1)
		if len(c.choice.Weights) > 0 {
			heaviest = slices.Max(c.choice.Weights)
		}
		// The score of what is shown first and that of what should have been may both be off.
		if err != nil || math.Floor(spec.RankError(ch.c.Settings.Confidence)) > 2*float64(heaviest)*float64(c.counted(w.offAt(each))) {
			return nil
		}
	}
	own.Spec, own.Cost = spec, share
	own.Why = "only the names are shown: they are chosen by their scores, at a cost and an error that hardly depend on their number, where counts would share the cost"
	if c.level != nil {
		own.Why = "only the names are shown: they are chosen by their scores, nearer than noisy counts at this price would order them"
	}
	return &way{measure: own, contest: c}
}

// contested is the choice of a contest as one of the ways to answer.
func (ch *chooser) contested(c *contest, share privacy.Cost) []candidate {
	spec, err := c.spec(share)
	if err != nil {
		return nil
	}
	w := &way{measure: c.measure(), contest: c}
	w.measure.Spec, w.measure.Cost = spec, share
	return []candidate{{way: w}}
}

// mostCounted bounds the counters whose errors are compared.
const mostCounted = 16

// countedBy tells how far off the candidates' counters are, by how far off cells are.
func countedBy(sh *sheet) func(off func(counter int, cells []int) int64) int64 {
	a, keys := sh.asks[0], sh.sets[0]
	return func(off func(counter int, cells []int) int64) (widest int64) {
		spots := a.spots(sh.frames[0], keys)
		for i, f := range a.fills {
			c := a.counting[f.counter]
			if c < 0 || i%(1+len(a.fills)/mostCounted) != 0 {
				continue
			}
			widest = max(widest, off(c, a.cellsOf(f, 0, spots)))
		}
		return widest
	}
}

// offAt tells how far off some cells of a counter are at a confidence, read so.
func (w *way) offAt(each mechanisms.Confidence) func(counter int, cells []int) int64 {
	return func(c int, cells []int) int64 {
		list := make([][]mechanisms.Span, len(cells))
		for i, cell := range cells {
			list[i] = w.reading.spans[c][cell]
		}
		return w.measure.Spec.Only(w.reading.counters[c]).Error(joinSpans(list), each).HalfWidth
	}
}
