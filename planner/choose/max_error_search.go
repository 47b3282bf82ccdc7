package choose

import (
	"cmp"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// purchase is a question for which nothing exact enough is held, and what may be bought for it.
type purchase struct {
	*need
	fresh    *Path   // of its own, the cheapest; nil means it cannot be so exact
	declared []*Path // the policy's releases that are exact enough
	stale    *Path   // held and exact enough, of an epoch gone by; nil means nothing is
}

// accurate takes the paths of all leaf plans at the least cost for dp.max_error: what she holds where that is exact
// enough, and of what is to be bought the cheapest together.
func (ch *Optimizer) accurate(leaves []*LeafPlan) ([][]*Path, *refuse.Refusal) {
	paths := make([][]*Path, len(leaves))
	var open []*purchase
	for _, n := range needs(leaves, paths) {
		current, p, refusal := ch.exact(n)
		switch {
		case refusal != nil:
			return nil, refusal
		case current != nil:
			n.take(current)
		case p.fresh == nil && len(p.declared) == 0 && p.stale == nil:
			return nil, linear.NoMechanism.At(-1, "at no cost is it as exact as dp.max_error asks")
		default:
			open = append(open, p)
		}
	}
	ch.Hints = nil
	slices.SortStableFunc(open, func(a, b *purchase) int { return cmp.Compare(ch.alone(b), ch.alone(a)) })
	ch.invest(open)
	return paths, ch.settle(open)
}

// exact asks the sources for what is exact enough: what she holds, of which the first answers, or what may be bought.
func (ch *Optimizer) exact(n *need) (current *Path, p *purchase, refusal *refuse.Refusal) {
	q := ch.goalOf(n.Query, ch.Share(1))
	q.need, p = n, &purchase{need: n}
	for _, from := range sources {
		if q.refusal != nil {
			return nil, nil, q.refusal
		}
		if from.answers&counts == 0 || from.exact == nil {
			continue
		}
		for _, c := range q.symmetric(from.exact(ch, q)) {
			c.path.name = c.named(from.name)
			switch {
			case c.not != "":
			case from.role == held && !c.stale:
				return c.path, nil, nil
			case from.role == held:
				if p.stale == nil {
					p.stale = c.path
				}
			case from.role == onOffer:
				p.declared = append(p.declared, c.path)
			case p.fresh == nil || c.path.cheaperThan(p.fresh):
				p.fresh = c.path
			}
		}
	}
	return nil, p, q.refusal
}

// cheaperThan reports whether a path costs less than another, or as much and refines what is held.
func (w *Path) cheaperThan(other *Path) bool {
	return w.Measure.Cost.Fits(other.Measure.Cost) && (w.Measure.Refines() || !other.Measure.Cost.Fits(w.Measure.Cost))
}

// take answers the question so.
func (n *need) take(w *Path) {
	for _, at := range n.at {
		*at = w
	}
}

// settle buys the cheapest that is exact enough, all questions together. Where that is dearer than dp.epsilon lets a
// statement be, what she holds of an epoch gone by answers.
func (ch *Optimizer) settle(open []*purchase) *refuse.Refusal {
	paths, cost := ch.cheapest(open)
	if !cost.Fits(ch.Share(1)) {
		rest := slices.Clone(open)
		for i, p := range rest {
			if p.stale != nil {
				rest[i] = &purchase{need: p.need, stale: p.stale}
			}
		}
		var less privacy.Cost
		if paths, less = ch.cheapest(rest); !less.Fits(ch.Share(1)) {
			return ch.dear(cost)
		}
	}
	for i, p := range open {
		p.take(paths[i])
		if r := paths[i].Measure.Declared; paths[i] == p.stale {
			ch.Dates.Add(r.Name + " is of an epoch gone by; it may be bought anew with SET dp.epsilon = " + r.Epsilon.String())
		}
	}
	return nil
}

// maxTogether bounds the declared releases that are looked at together.
const maxTogether = 10

// cheapest is the paths that cost least together, and what they do: some declared releases, each of which answers what
// it can, and fresh counts for the rest. All choices of releases are looked at.
func (ch *Weigher) cheapest(open []*purchase) (best []*Path, least privacy.Cost) {
	var releases []*policy.Release
	for _, p := range open {
		for _, w := range p.declared {
			if !slices.Contains(releases, w.Measure.Declared) && len(releases) < maxTogether {
				releases = append(releases, w.Measure.Declared)
			}
		}
	}
	for some := range 1 << len(releases) {
		paths, cost, ok := ch.with(open, releases, some)
		if ok && (best == nil || cost.Fits(least)) { // of two that cost the same, the one with more releases: these stay free
			best, least = paths, cost
		}
	}
	return best, least
}

// with is the paths with some of the releases: each question from one of them, from what is counted for another
// question, or counted by itself; false means one has no path.
func (ch *Weigher) with(open []*purchase, releases []*policy.Release, some int) (paths []*Path, cost privacy.Cost,
	ok bool) {
	bought := map[*policy.Release]*plans.Measure{}
	paths = make([]*Path, len(open))
	for i, p := range open {
		w := p.from(releases, some)
		if w == nil {
			w = ch.besides(p, paths[:i])
		}
		switch {
		case w == nil && p.fresh != nil:
			w = p.fresh
			cost = cost.Plus(w.Measure.Cost)
		case w == nil:
			w = p.stale
		case w.Measure.Shared && bought[w.Measure.Declared] == nil:
			bought[w.Measure.Declared] = w.Measure
			cost = cost.Plus(w.Measure.Cost)
		case w.Measure.Shared:
			w = &Path{Measure: bought[w.Measure.Declared], Reading: w.Reading, counts: w.counts, name: w.name}
		}
		if w == nil {
			return nil, cost, false
		}
		paths[i] = w
	}
	return paths, cost, true
}

// from is the path that reads a question from one of some releases.
func (p *purchase) from(releases []*policy.Release, some int) *Path {
	for _, w := range p.declared {
		if at := slices.Index(releases, w.Measure.Declared); at >= 0 && some>>at&1 == 1 {
			return w
		}
	}
	return nil
}

// besides reads a question from what is counted for another one, where that is exact enough.
func (ch *Weigher) besides(p *purchase, paths []*Path) *Path {
	for _, have := range paths {
		if have.counts == nil || have.Measure.Held || have.Measure.Shared || have.counts.Table != p.Table {
			continue
		}
		if r := reuse.Cover(p.Query, have.counts); r != nil && ch.within(p.need, have.Measure.Spec, r) {
			return &Path{Measure: have.Measure, Reading: r, counts: have.counts, name: fromAnother}
		}
	}
	return nil
}

// alone is what the question costs without a declared release, for the order in which they are looked at: what is
// counted for a dear one may do for a cheap one.
func (ch *Weigher) alone(p *purchase) int64 {
	if p.fresh == nil {
		return 0
	}
	return ch.sizeOf(p.fresh.Measure.Cost)
}

// sizeOf is a cost in the unit that is priced in. Where that is ρ, ε are what they come to; where it is ε, what was
// paid in ρ is nothing.
func (ch *Weigher) sizeOf(c privacy.Cost) int64 {
	if ch.Context.Accountant() == privacy.ZCDP {
		return c.Rho.Pico() + min(c.Epsilon.Rho().Pico(), 1e18)
	}
	return c.Epsilon.Micro()
}

// dear refuses what costs more than dp.epsilon allows, with what it would cost.
func (ch *Optimizer) dear(cost privacy.Cost) *refuse.Refusal {
	needed := cost.Epsilon
	if cost.Rho.Pico() > 0 {
		budget, _ := ch.Context.Dataset.Budget(ch.Context.User)
		needed = ch.Context.Dataset.EpsilonFor(cost.Rho, budget.Cost)
	}
	most := ch.Context.Dataset.Defaults.MaxEpsilon
	refusal := errorDear.At(-1, ch.aim(), cost.String(), ch.Share(1).String())
	refusal.Hint = "SET dp.epsilon = " + needed.String() + ", or dp.max_error to more."
	if needed.Micro() > most.Micro() {
		refusal.Hint = "The policy lets a statement cost ε " + most.String() + " at most: SET dp.max_error to more, or dp.confidence to less."
	}
	return refusal
}

// exactHeld judges what a source finds held by the error that is asked for, of this epoch and of those gone by: what
// has been held longest answers, so that the same question keeps its answer.
func exactHeld(find func(*Optimizer, *goal) []alternative) func(*Optimizer, *goal) []alternative {
	return func(ch *Optimizer, q *goal) []alternative {
		list := find(ch, q)
		best := map[bool]*alternative{} // by stale
		for i := range list {
			c := &list[i]
			m := c.path.Measure
			c.stale = ch.isStale(c.holding, m.Declared)
			have := best[c.stale]
			switch {
			case mechanisms.Is[*mechanisms.Online](m.Spec) && c.not != "": // it has stopped
			case have != nil && (c.order > have.order || c.order == have.order && c.variance >= have.variance):
				c.not = heldLonger
			case !ch.within(q.need, m.Spec, c.path.Reading):
				c.not = ch.inexact()
			default:
				if c.not = ""; have != nil {
					have.not = heldLonger
				}
				best[c.stale] = c
			}
		}
		for stale, c := range best {
			m := c.path.Measure
			if m.Why += ", exact enough for " + ch.aim(); stale {
				m.Why += "; it is of " + reuse.EpochDate(c.holding.At, m.Declared.Refresh)
			}
		}
		return list
	}
}

// inexact is why a path is not taken for the error that is asked for.
func (ch *Weigher) inexact() string { return "not exact enough for " + ch.aim() }

// exactDeclared finds the policy's releases that are exact enough, whatever they cost.
func (ch *Optimizer) exactDeclared(q *goal) []alternative {
	list := ch.declared(q)
	for i := range list {
		c := &list[i]
		m := c.path.Measure
		if c.not = ""; !ch.within(q.need, m.Spec, c.path.Reading) {
			c.not = ch.inexact()
			continue
		}
		m.Why = "release " + m.Name + " is the cheapest that is exact enough for " + ch.aim() + ", and every such question is free after it"
	}
	return list
}
