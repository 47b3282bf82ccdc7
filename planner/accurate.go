package planner

import (
	"cmp"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// purchase is a question for which nothing exact enough is held, and what may be bought for it.
type purchase struct {
	*need
	fresh    *way   // at its least cost; nil: it cannot be so exact
	declared []*way // the policy's releases that are exact enough
	stale    *way   // held and exact enough, of an epoch gone by; nil: nothing is
}

// accurate picks the ways of all sheets at the least cost for dp.max_error: what she holds where that is exact enough, and
// of what is to be bought the cheapest together.
func (ch *chooser) accurate(sheets []*sheet) ([][]*way, *refuse.Refusal) {
	ways := make([][]*way, len(sheets))
	var open []*purchase
	for _, n := range needs(sheets, ways) {
		q, refusal := ch.asking(n.solved, ch.share(1))
		if refusal != nil {
			return nil, refusal
		}
		current, stale := ch.exactHeld(n, q)
		if current != nil {
			n.take(current)
			continue
		}
		if ch.stopped(q); q.refusal != nil {
			return nil, q.refusal
		}
		p := &purchase{need: n, stale: stale, fresh: ch.freshRange(n), declared: ch.exactDeclared(n, q)}
		if p.fresh == nil {
			p.fresh = ch.counted(n)
		}
		if w := ch.exactRefined(n, q); w != nil && (p.fresh == nil || w.measure.Cost.Fits(p.fresh.measure.Cost)) {
			p.fresh = w
		}
		if p.fresh == nil && len(p.declared) == 0 && stale == nil {
			return nil, noMechanism.At(-1, "at no cost is it as exact as dp.max_error asks")
		}
		open = append(open, p)
	}
	ch.hints = nil
	slices.SortStableFunc(open, func(a, b *purchase) int { return cmp.Compare(b.alone(), a.alone()) })
	ch.invest(open)
	return ways, ch.settle(open)
}

// take answers the question so.
func (n *need) take(w *way) {
	for _, at := range n.at {
		*at = w
	}
}

// settle buys the cheapest that is exact enough, all questions together. Where that is dearer than dp.epsilon lets a
// statement be, what she holds of an epoch gone by answers.
func (ch *chooser) settle(open []*purchase) *refuse.Refusal {
	ways, cost := ch.cheapest(open)
	if !cost.Fits(ch.share(1)) {
		rest := slices.Clone(open)
		for i, p := range rest {
			if p.stale != nil {
				rest[i] = &purchase{need: p.need, stale: p.stale}
			}
		}
		var less privacy.Cost
		if ways, less = ch.cheapest(rest); !less.Fits(ch.share(1)) {
			return ch.dear(cost)
		}
	}
	for i, p := range open {
		p.take(ways[i])
		if r := ways[i].measure.Declared; ways[i] == p.stale {
			ch.dates.add(r.Name + " is of an epoch gone by; it may be bought anew with SET dp.epsilon = " + r.Epsilon.String())
		}
	}
	return nil
}

// mostTogether bounds the declared releases that are looked at together.
const mostTogether = 10

// cheapest is the ways that cost least together, and what they do: some declared releases, each of which answers what it
// can, and fresh counts for the rest. All choices of releases are looked at.
func (ch *chooser) cheapest(open []*purchase) (best []*way, least privacy.Cost) {
	var releases []*policy.Release
	for _, p := range open {
		for _, w := range p.declared {
			if !slices.Contains(releases, w.measure.Declared) && len(releases) < mostTogether {
				releases = append(releases, w.measure.Declared)
			}
		}
	}
	for some := range 1 << len(releases) {
		ways, cost, ok := ch.with(open, releases, some)
		if ok && (best == nil || cost.Fits(least)) { // of two that cost the same, the one with more releases: these stay free
			best, least = ways, cost
		}
	}
	return best, least
}

// with is the ways with some of the releases: each question from one of them, from what is counted for another question, or
// counted by itself; false: one has no way.
func (ch *chooser) with(open []*purchase, releases []*policy.Release, some int) (ways []*way, cost privacy.Cost, ok bool) {
	bought := map[*policy.Release]*Measure{}
	ways = make([]*way, len(open))
	for i, p := range open {
		w := p.from(releases, some)
		if w == nil {
			w = ch.besides(p, ways[:i])
		}
		switch {
		case w == nil && p.fresh != nil:
			w = p.fresh
			cost = cost.Plus(w.measure.Cost)
		case w == nil:
			w = p.stale
		case w.measure.Shared && bought[w.measure.Declared] == nil:
			bought[w.measure.Declared] = w.measure
			cost = cost.Plus(w.measure.Cost)
		case w.measure.Shared:
			w = &way{measure: bought[w.measure.Declared], reading: w.reading, counts: w.counts}
		}
		if w == nil {
			return nil, cost, false
		}
		ways[i] = w
	}
	return ways, cost, true
}

// from is the way that reads a question from one of some releases.
func (p *purchase) from(releases []*policy.Release, some int) *way {
	for _, w := range p.declared {
		if at := slices.Index(releases, w.measure.Declared); at >= 0 && some>>at&1 == 1 {
			return w
		}
	}
	return nil
}

// besides reads a question from what is counted for another one, where that is exact enough.
func (ch *chooser) besides(p *purchase, ways []*way) *way {
	for _, have := range ways {
		if have.counts == nil || have.measure.Held || have.measure.Shared || have.counts.table != p.table {
			continue
		}
		if r := cover(p.solved, have.counts); r != nil && ch.within(p.need, have.measure.Spec, r) {
			return &way{measure: have.measure, reading: r, counts: have.counts}
		}
	}
	return nil
}

// alone is what the question costs without a declared release, for the order in which they are looked at: what is counted
// for a dear one may do for a cheap one.
func (p *purchase) alone() int64 {
	if p.fresh == nil {
		return 0
	}
	return sizeOf(p.fresh.measure.Cost)
}

// sizeOf is a cost in the accountant's unit.
func sizeOf(c privacy.Cost) int64 { return c.Epsilon.Micro() + c.Rho.Pico() }

// dear refuses what costs more than dp.epsilon allows, with what it would cost.
func (ch *chooser) dear(cost privacy.Cost) *refuse.Refusal {
	needed := cost.Epsilon
	if cost.Rho.Pico() > 0 {
		needed = epsilonFor(cost.Rho)
	}
	most := ch.c.Dataset.Defaults.MaxEpsilon
	refusal := errorDear.At(-1, ch.aim(), cost.String(), ch.share(1).String())
	refusal.Hint = "SET dp.epsilon = " + needed.String() + ", or dp.max_error to more."
	if needed.Micro() > most.Micro() {
		refusal.Hint = "The policy lets a statement cost ε " + most.String() + " at most: SET dp.max_error to more, or dp.confidence to less."
	}
	return refusal
}

// epsilonFor is the least dp.epsilon that buys ρ.
func epsilonFor(rho privacy.Rho) privacy.Epsilon {
	n := new(big.Int).Sqrt(new(big.Int).Mul(big.NewInt(2), big.NewInt(rho.Pico()))).Int64()
	for n = max(n-1, 1); privacy.MicroEpsilon(n).Rho().Pico() < rho.Pico(); n++ {
	}
	return privacy.MicroEpsilon(n)
}

// exactHeld finds what she has paid for that is exact enough, of this epoch and of those gone by: the same question, or what
// has been held longest, so that the same question keeps its answer.
func (ch *chooser) exactHeld(n *need, q *asking) (current, stale *way) {
	type rank struct {
		order    int
		variance float64
	}
	best := map[bool]rank{false: {math.MaxInt, 0}, true: {math.MaxInt, 0}}
	for i, from := range []source{(*chooser).grown, (*chooser).again, (*chooser).reuseAny} {
		if i == 1 && current != nil { // answers that were kept are of earlier days
			return current, nil
		}
		for _, c := range from(ch, q) {
			own := rank{c.order, c.variance}
			if i == 1 {
				own.order = -1
			}
			m := c.way.measure
			old := ch.isStale(c.holding, m.Declared)
			have := best[old]
			if !m.Held || mechanisms.Is[*mechanisms.Choice](m.Spec) || mechanisms.Is[*mechanisms.Online](m.Spec) && c.not != "" || own.order > have.order || own.order == have.order && own.variance >= have.variance || !ch.within(n, m.Spec, c.way.reading) {
				continue
			}
			best[old] = own
			if m.Why += ", exact enough for " + ch.aim(); old {
				m.Why += "; it is of " + epochDate(c.holding.At, m.Declared.Refresh)
				stale = c.way
			} else {
				current = c.way
			}
		}
	}
	return current, stale
}

// exactDeclared lists the policy's releases that are exact enough, whatever they cost.
func (ch *chooser) exactDeclared(n *need, q *asking) (list []*way) {
	for _, c := range ch.declared(q) {
		if m := c.way.measure; ch.within(n, m.Spec, c.way.reading) {
			m.Why = "release " + m.Name + " is the cheapest that is exact enough for " + ch.aim() + ", and every such question is free after it"
			list = append(list, c.way)
		}
	}
	return list
}
