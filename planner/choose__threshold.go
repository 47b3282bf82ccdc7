package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// alarms makes a sheet for each alarm of each leaf.
func (v *sheeter) alarms(sheets []*sheet) (out []*sheet, refusal *refuse.Refusal) {
	for i, sh := range sheets {
		for n, c := range sh.counters {
			if c.alarm == nil {
				continue
			}
			own := sh.on(sh.sets[0], nil, nil)
			own.where = slices.Concat(own.where, c.alarm.where)
			own.counterFor(nil)
			s, refusal := solve(own, v.b.env, v.notes)
			if refusal != nil {
				return nil, refusal
			}
			s.alarm = &alarmOf{i, n, c.alarm}
			a := &ask{solved: s, set: sh.sets[0], fills: []fill{{0, 0, -1}}}
			if a.wanted() {
				s.tellRules(v.notes)
			}
			if c.alarm.any {
				v.notes.add("bool_or, bool_and and every are told by counts clearly above what noise alone would make of none: a few rows go unseen")
			}
			out = append(out, &sheet{question: own, sets: sh.sets, frames: []*solved{s}, asks: []*ask{a}})
		}
	}
	return out, nil
}

// oneAlarm finds the run that is asked: one of hers on the table that is as exact as asked now and has a yes left, else a new
// one, which is bought.
func (ch *chooser) oneAlarm(s *solved, share privacy.Cost) (*way, *refuse.Refusal) {
	each := s.table.ContributionTo(1)
	spec, err := mechanisms.NewAlarm(mechanisms.AlarmFor(ch.c.Settings.Alarms, each, share))
	if err != nil {
		return nil, noMechanism.At(-1, err.Error())
	}
	question := s.measure("alarm", s.table.Name+s.about())
	run := &Measure{Kind: "alarms", Name: s.table.Name + "_alarms", Table: s.table, Counters: []predicate.Pred{nil}, Spec: spec, Cost: share}
	for n := 0; ; n++ {
		b := predicate.EncodeText(predicate.EncodeText(nil, "run of alarms"), knownOf(s.table).fingerprint)
		b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, each.Rows), int64(each.Neighbors)), int64(n))
		run.described, run.Digest = b, sha256.Sum256(b)
		if ch.c.Holdings == nil {
			break
		}
		held := ch.c.Holdings.Held(run.Digest)
		if len(held) == 0 {
			break
		}
		h := held[0]
		if h.Spec.Alarm != nil && spec.Alarm.Cost.Fits(h.Spec.Alarm.Cost) && ch.c.AlarmsLeft != nil && ch.c.AlarmsLeft(h.ID) > 0 {
			w := &way{measure: run}
			w.hold(h, "your run of alarms on this table goes on, and each question of it is free: "+predicate.Text(int64(ch.c.AlarmsLeft(h.ID)))+" of "+predicate.Text(int64(h.Spec.Alarm.Positives))+" yes answers are left")
			question.Spec = h.Spec
			w.alarm = &AlarmQuestion{question, s.alarm.threshold(h.Spec, ch.c.Settings.Confidence)}
			return w, nil
		}
	}
	run.Why = "dp.alarms is on: the answer is yes or no, and a run of such questions is bought, of which each no is free"
	question.Spec = spec
	return &way{measure: run, alarm: &AlarmQuestion{question, s.alarm.threshold(spec, ch.c.Settings.Confidence)}}, nil
}
