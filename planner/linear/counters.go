package linear

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Counters of one measure are told apart and ordered by what they count, not by how and where the statement writes
// them: so the same question has the same digest, and a counter written twice is paid for once.

// foldCounters finds the counters that the database is asked for, and for each the conditions left over.
func (v *Solver) foldCounters() (only map[int][]*semantics.Expr, refusal *refuse.Refusal) {
	only = map[int][]*semantics.Expr{}
	index := map[string]int{}
	for _, c := range v.Query.Counters {
		var pred predicate.Pred
		residual, refusal := v.Fold(c.Where, &pred)
		if refusal != nil {
			return nil, refusal
		}
		if _, never := pred.(predicate.Never); never {
			v.Query.Counting = append(v.Query.Counting, -1)
			continue
		}
		slices.SortFunc(residual, func(a, b *semantics.Expr) int { return strings.Compare(a.Canon, b.Canon) })
		key := string(predicate.Encode(nil, pred))
		if c.Sum != nil {
			key += "|sum " + c.Sum.canon
		}
		key += c.Values.name()
		for _, e := range residual {
			key += "|" + e.Canon
		}
		at, seen := index[key]
		if !seen {
			at = len(v.Query.Counts)
			index[key] = at
			v.Query.Counts, v.Query.Sums, v.Query.Values = append(v.Query.Counts, pred), append(v.Query.Sums, c.Sum), append(v.Query.Values, c.Values)
			if len(residual) > 0 {
				only[at] = residual
			}
			v.Query.Worths = append(v.Query.Worths, c.Worth)
		}
		v.Query.Worths[at] = moreWorth(v.Query.Worths[at], c.Worth)
		v.Query.Counting = append(v.Query.Counting, at)
	}
	return only, nil
}

// narrow makes the condition of an only counter a condition on the rows: FILTER (WHERE p) asks what WHERE p asks. With
// keys, it takes what decides nothing about which keys are shown.
func (v *Solver) narrow(residual []*semantics.Expr, only map[int][]*semantics.Expr) ([]*semantics.Expr, map[int][]*semantics.Expr) {
	if len(v.Query.Counts) != 1 {
		return residual, only
	}
	if len(v.Query.Keys) == 0 {
		v.Query.Filter, v.Query.Counts[0] = predicate.All(v.Query.Filter, v.Query.Counts[0]), nil
		return append(residual, only[0]...), nil
	}
	var shown []*policy.Column
	for _, list := range [][]*semantics.Expr{v.Query.Keys, residual, only[0]} {
		for _, e := range list {
			for _, c := range e.Cols {
				shown = predicate.WithColumn(shown, v.Table.Columns[c])
			}
		}
	}
	filter, left := v.Query.Filter, predicate.Pred(nil)
	for _, q := range predicate.Conjuncts(v.Query.Counts[0]) {
		columns, _ := predicate.Columns(q, nil)
		if slices.ContainsFunc(columns, func(c *policy.Column) bool { return slices.Contains(shown, c) }) {
			left = predicate.All(left, q)
		} else {
			filter = predicate.All(filter, q)
		}
	}
	if _, never := filter.(predicate.Never); !never {
		v.Query.Filter, v.Query.Counts[0] = filter, left
	}
	return residual, only
}

// orderCounters puts the counters in the order of their canonical encodings, each once, and drops those that hold in no
// combination of cells.
func (s *Query) orderCounters() {
	keys := make([]string, len(s.Counts))
	order := []int{}
	for c, pred := range s.Counts {
		b, counts := predicate.Encode(nil, pred), true
		for _, p := range s.Factors {
			counts = p.trim(c) && counts
			b = p.encodeMask(b, p.Masks[c])
		}
		if s.Sums[c] != nil {
			b = predicate.EncodeText(append(b, 's'), s.Sums[c].canon)
		}
		if s.Values[c] != nil {
			b = predicate.EncodeText(append(b, 'v'), s.Values[c].name())
			counts = counts && s.Shown(c) > 0
		}
		if keys[c] = string(b); counts {
			order = append(order, c)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(keys[a], keys[b]) })
	place := make([]int, len(s.Counts))
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
	for i, c := range s.Counting {
		if c >= 0 {
			s.Counting[i] = place[c]
		}
	}
	s.Counts, s.Sums, s.Values = pick(s.Counts, kept), pick(s.Sums, kept), pick(s.Values, kept)
	s.Worths = pick(s.Worths, kept)
	for _, p := range s.Factors {
		p.Masks, p.Weights, p.Shows = pick(p.Masks, kept), pick(p.Weights, kept), pick(p.Shows, kept)
	}
}

// trim makes a counter's mask canonical: false where the factor's condition fails, nil where it would say nothing. It
// reports whether the counter counts anywhere.
func (p *Factor) trim(counter int) bool {
	mask := p.Masks[counter]
	if mask == nil {
		return true
	}
	all, some := true, false
	for i := range mask {
		mask[i] = mask[i] && p.Class[i] >= 0
		some = some || mask[i]
		all = all && (mask[i] || p.Class[i] < 0)
	}
	if all {
		p.Masks[counter] = nil
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
