package planner

import (
	"crypto/sha256"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Build plans a Select with its parameters.
func Build(s parse.Statement, params []policy.Value, c Context) (p *Plan, refusal *refuse.Refusal) {
	c = c.limited()
	defer c.stopped(&refusal)
	p, refusal = planOpen(s, params, c)
	return p, s.Placed(refusal)
}

func build(s parse.Statement, values []policy.Value, c Context, o *opening) (*Plan, *refuse.Refusal) {
	if s.Kind != parse.KindSelect {
		if refusal := parse.Refuse(s); refusal != nil {
			return nil, refusal
		}
		return nil, s.NotSelect()
	}
	b := newBinder(c, &parameters{values: values, types: s.ParamTypes, describing: values == nil})
	b.open = o
	b.text, b.top = s.Text, s.Select()
	out, refusal := b.bind(b.top)
	if refusal != nil {
		return nil, refusal
	}
	if refusal = out.direct.failing(); refusal != nil {
		return nil, refusal
	}
	plan := assembly{&Plan{Dataset: c.Dataset, Outer: out.Outer, Columns: out.Columns, Confidence: c.Settings.Confidence, ErrorColumns: c.Settings.ErrorColumns}}
	said := slices.Clone(b.said)
	ch := &chooser{c: c, now: b.env.Clock, stocks: map[*policy.Table]*Stock{}, open: o}
	for _, q := range b.questions {
		if q.kept > 0 {
			if refusal = unseen(q, b.env.Work); refusal != nil {
				return nil, refusal
			}
		}
	}
	sheets, chosen, refusal := (&sheeter{b: b, notes: &said, ch: ch}).sheets()
	if refusal != nil {
		return nil, refusal
	}
	if refusal = ch.tellable(b.questions); refusal != nil {
		return nil, refusal
	}
	all := append(slices.Clone(sheets), chosen...)
	ways, refusal := ch.choose(all)
	if refusal != nil {
		return nil, refusal
	}
	tellUnclosed(all, ways, &said)
	for i, sh := range sheets {
		plan.addLeaf(i, sh, ways[i], &said)
		for _, a := range sh.asks {
			if a.wanted() {
				a.tellRules(&said)
			}
		}
		plan.tellFew(plan.Leaves[i], &said)
	}
	plan.addChoices(sheets, chosen, ways[len(sheets):])
	plan.tellEmptyGroups(b, &said)
	if c.Alternatives {
		plan.tellAlternatives(ch, append(slices.Clone(sheets), chosen...), ways)
	}
	plan.Notes = append(append(said, ch.dates...), ch.hints...)
	if refusal = plan.addMadeUps(b); refusal != nil {
		return nil, refusal
	}
	plan.tellErrors(out.shown)
	plan.Statement = plan.digest(s.Text, values)
	plan.asked = b.env.Asked
	return plan.Plan, nil
}

// assembly is a plan that is being put together from the ways that were chosen.
type assembly struct{ *Plan }

// addLeaf puts a question's answer into the plan: the rows of its grouping sets, one set after the other.
func (p assembly) addLeaf(i int, sh *sheet, ways []*way, said *notes) {
	leaf := &Leaf{Name: leafName(i), SQL: sh.sql}
	for k, e := range sh.keys {
		leaf.Found = leaf.Found || closed(sh.table, e) != nil
		leaf.Keys = append(leaf.Keys, KeyColumn{Name: keyName(k), Type: e.Type(), Typmod: e.Typmod()})
	}
	for n := range sh.counters {
		leaf.Counts = append(leaf.Counts, CountColumn{Name: sh.columnName(n), Unit: unitOf(sh.counters[n].sum)})
	}
	for s, keys := range sh.sets {
		order := sh.frames[s].rowOrder()
		leaf.Rows += len(order)
		for k := range sh.keys {
			for _, cell := range order {
				leaf.Keys[k].Values = append(leaf.Keys[k].Values, sh.valueOf(k, sh.frames[s], keys, cell))
			}
		}
		for n := range leaf.Counts {
			leaf.Counts[n].Runs = append(leaf.Counts[n].Runs, Run{Measure: -1, Spans: make([][]mechanisms.Span, len(order))})
		}
		for j, a := range sh.asks {
			if ways[j] != nil && ways[j].contest == nil && slices.Contains(a.reads, s) {
				p.fill(leaf, a, ways[j], sh.frames[s], keys, order)
			}
		}
	}
	p.fillWidths(leaf, sh, said)
	if sh.turned != nil {
		leaf = sh.turned.Over(leaf, sh.at)
		if len(ways) == 1 && ways[0] != nil && ways[0].contest != nil {
			p.ranked(leaf, ways[0])
		}
	}
	p.Leaves = append(p.Leaves, leaf)
}

// fill reads the last runs of the columns that an ask fills.
func (p assembly) fill(leaf *Leaf, a *ask, w *way, frame *solved, keys set, order []int) {
	measure, spots := p.measure(w.measure), a.spots(frame, keys)
	for _, f := range a.fills {
		c := a.counting[f.counter]
		if c < 0 {
			continue
		}
		runs := leaf.Counts[f.of].Runs
		run := &runs[len(runs)-1]
		if w.reading == nil {
			run.Measure = measure
			p.fillTop(run, a.solved, order)
			continue
		}
		if w.reading.mix != nil {
			run.Measure, run.Mix = measure, make([][]Term, len(order))
			for r, row := range order {
				run.Mix[r] = p.mixedRow(w, c, a.cellsOf(f, row, spots))
			}
			continue
		}
		run.Measure, run.Counter, run.Most = measure, w.reading.counters[c], int64(a.shown(c))
		for r, row := range order {
			var list [][]mechanisms.Span
			for _, cell := range a.cellsOf(f, row, spots) {
				list = append(list, w.reading.spans[c][cell])
			}
			run.Spans[r] = joinSpans(list)
		}
	}
}

// fillWidths fills the columns that are half-widths: in all rows of a grouping set the largest, as the notice tells it.
func (p assembly) fillWidths(leaf *Leaf, sh *sheet, said *notes) {
	widest := int64(0)
	for n, c := range sh.counters {
		if c.width == nil {
			continue
		}
		for i := range leaf.Counts[n].Runs {
			run := &leaf.Counts[n].Runs[i]
			run.Known = p.runError(&leaf.Counts[*c.width].Runs[i]).HalfWidth
			widest = max(widest, run.Known)
		}
	}
	if widest > 0 {
		said.add("avg, variance and the like are NULL where the count of their rows is within its own error, at most " + predicate.Text(widest))
	}
}

// tellFew notes where the number of different values is lost in its noise.
func (p assembly) tellFew(leaf *Leaf, said *notes) {
	for _, c := range leaf.Counts {
		for _, run := range c.Runs {
			if run.Most == 0 || run.Measure < 0 {
				continue
			}
			if e := p.Measures[run.Measure].Spec.Only(run.Counter).Error(predicate.One(0), p.Confidence); e.HalfWidth >= run.Most {
				said.add("there are at most " + predicate.Text(run.Most) + " different values, fewer than the error of their number: GROUP BY tells more")
			}
		}
	}
}

// measure adds a measure once and returns its index.
func (p assembly) measure(m *Measure) int {
	for i, have := range p.Measures {
		if have == m || have.Held && m.Held && have.HeldID == m.HeldID {
			return i
		}
	}
	p.first(m)
	p.Measures = append(p.Measures, m)
	p.Cost = p.Cost.Plus(m.Cost)
	return len(p.Measures) - 1
}

// tellErrors adds to each column that is a count of one leaf its largest expected error.
func (p assembly) tellErrors(from *shown) {
	if from == nil || from.leaf < 0 {
		return
	}
	leaf := p.Leaves[from.leaf]
	for i, linear := range from.linear {
		if i < len(p.Columns) && from.counts[i] < 0 && p.Columns[i].Noisy {
			p.Columns[i].Off = p.offBy(leaf, linear)
		}
	}
	for i, source := range from.counts {
		if source < 0 || i >= len(p.Columns) || leaf.Counts[source].Type != 0 {
			continue
		}
		var e mechanisms.Error // without a measure the count is a public fact
		for r := range leaf.Counts[source].Runs {
			if own := p.runError(&leaf.Counts[source].Runs[r]); own.HalfWidth >= e.HalfWidth {
				e = own
			}
		}
		p.Columns[i].Error = &e
	}
}

// digest names the plan as a whole.
func (p assembly) digest(text string, values []policy.Value) Digest {
	h := sha256.New()
	b := predicate.EncodeText(nil, text)
	for _, v := range values {
		b = predicate.EncodeText(b, predicate.Text(v))
	}
	for _, m := range p.Measures {
		b = append(b, m.Digest[:]...)
		b = predicate.EncodeText(b, m.Cost.String())
	}
	h.Write(b)
	return Digest(h.Sum(nil))
}
