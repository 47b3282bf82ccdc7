package choose

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
)

// SELECT k … GROUP BY k ORDER BY count(*) DESC LIMIT n shows the keys with the most rows and no count. Where that is
// expected to be nearer than sorting noisy counts, the keys are chosen: the leaf's column that stands for the count
// then ranks the chosen rows, n for the first to 1 for the last, and is 0 elsewhere. What stands above does not change.

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
