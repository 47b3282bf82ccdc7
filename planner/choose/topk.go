package choose

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// topK solves a ranking; nil means it cannot be run.
func (v *LeafPlanner) topK(r *linear.Ranking, flat *linear.Question) *linear.TopK {
	weights, scale, ok := r.Weights()
	if !ok {
		return nil
	}
	quiet := &LeafPlanner{Binder: v.Binder, Notes: new(semantics.Notes), Optimizer: v.Optimizer}
	c := quiet.nested(r, flat, weights)
	if c == nil {
		c = quiet.overlapping(r, flat, weights)
	}
	if c == nil || r.Most >= c.Candidates() {
		return nil
	}
	c.Choice.Most, c.Scale, c.Bound = r.Most, scale, 1
	for i, t := range r.Terms {
		c.Own = c.Own || t.Weight.Cmp(big.NewRat(1, 1)) != 0 || t.Sum != nil
		if c.At[i] >= 0 {
			c.Bound = max(c.Bound, t.Bound)
		}
	}
	return c
}

// overlapping counts the rows of each candidate.
func (v *LeafPlanner) overlapping(r *linear.Ranking, flat *linear.Question, weights []int64) *linear.TopK {
	q := &linear.Question{Table: flat.Table, Where: flat.Where, SQL: flat.SQL, OffGrid: flat.OffGrid}
	at := make([]int, len(r.Terms))
	for i, t := range r.Terms {
		at[i] = q.SumFor(t.Where, t.Sum)
	}
	if len(q.Counters) > mechanisms.MaxCounters {
		return nil
	}
	s, refusal := linear.Solve(q, v.Binder.Env, v.Notes)
	if refusal != nil || !s.Measured() || s.Cells != 1 {
		return nil
	}
	c := &linear.TopK{Query: s, At: at, Choice: mechanisms.Choice{Kind: mechanisms.Popular, Blocks: []mechanisms.Block{{Groups: 1, Cells: len(s.Counts)}}}}
	own := slices.Repeat([]int64{-1}, len(s.Counts))
	for i := range at {
		if at[i] = s.Counting[at[i]]; at[i] < 0 {
			continue
		}
		if w := own[at[i]]; w >= 0 && w != weights[i] {
			return nil // one counter, two scores
		}
		own[at[i]] = weights[i]
	}
	if slices.Max(own) != slices.Min(own) {
		c.Choice.Weights = own
	}
	return c
}

// maxLevels bounds the work of finding out which candidates each cell meets.
const maxLevels = 1 << 21

// nested counts rows by how many candidates they meet; nil means the cells do not tell, or the candidates' rows are not
// nested.
func (v *LeafPlanner) nested(r *linear.Ranking, flat *linear.Question, weights []int64) *linear.TopK {
	own := make([][]*semantics.Expr, len(r.Terms))
	for i, t := range r.Terms {
		own[i] = t.Where
		if t.Sum.Name() != r.Terms[0].Sum.Name() {
			return nil
		}
	}
	own, all := linear.InCommon(own)
	q := &linear.Question{Table: flat.Table, Where: slices.Concat(flat.Where, all), SQL: flat.SQL, OffGrid: flat.OffGrid}
	var columns []int
	for _, list := range own {
		for _, e := range list {
			columns = semantics.Union(columns, e.Cols)
		}
	}
	for _, at := range columns {
		if t := q.Table.Columns[at]; t.Domain == nil || t.Open != nil {
			return nil
		}
		c := q.Table.Columns[at]
		q.Keys = append(q.Keys, semantics.ColumnExpr(at, c.Type, c.Typmod, -1))
	}
	q.SumFor(nil, r.Terms[0].Sum)
	s, refusal := linear.Solve(q, v.Binder.Env, v.Notes)
	if refusal != nil || !s.Measured() || s.Counting[0] < 0 || s.Cells > maxLevels/len(own) {
		return nil
	}
	met := v.meetings(s, own)
	if met == nil {
		return nil
	}
	return s.Levelled(met, weights)
}

// meetings tells, by candidate and cell, whether a row in the cell meets the candidate; nil means the cells do not
// tell.
func (v *LeafPlanner) meetings(s *linear.Query, own [][]*semantics.Expr) [][]bool {
	l := &linear.Solver{Lowerer: semantics.Lowerer{Table: s.Table, Env: v.Binder.Env, Box: semantics.NewBox(s.Table, v.Binder.Env), Notes: v.Notes, OffGrid: s.OffGrid}, Query: s}
	cellOf := s.FirstCells()
	met := make([][]bool, len(own))
	for i, list := range own {
		var pred predicate.Pred
		residual, refusal := l.Fold(list, &pred)
		if _, onGrid := predicate.Columns(pred, nil); refusal != nil || len(residual) > 0 || !onGrid {
			return nil
		}
		met[i] = make([]bool, s.Cells)
		for cell := range met[i] {
			met[i][cell] = predicate.Satisfied(pred, func(c *policy.Column) int { return cellOf(c, cell) })
		}
	}
	return met
}

