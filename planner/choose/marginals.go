package choose

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
)

// maxMarginalCells bounds the cells that all keys of a statement's sets make up together where marginals are
// considered.
const maxMarginalCells = 1 << 15

// cube asks for all cells of a leaf plan's keys; nil where they have no marginals.
func (v *LeafPlanner) cube(lp *LeafPlan, counters []int) *Request {
	a, refusal := v.plain(lp.Question, linear.UnitedAll(slices.Clone(lp.Sets)), counters)
	if refusal != nil || !a.Wanted() || a.Cells > maxMarginalCells || len(a.Factors) < 2 || v.Optimizer.Open != nil && len(v.Optimizer.Open.Wanted) > 0 ||
		slices.ContainsFunc(a.Factors, func(p *linear.Factor) bool { return p.Classes < 2 || len(p.Keys) == 0 }) {
		return nil
	}
	return a
}

// marginal asks for all sets of a leaf plan at once, by marginals of the cells of all their keys; nil where they cannot
// be measured so, or where what is asked for set by set is held, or has no larger error.
func (v *LeafPlanner) marginal(lp *LeafPlan, counters []int, best []*Request) (*Request, *refuse.Refusal) {
	if v.SetBySet || v.Optimizer.Context.Settings.MaxError > 0 || len(lp.Sets) < 2 {
		return nil, nil
	}
	quiet := LeafPlanner{Binder: v.Binder, Notes: new(semantics.Notes), Optimizer: v.Optimizer}
	a := quiet.cube(lp, counters)
	if a == nil {
		return nil, nil
	}
	m := a.marginalsOf(lp.Sets)
	if m == nil || !v.strategy(a, m) {
		return nil, nil
	}
	for s := range lp.Sets {
		a.Reads = append(a.Reads, s)
	}
	switch m.Gain = v.error(best) / a.weight; {
	case v.Optimizer.holds(a):
		return a, nil
	case m.Gain <= 1 || v.Optimizer.holdsAll(best):
		return nil, nil
	}
	v.Notes.AddAll(*quiet.Notes)
	return a, nil
}

// marginalsOf finds the rows of sets of keys among a request's cells.
func (a *Request) marginalsOf(sets []linear.Set) *linear.Marginals {
	m := &linear.Marginals{}
	sizes, at := make([]int, len(a.Factors)), make([]int, len(a.Factors))
	for i, p := range a.Factors {
		sizes[i] = p.Classes
	}
	for n, keys := range sets {
		if slices.ContainsFunc(sets[:n], func(other linear.Set) bool { return slices.Equal(other, keys) }) {
			continue
		}
		var own []int
		classes := make([][]int, len(a.Factors)) // by factor: the number of the values of the set's keys, by class
		for i, p := range a.Factors {
			var shown []int
			for place, k := range p.Keys {
				if slices.Contains(keys, a.set[k]) {
					shown = append(shown, place)
				}
			}
			if len(shown) == 0 {
				continue
			}
			own = append(own, i)
			classes[i] = make([]int, p.Classes)
			seen := map[string]int{}
			for class := range p.Classes {
				text := ""
				for _, place := range shown {
					text += semantics.KeyText(p.Values[class][place:place+1]) + "\x00"
				}
				if _, known := seen[text]; !known {
					seen[text] = len(seen)
				}
				classes[i][class] = seen[text]
			}
		}
		rows, order := map[int]*semantics.SpansOf{}, []int{}
		for cell := range a.Cells {
			linear.Decode(cell, sizes, at)
			row := 0
			for i, class := range at {
				if classes[i] != nil {
					row = row*sizes[i] + classes[i][class]
				}
			}
			if rows[row] == nil {
				rows[row], order = new(semantics.SpansOf), append(order, row)
			}
			rows[row].Add(cell)
		}
		for _, row := range order {
			m.Rows, m.Of = append(m.Rows, *rows[row]), append(m.Of, len(m.Sets))
		}
		m.Sets = append(m.Sets, own)
	}
	return m
}

