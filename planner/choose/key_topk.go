package choose

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// SELECT k … GROUP BY k ORDER BY count(*) DESC LIMIT n shows the keys with the most rows and no count. Where that is
// expected to be nearer than sorting noisy counts, the keys are chosen: the leaf's column that stands for the count then
// ranks the chosen rows, n for the first to 1 for the last, and is 0 elsewhere. What stands above does not change.

// topOf is how many keys a question shows in the order of its only counter, 0 for others: those whose cells are the rows.
func (sh *LeafPlan) topOf(a *Request) int {
	if sh.Question == nil || sh.Top == 0 || len(sh.Requests) != 1 || len(sh.Counters) != 1 || a.Query != sh.Frames[0] || a.Summed() != nil {
		return 0
	}
	if len(a.Projections) != 1 || a.Projections[0].condition >= 0 || a.Counting[a.Projections[0].Counter] != 0 || len(a.Counts) != 1 || sh.Top >= a.Cells || len(a.Concealed()) > 0 {
		return 0
	}
	return sh.Top
}

// one picks the way of one question: of a choice, of the first keys, or of counts.
func (ch *Optimizer) one(s *linear.Query, share privacy.Cost) (*Path, *refuse.Refusal) {
	if s.Chosen != nil {
		return ch.oneChoice(s, share)
	}
	if s.Alarm != nil {
		return ch.oneAlarm(s, share)
	}
	w, refusal := ch.oneCounted(s, share)
	if s.TopK != nil {
		if chosen := ch.oneTopK(s.TopK, w, share); chosen != nil {
			return chosen, nil
		}
	}
	if refusal == nil && s.First > 0 {
		if top := ch.oneTop(s, w, share); top != nil {
			return top, nil
		}
	}
	return w, refusal
}

// oneTop chooses the first keys where she has paid for that, or where it is expected to be nearer than fresh counts; nil:
// it is not.
func (ch *Optimizer) oneTop(s *linear.Query, w *Path, share privacy.Cost) *Path {
	spec, err := mechanisms.NewChoice(mechanisms.Choice{Kind: mechanisms.Largest, Blocks: []mechanisms.Block{{Groups: 1, Cells: s.Cells}}, Most: s.First}, s.Contribution(), share)
	if err != nil {
		return nil
	}
	own := s.Measure("top", s.Table.Name+s.About())
	own.Described = binary.AppendUvarint(append(own.Described, "top"...), uint64(s.First))
	own.Digest = sha256.Sum256(own.Described)
	if w := ch.sameChoice(own, spec); w != nil {
		return w
	}
	if w.Measure.Held || w.Measure.Refines() || w.Measure.Declared != nil || w.Measure.Kind == "range" || w.Reading.Mix != nil {
		return nil
	}
	// The count of a key and that of another may both be off.
	each, err := mechanisms.NewConfidence(1 - (1-ch.Context.Settings.Confidence.Float())/float64(s.Cells))
	if err != nil || spec.RankError(ch.Context.Settings.Confidence) >= 2*float64(w.Measure.Spec.Error(predicate.One(0), each).HalfWidth) {
		return nil
	}
	own.Spec, own.Cost = spec, share
	own.Why = "the keys alone are expected to be nearer when chosen than when sorted by noisy counts at this price"
	return &Path{Measure: own}
}
