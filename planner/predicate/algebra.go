package predicate

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// The algebra of predicates. A nil Pred holds everywhere. Results are canonical: flat, sorted, one InCells a column in
// each AllOf and AnyOf, no part twice; so questions that mean the same have the same digest however they are written.

// Cells is InCells, or nil and Never at its ends: a normalised value is always in exactly one cell.
func Cells(c *policy.Column, spans []mechanisms.Span) Pred {
	switch {
	case len(spans) == 0:
		return Never{}
	case len(spans) == 1 && spans[0].From == 0 && spans[0].To == c.Domain.Size():
		return nil
	}
	return InCells{Column: c, Spans: spans}
}

// All is the conjunction.
func All(parts ...Pred) Pred {
	flat := make([]Pred, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case nil:
		case Never:
			return Never{}
		case AllOf:
			flat = append(flat, p...)
		default:
			flat = append(flat, p)
		}
	}
	flat = compareWithin(mergeCells(flat, Intersect), true)
	if slices.Contains(flat, Pred(Never{})) {
		return Never{}
	}
	switch flat = canonicalParts(flat); len(flat) {
	case 0:
		return nil
	case 1:
		return flat[0]
	}
	return AllOf(flat)
}

// Any is the disjunction; without parts it holds nowhere.
func Any(parts ...Pred) Pred {
	flat := make([]Pred, 0, len(parts))
	for _, p := range parts {
		switch p := p.(type) {
		case nil:
			return nil
		case Never:
		case AnyOf:
			flat = append(flat, p...)
		default:
			flat = append(flat, p)
		}
	}
	flat = mergeCells(flat, Unite)
	if slices.Contains(flat, nil) {
		return nil
	}
	flat = slices.DeleteFunc(compareWithin(flat, false), func(p Pred) bool { _, never := p.(Never); return never })
	if slices.Contains(flat, nil) {
		return nil
	}
	if len(flat) == 0 {
		return Never{}
	}
	if flat = canonicalParts(flat); len(flat) == 1 {
		return flat[0]
	}
	return AnyOf(flat)
}

// Factored takes what all parts of a disjunction say out of them: of
//
//	mode = 'AIR' AND size < 5 OR mode = 'AIR' AND brand = 'B'
//
// it is mode = 'AIR', and what is left is size < 5 OR brand = 'B': AND distributes over OR, so that p holds where both
// do. Without such parts all of p is left. Where one part says no more than all others what is left is nil, which holds
// everywhere: of a OR a AND b it is a.
func Factored(p AnyOf) (shared []Pred, rest Pred) {
	within := func(p Pred, list []Pred) bool {
		return slices.ContainsFunc(list, func(q Pred) bool { return same(p, q) })
	}
	for _, c := range Conjuncts(p[0]) {
		if !slices.ContainsFunc(p[1:], func(q Pred) bool { return !within(c, Conjuncts(q)) }) {
			shared = append(shared, c)
		}
	}
	if len(shared) == 0 {
		return nil, p
	}
	return shared, Any(mapped(p, func(q Pred) Pred {
		return All(slices.DeleteFunc(slices.Clone(Conjuncts(q)), func(c Pred) bool { return within(c, shared) })...)
	})...)
}

func same(p, q Pred) bool {
	a, ok := p.(InCells)
	b, too := q.(InCells)
	if ok && too {
		return a.Column == b.Column && slices.Equal(a.Spans, b.Spans)
	}
	return ok == too && bytes.Equal(Encode(nil, p), Encode(nil, q))
}

// mergeCells joins the InCells of each column.
func mergeCells(parts []Pred, join func(a, b []mechanisms.Span) []mechanisms.Span) []Pred {
	out := make([]Pred, 0, len(parts))
	at := map[*policy.Column]int{}
	for _, p := range parts {
		in, ok := p.(InCells)
		if !ok {
			out = append(out, p)
			continue
		}
		i, seen := at[in.Column]
		if !seen {
			at[in.Column] = len(out)
			out = append(out, p)
			continue
		}
		if have, ok := out[i].(InCells); ok {
			out[i] = Cells(in.Column, join(have.Spans, in.Spans))
		} else if out[i] == nil {
			out[i] = Cells(in.Column, join([]mechanisms.Span{{From: 0, To: in.Column.Domain.Size()}}, in.Spans))
		} else {
			out[i] = Cells(in.Column, join(nil, in.Spans))
		}
	}
	return out
}

