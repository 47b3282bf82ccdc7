package reuse

import (
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// all assigns all combinations; false means the measure does not answer the question, or there are too many to find
// out. Of cells of a column that nothing tells apart one is looked at, which makes a fine domain as small as what is
// asked of it.
func (w *walk) all() bool {
	combinations := linear.CombinationsOf(w.sizes)
	if combinations <= linear.MaxPlain {
		for at := range combinations {
			if !w.visit(at) {
				return false
			}
		}
		return true
	}
	lists, sizes := w.unlike(), make([]int, len(w.sizes))
	for i, list := range lists {
		sizes[i] = len(list)
	}
	if combinations = linear.CombinationsOf(sizes); combinations > plans.MaxCells {
		return false
	}
	at := make([]int, len(sizes))
	for n := range combinations {
		linear.Decode(n, sizes, at)
		for i, list := range lists {
			w.cells[i] = list[at[i]]
		}
		if !w.assign() {
			return false
		}
	}
	return true
}

// unlike lists, for each column, one of each kind of its cells. Two are of a kind if the measure has them in one class,
// every predicate of the question says the same of both, and every factor of the question has them in one class, under
// the same counters: assign, which looks at no more of a cell, does the same then. Columns of factors with several keep
// all cells.
func (w *walk) unlike() [][]int {
	lists := make([][]int, len(w.sizes))
	column := 0
	for _, p := range w.m.Factors {
		for _, c := range p.Columns {
			lists[column] = w.kinds(column, w.m.Table.Columns[c], p)
			column++
		}
	}
	return lists
}

func (w *walk) kinds(at int, column *policy.Column, of *linear.Factor) (list []int) {
	parts, alone := []*linear.Factor{of}, len(of.Columns) == 1
	for n, p := range w.s.Factors {
		if slices.Contains(w.places[n], at) {
			parts, alone = append(parts, p), alone && len(p.Columns) == 1
		}
	}
	preds := linear.InCells(w.s.Filter, column, nil)
	for _, p := range w.s.Counts {
		preds = linear.InCells(p, column, preds)
	}
	seen := map[string]bool{}
	w.s.Work.Step(w.sizes[at] * (1 + len(parts) + len(preds)))
	if !alone || of.Cuts == nil && derived.IsIdentity(of.Class) { // each is a kind of its own
		return semantics.IdentityOf(w.sizes[at])
	}
	var kind []byte
	for cell := range w.sizes[at] {
		kind = kind[:0]
		for i, p := range parts {
			own := p.PieceOf(0, w.firstAt(at, cell))
			kind = binary.AppendVarint(kind, int64(p.Class[own]))
			for _, mask := range p.Masks {
				kind = append(kind, linear.Bit(i > 0 && mask != nil && mask[own]))
			}
		}
		for _, p := range preds {
			kind = append(kind, linear.Bit(predicate.Contains(p.Spans, w.firstAt(at, cell))))
		}
		if !seen[string(kind)] {
			seen[string(kind)] = true
			list = append(list, cell)
		}
	}
	return list
}
