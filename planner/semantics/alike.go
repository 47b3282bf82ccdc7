package semantics

import (
	"fmt"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Cells whose looked-up values are the same are alike. Of
//
//	SELECT count(*) FROM lineitem JOIN part ON p_partkey = l_partkey WHERE p_brand = 'Brand#23' AND p_size < 5
//
// each condition reads l_partkey through what is looked up by it alone, and is evaluated once for each brand and once
// for each size, not on 100,000 parts.
//
// Claim: on all cells of a column to which numbers gives one number, an expression that it is made for is the same
// value, or fails alike. Proof: the expression is made of constants, of looked-up values, each a function of the row
// that the cell's value finds, and of comparisons of a key with the value that it is found by, which are those of equal
// numbers where a row is found, and NULL elsewhere; it reads the column in no other way. A cell holds one value, and
// cells of one number find, lookup by lookup, values that are the same to the last digit (derived.Places), so that
// evaluation goes the same way. Limits: a column's cells of one value each, none of which stands for values that nobody
// knows.

// Looked is a column of a public table's row that is found by a key.
type Looked struct {
	Rows   *derived.Keyed
	Column int  // −1: whether there is a row
	Key    bool // it is what it is found by
}

// found is in which column is looked whether there is a row.
const found = -1

// MaxAlike bounds the numbers, each of which takes a byte while a condition is looked at. Tests set it to 0, to look at
// all cells.
var MaxAlike = 1 << 20

// numbers tell a column's cells apart by what some expression finds by them.
type numbers struct {
	d     *policy.Domain
	parts []*derived.Places
	count int // numbers are below it
}

// alike are the numbers of a column's cells for an expression over it alone; nil means it is to be evaluated cell by
// cell.
func (b *Box) alike(e *Expr, column int) *numbers {
	c := b.Table.Columns[column]
	if _, whole := c.Domain.Min.(int64); !whole || c.Open != nil || !c.Domain.Single() {
		return nil
	}
	n := &numbers{d: c.Domain, count: 1}
	met := map[string]bool{}
	if !n.read(e, met) || len(n.parts) == 0 {
		return nil
	}
	return n
}

// read adds what an expression looks up; false means it reads the column otherwise, or there are too many numbers.
func (n *numbers) read(e *Expr, met map[string]bool) bool {
	switch {
	case e.IsConstant() || met[e.Canon]:
		return true
	case e.Form == FormColumn:
		return false
	case e.Looked != nil && e.Args[0].Form == FormColumn:
		return n.looks(e, e.Looked.Rows, e.Looked.Column, met)
	case len(e.Args) == 2 && predicate.Mirrored[e.Op] != "": // p_partkey = l_partkey holds wherever a row is found by l_partkey
		for i, a := range e.Args {
			if own := e.Args[1-i]; a.Looked != nil && a.Looked.Key && own.Form == FormColumn && a.Args[0].Canon == own.Canon {
				return n.looks(e, a.Looked.Rows, found, met)
			}
		}
	}
	for _, a := range e.Args {
		if !n.read(a, met) {
			return false
		}
	}
	return len(e.Args) > 0
}

// looks adds one column of a public table, of which alone an expression is a function; false means there are too many
// numbers.
func (n *numbers) looks(e *Expr, rows *derived.Keyed, column int, met map[string]bool) bool {
	p := rows.Places(column)
	if p == nil || p.Count > MaxAlike/n.count {
		return false
	}
	met[e.Canon] = true
	n.parts, n.count = append(n.parts, p), n.count*p.Count
	return true
}

// of is the number of a cell. What no key is finds nothing.
func (n *numbers) of(cell int) int {
	number := 0
	if cell >= n.d.Regular {
		return number
	}
	key := n.d.Min.(int64) + int64(cell)*n.d.Step.Whole
	for _, p := range n.parts {
		number = number*p.Count + p.Of(key)
	}
	return number
}

// byNumbers evaluates a condition once for each number of the cells, at the first cell that has it.
func (l *Lowerer) byNumbers(e *Expr, i int, cells SpansOf, n *numbers) (holds, fails SpansOf, ok bool, refusal *refuse.Refusal) {
	const unseen, holding, failing, unknown = 0, 1, 2, 3
	l.Env.Work.Take(n.count, 1)
	for _, p := range n.parts { // whoever made them: what is refused must not depend on who planned before
		if made := fmt.Sprintf("places %p", p); l.Env.Work.Kept(made) == nil {
			l.Env.Work.Step(p.Keys())
			l.Env.Work.Take(p.Keys(), 4)
			l.Env.Work.Keep(made, p)
		}
	}
	truths := make([]uint8, n.count)
	for _, s := range cells {
		l.Env.Work.Step(s.To - s.From)
		for cell := s.From; cell < s.To; cell++ {
			at := n.of(cell)
			if truths[at] == unseen {
				l.Box.Set(i, cell)
				v, steady, refusal := l.Box.Value(e)
				if refusal != nil || !steady {
					return nil, nil, false, refusal
				}
				switch v {
				case true:
					truths[at] = holding
				case false:
					truths[at] = failing
				default:
					truths[at] = unknown
				}
			}
			switch truths[at] {
			case holding:
				holds.Add(cell)
			case failing:
				fails.Add(cell)
			}
		}
	}
	return holds, fails, true, nil
}
