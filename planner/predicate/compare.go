package predicate

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// A comparison inside a step and a set of cells of the same column say in part the same. What one of them says already
// is left out of the other, so that there is one way to write it.

// compared are the regular cells in all of which a comparison holds, and the one that it divides.
func (p Compare) compared() (whole []mechanisms.Span, divided int, ok bool) {
	d := p.Column.Domain
	cell, inside := d.Cell(p.Value)
	if !inside || cell >= d.Regular {
		return nil, 0, false
	}
	switch p.Op {
	case "<", "<=":
		whole = FromTo(0, cell)
	case ">", ">=":
		whole = FromTo(cell+1, d.Regular)
	case "<>":
		whole = append(FromTo(0, cell), FromTo(cell+1, d.Regular)...)
	}
	return whole, cell, true
}

// compareWithin drops what comparisons and cells of a conjunction, or a disjunction, say twice.
func compareWithin(parts []Pred, all bool) []Pred {
	for i, q := range parts {
		compare, ok := q.(Compare)
		if !ok {
			continue
		}
		for j, p := range parts {
			in, ok := p.(InCells)
			if !ok || in.Column != compare.Column {
				continue
			}
			whole, divided, ok := compare.compared()
			if !ok {
				continue
			}
			cell := One(divided)
			may := Unite(whole, cell)
			left := Intersect(in.Spans, may)
			switch has := Contains(in.Spans, divided); {
			case all && !has: // only whole cells are left
				parts[i], parts[j] = nil, Cells(in.Column, Intersect(in.Spans, whole))
			case all && slices.Equal(left, may):
				parts[j] = nil
			case all:
				parts[j] = Cells(in.Column, left)
			case has:
				parts[i], parts[j] = Never{}, Cells(in.Column, Unite(in.Spans, whole))
			default:
				parts[j] = Cells(in.Column, Intersect(in.Spans, Outside(whole, in.Column.Domain.Size())))
			}
			if _, still := parts[i].(Compare); !still {
				break
			}
		}
	}
	return parts
}
