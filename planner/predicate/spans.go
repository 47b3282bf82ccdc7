package predicate

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
)

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
