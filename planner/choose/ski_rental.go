package choose

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Renting and buying (docs/adr/0026). Under dp.max_error a count is bought at the least cost for its error: a rent. A
// release over its columns that is exact enough for every such count makes the rest free: a purchase, at the price B.
// The planner goes on renting until the rents of what the release would have answered, with the one that is due, come
// to B (times the policy's `after`), and then buys.
//
// Claim: with `after: 1`, for questions of one error that one release answers, what is paid is at most twice the least
// that any plan made in hindsight pays, whatever is asked. Proof: let F be the rents of all different questions; in
// hindsight min(F, B) is least. As long as nothing is bought, the rents paid are below B, so if it stays so they are F.
// If it is bought, the rents paid before are below B and F is at least B: B + B against B.
//
// Where a question needs a smaller error than the release has, the rents begin anew, and the next release is bought for
// at least twice the price of the last, as far as dp.epsilon allows: prices then add up to at most twice the last one,
// however slowly the error asked for falls.
//
// Only what she has paid for herself and public facts are looked at: rents are her own (privacy rules 1 and 16).

// rented adds up what she has paid on the table of a question, for the question's columns, and for all columns that she
// counts by. A release ends the rents that it would have been instead of.
func (ch *Optimizer) rented(columns []*policy.Column, t *policy.Table) []reuse.Rents {
	list := []reuse.Rents{{Columns: columns}, {Columns: columns}}
	views := ch.views(t)
	if views == nil {
		return list[:1]
	}
	open, last := views.Rented()
	for _, r := range open {
		for _, c := range r.Columns {
			list[1].Columns = predicate.WithColumn(list[1].Columns[:len(list[1].Columns):len(list[1].Columns)], c)
		}
	}
	if len(list[1].Columns) == len(columns) {
		list = list[:1]
	}
	for i := range list {
		for _, r := range open {
			if reuse.ContainsAll(list[i].Columns, r.Columns) {
				list[i].Paid, list[i].Count = list[i].Paid.Plus(r.Paid), list[i].Count+r.Count
			}
		}
		list[i].Last = last[reuse.ColumnsKey(reuse.PositionsOf(t, list[i].Columns))]
	}
	return list
}

// skiRental names the path.
const skiRental = "ski rental"

// invest replaces one count that would be made afresh by a release, where that is due and what dp.epsilon leaves is
// enough.
func (ch *Optimizer) invest(open []*purchase) {
	paths, cost := ch.cheapest(open)
	if !cost.Fits(ch.Share(1)) {
		return
	}
	for i, p := range open {
		if p.fresh == nil || paths[i] != p.fresh {
			continue
		}
		rent := p.fresh.Measure.Cost
		others := ch.sizeOf(cost) - ch.sizeOf(rent)
		most := ch.costOf(ch.sizeOf(ch.Share(1)) - others)
		w := ch.dueDeclared(p, rent, most)
		if w == nil {
			w = ch.purchased(p.need, rent, most)
		}
		if w != nil {
			w.name = skiRental
			p.fresh = w
			return
		}
	}
}

// costOf is a number of the accountant's units.
func (ch *Weigher) costOf(n int64) privacy.Cost {
	if ch.Context.Accountant() == privacy.ZCDP {
		return privacy.Cost{Rho: privacy.PicoRho(n)}
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(n)}
}

// dueDeclared is a release of the policy that going on renting would cost as much as; nil means none is.
func (ch *Optimizer) dueDeclared(p *purchase, rent, most privacy.Cost) *Path {
	after := ch.Context.Dataset.Buying.After
	if after == 0 {
		return nil
	}
	for _, w := range p.declared {
		r := ch.rented(w.Measure.Declared.Columns, p.Table)[0]
		if price := w.Measure.Cost; price.Fits(most) && float64(ch.sizeOf(r.Paid.Plus(rent))) >= after*float64(ch.sizeOf(price)) {
			w.Measure.Why = ch.paidFor(r)
			return w
		}
	}
	return nil
}

// paidFor is why a release is bought now.
func (ch *Weigher) paidFor(r reuse.Rents) string {
	return fmt.Sprintf("you have paid %s for %s by %s; this release makes every such count within %s free", r.Paid, semantics.Plural(int64(r.Count), "question"), plans.ColumnNames(r.Columns), ch.aim())
}

