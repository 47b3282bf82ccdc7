package linear

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/semantics"
)

// Grouping sets, as sets of a question's keys: of GROUP BY ROLLUP (sex, city) they are {0, 1}, {0} and {}, and
// grouping(sex, city) is 0, 1 and 3 in their rows.

// Set is a grouping set: the question's keys that its rows are grouped by.
type Set []int

// United is the sorted union of two sets, and UnitedAll that of several.
func United(a, b Set) Set { return semantics.Union(append([]int{}, a...), b) }

func UnitedAll(parts []Set) Set {
	all := Set{}
	for _, p := range parts {
		all = United(all, p)
	}
	return all
}

// LevelOf is grouping(keys…) in the rows of a set: a bit for each key, 1 where the rows are not grouped by it.
func LevelOf(keys, grouped Set) int64 {
	n := int64(0)
	for _, k := range keys {
		n <<= 1
		if !slices.Contains(grouped, k) {
			n |= 1
		}
	}
	return n
}
