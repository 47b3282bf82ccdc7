package choose

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// A question has several answers before there is any data: what she holds, a declared release, a release of her own, a
// fresh count. Each is a candidate: what is read or bought (way), what that costs, how far it is expected to be off, and why
// it may not be had. Candidates come from sources, in the order of preference: of the first source with one that may be
// had, the one with the least expected error is taken. Whoever adds a way to answer adds a source.

// goal is a question with what may be paid for it.
type goal struct {
	*linear.Query
	own   *plans.Measure  // of its own cells
	fresh mechanisms.Spec // of counting these afresh for the share
	share privacy.Cost
	held  []alternative // what again and reuse have listed

	sessions []*onlinePath // what onlineFor has listed, once it has looked
	looked   bool

	choosing mechanisms.Spec // instead of fresh, where the question is a choice
	refusal  *refuse.Refusal // why nothing that comes after a source may answer it
}

// alternative is one way to answer a question.
type alternative struct {
	way      *Path // its measure's Why says why it would be taken
	variance float64
	holding  reuse.Holding // what is read, where the measure is held
	not      string        // why it may not be had; empty: it may

	order    int  // of what is held, by age: the youngest that is read
	released bool // it is read from releases alone, which answer whatever they can
	enough   bool // it is as exact as counting afresh
}

// source finds alternatives, at most a few. Only what is public is looked at.
type source struct {
	path string // what Alternative.Path calls those that it finds
	find func(*Optimizer, *goal) []alternative
}

// countedFrom are the sources of counts and sums.
var countedFrom = []source{
	{"growing release", (*Optimizer).grown},
	{"asked before", (*Optimizer).again},
	{"containment", (*Optimizer).reuseAny},
	{"online release", (*Optimizer).openSession},
	{"declared release", (*Optimizer).declared},
	{"own range release", (*Optimizer).ownRelease},
	{"stopped online release", (*Optimizer).stopped},
	{"refining", (*Optimizer).refined},
	{"widening", (*Optimizer).widened},
	{"fresh count", (*Optimizer).freshly},
}

// least is the candidate with the least expected error among those that may be had.
func least(list []alternative) *alternative {
	var best *alternative
	for i, c := range list {
		if c.not == "" && (best == nil || c.variance < best.variance) {
			best = &list[i]
		}
	}
	return best
}

// goalOf is what the sources are asked.
func (ch *Optimizer) goalOf(s *linear.Query, share privacy.Cost) (*goal, *refuse.Refusal) {
	q := &goal{Query: s, share: share}
	var err error
	if s.Chosen != nil {
		q.own = s.ChoiceMeasure()
		q.choosing, err = s.Choice(share)
	} else {
		q.own = s.Measure(s.Kind(), s.Table.Name+s.About())
		q.fresh, err = s.Fresh(share)
	}
	if err != nil {
		return nil, linear.NoMechanism.At(-1, err.Error())
	}
	return q, nil
}

// oneCounted picks the way of one question that counts or adds up.
func (ch *Optimizer) oneCounted(s *linear.Query, share privacy.Cost) (*Path, *refuse.Refusal) {
	q, refusal := ch.goalOf(s, share)
	if refusal != nil {
		return nil, refusal
	}
	for _, from := range countedFrom {
		if c := least(from.find(ch, q)); c != nil {
			if !c.way.Measure.Held {
				return c.way, nil
			}
			return ch.renewed(c.way, c.holding, share), nil
		}
		if q.refusal != nil {
			return nil, q.refusal
		}
	}
	return nil, linear.NoMechanism.At(-1, "nothing answers this")
}

// freshly counts afresh.
func (ch *Optimizer) freshly(q *goal) []alternative {
	w := &Path{Measure: q.own, Reading: reuse.OwnReading(q.Query)}
	w.Measure.Spec, w.Measure.Cost, w.Measure.Why = q.fresh, q.share, "no release that you have paid for answers it as exactly"
	if q.Marginals != nil {
		w.Measure.Why += "; " + q.Marginals.Why()
	}
	return []alternative{{way: w, variance: ch.worst(q.fresh, w.Reading)}}
}

