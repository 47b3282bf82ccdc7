package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
)

// A comparison inside a step and a set of cells of the same column say in part the same. What one of them says already is
// left out of the other, so that there is one way to write it.

// compared are the regular cells in all of which a comparison holds, and the one that it divides.
func (p Compare) compared() (whole []mechanisms.Span, divided int, ok bool) {
	d := p.Column.Domain
	cell, inside := d.Cell(p.Value)
	if !inside || cell >= d.Regular {
		return nil, 0, false
	}
	switch p.Op {
	case "<", "<=":
		whole = nonEmpty(0, cell)
	case ">", ">=":
		whole = nonEmpty(cell+1, d.Regular)
	case "<>":
		whole = append(nonEmpty(0, cell), nonEmpty(cell+1, d.Regular)...)
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
			cell := span(divided)
			may := unite(whole, cell)
			left := intersect(in.Spans, may)
			switch has := inSpans(in.Spans, divided); {
			case all && !has: // only whole cells are left
				parts[i], parts[j] = nil, cellsPred(in.Column, intersect(in.Spans, whole))
			case all && slices.Equal(left, may):
				parts[j] = nil
			case all:
				parts[j] = cellsPred(in.Column, left)
			case has:
				parts[i], parts[j] = Never{}, cellsPred(in.Column, unite(in.Spans, whole))
			default:
				if parts[j] = (InCells{in.Column, lessSpans(in.Spans, whole)}); len(parts[j].(InCells).Spans) == 0 {
					parts[j] = Never{}
				}
			}
			if parts[i] == nil || !isCompare(parts[i]) {
				break
			}
		}
	}
	return parts
}

func isCompare(p Pred) bool {
	_, ok := p.(Compare)
	return ok
}

// lessSpans are the spans of a outside of b.
func lessSpans(a, b []mechanisms.Span) []mechanisms.Span {
	if len(a) == 0 {
		return nil
	}
	return intersect(a, outside(b, a[len(a)-1].To))
}
