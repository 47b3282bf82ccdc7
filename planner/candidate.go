package planner

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
)

// A question has several answers before there is any data: what she holds, a declared release, a release of her own, a
// fresh count. Each is a candidate: what is read or bought (way), what that costs, how far it is expected to be off, and why
// it may not be had. Candidates come from sources, in the order of preference: of the first source with one that may be
// had, the one with the least expected error is taken. Whoever adds a way to answer adds a source.

// asking is a question with what may be paid for it.
type asking struct {
	*solved
	own   *Measure        // of its own cells
	fresh mechanisms.Spec // of counting these afresh for the share
	share privacy.Cost
	held  []candidate // what again and reuse have listed

	sessions []sessionWay // what onlineFor has listed, once it has looked
	looked   bool

	choosing mechanisms.Spec // instead of fresh, where the question is a choice
	refusal  *refuse.Refusal // why nothing that comes after a source may answer it
}

// candidate is one way to answer a question.
type candidate struct {
	way      *way // its measure's Why says why it would be taken
	variance float64
	holding  Holding // what is read, where the measure is held
	not      string  // why it may not be had; empty: it may

	order    int  // of what is held, by age: the youngest that is read
	released bool // it is read from releases alone, which answer whatever they can
	enough   bool // it is as exact as counting afresh
}

// source finds candidates, at most a few. Only what is public is looked at.
type source func(*chooser, *asking) []candidate

// countedFrom are the sources of counts and sums.
var countedFrom = []source{(*chooser).grown, (*chooser).again, (*chooser).reuseAny, (*chooser).openSession, (*chooser).declared, (*chooser).ownRelease, (*chooser).stopped, (*chooser).refined, (*chooser).widened, (*chooser).freshly}

// least is the candidate with the least expected error among those that may be had.
func least(list []candidate) *candidate {
	var best *candidate
	for i, c := range list {
		if c.not == "" && (best == nil || c.variance < best.variance) {
			best = &list[i]
		}
	}
	return best
}

// asking is what the sources are asked.
func (ch *chooser) asking(s *solved, share privacy.Cost) (*asking, *refuse.Refusal) {
	q := &asking{solved: s, share: share}
	var err error
	if s.chosen != nil {
		q.own = s.choiceMeasure()
		q.choosing, err = s.choice(share)
	} else {
		q.own = s.measure(s.kind(), s.table.Name+s.about())
		q.fresh, err = s.fresh(share)
	}
	if err != nil {
		return nil, noMechanism.At(-1, err.Error())
	}
	return q, nil
}

// oneCounted picks the way of one question that counts or adds up.
func (ch *chooser) oneCounted(s *solved, share privacy.Cost) (*way, *refuse.Refusal) {
	q, refusal := ch.asking(s, share)
	if refusal != nil {
		return nil, refusal
	}
	for _, from := range countedFrom {
		if c := least(from(ch, q)); c != nil {
			if !c.way.measure.Held {
				return c.way, nil
			}
			return ch.renewed(c.way, c.holding, share), nil
		}
		if q.refusal != nil {
			return nil, q.refusal
		}
	}
	return nil, noMechanism.At(-1, "nothing answers this")
}

// freshly counts afresh.
func (ch *chooser) freshly(q *asking) []candidate {
	w := &way{measure: q.own, reading: ownReading(q.solved)}
	w.measure.Spec, w.measure.Cost, w.measure.Why = q.fresh, q.share, "no release that you have paid for answers it as exactly"
	if q.marginals != nil {
		w.measure.Why += "; " + q.marginals.why()
	}
	return []candidate{{way: w, variance: ch.worst(q.fresh, w.reading)}}
}

// Alternative is a way to answer a leaf that was weighed, for EXPLAIN (ALTERNATIVES).
type Alternative struct {
	Leaf  string
	Kind  string
	Name  string
	Held  bool
	Cost  privacy.Cost
	Error mechanisms.Error // the largest over the rows; of choices Rank instead
	Rank  float64          // how many rows a choice is off at most
	Taken bool
	Why   string // why it is taken, or why not
}

// tellAlternatives keeps every candidate of every question of the plan.
func (p *Plan) tellAlternatives(ch *chooser, sheets []*sheet, ways [][]*way) {
	for i, sh := range sheets {
		name := leafName(i)
		for j, a := range sh.asks {
			w := ways[i][j]
			if w == nil {
				continue
			}
			if a.chosen != nil {
				name = leafName(a.chosen.sheet)
			}
			if a.alarm != nil {
				p.Alternatives = append(p.Alternatives, Alternative{Leaf: leafName(a.alarm.sheet), Kind: w.measure.Kind, Name: w.measure.Name, Held: w.measure.Held, Cost: w.measure.Cost, Taken: true, Why: w.measure.Why})
				continue
			}
			quiet := *ch // what it notes was noted when the ways were chosen
			p.Alternatives = append(p.Alternatives, quiet.alternatives(name, a.solved, w)...)
		}
	}
}

// alternatives are the candidates of a question, of which one was taken.
func (ch *chooser) alternatives(leaf string, s *solved, taken *way) []Alternative {
	share := taken.share
	if share.IsZero() {
		share = ch.share(1)
	}
	all := []candidate{{way: taken}}
	own, sources := Digest{}, countedFrom
	if s.chosen != nil {
		sources = chosenFrom
	}
	q, refusal := ch.asking(s, share)
	if refusal == nil {
		own = q.own.Digest
		for _, from := range sources {
			all = append(all, from(ch, q)...)
		}
	}
	if s.contest != nil {
		all = append(all, ch.contested(s.contest, share)...)
	}
	var out []Alternative
	seen := map[string]bool{}
	for i, c := range all {
		m := c.way.measure
		name := string(m.Digest[:]) + m.Kind + m.Cost.String() + predicate.Text(m.HeldID)
		if seen[name] {
			continue
		}
		seen[name] = true
		a := Alternative{Leaf: leaf, Kind: m.Kind, Name: m.Name, Held: m.Held, Cost: m.Cost, Taken: i == 0, Why: m.Why}
		if a.Error = ch.off(c.way); mechanisms.Is[*mechanisms.Choice](m.Spec) {
			a.Rank = m.Spec.RankError(ch.c.Settings.Confidence)
		}
		if i > 0 {
			a.Why = whyNot(c, taken, a.Error, out[0].Error, own)
		}
		out = append(out, a)
	}
	return out
}

// whyNot says why a candidate was not taken.
func whyNot(c candidate, taken *way, off, least mechanisms.Error, own Digest) string {
	switch m := c.way.measure; {
	case c.not != "":
		return c.not
	case taken.measure.Held && !m.Held:
		return "what you have paid for answers it for nothing"
	case off.Variance > least.Variance:
		return "expected to be further off"
	case taken.measure.Held && taken.measure.Digest == own && m.Digest != own:
		return "the same question keeps its answer"
	case taken.measure.Declared != nil:
		return "the release answers more than this question"
	}
	return "no nearer than what is taken"
}

// off is the largest expected error over the rows that a way reads.
func (ch *chooser) off(w *way) mechanisms.Error {
	var most mechanisms.Error
	if w.reading == nil || mechanisms.Is[*mechanisms.Choice](w.measure.Spec) {
		return most
	}
	if w.reading.mix != nil {
		return w.reading.mix.off(ch.c.Settings.Confidence)
	}
	for c := range w.reading.spans {
		e := largestError(w.measure.Spec.Only(w.reading.counters[c]), w.reading.looked(c), ch.c.Settings.Confidence)
		if e.Variance > most.Variance {
			most = e
		}
	}
	return most
}