// canonicalParts sorts the parts and leaves out nil ones and repetitions.
func canonicalParts(parts []Pred) []Pred {
	type keyedPart struct {
		key string
		p   Pred
	}
	keyed := make([]keyedPart, 0, len(parts))
	for _, p := range parts {
		if p != nil {
			keyed = append(keyed, keyedPart{string(Encode(nil, p)), p})
		}
	}
	slices.SortFunc(keyed, func(a, b keyedPart) int { return strings.Compare(a.key, b.key) })
	out := make([]Pred, 0, len(keyed))
	for i, k := range keyed {
		if i == 0 || keyed[i-1].key != k.key {
			out = append(out, k.p)
		}
	}
	return out
}

// Not holds exactly where p does not.
func Not(p Pred) Pred {
	switch p := p.(type) {
	case nil:
		return Never{}
	case AllOf:
		return Any(mapped(p, Not)...)
	case AnyOf:
		parts := make([]Pred, len(p))
		for i, q := range p {
			if c, ok := q.(Compare); ok && hasNull(p, c.Column) { // which its complement has not
				c.Op = Opposite[c.Op]
				parts[i] = c
				continue
			}
			parts[i] = Not(q)
		}
		return All(parts...)
	case InCells:
		return Cells(p.Column, Outside(p.Spans, p.Column.Domain.Size()))
	case Compare:
		p.Op = Opposite[p.Op]
		return orNull(p, p.Column)
	case Past:
		p.Op = Opposite[p.Op]
		return orNull(p, p.Column)
	case Between:
		p.Op = Opposite[p.Op]
		return orNull(p, p.Left, p.Right)
	case Sum:
		p.Op = Opposite[p.Op]
		return orNull(p, p.columns()...)
	}
	return nil // of Never
}

// columns are those of the terms.
func (p Sum) columns() []*policy.Column {
	list := make([]*policy.Column, len(p.Terms))
	for i, t := range p.Terms {
		list[i] = t.Column
	}
	return list
}

// orNull holds where p does, or one of some columns is NULL.
func orNull(p Pred, columns ...*policy.Column) Pred {
	parts := []Pred{p}
	for _, c := range columns {
		if null := c.Domain.Null; null >= 0 {
			parts = append(parts, InCells{c, []mechanisms.Span{{From: null, To: null + 1}}})
		}
	}
	return Any(parts...)
}

// mapped is what f makes of each of some predicates.
func mapped(list []Pred, f func(Pred) Pred) []Pred {
	out := make([]Pred, len(list))
	for i, p := range list {
		out[i] = f(p)
	}
	return out
}

// hasNull reports whether one of some predicates holds where a column is NULL.
func hasNull(parts []Pred, c *policy.Column) bool {
	return slices.ContainsFunc(parts, func(p Pred) bool {
		in, ok := p.(InCells)
		return ok && in.Column == c && c.Domain.Null >= 0 && Contains(in.Spans, c.Domain.Null)
	})
}

