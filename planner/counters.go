package planner

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Counters of one measure are told apart and ordered by what they count, not by how and where the statement writes them:
// so the same question has the same digest, and a counter written twice is paid for once.

// foldCounters finds the counters that the database is asked for, and for each the conditions left over.
func (v *solver) foldCounters() (only map[int][]*expr, refusal *refuse.Refusal) {
	only = map[int][]*expr{}
	index := map[string]int{}
	for _, c := range v.s.counters {
		var pred predicate.Pred
		residual, refusal := v.fold(c.where, &pred)
		if refusal != nil {
			return nil, refusal
		}
		if _, never := pred.(predicate.Never); never {
			v.s.counting = append(v.s.counting, -1)
			continue
		}
		slices.SortFunc(residual, func(a, b *expr) int { return strings.Compare(a.canon, b.canon) })
		key := string(predicate.Encode(nil, pred))
		if c.sum != nil {
			key += "|sum " + c.sum.canon
		}
		key += c.values.name()
		for _, e := range residual {
			key += "|" + e.canon
		}
		at, seen := index[key]
		if !seen {
			at = len(v.s.counts)
			index[key] = at
			v.s.counts, v.s.sums, v.s.values = append(v.s.counts, pred), append(v.s.sums, c.sum), append(v.s.values, c.values)
			if len(residual) > 0 {
				only[at] = residual
			}
			v.s.worths = append(v.s.worths, c.worth)
		}
		v.s.worths[at] = moreWorth(v.s.worths[at], c.worth)
		v.s.counting = append(v.s.counting, at)
	}
	return only, nil
}

// narrow makes the condition of an only counter a condition on the rows: FILTER (WHERE p) asks what WHERE p asks. With
// keys, it takes what decides nothing about which keys are shown.
func (v *solver) narrow(residual []*expr, only map[int][]*expr) ([]*expr, map[int][]*expr) {
	if len(v.s.counts) != 1 {
		return residual, only
	}
	if len(v.s.keys) == 0 {
		v.s.filter, v.s.counts[0] = predicate.All(v.s.filter, v.s.counts[0]), nil
		return append(residual, only[0]...), nil
	}
	var shown []*policy.Column
	for _, list := range [][]*expr{v.s.keys, residual, only[0]} {
		for _, e := range list {
			for _, c := range e.cols {
				shown = predicate.WithColumn(shown, v.table.Columns[c])
			}
		}
	}
	filter, left := v.s.filter, predicate.Pred(nil)
	for _, q := range conjunctsOf(v.s.counts[0]) {
		columns, _ := predicate.Columns(q, nil)
		if slices.ContainsFunc(columns, func(c *policy.Column) bool { return slices.Contains(shown, c) }) {
			left = predicate.All(left, q)
		} else {
			filter = predicate.All(filter, q)
		}
	}
	if _, never := filter.(predicate.Never); !never {
		v.s.filter, v.s.counts[0] = filter, left
	}
	return residual, only
}

// conjunctsOf are the parts of a conjunction.
func conjunctsOf(p predicate.Pred) []predicate.Pred {
	switch p := p.(type) {
	case nil:
		return nil
	case predicate.AllOf:
		return p
	}
	return []predicate.Pred{p}
}

// orderCounters puts the counters in the order of their canonical encodings, each once, and drops those that hold in no
// combination of cells.
func (s *solved) orderCounters() {
	keys := make([]string, len(s.counts))
	order := []int{}
	for c, pred := range s.counts {
		b, counts := predicate.Encode(nil, pred), true
		for _, p := range s.parts {
			counts = p.trim(c) && counts
			b = p.encodeMask(b, p.masks[c])
		}
		if s.sums[c] != nil {
			b = predicate.EncodeText(append(b, 's'), s.sums[c].canon)
		}
		if s.values[c] != nil {
			b = predicate.EncodeText(append(b, 'v'), s.values[c].name())
			counts = counts && s.shown(c) > 0
		}
		if keys[c] = string(b); counts {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	place := make([]int, len(s.counts))
	for i := range place {
		place[i] = -1
	}
	var kept []int
	for _, c := range order {
		if n := len(kept); n == 0 || keys[kept[n-1]] != keys[c] {
			kept = append(kept, c)
		}
		place[c] = len(kept) - 1
	}
	for i, c := range s.counting {
		if c >= 0 {
			s.counting[i] = place[c]
		}
	}
	s.counts, s.sums, s.values = pick(s.counts, kept), pick(s.sums, kept), pick(s.values, kept)
	s.worths = pick(s.worths, kept)
	for _, p := range s.parts {
		p.masks, p.weights, p.shows = pick(p.masks, kept), pick(p.weights, kept), pick(p.shows, kept)
	}
}

// trim makes a counter's mask canonical: false where the part's condition fails, nil where it would say nothing. It tells
// whether the counter counts anywhere.
func (p *part) trim(counter int) bool {
	mask := p.masks[counter]
	if mask == nil {
		return true
	}
	all, some := true, false
	for i := range mask {
		mask[i] = mask[i] && p.class[i] >= 0
		some = some || mask[i]
		all = all && (mask[i] || p.class[i] < 0)
	}
	if all {
		p.masks[counter] = nil
	}
	return some
}

// pick takes the elements at some places.
func pick[T any](list []T, places []int) []T {
	out := make([]T, len(places))
	for i, at := range places {
		out[i] = list[at]
	}
	return out
}
