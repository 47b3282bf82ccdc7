package choose

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// alarms makes a leaf plan for each alarm of each leaf.
func (v *LeafPlanner) alarms(sheets []*LeafPlan) (out []*LeafPlan, refusal *refuse.Refusal) {
	for i, sh := range sheets {
		for n, c := range sh.Counters {
			if c.Alarm == nil {
				continue
			}
			own := sh.On(sh.Sets[0], nil, nil)
			own.Where = slices.Concat(own.Where, c.Alarm.Where)
			own.CounterFor(nil)
			s, refusal := linear.Solve(own, v.Binder.Env, v.Notes)
			if refusal != nil {
				return nil, refusal
			}
			s.Alarm = &linear.AlarmOf{Sheet: i, Counter: n, Alarmed: c.Alarm}
			a := &Request{Query: s, set: sh.Sets[0], Projections: []Projection{{0, 0, -1}}}
			if a.Wanted() {
				s.TellRules(v.Notes)
			}
			if c.Alarm.Any {
				v.Notes.Add("bool_or, bool_and and every are told by counts clearly above what noise alone would make of none: a few rows go unseen")
			}
			out = append(out, &LeafPlan{Question: own, Sets: sh.Sets, Frames: []*linear.Query{s}, Requests: []*Request{a}})
		}
	}
	return out, nil
}

// oneAlarm finds the run that is asked: one of hers on the table that is as exact as asked now and has a yes left, else a new
// one, which is bought.
func (ch *Optimizer) oneAlarm(s *linear.Query, share privacy.Cost) (*Path, *refuse.Refusal) {
	each := s.Table.ContributionTo(1)
	spec, err := mechanisms.NewAlarm(mechanisms.AlarmFor(ch.Context.Settings.Alarms, each, share))
	if err != nil {
		return nil, linear.NoMechanism.At(-1, err.Error())
	}
	question := s.Measure("alarm", s.Table.Name+s.About())
	run := &plans.Measure{Kind: "alarms", Name: s.Table.Name + "_alarms", Table: s.Table, Counters: []predicate.Pred{nil}, Spec: spec, Cost: share}
	for n := 0; ; n++ {
		b := predicate.EncodeText(predicate.EncodeText(nil, "run of alarms"), linear.KnownOf(s.Table).Fingerprint)
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, each.Rows), int64(each.Neighbors)), int64(n))
		run.Described, run.Digest = b, sha256.Sum256(b)
		if ch.Context.Holdings == nil {
			break
		}
		held := ch.Context.Holdings.Held(run.Digest)
		if len(held) == 0 {
			break
		}
		h := held[0]
		if held, ok := h.Spec.Kind.(*mechanisms.Alarm); ok && share.Fits(held.Cost) && ch.Context.AlarmsLeft != nil && ch.Context.AlarmsLeft(h.ID) > 0 {
			w := &Path{Measure: run}
			w.hold(h, "your run of alarms on this table goes on, and each question of it is free: "+predicate.Text(int64(ch.Context.AlarmsLeft(h.ID)))+" of "+predicate.Text(int64(held.Positives))+" yes answers are left")
			question.Spec = h.Spec
			w.Alarm = &plans.AlarmQuestion{Measure: question, Least: s.Alarm.Threshold(h.Spec, ch.Context.Settings.Confidence)}
			return w, nil
		}
	}
	run.Why = "dp.alarms is on: the answer is yes or no, and a run of such questions is bought, of which each no is free"
	question.Spec = spec
	return &Path{Measure: run, Alarm: &plans.AlarmQuestion{Measure: question, Least: s.Alarm.Threshold(spec, ch.Context.Settings.Confidence)}}, nil
}