// strategy finds the marginals with the least expected error; false where the cells themselves are better.
func (v *LeafPlanner) strategy(a *Request, m *linear.Marginals) bool {
	q := mechanisms.Cube{}
	for _, p := range a.Factors {
		q.Shape = append(q.Shape, p.Classes)
	}
	for i, rows := range m.Rows {
		q.Asked = append(q.Asked, mechanisms.Asked{Spans: rows, Attributes: m.Sets[m.Of[i]], Weight: 1})
	}
	list, err := q.Quick(a.Contribution(), v.Optimizer.Share(1))
	if err != nil {
		return false
	}
	best := slices.MinFunc(list, func(x, y mechanisms.Candidate) int { return cmp.Compare(x.Error, y.Error) })
	if best.Spec.Counts().Strategy.Kind != mechanisms.Marginals {
		return false
	}
	m.Strategy = best.Spec.Counts().Strategy
	a.Marginals = m
	spec, err := a.Fresh(v.Optimizer.Share(1))
	if err != nil {
		a.Marginals = nil
		return false
	}
	a.weight = 0
	for _, f := range a.Projections {
		if c := a.Counting[f.Counter]; c >= 0 {
			a.weight += a.WeightOf(c) * q.Error(spec.Only(c))
		}
	}
	return a.weight > 0 && !math.IsInf(a.weight, 1)
}

// holdsAll reports whether all requests are answered by what she has paid for.
func (ch *Optimizer) holdsAll(asks []*Request) bool {
	return ch.Context.Holdings != nil && !slices.ContainsFunc(asks, func(a *Request) bool { return a.Wanted() && !ch.holds(a) })
}

// holds reports whether a request is answered by what she has paid for.
func (ch *Optimizer) holds(a *Request) bool {
	quiet := *ch
	q := quiet.goalOf(a.Query, ch.Share(1))
	return q.refusal == nil && (least(quiet.again(q)) != nil || least(quiet.reuse(q)) != nil)
}

// rollUp lets a count be read from another count of the same statement whose cells add up to it, such as a total beside
// the groups: then nothing is paid for it, the others have more, and the answers add up. It tells how many do, of so
// many that are measured. Whether it is worth it goes by the sum of the mean errors of all counts.
func (ch *Optimizer) rollUp(leaves []*LeafPlan, measured int) (rollups int) {
	v := &LeafPlanner{Optimizer: ch}
	for _, lp := range leaves {
		if !lp.isPlain() {
			continue
		}
		var on *LeafPlan
		least := math.Inf(1)
		for _, other := range leaves {
			if other == lp || other.base != nil || !other.isPlain() || slices.ContainsFunc(leaves, func(s *LeafPlan) bool { return s.base == lp }) {
				continue
			}
			if r := reuse.CoverWithin(lp.Requests[0].Query, other.Requests[0].Query); r != nil {
				if cells := r.MeanCells(); cells < least {
					on, least = other, cells
				}
			}
		}
		if on == nil {
			continue
		}
		rest := 0.
		for _, other := range leaves {
			if other != lp && other.base == nil && len(other.Requests) > 0 {
				rest += v.error(other.Requests) / float64(max(1, other.values()))
			}
		}
		k := float64(measured - rollups)
		alone := (rest + v.error(lp.Requests)/float64(lp.values())) * math.Pow(k, v.order())
		one := v.weight(on.Requests[0]) / float64(on.values())
		if read := (rest + one*least) * math.Pow(k-1, v.order()); read <= alone*sumsClearlyWorse {
			lp.base = on
			rollups++
		}
	}
	return rollups
}

// isPlain tells a leaf plan of counts of rows that one request answers.
func (lp *LeafPlan) isPlain() bool {
	return !lp.presence && len(lp.Requests) == 1 && lp.Requests[0].Wanted() && lp.Requests[0].Summed() == nil && lp.Requests[0].PerGroup == 0 && lp.Requests[0].Marginals == nil && !lp.Requests[0].Compares()
}

// values is the number of counts that a leaf plan shows.
func (lp *LeafPlan) values() int {
	n := 0
	for s := range lp.Sets {
		n += len(lp.Frames[s].ShownRows())
	}
	counted := 0
	for _, c := range lp.Counters {
		if c.Width == nil {
			counted++
		}
	}
	return n * counted
}

