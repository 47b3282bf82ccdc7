package predicate

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// Truths are the combinations of truths that predicates over one row may have together, in an order in which what a
// column's values decide comes as the values do. Of
//
//	x < 12.34, x < 56.78
//
// they are (true, true), (false, true), (false, false), and never (true, false). A combination may come more than once.
// Truths is nil where finding them takes more than about most evaluations of comparisons.
//
// Claim: the truths of list on a row of normalised values are one of them. Proof: a predicate is a function of its
// atoms, those parts that are no conjunctions or disjunctions. Each atom compares one quantity of the row with
// constants: the value of a column (of an unordered one the number of its cell), how far that lies past the start of
// its cell, which of two columns is the larger, or a sum. Sorted, the constants of all atoms of a quantity divide its
// values into the constants themselves and what lies between two of them, before the first and after the last. Of all
// values in one of these parts each atom is the same, since Order is the order by which the database compares. Where a
// column of it is NULL, InCells is what it says of NULL's cell, and any other atom false. A normalised value is NULL or
// lies from Min to Max (policy.Domain), so that the row lies in one combination of parts, and all are gone through.
//
// Limits: quantities are taken to be independent but for NULL, and parts to have values. So there may be combinations
// that no row has: of a < b, a < 3 and b < 2, or of integers between 3 and 4.
func Truths(list []Pred, most int) iter.Seq[[]bool] {
	r := &regions{at: map[any]int{}}
	own := mapped(list, r.read)
	total, atoms := 1, 0
	for _, q := range r.quantities {
		if !q.divide(most) {
			return nil
		}
		atoms += len(q.atoms)
		if total *= len(q.parts); total*atoms > most {
			return nil
		}
	}
	return func(yield func([]bool) bool) {
		at := make([]int, len(r.quantities))
		for n := range total {
			for i := len(at) - 1; i >= 0; i-- {
				at[i], n = n%len(r.quantities[i].parts), n/len(r.quantities[i].parts)
			}
			truths := make([]bool, len(own))
			for i, p := range own {
				truths[i] = Evaluated(p, func(q Pred) bool { return r.holds(q.(atom), at) })
			}
			if !yield(truths) {
				return
			}
		}
	}
}

// regions are the quantities that predicates compare with constants, those of columns' values before others over these
// columns.
type regions struct {
	quantities []*quantity
	at         map[any]int
}

// quantity is one of them with its atoms.
type quantity struct {
	column *policy.Column // whose value it is, or nil
	values []int          // else: the quantities of its columns' values, each of which may be NULL
	atoms  []Pred
	parts  []part
}

// part is a part of a quantity's values, in which each of its atoms holds or not.
type part struct {
	null  bool // it is NULL alone
	holds []bool
}

// atom is an atom of a quantity by its number.
type atom struct{ quantity, index int }

func (atom) pred() {}

// read is p with its atoms numbered.
func (r *regions) read(p Pred) Pred {
	switch p := p.(type) {
	case nil, Never:
		return p
	case AllOf:
		return AllOf(mapped(p, r.read))
	case AnyOf:
		return AnyOf(mapped(p, r.read))
	}
	columns, _ := Columns(p, nil)
	values := make([]int, len(columns))
	for i, c := range columns {
		values[i] = r.quantity(c, quantity{column: c})
	}
	at := values[0]
	switch p := p.(type) {
	case Past:
		at = r.quantity(Past{Column: p.Column}, quantity{values: values})
	case Between:
		at = r.quantity(Between{Left: p.Left, Right: p.Right}, quantity{values: values})
	case Sum:
		at = r.quantity(fmt.Sprint(p.Terms), quantity{values: values})
	}
	q := r.quantities[at]
	q.atoms = append(q.atoms, p)
	return atom{at, len(q.atoms) - 1}
}

// quantity is the number of a quantity by what identifies it: its columns themselves, not their names.
func (r *regions) quantity(what any, q quantity) int {
	at, met := r.at[what]
	if !met {
		at = len(r.quantities)
		r.at[what], r.quantities = at, append(r.quantities, &q)
	}
	return at
}

// holds reports whether an atom does in a combination of parts.
func (r *regions) holds(a atom, at []int) bool {
	q := r.quantities[a.quantity]
	return q.parts[at[a.quantity]].holds[a.index] &&
		!slices.ContainsFunc(q.values, func(v int) bool { return r.quantities[v].parts[at[v]].null })
}

