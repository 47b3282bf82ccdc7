package choose

import (
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// A question has several answers before there is any data: what she holds, a declared release, a release of her own, a
// fresh count, a choice. Each is an access path {what is read or bought, what that costs, how far it is expected to be
// off, why it may not be had}. Sources enumerate them, in the order of preference, and three objectives take one of
// them:
//
//   - the most exact for a cost (one, below): each path is held against counting afresh for that cost (asExact); of the first source that has any
//     as exact, or preferred, the path with the least expected error; contenders are then compared with it;
//   - the cheapest for an error (max_error_search.go): what is held where it is exact enough, else what costs least together
//     with the statement's other questions;
//   - the least error of many statements for a cost (package workload), which adds measures of several questions at once.
//
// Whoever adds a way to answer adds a source. Only what is public is looked at.

// questionKind is what a source can answer; a set of them.
type questionKind uint8

const (
	counts     questionKind = 1 << iota // of rows, and sums
	choices                             // values chosen by their scores: quantiles, modes
	orders                              // counts of which only the first ones are shown, and only as an order
	thresholds                          // whether a count is above a threshold
)

// role is what a source's paths are to the others.
type role int

const (
	held      role = iota // paid for
	onOffer               // offered by the policy, or asked for with dp.release
	bought                // for this question
	contender             // taken where it beats the path that the sources before it lead to
)

// source finds alternatives, at most a few.
type source struct {
	name    string // what Alternative.Path calls those that it finds
	answers questionKind
	role    role
	find    func(*Optimizer, *goal) []alternative // at most exact for the goal's share
	exact   func(*Optimizer, *goal) []alternative // exact enough for the goal's need, each at its least cost; nil means none is looked for
}

// onOfferSource names what is on offer; an online release, and a range release of her own, have names of their own.
const onOfferSource = "declared release"

// sources are all ways to answer, the most preferred first. It is made at the start: sources look at one another.
var sources []source

func init() {
	sources = []source{
		{"growing release", counts, held, (*Optimizer).continual, exactHeld((*Optimizer).continual)},
		{"asked before", counts, held, (*Optimizer).again, exactHeld((*Optimizer).again)},
		{"asked before", choices, held, (*Optimizer).chosenBefore, nil},
		{"containment", counts, held, (*Optimizer).reuseAny, exactHeld((*Optimizer).reuseAny)},
		{"containment", choices, held, (*Optimizer).chosenFromHeld, nil},
		{"run of alarms", thresholds, held, (*Optimizer).goingRun, nil},
		{onOfferSource, counts, onOffer, (*Optimizer).offered, (*Optimizer).exactDeclared},
		{"declared release", choices, onOffer, (*Optimizer).chosenFromDeclared, nil},
		{"own range release", counts, bought, nil, (*Optimizer).exactRelease},
		{"refining", counts, bought, (*Optimizer).refined, (*Optimizer).exactRefined},
		{"widening", counts, bought, (*Optimizer).widened, nil}, // for an error, fresh counts are widened
		{"fresh count", counts, bought, (*Optimizer).freshly, (*Optimizer).exactCount},
		{"counts for a choice", choices, bought, (*Optimizer).chosenFromCounts, nil},
		{"selection", choices, bought, (*Optimizer).chosen, nil},
		{"run of alarms", thresholds, bought, (*Optimizer).newRun, nil},
		{"selection", orders, contender, (*Optimizer).topCandidates, nil},
		{"selection", orders, contender, (*Optimizer).topKeys, nil},
	}
}

// goal is a question with what may be paid for it, or how exact it has to be.
type goal struct {
	*linear.Query
	kind  questionKind
	own   *plans.Measure  // of its own cells
	fresh mechanisms.Spec // of measuring these afresh for the share
	share privacy.Cost
	need  *need         // set: how exact, under dp.max_error
	held  []alternative // what again and reuse have listed

	released bool // a range release of her own has been found, which she has asked for

	sessions []*onlinePath // what onlineFor has listed, once it has looked
	looked   bool

	taken   *Path           // what the sources so far lead to, for the contenders
	refusal *refuse.Refusal // why nothing that comes after a source may answer it
}

// alternative is one path of a question.
type alternative struct {
	path     *Path // its measure's Why says why it would be taken
	variance float64
	holding  reuse.Holding // what is read, where the measure is held
	not      string        // why it may not be had; empty means it may
	hint     string        // how she may have it, where it would be more exact

	stale     bool // it is of an epoch gone by, and exact enough
	order     int  // of what is held, by age: the youngest that is read
	preferred bool // it goes before a fresh count, whatever its error
	enough    bool // it is as exact as counting afresh
}

// goalOf is what the sources are asked for a question.
func (ch *Weigher) goalOf(s *linear.Query, share privacy.Cost) *goal {
	q := &goal{Query: s, share: share, kind: counts}
	var err error
	switch asked := s.Asked.(type) {
	case *linear.Chosen:
		q.kind, q.own = choices, s.ChoiceMeasure()
		q.fresh, err = s.Choice(share)
	case *linear.ThresholdColumn:
		q.kind, q.own = thresholds, s.Measure("alarm", s.Table.Name+s.About())
		q.fresh, err = mechanisms.NewAlarm(mechanisms.AlarmFor(ch.Context.Settings.Alarms, s.Table.ContributionTo(1), share))
	case linear.Counted:
		if asked.Ranked() {
			q.kind |= orders
		}
		q.own = s.Measure(s.Kind(), s.Table.Name+s.About())
		q.fresh, err = s.Fresh(share)
	}
	if err != nil {
		q.refusal = linear.NoMechanism.At(-1, err.Error())
	}
	return q
}

// one takes the most exact path of a question for its share.
func (ch *Optimizer) one(s *linear.Query, share privacy.Cost) (*Path, *refuse.Refusal) {
	q := ch.goalOf(s, share)
	for _, from := range sources {
		if from.answers&q.kind == 0 || from.find == nil || from.role != contender && (q.taken != nil || q.refusal != nil) {
			continue
		}
		c := least(q.symmetric(from.find(ch, q)))
		if c == nil {
			continue
		}
		if better := ch.heldNearer(q, c); better != nil {
			c = better
		}
		if q.taken = c.path; q.taken.Measure.Held {
			q.taken = ch.renewed(q.taken, c.holding, share)
		}
		q.taken.name = c.named(from.name)
		if from.role == contender {
			break
		}
	}
	switch {
	case q.taken != nil:
		return q.taken, nil
	case q.refusal != nil:
		return nil, q.refusal
	}
	return nil, linear.NoMechanism.At(-1, "nothing answers this")
}

// lessExact is why a path is not taken that would be further off than counting afresh for what the question may cost.
const lessExact = "less exact than a fresh count at dp.epsilon"

// Expected squared errors are the same within sameError, since costs are rounded; where they are within otherTails of
// one another, half-widths decide, since a sum of many noises has shorter tails than one.
const (
	sameError  = 1.001
	otherTails = 1.3
)

// asExact reports whether a path, of some expected squared error, is as exact as counting afresh for the question's
// share. It is what everything is held against that may be read or bought in place of that count, so that more ε never
// widens a bar (docs/adr/0189).
func (ch *Weigher) asExact(q *goal, w *Path, variance float64) bool {
	return ch.noWider(q, w, variance, q.fresh)
}

// noWider reports whether a path is as exact as the question counted by itself with some noise.
func (ch *Weigher) noWider(q *goal, w *Path, variance float64, alone mechanisms.Spec) bool {
	switch ratio := variance / ch.each(q.Query, alone); {
	case ratio > otherTails:
		return false
	case ratio > sameError:
		return ch.off(w).HalfWidth <= ch.off(&Path{Measure: &plans.Measure{Spec: alone}, Reading: reuse.OwnReading(q.Query)}).HalfWidth
	}
	return true
}

// Preferred reports whether a release goes before a count that would be more exact, for the questions that are free
// after it: by the owner's word (insist: true), or by hers (dp.release = on, a batch). Keys that were found are not
// found again.
func Preferred(m *plans.Measure, set plans.Settings) bool {
	return m.Kind == "keys" || m.Shared && m.Declared == nil || m.Declared != nil && m.Declared.Insist || set.Release && reuse.IsRelease(m)
}

func (ch *Weigher) preferred(m *plans.Measure) bool { return Preferred(m, ch.Context.Settings) }

// heldNearer is what she holds that is more exact than a path that is preferred to a fresh count; nil means nothing is.
func (ch *Weigher) heldNearer(q *goal, c *alternative) *alternative {
	return leastOf(q.symmetric(q.held), func(h *alternative) bool {
		return h.not == lessExact && h.variance < c.variance && !ch.asExact(q, c.path, c.variance)
	})
}

// least is the candidate with the least expected error among those that may be had.
func least(list []alternative) *alternative {
	return leastOf(list, func(c *alternative) bool { return c.not == "" })
}

func leastOf(list []alternative, among func(*alternative) bool) (best *alternative) {
	for i := range list {
		if c := &list[i]; among(c) && (best == nil || c.variance < best.variance) {
			best = c
		}
	}
	return best
}

// symmetric marks the alternatives that min_frequency does not allow a question: its threshold is for a count with
// noise that is as likely to be above as below, which what a model answers is not.
func (q *goal) symmetric(list []alternative) []alternative {
	if q.Frequency.Units == 0 || q.kind&counts == 0 {
		return list
	}
	for i := range list {
		if !mechanisms.Is[*mechanisms.Counts](list[i].path.Measure.Spec) {
			list[i].not = "min_frequency needs counts, no answers of a model"
		}
	}
	return list
}

// freshly counts afresh.
func (ch *Weigher) freshly(q *goal) []alternative {
	w := &Path{Measure: q.own, Reading: reuse.OwnReading(q.Query)}
	w.Measure.Spec, w.Measure.Cost, w.Measure.Why = q.fresh, q.share, "no release that you have paid for answers it as exactly"
	if q.Marginals != nil {
		w.Measure.Why += "; " + q.Marginals.Why()
	}
	return []alternative{{path: w, variance: ch.worst(q.fresh, w.Reading)}}
}

// off is the largest expected error over the rows that a path reads.
func (ch *Weigher) off(w *Path) mechanisms.Error {
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
func (ch *Weigher) worst(spec mechanisms.Spec, r *reuse.Reading) float64 {
	most := 0.0
	for c := range r.Spans {
		if _, variance := plans.WorstRow(spec, r.Looked(c), ch.Context.Settings.Confidence); variance > most {
			most = variance
		}
	}
	return most
}

// exactEnough reports whether a release held is at least as exact as a fresh one, counter by counter.
func (ch *Weigher) exactEnough(s *linear.Query, held, fresh mechanisms.Spec) bool {
	for c := range fresh.Counters {
		if ch.each(s, held.Only(c)) > ch.each(s, fresh.Only(c)) {
			return false
		}
	}
	return true
}

// EXPLAIN (ALTERNATIVES) SELECT … lists every path that the sources find for each question of a statement: of
//
//	SELECT count(*) FROM people WHERE age BETWEEN 30 AND 39
//
// what is held, the declared release over age, a range release of her own, the count with the rows around it, a fresh
// count.

// Alternatives are the paths of all questions of a plan, those that were taken first.
func (ch *Optimizer) Alternatives(leaves []*LeafPlan, paths [][]*Path) (list []plans.Alternative) {
	quiet := *ch // what it notes was noted when the paths were taken
	wanted := map[plans.Digest]*need{}
	if ch.Context.Settings.MaxError > 0 {
		for _, n := range needs(leaves, make([][]*Path, len(leaves))) {
			wanted[n.Measure("", "").Digest] = n
		}
	}
	for i, lp := range leaves {
		for j, a := range lp.Requests {
			if taken := paths[i][j]; taken != nil {
				q := quiet.goalOf(a.Query, taken.shareOr(ch))
				q.need = wanted[a.Measure("", "").Digest]
				for _, way := range quiet.alternatives(plans.LeafName(a.Asked.ShownBy(i)), q, taken) {
					if way.Steps = len(a.Ladder); way.Steps == 1 {
						way.Error.HalfWidth = totals.Worth(way.Error.HalfWidth, a.Ladder[0])
					}
					list = append(list, way)
				}
			}
		}
	}
	return list
}

// shareOr is what the path might have cost.
func (w *Path) shareOr(ch *Optimizer) privacy.Cost {
	if w.share.IsZero() {
		return ch.Share(1)
	}
	return w.share
}

// alternatives are the paths of a question, of which one was taken.
func (ch *Optimizer) alternatives(leaf string, q *goal, taken *Path) (out []plans.Alternative) {
	all, names := []alternative{{path: taken}}, []string{taken.name}
	ch.enumerate(q, taken, func(from source, c alternative) {
		all, names = append(all, c), append(names, c.named(from.name))
	})
	seen := map[string]bool{}
	for i, c := range all {
		m := c.path.Measure
		name := string(m.Digest[:]) + m.Kind + m.Cost.String() + predicate.Text(m.HeldID)
		if seen[name] {
			continue
		}
		seen[name] = true
		a := plans.Alternative{Leaf: leaf, Path: names[i], Kind: m.Kind, Name: m.Name, Held: m.Held, Cost: m.Cost, Taken: i == 0, Why: m.Why}
		if a.Error = ch.off(c.path); mechanisms.Is[*mechanisms.Choice](m.Spec) {
			a.Rank = m.Spec.RankError(ch.Context.Settings.Confidence)
		}
		if i > 0 {
			a.Why = ch.whyNot(c, taken, a.Error, out[0].Error, q)
		}
		out = append(out, a)
	}
	return out
}

// enumerate lists what every source finds.
func (ch *Optimizer) enumerate(q *goal, taken *Path, list func(source, alternative)) {
	if !mechanisms.Is[*mechanisms.Choice](taken.Measure.Spec) {
		q.taken = taken
	}
	unmeasured := q.refusal != nil
	for _, from := range sources {
		find := from.find
		if q.need != nil {
			find = from.exact
		}
		if from.answers&q.kind == 0 || find == nil || unmeasured && from.role != contender {
			continue
		}
		found := find(ch, q)
		if c := least(found); q.taken == nil && c != nil {
			q.taken = c.path
		}
		for _, c := range found {
			list(from, c)
		}
	}
}

// named is how what a source finds is called.
func (c alternative) named(source string) string {
	switch r := c.path.Reading; {
	case source == "widening" && c.path.Measure.Held:
		return "asked before"
	case source == "fresh count" && c.path.counts != nil:
		return "widening"
	case source == onOfferSource && mechanisms.Is[*mechanisms.Online](c.path.Measure.Spec):
		return "online release"
	case source == onOfferSource && c.path.Measure.Declared == nil:
		return "own range release"
	case source != "containment":
	case r != nil && r.Mix != nil:
		return "linear combination"
	case mechanisms.Is[*mechanisms.Online](c.path.Measure.Spec):
		return "online release"
	case c.path.Measure.Spec.Counts().Strategy.IsCube():
		return "containment in marginals"
	}
	return source
}

// whyNot says why a path was not taken.
func (ch *Weigher) whyNot(c alternative, taken *Path, off, least mechanisms.Error, q *goal) string {
	switch m := c.path.Measure; {
	case c.not != "":
		return c.not
	case taken.Measure.Held && !m.Held:
		return "what you have paid for answers it for nothing"
	case taken.name == skiRental:
		return "such questions have come to the price of the release that is bought"
	case q.need != nil && !m.Cost.Fits(taken.Measure.Cost):
		return "dearer, for what is asked now"
	case q.need == nil && off.Variance > least.Variance:
		return "expected to be further off"
	case taken.Measure.Held && taken.Measure.Digest == q.own.Digest && m.Digest != q.own.Digest:
		return "the same question keeps its answer"
	case taken.Measure.Declared != nil:
		return "the release answers more than this question"
	}
	return "no nearer than what is taken"
}