// purchased is the release that a question is answered by when going on renting would cost as much; nil means not yet.
// Of two the one over more columns goes first. It costs most at most.
func (ch *Optimizer) purchased(n *need, rent, most privacy.Cost) *Path {
	after := ch.Context.Dataset.Buying.After
	columns, ok := n.Columns()
	if after == 0 || !ok || len(columns) == 0 || !n.Widens() {
		return nil
	}
	list := ch.rented(columns, n.Table)
	slices.Reverse(list)
	for _, r := range list {
		due := ch.sizeOf(r.Paid.Plus(rent))
		o := ch.offer(n, r.Columns)
		if o == nil || float64(due) < after*o.estimate(ch, rent)/2 {
			continue
		}
		price, ok := ch.Least(func(cost privacy.Cost) bool { return o.enough(ch, n, cost) })
		if !ok || float64(due) < after*float64(ch.sizeOf(price)) {
			continue
		}
		if twice := r.Last.Plus(r.Last); ch.sizeOf(price) < ch.sizeOf(twice) && twice.Fits(most) {
			price = twice
		}
		if spec, err := o.spec(price); err == nil && price.Fits(most) {
			m := o.held.Measure(o.kind(), n.Table.Name+"_"+strings.Join(namesOf(r.Columns), "_"))
			m.Cost, m.Why = price, ch.paidFor(r)
			o.held.Sold(m, spec)
			return &Path{Measure: m, Reading: o.reading, counts: o.held}
		}
	}
	return nil
}

// offer is a release that may be bought, and the counts over its columns that are expected to be furthest off.
type offer struct {
	held    *linear.Query
	reading *reuse.Reading
	ranges  bool // a strategy for ranges over one ordered column
	worst   []mechanisms.Span
	ratio   float64 // of the worst one's variance to that of one cell, at equal cost
}

// offer makes the release over some columns; nil means there is none, or it counts other rows than the question.
func (ch *Optimizer) offer(n *need, columns []*policy.Column) *offer {
	cells := 1
	for _, c := range columns {
		if c.Domain == nil || c.Open != nil || cells*c.Domain.Size() > plans.MaxCells {
			return nil
		}
		cells *= c.Domain.Size()
	}
	held := linear.Identity(n.Table, columns)
	if len(columns) == 1 && n.Table.Grows(columns[0]) {
		if held = growing(n.Table, columns[0], ch.Now()); held.Closed == 0 {
			return nil
		}
		cells = held.Closed
	}
	o := &offer{held: held, reading: reuse.Cover(n.Query, held), worst: []mechanisms.Span{{From: 0, To: cells}}, ratio: float64(cells)}
	if o.reading == nil || n.Table.BoundsGroups(n.Cells) != n.Table.BoundsGroups(cells) {
		return nil
	}
	if o.ranges = held.Continual || len(columns) == 1 && columns[0].Domain.Ordered() && cells > 2; !o.ranges {
		return o
	}
	unit := privacy.Cost{Epsilon: privacy.MicroEpsilon(1e6)}
	if ch.Context.Accountant() == privacy.ZCDP {
		unit = privacy.Cost{Rho: privacy.PicoRho(1e12)}
	}
	spec, err := o.spec(unit)
	one, err1 := mechanisms.Plain(1, 1, n.ContributionTo(1), unit)
	if errors.Join(err, err1) != nil {
		return nil
	}
	rows := someRanges(cells)
	at, variance := plans.WorstRow(held.Seen(spec), rows, ch.Context.Settings.Confidence)
	o.worst, o.ratio = rows[at], variance/ch.variance(one)
	return o
}

// someRanges are ranges of several lengths from the start, the end and between: one of them errs about as much as the
// worst.
func someRanges(cells int) (rows [][]mechanisms.Span) {
	for _, length := range []int{1, cells / 8, cells / 4, cells / 2, cells * 3 / 4, cells} {
		for _, third := range []int{0, 1, 2, 3} {
			if from := (cells - length) * third / 3; length > 0 {
				rows = append(rows, []mechanisms.Span{{From: from, To: from + length}})
			}
		}
	}
	return rows
}

// spec is how the release is measured at a cost.
func (o *offer) spec(cost privacy.Cost) (mechanisms.Spec, error) {
	c := o.held.ContributionTo(o.held.Cells)
	if o.held.Continual {
		return reuse.ContinualSpec(o.held.Table, o.held.Cells, cost)
	}
	if o.ranges {
		return mechanisms.Ranges(o.held.Cells, c, cost)
	}
	return mechanisms.Plain(1, o.held.Cells, c, cost)
}

func (o *offer) kind() string {
	if o.ranges {
		return "range"
	}
	return reuse.Cube
}

// estimate is about what the release costs, in the accountant's unit, where one count as exact costs rent.
func (o *offer) estimate(ch *Optimizer, rent privacy.Cost) float64 {
	if ch.Context.Accountant() == privacy.ZCDP {
		return float64(ch.sizeOf(rent)) * o.ratio
	}
	return float64(ch.sizeOf(rent)) * math.Sqrt(o.ratio)
}

// enough reports whether the release, at a cost, is exact enough for the question and for the worst one.
func (o *offer) enough(ch *Optimizer, n *need, cost privacy.Cost) bool {
	spec, err := o.spec(cost)
	spec = o.held.Seen(spec)
	return err == nil && spec.Error(o.worst, ch.Context.Settings.Confidence).HalfWidth <= ch.bound(n.Query, 0) && ch.within(n, spec, o.reading)
}

func namesOf(columns []*policy.Column) (names []string) {
	for _, c := range columns {
		names = append(names, c.Name)
	}
	return names
}