// Opposite is the operator that holds where the other does not, Mirrored the one with its operands exchanged.
var (
	Opposite = map[string]string{"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "<>", "<>": "="}
	Mirrored = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
)

// Over is a predicate over other columns, each of the same domain as the one that it replaces.
func Over(p Pred, of func(*policy.Column) *policy.Column) Pred {
	each := func(list []Pred) []Pred { return mapped(list, func(q Pred) Pred { return Over(q, of) }) }
	switch p := p.(type) {
	case AllOf:
		return All(each(p)...)
	case AnyOf:
		return Any(each(p)...)
	case InCells:
		p.Column = of(p.Column)
		return p
	case Compare:
		p.Column = of(p.Column)
		return p
	case Past:
		p.Column = of(p.Column)
		return p
	case Between:
		p.Left, p.Right = of(p.Left), of(p.Right)
		return p
	case Sum:
		p.Terms = slices.Clone(p.Terms)
		for i := range p.Terms {
			p.Terms[i].Column = of(p.Terms[i].Column)
		}
		return p
	}
	return p
}

// Implied is what p says of the cells of some columns alone: it holds wherever p does. Of `code = '13' AND age > 3 OR
// code = '31'` it is, of code, `code IN ('13', '31')`.
func Implied(p Pred, of func(*policy.Column) bool) Pred {
	each := func(list []Pred) []Pred { return mapped(list, func(q Pred) Pred { return Implied(q, of) }) }
	switch p := p.(type) {
	case AllOf:
		return All(each(p)...)
	case AnyOf:
		return Any(each(p)...)
	case InCells:
		if of(p.Column) {
			return p
		}
	case Never:
		return p
	}
	return nil
}

// Conjuncts are the parts that all hold where p does; nil, which always holds, has none.
func Conjuncts(p Pred) []Pred {
	switch p := p.(type) {
	case nil:
		return nil
	case AllOf:
		return p
	}
	return []Pred{p}
}

// Leaves visits the parts of p that are no conjunctions or disjunctions, in order.
func Leaves(p Pred) iter.Seq[Pred] {
	return func(yield func(Pred) bool) { leaves(p, yield) }
}

// leaves visits them for as long as yield returns true, which it then returns itself.
func leaves(p Pred, yield func(Pred) bool) bool {
	var parts []Pred
	switch p := p.(type) {
	case nil:
		return true
	case AllOf:
		parts = p
	case AnyOf:
		parts = p
	default:
		return yield(p)
	}
	return !slices.ContainsFunc(parts, func(q Pred) bool { return !leaves(q, yield) })
}

// Columns adds the columns that p reads; onGrid is false when p compares inside a step.
func Columns(p Pred, into []*policy.Column) (columns []*policy.Column, onGrid bool) {
	onGrid = true
	for q := range Leaves(p) {
		var own []*policy.Column
		switch q := q.(type) {
		case InCells:
			into = WithColumn(into, q.Column)
			continue
		case Compare:
			own = []*policy.Column{q.Column}
		case Past:
			own = []*policy.Column{q.Column}
		case Between:
			own = []*policy.Column{q.Left, q.Right}
		case Sum:
			own = q.columns()
		}
		for _, c := range own {
			into, onGrid = WithColumn(into, c), false
		}
	}
	return into, onGrid
}

// WithColumn is the list with a column, once.
func WithColumn(list []*policy.Column, c *policy.Column) []*policy.Column {
	if slices.Contains(list, c) {
		return list
	}
	return append(list, c)
}

// Satisfied evaluates an on-grid predicate on the cells of its columns.
func Satisfied(p Pred, cell func(*policy.Column) int) bool {
	return Evaluated(p, func(q Pred) bool {
		in, ok := q.(InCells)
		return ok && Contains(in.Spans, cell(in.Column))
	})
}

// Evaluated is p of a row, given whether each of its parts that are no conjunctions or disjunctions holds.
func Evaluated(p Pred, holds func(Pred) bool) bool {
	switch p := p.(type) {
	case nil:
		return true
	case Never:
		return false
	case AllOf:
		return !slices.ContainsFunc(p, func(q Pred) bool { return !Evaluated(q, holds) })
	case AnyOf:
		return slices.ContainsFunc(p, func(q Pred) bool { return Evaluated(q, holds) })
	}
	return holds(p)
}

// Intersect are the cells that are in both of two lists of sorted, disjoint spans.
func Intersect(a, b []mechanisms.Span) []mechanisms.Span {
	var out []mechanisms.Span
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if from, to := max(a[i].From, b[j].From), min(a[i].To, b[j].To); from < to {
			out = append(out, mechanisms.Span{From: from, To: to})
		}
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return out
}

// Unite are the cells that are in one of them, or in both.
func Unite(a, b []mechanisms.Span) []mechanisms.Span {
	all := append(slices.Clone(a), b...)
	slices.SortFunc(all, func(x, y mechanisms.Span) int { return x.From - y.From })
	var out []mechanisms.Span
	for _, s := range all {
		if n := len(out); n > 0 && s.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// Outside are the cells below size that are in none of the spans.
func Outside(a []mechanisms.Span, size int) []mechanisms.Span {
	var out []mechanisms.Span
	at := 0
	for _, s := range a {
		if s.From > at {
			out = append(out, mechanisms.Span{From: at, To: s.From})
		}
		at = s.To
	}
	if at < size {
		out = append(out, mechanisms.Span{From: at, To: size})
	}
	return out
}

// Contains reports whether a cell is in sorted, disjoint spans.
func Contains(spans []mechanisms.Span, cell int) bool {
	i, _ := slices.BinarySearchFunc(spans, cell, func(s mechanisms.Span, c int) int {
		switch {
		case s.To <= c:
			return -1
		case s.From > c:
			return 1
		}
		return 0
	})
	return i < len(spans) && spans[i].From <= cell && cell < spans[i].To
}

// FromTo are the cells from one to another, none where that is not after it.
func FromTo(from, to int) []mechanisms.Span {
	if from >= to {
		return nil
	}
	return []mechanisms.Span{{From: from, To: to}}
}

// One is one cell.
func One(cell int) []mechanisms.Span { return []mechanisms.Span{{From: cell, To: cell + 1}} }
