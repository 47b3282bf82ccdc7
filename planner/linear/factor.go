package linear

import (
	"encoding/binary"
	"math/big"
	"reflect"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// The factors of a query. SELECT age / 10, sex, count(*) FROM people WHERE income > 100 GROUP BY 1, 2 has two: age,
// whose cells fall into classes of equal age / 10, and sex. Cells of the query are pairs of a class of each; income is
// the filter's alone.

// classify evaluates the factor's conditions and keys on every combination of its columns' cells and numbers the
// combinations of equal keys, in order of their first occurrence.
func (v *Solver) classify(p *Factor) *refuse.Refusal {
	product := big.NewInt(1)
	for _, c := range p.Columns {
		d := v.Table.Columns[c].Domain
		if d == nil {
			return semantics.DomainMissing.At(v.PositionOfKeys(), v.Table.Columns[c].Name)
		}
		p.Sizes = append(p.Sizes, d.Size())
		product.Mul(product, big.NewInt(int64(d.Size())))
	}
	p.within = v.within(p)
	tooMany := product.Cmp(big.NewInt(int64(plans.MaxCells))) > 0
	if !v.cut(p, tooMany) {
		return TooManyCells.At(v.firstPosition(p), product.String(), plans.MaxCells)
	}
	combinations := p.inner(-1)
	v.Env.Work.Take(combinations, 8+len(v.Query.Counts))
	p.Class, p.beyond = make([]int32, combinations), make([]int32, combinations)
	p.Masks = make([][]bool, len(v.Query.Counts))
	for c := range p.only {
		p.Masks[c] = make([]bool, combinations)
	}
	numbers := v.numbersOf(p)
	cells, on, again := make([]int, len(p.Columns)), v.evaluated(p), v.again(p)
	for at := range p.Class {
		Decode(at, p.Sizes, on.pieces)
		if like := p.like(again, on.pieces); like < at {
			p.Class[at], p.beyond[at] = p.Class[like], p.beyond[like]
			for c := range p.only {
				p.Masks[c][at] = p.Masks[c][like]
			}
			continue
		}
		for i, piece := range on.pieces {
			cells[i] = p.firstOf(i, piece)
		}
		if refusal := v.classifyOne(p, on, at, cells, numbers); refusal != nil {
			return refusal
		}
	}
	p.Classes = len(p.Values)
	p.Shows = make([][]int32, len(v.Query.Counts))
	for c, values := range v.Query.Values {
		if shares(p.Columns, values.columns()) {
			if refusal := v.show(p, c); refusal != nil {
				return refusal
			}
		}
	}
	for _, sum := range v.Query.Sums {
		v.refine(p, sum)
	}
	p.Weights = make([][]int64, len(v.Query.Counts))
	for c, sum := range v.Query.Sums {
		if shares(p.Columns, sum.columns()) {
			p.Weights[c] = v.spread(sum, p)
		}
	}
	return nil
}

// like is the combination that some pieces are like, by what again says of each column's: themselves, or one before
// them.
func (p *Factor) like(again [][]int32, pieces []int) (at int) {
	for i, piece := range pieces {
		if again != nil && again[i] != nil {
			piece = int(again[i][piece])
		}
		at = at*p.Sizes[i] + piece
	}
	return at
}

// classifyOne handles one combination; cells are the first ones in it.
func (v *Solver) classifyOne(p *Factor, on *evaluated, at int, cells []int, numbers *classNumbers) *refuse.Refusal {
	// Expressions are evaluated on every combination, also where the condition fails: an error must not depend on it.
	admitted := v.admitted(p, cells)
	for _, e := range p.filters {
		holds, refusal := on.decide(e)
		if refusal != nil {
			return refusal
		}
		admitted = admitted && holds
	}
	for c, list := range p.only {
		counts := true
		for _, e := range list {
			holds, refusal := on.decide(e)
			if refusal != nil {
				return refusal
			}
			counts = counts && holds
		}
		p.Masks[c][at] = counts
	}
	if c := v.hidden(p, cells); c != nil {
		if c.Any && admitted {
			return unnamedTexts.At(v.Query.Keys[p.Keys[0]].Pos, c.Name)
		}
		p.Class[at] = -1
		return nil
	}
	values, refusal := v.keysOf(p, on, numbers.next(len(p.Keys)))
	if refusal != nil {
		return refusal
	}
	p.place(at, values, numbers, admitted)
	if class := p.Class[at]; class >= 0 && !v.concealed(p, cells) {
		p.shown[class] = true
	}
	return nil
}

// concealed reports whether the factor's keys read a column in the cell of what is outside its domain, which the policy
// hides: a group all of whose cells are so is measured like any other, and is no row of the answer. Totals have its
// rows. What is left out is decided by the policy and the statement: post-processing.
func (v *Solver) concealed(p *Factor, cells []int) bool {
	for i, at := range p.Columns {
		if cell := v.Table.Columns[at].HiddenCell(); cell < 0 || cells[i] != cell {
			continue
		}
		if slices.ContainsFunc(p.Keys, func(k int) bool { return slices.Contains(v.Query.Keys[k].Cols, at) }) {
			return true
		}
	}
	return false
}

// keysOf evaluates the factor's keys.
func (v *Solver) keysOf(p *Factor, on *evaluated, values []policy.Value) ([]policy.Value, *refuse.Refusal) {
	for i, k := range p.Keys {
		value, refusal := on.key(v.Query.Keys[k])
		if refusal != nil {
			return nil, refusal
		}
		if k >= len(v.Query.Keys)-v.Query.conditions {
			value = value == true
		}
		values[i] = value
	}
	return values, nil
}

// classNumbers number combinations of keys, those that the condition admits and the others by themselves, in the order
// in which they come.
type classNumbers struct {
	inOrder int         // combinations that have one key, which only grows, from the first on
	of      policy.Type // of that key
	known   [2]map[string]int32
	keys    [2][][]policy.Value // by number
	room    []policy.Value      // of the next keys
}

// next is room for keys.
func (n *classNumbers) next(keys int) []policy.Value {
	if len(n.room) < keys {
		n.room = make([]policy.Value, max(keys, 256))
	}
	return n.room[:keys:keys]
}

// number is that of keys, which lie in the room of next, and reports whether they are new. A key that only grows is
// new, or the one that came last.
func (n *classNumbers) number(at int, values []policy.Value, outside int) (number int32, isNew bool) {
	have := n.keys[outside]
	if at < n.inOrder {
		if last := len(have) - 1; last >= 0 && semantics.Same(n.of, values[0], have[last][0]) {
			return int32(last), false
		}
	} else if n.inOrder > 0 { // NULL's cell, and the like: there are two
		if i := slices.IndexFunc(have, func(other []policy.Value) bool {
			return reflect.TypeOf(other[0]) == reflect.TypeOf(values[0]) && semantics.Same(n.of, other[0], values[0])
		}); i >= 0 {
			return int32(i), false
		}
	} else {
		if n.known[outside] == nil {
			n.known[outside] = map[string]int32{}
		}
		name := semantics.KeyText(values)
		if number, known := n.known[outside][name]; known {
			return number, false
		}
		n.known[outside][name] = int32(len(have))
	}
	n.keys[outside], n.room = append(have, values), n.room[len(values):]
	return int32(len(have)), true
}

// numbersOf are the numbers of a factor's keys, none of which has one yet. The regular cells of one column have keys
// that only grow where the key is monotone; of floating numbers, of which −0 and 0 are the same and have two texts,
// that is not made use of.
func (v *Solver) numbersOf(p *Factor) *classNumbers {
	n := &classNumbers{}
	if len(p.Columns) != 1 || len(p.Keys) != 1 || p.Keys[0] >= len(v.Query.Keys)-v.Query.conditions {
		return n
	}
	c, key := v.Table.Columns[p.Columns[0]], v.Query.Keys[p.Keys[0]]
	if n.of = key.Type(); c.Domain.Ordered() && c.Open == nil && key.Monotone && !n.of.Floating() && v.Box.Calm(key, p.Columns[0]) {
		n.inOrder = p.PieceOf(0, c.Domain.Regular-1) + 1
	}
	return n
}

// place numbers combinations of equal keys: as a class those that the condition admits, among what is left out the
// others.
func (p *Factor) place(at int, values []policy.Value, numbers *classNumbers, admitted bool) {
	if !admitted {
		p.Class[at] = -1
		p.beyond[at], _ = numbers.number(at, values, 1)
		return
	}
	number, isNew := numbers.number(at, values, 0)
	if p.Class[at] = number; isNew {
		p.Values, p.shown = append(p.Values, values), append(p.shown, false)
	}
}

// admitted reports whether the filter leaves the cells in sight: keys that it excludes are not rows of the answer.
func (v *Solver) admitted(p *Factor, cells []int) bool {
	for _, q := range p.within {
		if !predicate.Satisfied(q, func(c *policy.Column) int {
			return cells[slices.IndexFunc(p.Columns, func(i int) bool { return v.Table.Columns[i] == c })]
		}) {
			return false
		}
	}
	return true
}

// within is what the conjuncts of the filter say of the factor's cells.
func (v *Solver) within(p *Factor) []predicate.Pred {
	var out []predicate.Pred
	for _, q := range predicate.Conjuncts(v.Query.Filter) {
		if q = predicate.Implied(q, func(c *policy.Column) bool { return slices.Contains(p.Columns, plans.ColumnIndex(v.Table, c)) }); q != nil {
			out = append(out, q)
		}
	}
	return out
}

// decidesKeys lists, for each conjunct of the filter over several columns that are all keys', these columns: their
// cells are looked at together, so that groups in which no row can be are not shown. Where that takes too many
// combinations, they are shown.
func (v *Solver) decidesKeys(lists ...[]*semantics.Expr) [][]int {
	var read, keys []int
	for i, list := range lists {
		for _, e := range list {
			if read = semantics.Union(read, e.Cols); i == 0 {
				keys = semantics.Union(keys, e.Cols)
			}
		}
	}
	combinations := 1
	for _, c := range read {
		d := v.Table.Columns[c].Domain
		if d == nil || combinations*d.Size() > plans.MaxCells {
			return nil
		}
		combinations *= d.Size()
	}
	var out [][]int
	for _, q := range predicate.Conjuncts(v.Query.Filter) {
		columns, onGrid := predicate.Columns(q, nil)
		var at []int
		for _, c := range columns {
			at = semantics.Union(at, []int{plans.ColumnIndex(v.Table, c)})
		}
		if onGrid && len(at) > 1 && !slices.ContainsFunc(at, func(c int) bool { return !slices.Contains(keys, c) }) {
			out = append(out, at)
		}
	}
	return out
}

// decide evaluates a condition on the box.
func (v *Solver) decide(e *semantics.Expr) (bool, *refuse.Refusal) {
	value, refusal := v.Box.Steady(e)
	return refusal == nil && value == true, refusal
}

// key evaluates a group key on the box. A bare column is its step, by the step's low end, and so does a time
// that is put into buckets finer than its steps: date_trunc('minute', at) of a column of hours has a key for each hour.
// A step that shares a bucket with another step has none.
func (v *Solver) key(e *semantics.Expr) (policy.Value, *refuse.Refusal) {
	if e.Form == semantics.FormColumn {
		if c := v.Table.Columns[e.Cols[0]]; !c.Domain.Single() {
			v.Notes.Add(c.Name + " is grouped by its steps of " + semantics.StepOf(c) + ", each shown by its low end")
		}
		return v.Box.Low[e.Cols[0]], nil
	}
	value, steady, refusal := v.Box.Value(e)
	if refusal == nil && !steady && v.isBucket(e) && v.Box.Parted(e) {
		c := v.Table.Columns[e.Cols[0]]
		v.Notes.Add("buckets of " + c.Name + " are no finer than its steps of " + semantics.StepOf(c) + ": each is shown as the first in its step")
		return e.Value(v.Box.Low)
	}
	if refusal == nil && !steady {
		refusal = v.Box.Unsteady(e)
	}
	return value, refusal
}

// decides reports whether a condition is part of an expression.
func decides(e *semantics.Expr) bool {
	return e.Type() == policy.Bool || slices.ContainsFunc(e.Args, decides)
}

// isBucket tells keys that say when, or how long: a time, what lies between two, or a number that grows with it. A
// condition is none, nor is what repeats (hours of days).
func (v *Solver) isBucket(e *semantics.Expr) bool {
	if !e.Monotone || len(e.Cols) != 1 || decides(e) || v.Table.Columns[e.Cols[0]].Open != nil {
		return false
	}
	c := v.Table.Columns[e.Cols[0]]
	return c.Type.Moment() || semantics.BetweenMoments(c)
}

func (v *Solver) firstPosition(p *Factor) int {
	if len(p.Keys) > 0 {
		return v.Query.Keys[p.Keys[0]].Pos
	}
	if len(p.filters) > 0 {
		return p.filters[0].Pos
	}
	return -1
}

// Decode writes the digits of a combination, the first column's slowest.
func Decode(at int, sizes []int, cells []int) {
	for i := len(sizes) - 1; i >= 0; i-- {
		cells[i] = at % sizes[i]
		at /= sizes[i]
	}
}

// isKey reports whether a cell of a column is shown: of an open one those of keys are.
func isKey(c *policy.Column, cell int) bool {
	return c.Open == nil || cell != c.Domain.Other && (cell != c.Domain.Null || c.NullKey)
}

// hidden is an open column that the factor's keys read in a cell that is no key: what has not been found is not shown.
// nil means there is none. Conditions that are among the keys show nothing: of count(*) FILTER (WHERE zip = '805')
// beside count(*) the rows of all other texts, and of none, are counted too.
func (v *Solver) hidden(p *Factor, cells []int) *policy.Column {
	for i, at := range p.Columns {
		c := v.Table.Columns[at]
		if isKey(c, cells[i]) {
			continue
		}
		if slices.ContainsFunc(p.Keys, func(k int) bool {
			if c.Any {
				return slices.Contains(v.Query.Keys[k].Cols, at) && !v.Box.Knows(v.Query.Keys[k])
			}
			return slices.Contains(v.Query.Keys[k].Cols, at) && k < len(v.Query.Keys)-v.Query.conditions
		}) {
			return c
		}
	}
	return nil
}

// Marginals is how an ask of several grouping sets is measured: not its cells, but the sets' own tables, or what they
// have in common and where they differ, all at once. Then every set is read from all that is measured, and they add up.
type Marginals struct {
	Strategy mechanisms.Strategy
	Sets     [][]int             // by wanted set: the factors that its keys are decided by
	Rows     [][]mechanisms.Span // of all sets: the cells of each row
	Of       []int               // by row: its set
	Gain     float64             // how many times the error by sets alone is
}

// encode writes which sets the marginals are for; how they are observed is the spec's.
func (m *Marginals) encode(b []byte) []byte {
	b = binary.AppendUvarint(append(b, 'm'), uint64(len(m.Sets)))
	for _, own := range m.Sets {
		b = binary.AppendUvarint(b, uint64(len(own)))
		for _, i := range own {
			b = binary.AppendUvarint(b, uint64(i))
		}
	}
	return b
}

// Why says what is gained.
func (m *Marginals) Why() string {
	return "the grouping sets are measured at once: the mean squared error is that of asking set by set at this price, divided by " + strconv.FormatFloat(m.Gain, 'f', 2, 64)
}