// Alternatives are the candidates of a question, of which one was taken.
func (ch *Optimizer) Alternatives(leaf string, s *linear.Query, taken *Path) []plans.Alternative {
	share := taken.share
	if share.IsZero() {
		share = ch.Share(1)
	}
	all, paths := []alternative{{way: taken}}, []string{""}
	own, sources := plans.Digest{}, countedFrom
	if s.Chosen != nil {
		sources = chosenFrom
	}
	q, refusal := ch.goalOf(s, share)
	if refusal == nil {
		own = q.own.Digest
		for _, from := range sources {
			for _, c := range from.find(ch, q) {
				all, paths = append(all, c), append(paths, c.path(from.path))
			}
		}
	}
	if s.TopK != nil {
		for _, c := range ch.topKPaths(s.TopK, share) {
			all, paths = append(all, c), append(paths, "selection")
		}
	}
	var out []plans.Alternative
	seen := map[string]int{}
	for i, c := range all {
		m := c.way.Measure
		name := string(m.Digest[:]) + m.Kind + m.Cost.String() + predicate.Text(m.HeldID)
		if at, known := seen[name]; known {
			if out[at].Path == "" {
				out[at].Path = paths[i]
			}
			continue
		}
		seen[name] = len(out)
		a := plans.Alternative{Leaf: leaf, Path: paths[i], Kind: m.Kind, Name: m.Name, Held: m.Held, Cost: m.Cost, Taken: i == 0, Why: m.Why}
		if a.Error = ch.off(c.way); mechanisms.Is[*mechanisms.Choice](m.Spec) {
			a.Rank = m.Spec.RankError(ch.Context.Settings.Confidence)
		}
		if i > 0 {
			a.Why = whyNot(c, taken, a.Error, out[0].Error, own)
		}
		out = append(out, a)
	}
	return out
}

// path is how what a source finds is called.
func (c alternative) path(source string) string {
	switch r := c.way.Reading; {
	case source != "containment":
	case r != nil && r.Mix != nil:
		return "linear combination"
	case mechanisms.Is[*mechanisms.Online](c.way.Measure.Spec):
		return "online release"
	case c.way.Measure.Spec.Counts().Strategy.IsCube():
		return "containment in marginals"
	}
	return source
}

// whyNot says why a candidate was not taken.
func whyNot(c alternative, taken *Path, off, least mechanisms.Error, own plans.Digest) string {
	switch m := c.way.Measure; {
	case c.not != "":
		return c.not
	case taken.Measure.Held && !m.Held:
		return "what you have paid for answers it for nothing"
	case off.Variance > least.Variance:
		return "expected to be further off"
	case taken.Measure.Held && taken.Measure.Digest == own && m.Digest != own:
		return "the same question keeps its answer"
	case taken.Measure.Declared != nil:
		return "the release answers more than this question"
	}
	return "no nearer than what is taken"
}

// off is the largest expected error over the rows that a way reads.
func (ch *Optimizer) off(w *Path) mechanisms.Error {
	var most mechanisms.Error
	if w.Reading == nil || mechanisms.Is[*mechanisms.Choice](w.Measure.Spec) {
		return most
	}
	if w.Reading.Mix != nil {
		return w.Reading.Mix.Off(ch.Context.Settings.Confidence)
	}
	for c := range w.Reading.Spans {
		e := plans.LargestError(w.Measure.Spec.Only(w.Reading.Counters[c]), w.Reading.Looked(c), ch.Context.Settings.Confidence)
		if e.Variance > most.Variance {
			most = e
		}
	}
	return most
}

// worst is the largest expected squared error over the rows of a reading.
func (ch *Optimizer) worst(spec mechanisms.Spec, r *reuse.Reading) float64 {
	most := 0.0
	for c := range r.Spans {
		if _, variance := plans.WorstRow(spec, r.Looked(c), ch.Context.Settings.Confidence); variance > most {
			most = variance
		}
	}
	return most
}

// exactEnough tells whether a release held is at least as exact as a fresh one, counter by counter.
func (ch *Optimizer) exactEnough(s *linear.Query, held, fresh mechanisms.Spec) bool {
	for c := range fresh.Counters {
		if ch.each(s, held.Only(c)) > ch.each(s, fresh.Only(c)) {
			return false
		}
	}
	return true
}
