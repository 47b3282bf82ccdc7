package planner

import (
	"crypto/sha256"
	"slices"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Build plans a Select with its parameters.
func Build(s Statement, params []policy.Value, c Context) (*Plan, *Refusal) {
	p, refusal := build(s, params, c)
	return p, refusal.inCharacters(s.source)
}

func build(s Statement, values []policy.Value, c Context) (*Plan, *Refusal) {
	if s.Kind != KindSelect {
		if s.refusal != nil {
			return nil, s.refusal
		}
		return nil, otherKind.at(-1, verbOf(s.Text))
	}
	b := newBinder(c, &parameters{values: values, types: s.ParamTypes, describing: values == nil})
	b.text, b.top = s.Text, s.node.GetSelectStmt()
	outer, columns, refusal := b.bind(b.top)
	if refusal != nil {
		return nil, refusal
	}
	if refusal = outer.Direct.failing(); refusal != nil {
		return nil, refusal
	}
	plan := &Plan{Dataset: c.Dataset, Outer: *outer, Columns: columns, Confidence: c.Settings.Confidence, ErrorColumns: c.Settings.ErrorColumns}
	var said notes
	questions := make([]*solved, len(b.questions))
	for i, q := range b.questions {
		if questions[i], refusal = solve(q, b.env, &said); refusal != nil {
			return nil, refusal
		}
	}
	ch := &chooser{c: c, now: b.env.Clock, held: map[*policy.Table][]heldOn{}}
	ways, refusal := ch.choose(questions)
	if refusal != nil {
		return nil, refusal
	}
	for i, q := range questions {
		plan.addLeaf(i, q, ways[i])
		if q.measured() {
			q.tellRules(&said)
		}
	}
	plan.Notes = append(append(said, ch.dates...), ch.hints...)
	plan.tellErrors()
	plan.Statement = plan.digest(s.Text, values)
	plan.asked = b.env.Asked
	return plan, nil
}

func newBinder(c Context, params *parameters) *binder {
	zone := c.Settings.Zone
	return &binder{c: c, env: scalar.Env{Now: c.Now, Zone: zone, Asked: new(atomic.Bool)}, params: params, groups: groupings{}}
}

// measured tells whether anything has to be counted: a question without counts, or whose condition no row can satisfy, is
// answered from public facts.
func (s *solved) measured() bool { return !s.empty && len(s.counts) > 0 }

// tellRules notes how rows and values were bounded before they were counted (privacy rule 22).
func (s *solved) tellRules(said *notes) {
	if unit := s.table.Dataset.Unit; s.table.BoundsGroups(s.cells) {
		said.add("at most " + textOf(s.table.MaxGroups) + " groups of each " + unit.Name + " are counted in " + s.table.Name + ", and " + textOf(s.table.MaxPerGroup) + " rows in each")
	} else if !unit.Row && s.table.MaxRowsPerUnit > 1 {
		said.add("at most " + textOf(s.table.MaxRowsPerUnit) + " rows of each " + unit.Name + " are counted in " + s.table.Name)
	} else if !unit.Row {
		said.add("one row of each " + unit.Name + " is counted in " + s.table.Name)
	}
	columns, _ := s.columns()
	for _, c := range columns {
		if c.Outside == policy.OutsideClamp {
			said.add("values of " + c.Name + " outside its domain count as its nearest end")
		}
	}
}

// addLeaf puts a question's answer into the plan.
func (p *Plan) addLeaf(i int, s *solved, w *way) {
	leaf := &Leaf{Name: leafName(i), Measure: -1, SQL: s.sql}
	if w != nil {
		leaf.Measure = p.measure(w.measure)
	}
	order := s.rowOrder()
	leaf.Rows = len(order)
	for k, e := range s.keys {
		key := KeyColumn{Name: keyName(k), Type: e.Type(), Typmod: e.Typmod(), Values: make([]policy.Value, len(order))}
		for r, cell := range order {
			key.Values[r] = s.keyValue(k, cell)
		}
		leaf.Keys = append(leaf.Keys, key)
	}
	for n, c := range s.counting {
		count := CountColumn{Name: countName(n), Spans: make([][]mechanisms.Span, len(order))}
		if c >= 0 && w != nil {
			count.Counter = w.reading.counters[c]
			for r, cell := range order {
				count.Spans[r] = w.reading.spans[c][cell]
			}
		}
		leaf.Counts = append(leaf.Counts, count)
	}
	p.Leaves = append(p.Leaves, leaf)
}

// measure adds a measure once and returns its index.
func (p *Plan) measure(m *Measure) int {
	for i, have := range p.Measures {
		if have == m || have.Held && m.Held && have.HeldID == m.HeldID {
			return i
		}
	}
	p.Measures = append(p.Measures, m)
	p.Cost = p.Cost.Plus(m.Cost)
	return len(p.Measures) - 1
}

// tellErrors adds to each column that is a count of one leaf its largest expected error.
func (p *Plan) tellErrors() {
	from := p.Outer.shown
	if from == nil || from.leaf < 0 {
		return
	}
	leaf := p.Leaves[from.leaf]
	for i, source := range from.counts {
		if source < 0 || i >= len(p.Columns) {
			continue
		}
		var e mechanisms.Error // without a measure the count is a public fact
		if leaf.Measure >= 0 {
			e = largestError(p.Measures[leaf.Measure].Spec.Only(leaf.Counts[source].Counter), leaf.Counts[source].Spans, p.Confidence)
		}
		p.Columns[i].Error = &e
	}
}

// digest names the plan as a whole.
func (p *Plan) digest(text string, values []policy.Value) Digest {
	h := sha256.New()
	b := encodeText(nil, text)
	for _, v := range values {
		b = encodeText(b, textOf(v))
	}
	for _, m := range p.Measures {
		b = append(b, m.Digest[:]...)
		b = encodeText(b, m.Cost.String())
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