// rolledUp reads a leaf plan from the measure of the one that it is rolled up from, where that is measured as itself.
func (ch *Optimizer) rolledUp(leaves []*LeafPlan, paths [][]*Path, lp *LeafPlan, buying map[plans.Digest]*plans.Measure, share privacy.Cost) (*Path, *refuse.Refusal) {
	m := lp.base.Requests[0].Query
	if w := paths[slices.Index(leaves, lp.base)][0]; w != nil && w.Measure.Digest == m.Measure("", "").Digest {
		return &Path{Measure: w.Measure, Reading: reuse.CoverWithin(lp.Requests[0].Query, m), name: fromAnother}, nil
	} else if w != nil && w.counts != nil {
		own, err := m.Fresh(share)
		r := reuse.Cover(lp.Requests[0].Query, w.counts)
		if r != nil && err == nil && ch.worst(w.Measure.Spec, r) <= ch.worst(own, reuse.CoverWithin(lp.Requests[0].Query, m)) {
			return &Path{Measure: w.Measure, Reading: r, counts: w.counts, name: fromAnother}, nil
		}
	}
	w, refusal := ch.one(lp.Requests[0].Query, share)
	if refusal != nil {
		return nil, refusal
	}
	if same := buying[w.Measure.Digest]; same != nil && !w.Measure.Held && same.Shared == w.Measure.Shared && same.Kind == w.Measure.Kind {
		w.Measure = same
	}
	return w, nil
}

// Where a row falls into one cell of a measure, neighbours move it by what a unit's rows move one count, however many
// cells there are (add-remove; privacy rule 10). So a count under a condition costs no more, and errs no more, if the
// rows outside the condition are counted beside it, in cells of their own: the condition's complement, and for `sex =
// 'Female' AND age = 30` every other sex and age. These answer later questions for free. See docs/adr/0026.

// widened is the fresh measure of a question with the cells around its own, none where that is dearer, means something
// else, or has nothing to add. Its own cells are whole cells of the measure, so that they err as they would alone.
func (ch *Weigher) widened(q *goal) []alternative {
	most := ch.Context.Dataset.Buying.Cells
	if most == 0 || !q.Widens() {
		return nil
	}
	wide := q.Around(most)
	if wide == nil || q.Table.BoundsGroups(q.Cells) != q.Table.BoundsGroups(wide.Cells) {
		return nil
	}
	spec, err := wide.Fresh(q.share)
	if err != nil || ch.variance(spec) > ch.variance(q.fresh) {
		return nil
	}
	r := reuse.Cover(q.Query, wide)
	if r == nil {
		return nil
	}
	m := wide.Measure("histogram", q.own.Name)
	if held := ch.widenedBefore(q, m, spec, r); held != nil {
		return held
	}
	m.Spec, m.Cost = spec, q.share
	m.Why = "no release that you have paid for answers it as exactly; the rows around its own are counted too, which costs nothing more"
	return []alternative{{path: &Path{Measure: m, Reading: r, counts: wide}, variance: ch.worst(spec, r)}}
}

// widenedBefore finds the same cells among what she has paid for, at least as exact as they would be now. Containment
// looks at a few of those that are alike: of a slider's fortieth stop, asked again, it may see none.
func (ch *Weigher) widenedBefore(q *goal, m *plans.Measure, spec mechanisms.Spec, r *reuse.Reading) []alternative {
	if ch.Context.Holdings == nil {
		return nil
	}
	for _, h := range ch.Context.Holdings.Held(m.Digest) {
		if shared, _, _, ok := reuse.DescribedHead(h); !ok || shared || h.Spec.Cells != spec.Cells || h.Spec.Counters != spec.Counters || ch.worst(h.Spec, r) > ch.worst(spec, r) {
			continue
		}
		reuse.Hold(m, h, "the same question, asked before at least as exactly")
		return []alternative{{path: &Path{Measure: m, Reading: r}, variance: ch.worst(h.Spec, r), holding: h}}
	}
	return nil
}

// fromAnother names the path of a question that is read from what another question of the statement buys.
const fromAnother = "another question's counts"

// beside reads a question that would be measured from what the statement buys already, where that is no less exact.
func (ch *Weigher) beside(s *linear.Query, w *Path, paths [][]*Path) *Path {
	if w.counts == nil || w.Measure.Held {
		return w
	}
	for _, list := range paths {
		for _, have := range list {
			if have == nil || have.counts == nil || have.Measure.Held || have.counts.Table != s.Table {
				continue
			}
			if r := reuse.Cover(s, have.counts); r != nil && ch.worst(have.Measure.Spec, r) <= ch.worst(w.Measure.Spec, w.Reading) {
				return &Path{Measure: have.Measure, Reading: r, counts: have.counts, name: fromAnother}
			}
		}
	}
	return w
}
