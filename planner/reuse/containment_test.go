package reuse

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// TestCoverByRuns holds what is read by runs of the last column's cells against what is read cell by cell, for drawn
// questions with conditions, classes, pieces and masks over measures that tell all cells apart.
func TestCoverByRuns(t *testing.T) {
	const seed = 1806
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	byRuns := 0
	for range 3000 {
		table := &policy.Table{Name: "t"}
		m := &linear.Query{Question: &linear.Question{Table: table}, Asked: linear.Counted{}, Cells: 1}
		columns := 1 + r.IntN(3)
		for i := range columns {
			size := 1 + r.IntN(30)
			table.Columns = append(table.Columns, &policy.Column{Name: string(rune('a' + i)), Table: table, Domain: &policy.Domain{Regular: size, Other: -1, Null: -1}})
			m.Grain = append(m.Grain, i)
			m.Factors = append(m.Factors, &linear.Factor{Columns: []int{i}, Sizes: []int{size}, Class: identity(size), Classes: size})
			m.Cells *= size
		}
		s := drawnQuestion(r, table)
		fast, slow := newWalk(s, m), newWalk(s, m)
		starts := fast.lastPieces()
		if starts == nil {
			continue
		}
		byRuns++
		slow.assignEach()
		if !slow.all() {
			t.Fatal("a measure of all cells does not answer a question")
		}
		if got, want := fast.byRuns(starts).Spans, slow.reading().Spans; !alike(got, want) {
			t.Fatalf("filter %v, parts %+v: by runs %v, by cells %v", s.Filter, s.Factors, got, want)
		}
	}
	if byRuns < 500 {
		t.Errorf("only %d questions were read by runs", byRuns)
	}
}

// drawnQuestion has up to two counters, a condition on some columns, and parts of some columns in pieces.
func drawnQuestion(r *rand.Rand, table *policy.Table) *linear.Query {
	cells := func(c *policy.Column) predicate.Pred {
		var on []mechanisms.Span
		for range 1 + r.IntN(2) {
			from := r.IntN(c.Domain.Size())
			on = append(on, mechanisms.Span{From: from, To: from + 1 + r.IntN(c.Domain.Size()-from)})
		}
		return predicate.Cells(c, predicate.Unite(on, nil))
	}
	s := &linear.Query{Question: &linear.Question{Table: table}, Asked: linear.Counted{}, Cells: 1}
	s.Counts = make([]predicate.Pred, 1+r.IntN(2))
	for i, c := range table.Columns {
		switch r.IntN(4) {
		case 0:
			s.Filter = predicate.All(s.Filter, cells(c))
		case 1:
			s.Counts[r.IntN(len(s.Counts))] = predicate.Any(cells(c), cells(table.Columns[r.IntN(len(table.Columns))]))
		case 2:
			size := c.Domain.Size()
			p := &linear.Factor{Columns: []int{i}, Sizes: []int{size}, Masks: make([][]bool, len(s.Counts))}
			if r.IntN(3) > 0 { // in pieces
				starts := []int{0}
				for range r.IntN(4) {
					starts = append(starts, r.IntN(size))
				}
				slices.Sort(starts)
				starts = slices.Compact(starts)
				p.Cuts, p.Ends, p.Sizes = [][]int{starts}, []int{size}, []int{len(starts)}
			}
			p.Classes = 1 + r.IntN(3)
			for range p.Sizes[0] {
				p.Class = append(p.Class, int32(r.IntN(p.Classes+1)-1))
			}
			for n := range p.Masks {
				if r.IntN(3) == 0 {
					p.Masks[n] = make([]bool, p.Sizes[0])
					for k := range p.Masks[n] {
						p.Masks[n][k] = r.IntN(2) == 0
					}
				}
			}
			s.Factors, s.Grain = append(s.Factors, p), append(s.Grain, i)
			s.Cells *= p.Classes
		}
	}
	return s
}

func identity(n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

func alike(a, b [][][]mechanisms.Span) bool {
	return reflect.DeepEqual(spread(a), spread(b))
}

// spread has none for an empty list.
func spread(a [][][]mechanisms.Span) (out [][][]mechanisms.Span) {
	for _, rows := range a {
		var own [][]mechanisms.Span
		for _, spans := range rows {
			own = append(own, append([]mechanisms.Span{}, spans...))
		}
		out = append(out, own)
	}
	return out
}
