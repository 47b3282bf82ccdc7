package planner

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// purchase is a question for which nothing exact enough is held, and what may be bought for it.
type purchase struct {
	*need
	fresh    *way      // at its least cost; nil: it cannot be so exact
	declared []*way    // the policy's releases that are exact enough
	stale    *way      // held and exact enough, of an epoch gone by; nil: nothing is
	beside   *purchase // whose fresh measure answers it too; nil: none
}

// take answers the question so.
func (n *need) take(w *way) {
	for _, at := range n.at {
		*at = w
	}
}

// accurate picks the ways of all sheets at the least cost for dp.max_error: what she holds where that is exact enough, and
// of what is to be bought the cheapest together.
func (ch *chooser) accurate(sheets []*sheet) ([][]*way, *Refusal) {
	ways := make([][]*way, len(sheets))
	var open []*purchase
	for _, n := range needs(sheets, ways) {
		current, stale := ch.exactHeld(n)
		if current != nil {
			n.take(current)
			continue
		}
		p := &purchase{need: n, stale: stale, fresh: ch.freshRange(n), declared: ch.exactDeclared(n)}
		if p.fresh == nil {
			p.fresh = ch.leastFresh(n)
		}
		if p.fresh == nil && len(p.declared) == 0 && stale == nil {
			return nil, noMechanism.at(-1, "at no cost is it as exact as dp.max_error asks")
		}
		open = append(open, p)
	}
	for i, p := range open {
		if p.fresh == nil {
			continue
		}
		if p.lean(ch, open[:i]); p.beside != nil {
			continue
		}
		if w := ch.purchased(p.need, p.fresh.measure.Cost, ch.share(len(open))); w != nil {
			p.fresh = w
		}
	}
	return ways, ch.settle(open)
}

// settle buys the cheapest that is exact enough, all questions together. Where that is dearer than dp.epsilon lets a
// statement be, what she holds of an epoch gone by answers.
func (ch *chooser) settle(open []*purchase) *Refusal {
	cost := ch.cheapest(open)
	if cost.Fits(ch.share(1)) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(open), func(p *purchase) bool { return p.stale != nil })
	if len(rest) == len(open) || !ch.cheapest(rest).Fits(ch.share(1)) {
		return ch.dear(cost)
	}
	for _, p := range open {
		if p.stale != nil {
			p.take(p.stale)
			r := p.stale.measure.Declared
			ch.dates.add(r.Name + " is of an epoch gone by; it may be bought anew with SET dp.epsilon = " + r.Epsilon.String())
		}
	}
	return nil
}

// mostTogether bounds the declared releases that are looked at together.
const mostTogether = 10

