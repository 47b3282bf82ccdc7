package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// contest is a race in cells: the choice, and what is counted for it. Where the rows that candidates meet are nested, as
// bids of at least a price are, rows are counted by how many candidates they meet, each once; else each candidate has a
// counter, and a row counts in any number of them.
type contest struct {
	*solved
	choice  mechanisms.Choice
	bound   int64   // of what a row adds to a counter
	level   []int32 // by cell, nested: how many candidates a row in it meets
	at      []int   // by candidate: its number in the choice, −1: it meets no row
	scale   *big.Rat
	own     bool                                                 // weights are not all one
	counted func(off func(counter int, cells []int) int64) int64 // by how many rows the candidates' counters are off at most, of those that are looked at
}

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

// candidates is the number of those that can be chosen.
func (c *contest) candidates() int {
	if c.choice.Kind == mechanisms.Dearest {
		return len(c.choice.Weights)
	}
	return len(c.counts)
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

// firstCells tells the cell of a column in a cell of a question whose keys are bare columns: the first of its class.
func (s *solved) firstCells() func(c *policy.Column, cell int) int {
	first := make([][]int, len(s.parts))
	for i, p := range s.parts {
		first[i] = slices.Repeat([]int{-1}, p.classes)
		for at, class := range p.class {
			if class >= 0 && first[i][class] < 0 {
				first[i][class] = at
			}
		}
	}
	return func(c *policy.Column, cell int) int {
		for i := len(s.parts) - 1; i >= 0; i-- {
			p := s.parts[i]
			at := first[i][cell%p.classes]
			cell /= p.classes
			k := slices.IndexFunc(p.columns, func(at int) bool { return s.table.Columns[at] == c })
			if k < 0 {
				continue
			}
			cells := make([]int, len(p.sizes))
			decode(at, p.sizes, cells)
			return p.firstOf(k, cells[k])
		}
		return -1
	}
}

// levelled is the contest of nested candidates; nil: they are not nested.
func (s *solved) levelled(met [][]bool, weights []int64) *contest {
	k := len(met)
	sizes, order := make([]int, k), identityOf(k)
	for i := range met {
		for _, m := range met[i] {
			if m {
				sizes[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	c := &contest{solved: s, at: identityOf(k), level: make([]int32, s.cells)}
	for cell := range c.level {
		for p := range k { // from the candidate that meets the fewest cells on: once one meets this, all later ones must
			switch meets := met[order[p]][cell]; {
			case meets:
				c.level[cell]++
			case c.level[cell] > 0:
				return nil
			}
		}
	}
	from := make([]int64, k)
	for p, i := range order {
		if from[i] = int64(k - p); sizes[i] == 0 {
			c.at[i] = -1
		}
	}
	c.choice = mechanisms.Choice{Kind: mechanisms.Dearest, Blocks: []mechanisms.Block{{Groups: 1, Cells: k + 1}}, Weights: weights, From: from}
	return c
}

// spec is the choice at a cost. What a row adds is at most the bound, so a unit's rows are no more than so many times as
// many rows that add one.
func (c *contest) spec(share privacy.Cost) (mechanisms.Spec, error) {
	each := c.contribution()
	if c.bound > 1 {
		if each.Rows > mechanisms.MostWeight/c.bound {
			return mechanisms.Spec{}, noMechanism.At(-1, "the values are too large")
		}
		each = mechanisms.Contribution{Rows: each.Rows * c.bound, Neighbors: each.Neighbors}
	}
	return mechanisms.NewChoice(c.choice, each, share)
}

// measure is what is counted for the choice.
func (c *contest) measure() *Measure {
	kind := "popular"
	if c.choice.Kind == mechanisms.Dearest {
		kind = "dearest"
	}
	m := c.solved.measure(kind, c.table.Name+c.about())
	if c.level != nil {
		place, level := m.Place, c.level
		m.Place = func(cells []int32, counter int) int {
			if cell := place(cells, counter); cell >= 0 && level[cell] > 0 {
				return int(level[cell])
			}
			return -1
		}
	}
	b := binary.AppendUvarint(append(m.described, kind...), uint64(c.choice.Most))
	hash := sha256.New()
	for _, list := range [][]int64{c.choice.Weights, c.choice.From, {c.bound}} {
		_ = binary.Write(hash, binary.BigEndian, int64(len(list)))
		_ = binary.Write(hash, binary.BigEndian, list)
	}
	_ = binary.Write(hash, binary.BigEndian, c.level)
	m.described = append(b, hash.Sum(nil)...)
	m.Digest = sha256.Sum256(m.described)
	return m
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

// ranked shows which candidates were chosen, by their rank.
func (p assembly) ranked(leaf *Leaf, w *way) {
	c := w.contest
	scale, _ := c.scale.Float64()
	run := Run{Measure: p.measure(w.measure), Spans: make([][]mechanisms.Span, leaf.Rows)}
	run.Pick = &Pick{Kind: c.choice.Kind, Top: c.choice.Most, At: c.at, Weighed: c.own, Rank: w.measure.Spec.RankError(p.Confidence) * scale}
	leaf.Counts[0].Runs = []Run{run}
}