// topCandidates chooses the candidates where she has paid for that, or where it is expected to be nearer than the
// scores that the path of counting gives. Counting may have no path.
func (ch *Weigher) topCandidates(q *goal) []alternative {
	c := q.Counted().TopK
	if c == nil {
		return nil
	}
	spec, err := c.Spec(q.share)
	if err != nil {
		return nil
	}
	own := c.Measure()
	if same := ch.sameChoice(own, spec, c); same != nil {
		return same
	}
	own.Spec, own.Cost = spec, q.share
	own.Why = "only the names are shown: they are chosen by their scores, at a cost and an error that hardly depend on their number, where counts would share the cost"
	if c.Level != nil {
		own.Why = "only the names are shown: they are chosen by their scores, nearer than noisy counts at this price would order them"
	}
	out := alternative{path: &Path{Measure: own, TopK: c}}
	if q.taken == nil {
		return []alternative{out}
	}
	if out.not = countsServe(q.taken); out.not == "" && !ch.ordersNearer(c, spec, q.taken) {
		out.not = orderedByCounts
	}
	return []alternative{out}
}

// ordersNearer reports whether choosing the candidates is expected to err less than sorting them by their counts.
func (ch *Weigher) ordersNearer(c *linear.TopK, spec mechanisms.Spec, w *Path) bool {
	each, err := ch.eachOf(c.Candidates())
	heaviest := int64(1)
	if len(c.Choice.Weights) > 0 {
		heaviest = slices.Max(c.Choice.Weights)
	}
	// The score of what is shown first and that of what should have been may both be off.
	return err == nil && math.Floor(spec.RankError(ch.Context.Settings.Confidence)) <= 2*float64(heaviest)*float64(c.Counted(w.offAt(each)))
}

// maxCounted bounds the counters whose errors are compared.
const maxCounted = 16

// countedBy tells how far off the candidates' counters are, by how far off cells are.
func countedBy(lp *LeafPlan) func(off func(counter int, cells []int) int64) int64 {
	a, keys := lp.Requests[0], lp.Sets[0]
	return func(off func(counter int, cells []int) int64) (widest int64) {
		spots := a.Spots(lp.Frames[0], keys)
		for i, f := range a.Projections {
			c := a.Counting[f.Counter]
			if c < 0 || i%(1+len(a.Projections)/maxCounted) != 0 {
				continue
			}
			widest = max(widest, off(c, a.CellsOf(f, 0, spots)))
		}
		return widest
	}
}

// offAt tells how far off some cells of a counter are at a confidence, read so.
func (w *Path) offAt(each mechanisms.Confidence) func(counter int, cells []int) int64 {
	return func(c int, cells []int) int64 {
		list := make([][]mechanisms.Span, len(cells))
		for i, cell := range cells {
			list[i] = w.Reading.Spans[c][cell]
		}
		return w.Measure.Spec.Only(w.Reading.Counters[c]).Error(plans.JoinSpans(list), each).HalfWidth
	}
}

// SELECT k … GROUP BY k ORDER BY count(*) DESC LIMIT n shows the keys with the most rows and no count. Where that is
// expected to be nearer than sorting noisy counts, the keys are chosen: the leaf's column in place of the count
// then ranks the chosen rows, n for the first to 1 for the last, and is 0 elsewhere. What is above does not change.

// topOf is how many keys a question shows in the order of its only counter, 0 for others: those whose cells are the
// rows.
func (lp *LeafPlan) topOf(a *Request) int {
	if lp.Question == nil || lp.Top == 0 || len(lp.Requests) != 1 || len(lp.Counters) != 1 || a.Query != lp.Frames[0] || a.Summed() != nil {
		return 0
	}
	if len(a.Projections) != 1 || a.Projections[0].condition >= 0 || a.Counting[a.Projections[0].Counter] != 0 || len(a.Counts) != 1 || lp.Top >= a.Cells || len(a.Concealed()) > 0 {
		return 0
	}
	return lp.Top
}

// topKeys chooses the first keys where she has paid for that, or where it is expected to be nearer than fresh counts.
func (ch *Weigher) topKeys(q *goal) []alternative {
	first := q.Counted().First
	if first == 0 || q.taken == nil {
		return nil
	}
	spec, err := mechanisms.NewChoice(mechanisms.Choice{Kind: mechanisms.Largest, Blocks: []mechanisms.Block{{Groups: 1, Cells: q.Cells}}, Most: first}, q.Contribution(), q.share)
	if err != nil {
		return nil
	}
	own := q.Measure("top", q.Table.Name+q.About())
	own.Described = binary.AppendUvarint(append(own.Described, "top"...), uint64(first))
	own.Digest = sha256.Sum256(own.Described)
	if same := ch.sameChoice(own, spec, nil); same != nil {
		return same
	}
	own.Spec, own.Cost = spec, q.share
	own.Why = "the keys alone are expected to be nearer when chosen than when sorted by noisy counts at this price"
	c := alternative{path: &Path{Measure: own}, not: countsServe(q.taken)}
	if q.taken.Measure.Refines() {
		c.not = "what you have paid for is refined for the difference"
	}
	// The count of a key and that of another may both be off.
	each, err := ch.eachOf(q.Cells)
	if c.not == "" && (err != nil || spec.RankError(ch.Context.Settings.Confidence) >= 2*float64(q.taken.Measure.Spec.Error(predicate.One(0), each).HalfWidth)) {
		c.not = orderedByCounts
	}
	return []alternative{c}
}