// cheapest takes the ways that cost least together, and tells what they do: some declared releases, each of which answers
// what it can, and fresh counts for the rest. All choices of releases are looked at.
func (ch *chooser) cheapest(open []*purchase) privacy.Cost {
	var releases []*policy.Release
	for _, p := range open {
		for _, w := range p.declared {
			if !slices.Contains(releases, w.measure.Declared) && len(releases) < mostTogether {
				releases = append(releases, w.measure.Declared)
			}
		}
	}
	best, least := 0, int64(math.MaxInt64)
	for some := range 1 << len(releases) {
		total := int64(0)
		for i, r := range releases {
			if some>>i&1 == 1 {
				total = sumOf(total, sizeOf(r.Cost))
			}
		}
		for _, p := range open {
			if p.from(releases, some) == nil && (p.beside == nil || p.beside.from(releases, some) != nil) {
				total = sumOf(total, p.alone())
			}
		}
		if total <= least { // of two that cost the same, the one with more releases: these stay free
			best, least = some, total
		}
	}
	bought, paid := map[*policy.Release]*Measure{}, map[*Measure]bool{}
	var cost privacy.Cost
	for _, p := range open {
		w := p.from(releases, best)
		if w == nil {
			w = p.fresh
		}
		if w == nil {
			w = p.stale
		}
		if r := w.measure.Declared; r != nil && !w.measure.Held {
			if bought[r] == nil {
				bought[r] = w.measure
				cost = cost.Plus(w.measure.Cost)
			}
			w = &way{measure: bought[r], reading: w.reading}
		} else if !paid[w.measure] {
			paid[w.measure] = true
			cost = cost.Plus(w.measure.Cost)
		}
		p.take(w)
	}
	return cost
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

// alone is what the question costs without a declared release.
func (p *purchase) alone() int64 {
	switch {
	case p.fresh != nil:
		return sizeOf(p.fresh.measure.Cost)
	case p.stale != nil:
		return 0
	}
	return math.MaxInt64
}

// sizeOf is a cost in the accountant's unit.
func sizeOf(c privacy.Cost) int64 { return c.Epsilon.Micro() + c.Rho.Pico() }

func sumOf(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// dear refuses what costs more than dp.epsilon allows, with what it would cost.
func (ch *chooser) dear(cost privacy.Cost) *Refusal {
	needed := cost.Epsilon
	if cost.Rho.Pico() > 0 {
		needed = epsilonFor(cost.Rho)
	}
	most := ch.c.Dataset.Defaults.MaxEpsilon
	refusal := errorDear.at(-1, ch.aim(), cost.String(), ch.share(1).String())
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

// exactHeld finds the most exact of what she has paid for that is exact enough, of this epoch and of those gone by.
func (ch *chooser) exactHeld(n *need) (current, stale *way) {
	if ch.c.Holdings == nil {
		return nil, nil
	}
	least := map[bool]float64{false: math.Inf(1), true: math.Inf(1)}
	consider := func(w *way, h Holding, why string) {
		if h.Spec.Choice != nil || !ch.within(n, h.Spec, w.reading) {
			return
		}
		variance := 0.
		for c := range n.counts {
			_, v := worstRow(h.Spec.Only(w.reading.counters[c]), w.reading.spans[c], ch.c.Settings.Confidence)
			variance += v
		}
		old := ch.isStale(h, w.measure.Declared)
		if variance >= least[old] {
			return
		}
		least[old] = variance
		if w.hold(h, why); old {
			w.measure.Why += "; it is of " + epochDate(h.At, w.measure.Declared.Refresh)
			stale = w
		} else {
			current = w
		}
	}
	own := n.measure(n.kind(), n.table.Name+n.about())
	for _, h := range ch.c.Holdings.Held(own.Digest) {
		if h.Spec.Cells != n.cells || h.Spec.Counters != len(n.counts) {
			continue
		}
		w := &way{measure: n.measure(own.Kind, own.Name), reading: ownReading(n.solved)}
		if m := readDescribed(h, n.table); m != nil {
			w.measure = n.measure(m.kind, m.name)
			w.measure.Shared, w.measure.Declared = m.shared, declaredAs(n.table, m.shared, m.name)
		}
		consider(w, h, "the same question, asked before and exact enough for "+ch.aim())
	}
	for _, h := range ch.current(ch.heldOn(n.table)) {
		if r := cover(n.solved, h.measure.solved); r != nil {
			w := &way{reading: r, measure: h.measure.measure(h.measure.kind, h.measure.name)}
			w.measure.Shared, w.measure.Declared = h.measure.shared, h.declared
			consider(w, h.holding, "you have paid for "+w.measure.Kind+" "+w.measure.Name+", whose cells add up to it, exact enough for "+ch.aim())
		}
	}
	return current, stale
}

// exactDeclared lists the policy's releases that are exact enough, whatever they cost.
func (ch *chooser) exactDeclared(n *need) (list []*way) {
	columns, ok := n.columns()
	if !ok || len(columns) == 0 {
		return nil
	}
	for _, r := range n.table.Releases {
		if !containsAll(r.Columns, columns) {
			continue
		}
		held := identity(n.table, r.Columns)
		reading := cover(n.solved, held)
		if reading == nil {
			continue
		}
		spec, err := releaseSpec(r, held.cells)
		if err != nil || !ch.within(n, spec, reading) {
			continue
		}
		w := &way{reading: reading, measure: held.measure(r.Kind.String(), r.Name)}
		w.measure.Shared, w.measure.Declared, w.measure.Spec, w.measure.Cost = true, r, spec, r.Cost
		w.measure.Why = "release " + r.Name + " is the cheapest that is exact enough for " + ch.aim() + ", and every such question is free after it"
		list = append(list, w)
	}
	return list
}
