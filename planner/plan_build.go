package planner

import (
	"crypto/sha256"
	"slices"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
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

// sheets finds what is asked for the questions of a bound statement, and what is chosen.
func (v *sheeter) sheets() (sheets, chosen []*sheet, refusal *refuse.Refusal) {
	for _, q := range v.b.questions {
		for _, set := range q.choices {
			if set.arg == nil {
				continue
			}
			if refusal = closed(q.table, set.arg); refusal != nil {
				return nil, nil, refusal
			}
		}
	}
	sheets = make([]*sheet, len(v.b.questions))
	for i, q := range v.b.questions {
		if sheets[i], refusal = v.sheet(q); refusal != nil {
			return nil, nil, refusal
		}
		v.tellKeys(q)
		for _, a := range sheets[i].asks {
			a.first = sheets[i].topOf(a)
		}
	}
	if chosen, refusal = v.choices(sheets); refusal != nil {
		return nil, nil, refusal
	}
	alarms, refusal := v.alarms(sheets)
	return sheets, append(chosen, alarms...), refusal
}

func newBinder(c Context, params *parameters) *binder {
	zone := c.Settings.Zone
	return &binder{c: c, env: scalar.Env{Now: c.Now, Zone: zone, Asked: new(atomic.Bool), Work: c.Work}, params: params, groups: groupings{}}
}

// measured tells whether anything has to be counted: a question without counts, or whose condition no row can satisfy, is
// answered from public facts.
func (s *solved) measured() bool { return !s.empty && len(s.counts) > 0 }

// tellRules notes how rows and values were bounded before they were counted (privacy rule 22).
func (s *solved) tellRules(said *notes) {
	if unit := s.table.Dataset.Unit; !unit.Row {
		groups := s.table.BoundsGroups(s.cells)
		below, leftOut, own := boundedIn(s.table), false, s.table
		for d, ok := own.Derived.(*derived.Computed); ok; d, ok = own.Derived.(*derived.Computed) { // whose rows are these
			own = d.From
		}
		switch rows := s.table.MaxRowsPerUnit; {
		case own.Derived == nil || len(below) == 1 && rows == below[0].MaxRowsPerUnit: // said below
		case rows == 1:
			said.add("one row of each " + unit.Name + " is counted in " + s.table.Name)
		default:
			said.add("at most " + predicate.Text(rows) + " rows of each " + unit.Name + " are counted in " + s.table.Name)
		}
		for _, t := range below {
			if t == own || t.MaxRowsPerUnit > 1 {
				said.add(boundTold(t, groups))
			}
			leftOut = leftOut || t.MaxRowsPerUnit > 1 || groups
		}
		if leftOut {
			said.add("counts and sums are of the rows that are counted: ± does not cover what is left out")
		}
	}
	columns, _ := s.columns()
	for at := 0; at < len(columns); at++ { // those that are added up too
		columns = append(columns, derived.OperandsOf(columns[at])...)
	}
	for _, c := range columns {
		if c.Outside == policy.OutsideClamp {
			said.add("values of " + c.Name + " outside its domain count as its nearest end")
		}
	}
}

// boundedIn lists the tables of the policy whose rows are bounded on the way to t's, once for each place.
func boundedIn(t *policy.Table) (list []*policy.Table) {
	if t.Derived == nil {
		return []*policy.Table{t}
	}
	for _, in := range t.Derived.Inputs() {
		list = append(list, boundedIn(in)...)
	}
	return list
}

// boundTold says how a table's rows are bounded. Noise is then not all that an answer differs from the table by; what is left
// out is a private number, so that no error can be shown for it.
func boundTold(t *policy.Table, groups bool) string {
	unit := t.Dataset.Unit.Name
	if t.MaxRowsPerUnit == 1 && !groups {
		return "one row of each " + unit + " is counted in " + t.Name
	}
	picked := ", picked by a hash where there are more"
	if t.Appends != nil {
		picked = ", the first by " + t.Appends.Column.Name + " where there are more"
	}
	if groups {
		return "at most " + predicate.Text(t.MaxGroups) + " groups of each " + unit + " are counted in " + t.Name + ", and " + predicate.Text(t.MaxPerGroup) + " rows in each" + picked
	}
	return "at most " + predicate.Text(t.MaxRowsPerUnit) + " rows of each " + unit + " are counted in " + t.Name + picked
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

// valueOf is the value of key k in a row of a set, which NULL is where the row is not grouped by it.
func (sh *sheet) valueOf(k int, frame *solved, keys set, cell int) policy.Value {
	if level, ok := sh.levels[k]; ok {
		return levelOf(level, keys)
	}
	if at := slices.Index(keys, k); at >= 0 {
		return frame.keyValue(at, cell)
	}
	return nil
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

// runError is the largest expected error over the rows of a run; none where nothing is counted, or a value is chosen.
func (p *Plan) runError(run *Run) (e mechanisms.Error) {
	switch {
	case run.Measure < 0 || run.Pick != nil:
		return e
	case run.Mix != nil:
		e = p.WidestError(run, p.Confidence)
	default:
		e = largestError(p.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, p.Confidence)
	}
	if run.Most > 0 {
		e.HalfWidth = min(e.HalfWidth, run.Most)
	}
	return e
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

// rowOrder lists the question's cells in the order of their keys.
func (s *solved) rowOrder() []int {
	if s.empty && len(s.keys) > 0 {
		return nil
	}
	if s.empty {
		return []int{0}
	}
	order := make([]int, s.cells)
	for i := range order {
		order[i] = i
	}
	if len(s.keys) == 0 {
		return order
	}
	ranks := make([][]int, len(s.keys))
	for k := range s.keys {
		ranks[k] = s.ranks(k)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		for k := range ranks {
			if ranks[k] == nil {
				continue
			}
			if d := ranks[k][s.classOf(k, a)] - ranks[k][s.classOf(k, b)]; d != 0 {
				return d
			}
		}
		return 0
	})
	return order
}

// partOf is the part that decides key k, nil for a constant key.
func (s *solved) partOf(k int) (p *part, at int) {
	for _, p := range s.parts {
		if at := slices.Index(p.keys, k); at >= 0 {
			return p, at
		}
	}
	return nil, -1
}

// classOf is the class of key k's part in a cell of the question.
func (s *solved) classOf(k, cell int) int {
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		if slices.Contains(p.keys, k) {
			return cell % p.classes
		}
		cell /= p.classes
	}
	return 0
}

// keyValue is key k's value in a cell of the question.
func (s *solved) keyValue(k, cell int) policy.Value {
	p, at := s.partOf(k)
	if p == nil {
		v, _ := s.keys[k].Eval(nil)
		return v
	}
	return p.values[s.classOf(k, cell)][at]
}

// ranks orders the classes of key k: a bare column by its cells, so that 'other' and NULL come last, any other key by
// value, NULL last.
func (s *solved) ranks(k int) []int {
	p, at := s.partOf(k)
	if p == nil {
		return nil
	}
	e := s.keys[k]
	byClass := make([]int, p.classes)
	for i := range byClass {
		byClass[i] = i
	}
	compare := func(a, b policy.Value) int {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		case b == nil:
			return -1
		}
		return scalar.Compare(e.Type(), a, b)
	}
	if e.form == formColumn {
		d := s.table.Columns[e.cols[0]].Domain
		compare = func(a, b policy.Value) int {
			x, _ := d.Cell(a)
			y, _ := d.Cell(b)
			return x - y
		}
	}
	slices.SortStableFunc(byClass, func(a, b int) int { return compare(p.values[a][at], p.values[b][at]) })
	ranks := make([]int, p.classes)
	for i, class := range byClass {
		ranks[class] = i
		if i > 0 && compare(p.values[byClass[i-1]][at], p.values[class][at]) == 0 {
			ranks[class] = ranks[byClass[i-1]]
		}
	}
	return ranks
}
