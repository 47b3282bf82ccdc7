package planner

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// SELECT k … GROUP BY k ORDER BY count(*) DESC LIMIT n shows the keys with the most rows and no count. Where that is
// expected to be nearer than sorting noisy counts, the keys are chosen: the leaf's column that stands for the count then
// ranks the chosen rows, n for the first to 1 for the last, and is 0 elsewhere. What stands above does not change.

// topOf is how many keys a question shows in the order of its only counter, 0 for others: those whose cells are the rows.
func (sh *sheet) topOf(a *ask) int {
	if sh.question == nil || sh.top == 0 || len(sh.asks) != 1 || len(sh.counters) != 1 || a.solved != sh.frames[0] || a.summed() != nil {
		return 0
	}
	if len(a.fills) != 1 || a.fills[0].condition >= 0 || a.counting[a.fills[0].counter] != 0 || len(a.counts) != 1 || sh.top >= a.cells {
		return 0
	}
	return sh.top
}

// one picks the way of one question: of a choice, of the first keys, or of counts.
func (ch *chooser) one(s *solved, share privacy.Cost) (*way, *refuse.Refusal) {
	if s.chosen != nil {
		return ch.oneChoice(s, share)
	}
	if s.alarm != nil {
		return ch.oneAlarm(s, share)
	}
	w, refusal := ch.oneCounted(s, share)
	if s.contest != nil {
		if chosen := ch.oneContest(s.contest, w, share); chosen != nil {
			return chosen, nil
		}
	}
	if refusal == nil && s.first > 0 {
		if top := ch.oneTop(s, w, share); top != nil {
			return top, nil
		}
	}
	return w, refusal
}

// oneTop chooses the first keys where she has paid for that, or where it is expected to be nearer than fresh counts; nil:
// it is not.
func (ch *chooser) oneTop(s *solved, w *way, share privacy.Cost) *way {
	spec, err := mechanisms.NewChoice(mechanisms.Choice{Kind: mechanisms.Largest, Blocks: []mechanisms.Block{{Groups: 1, Cells: s.cells}}, Most: s.first}, s.contribution(), share)
	if err != nil {
		return nil
	}
	own := s.measure("top", s.table.Name+s.about())
	own.described = binary.AppendUvarint(append(own.described, "top"...), uint64(s.first))
	own.Digest = sha256.Sum256(own.described)
	if w := ch.sameChoice(own, spec); w != nil {
		return w
	}
	if w.measure.Held || w.measure.Refines() || w.measure.Declared != nil || w.measure.Kind == "range" || w.reading.mix != nil {
		return nil
	}
	// The count of a key and that of another may both be off.
	each, err := mechanisms.NewConfidence(1 - (1-ch.c.Settings.Confidence.Float())/float64(s.cells))
	if err != nil || spec.RankError(ch.c.Settings.Confidence) >= 2*float64(w.measure.Spec.Error(predicate.One(0), each).HalfWidth) {
		return nil
	}
	own.Spec, own.Cost = spec, share
	own.Why = "the keys alone are expected to be nearer when chosen than when sorted by noisy counts at this price"
	return &way{measure: own}
}
