package choose

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

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