// orderedByCounts is why a choice loses against counts.
const orderedByCounts = "noisy counts at this price are expected to order them as well"

// countsServe tells why counts that are taken are not to be replaced by a choice; empty means they may be.
func countsServe(w *Path) string {
	switch {
	case w.Measure.Held:
		return "what you have paid for answers it for nothing"
	case w.Measure.Declared != nil || w.Measure.Kind == "range" || w.Reading.Mix != nil:
		return "the release answers more than this question"
	}
	return ""
}

// eachOf is the confidence that each of some values needs for all to hold together.
func (ch *Weigher) eachOf(values int) (mechanisms.Confidence, error) {
	return mechanisms.NewConfidence(1 - (1-ch.Context.Settings.Confidence.Float())/float64(values))
}

// thresholds makes a leaf plan for each alarm of each leaf.
func (v *LeafPlanner) thresholds(leaves []*LeafPlan) (out []*LeafPlan, refusal *refuse.Refusal) {
	for i, lp := range leaves {
		for n, c := range lp.Counters {
			if c.Threshold == nil {
				continue
			}
			own := lp.On(lp.Sets[0], nil, nil)
			own.Where = slices.Concat(own.Where, c.Threshold.Where)
			own.CounterFor(nil)
			s, refusal := linear.Solve(own, v.Binder.Env, v.Notes)
			if refusal != nil {
				return nil, refusal
			}
			s.Asked = &linear.ThresholdColumn{Leaf: i, Counter: n, ThresholdTest: c.Threshold}
			a := &Request{Query: s, set: lp.Sets[0], Projections: []Projection{{0, 0, -1}}}
			s.NoteBounds(v.Notes)
			if c.Threshold.Any {
				v.Notes.Add("bool_or, bool_and and every are told by counts clearly above what noise alone would make of none: a few rows go unseen")
			}
			out = append(out, &LeafPlan{Question: own, Sets: lp.Sets, Frames: []*linear.Query{s}, Requests: []*Request{a}})
		}
	}
	return out, nil
}

// goingRun finds the run that is asked: one of hers on the table that is as exact as asked now and has a yes left.
func (ch *Weigher) goingRun(q *goal) []alternative {
	w, h := ch.runOf(q)
	if h == nil {
		return nil
	}
	left, run := int64(ch.left(*h)), h.Spec.Kind.(*mechanisms.Alarm)
	w.hold(*h, "your run of alarms on this table goes on, and each question of it is free: "+predicate.Text(left)+" of "+predicate.Text(int64(run.Positives))+" yes answers are left")
	return []alternative{{path: ch.asked(q, w, h.Spec), holding: *h}}
}

// newRun buys one.
func (ch *Weigher) newRun(q *goal) []alternative {
	w, _ := ch.runOf(q)
	w.Measure.Why = "dp.alarms is on: the answer is yes or no, and a run of such questions is bought, of which each no is free"
	return []alternative{{path: ch.asked(q, w, q.fresh)}}
}

// asked puts the question to a run.
func (ch *Weigher) asked(q *goal, w *Path, run mechanisms.Spec) *Path {
	q.own.Spec = run
	w.Threshold = &plans.ThresholdQuestion{Measure: q.own, Least: q.Threshold().Bound(run, ch.Context.Settings.Confidence)}
	return w
}

// runOf is the first run of alarms on a question's table that she does not hold, or that she holds and may ask: then it
// comes with what she paid.
func (ch *Weigher) runOf(q *goal) (*Path, *reuse.Holding) {
	each := q.Table.ContributionTo(1)
	run := &plans.Measure{Kind: "alarms", Name: q.Table.Name + "_alarms", Table: q.Table, Counters: []predicate.Pred{nil}, Spec: q.fresh, Cost: q.share}
	for n := 0; ; n++ {
		b := predicate.EncodeText(predicate.EncodeText(nil, "run of alarms"), linear.KnownOf(q.Table).Fingerprint)
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, each.Rows), int64(each.Neighbors)), int64(n))
		run.Described, run.Digest = b, sha256.Sum256(b)
		if ch.Context.Holdings == nil {
			return &Path{Measure: run}, nil
		}
		list := ch.Context.Holdings.Held(run.Digest)
		if len(list) == 0 {
			return &Path{Measure: run}, nil
		}
		h := list[0]
		if held, ok := h.Spec.Kind.(*mechanisms.Alarm); ok && q.share.Fits(held.Cost) && ch.left(h) > 0 {
			return &Path{Measure: run}, &h
		}
	}
}