// divide finds the parts of a quantity's values in which its atoms differ, in order, that of NULL last; false means that
// not all of its constants have an order, or that it takes more than most evaluations of atoms.
func (q *quantity) divide(most int) (ok bool) {
	values, ok := q.constants()
	if !ok || 2*len(values)*len(q.atoms) > most {
		return false
	}
	// place is 2i + 1 for the i-th constant, and 2i for what lies below it and above the one before.
	place := func(v policy.Value) int {
		i, _ := slices.BinarySearchFunc(values, v, inOrder)
		return 2*i + 1
	}
	from, to := 0, 2*len(values)+1
	if q.column != nil {
		least, most := ends(q.column.Domain)
		from, to = place(least), place(most)+1
	}
	among := make([][]mechanisms.Span, len(q.atoms)) // the places at which they hold
	for i, a := range q.atoms {
		if in, is := a.(InCells); is {
			for _, s := range Intersect(in.Spans, FromTo(0, in.Column.Domain.Valued())) {
				until := to
				if s.To < in.Column.Domain.Valued() {
					until = place(edge(in.Column.Domain, s.To))
				}
				among[i] = append(among[i], mechanisms.Span{From: place(edge(in.Column.Domain, s.From)), To: until})
			}
			continue
		}
		op, v := compared(a)
		for sign, spans := range map[string][]mechanisms.Span{
			"<": FromTo(0, place(v)), "=": One(place(v)), ">": FromTo(place(v)+1, 2*len(values)+1)} {
			if strings.Contains(op, sign) {
				among[i] = Unite(among[i], spans)
			}
		}
	}
	for at := from; at < to; at++ {
		q.add(false, func(i int) bool { return Contains(among[i], at) })
	}
	if q.column != nil && q.column.Domain.Null >= 0 {
		q.add(true, func(i int) bool {
			in, is := q.atoms[i].(InCells)
			return is && Contains(in.Spans, q.column.Domain.Null)
		})
	}
	return true
}

// add adds a part, unless the atoms are the same in another.
func (q *quantity) add(null bool, holds func(atom int) bool) {
	p := part{null: null}
	for i := range q.atoms {
		p.holds = append(p.holds, holds(i))
	}
	if !slices.ContainsFunc(q.parts, func(o part) bool { return o.null == null && slices.Equal(o.holds, p.holds) }) {
		q.parts = append(q.parts, p)
	}
}

// constants are those that a quantity is compared with, in order, each once, of a column's value with the least and the
// largest; false means that not all of them have an order.
func (q *quantity) constants() (values []policy.Value, ok bool) {
	if q.column != nil {
		least, most := ends(q.column.Domain)
		values = append(values, least, most)
	}
	for _, a := range q.atoms {
		if in, is := a.(InCells); is {
			for _, s := range in.Spans {
				for _, cell := range []int{s.From, s.To} {
					if cell < in.Column.Domain.Valued() {
						values = append(values, edge(in.Column.Domain, cell))
					}
				}
			}
			continue
		}
		_, v := compared(a)
		values = append(values, v)
	}
	for _, v := range values {
		if _, ok := Order(values[0], v); !ok {
			return nil, false
		}
	}
	slices.SortFunc(values, inOrder)
	return slices.CompactFunc(values, func(a, b policy.Value) bool { return inOrder(a, b) == 0 }), true
}

func inOrder(a, b policy.Value) int {
	order, _ := Order(a, b)
	return order
}

// compared is how an atom that is no InCells compares its quantity, and with what: which of two columns is the larger
// with 0.
func compared(a Pred) (op string, v policy.Value) {
	switch a := a.(type) {
	case Compare:
		return a.Op, a.Value
	case Past:
		return a.Op, a.By
	case Between:
		return a.Op, int64(0)
	case Sum:
		return a.Op, a.Value
	}
	return "", nil
}

// edge is where a cell begins: its least value, or, without an order, its number.
func edge(d *policy.Domain, cell int) policy.Value {
	if d.Ordered() {
		return d.Low(cell)
	}
	return int64(cell)
}

// ends are the least and the largest value of a domain, in the same way.
func ends(d *policy.Domain) (least, most policy.Value) {
	if d.Ordered() {
		return d.Min, d.Max
	}
	return int64(0), int64(d.Valued() - 1)
}
