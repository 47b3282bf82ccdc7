package semantics

import "github.com/dpproxy/dpproxy/mechanisms"

// Cells as spans: of cells 1, 2, 3 and 7, that come one after the other, the spans [1, 4) and [7, 8).

// SpansOf collects cells that come in order into spans.
type SpansOf []mechanisms.Span

func (s *SpansOf) Add(cell int) { s.AddRange(cell, cell+1) }

// AddRange adds the cells from one up to another, which is not among them.
func (s *SpansOf) AddRange(from, to int) {
	if from >= to {
		return
	}
	if n := len(*s); n > 0 && (*s)[n-1].To == from {
		(*s)[n-1].To = to
		return
	}
	*s = append(*s, mechanisms.Span{From: from, To: to})
}

// IdentityOf are the numbers below n, in order.
func IdentityOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
