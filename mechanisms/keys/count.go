// Package keys releases which keys of an open domain occur, with or without the number of units that have each: what a
// GROUP BY over a column needs whose values are not public. A key that one unit alone has must hardly ever show, which
// is what δ pays for. Rule.Release adds noise to each key's count of distinct units and shows the keys whose noisy
// count reaches a threshold, together with that count: one noisy number for both.
//
// Two noises: Truncated, the optimal selection for a unit with one key, and still the best for two at a given (ε, δ);
// and Gaussian, best for three keys or more and wherever ρ is what is paid. Best chooses under an accountant by the
// count at which a key is shown with probability one half.
package keys

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Count is a key and the number of distinct units that have it. Rows do not count: a unit with many rows of one key is
// one unit.
type Count struct {
	Key   string
	Units int64
}

// Noisy is a key that was shown and its noisy number of units.
type Noisy struct {
	Key   string
	Units int64
}

// ordered returns the counts above 0, one a key, in the order of the keys' bytes. That order, unlike the one in which a
// database returns groups, depends on the keys alone, so what is shown of it says nothing of the keys dropped.
func ordered(counts []Count) []Count {
	kept := make([]Count, 0, len(counts))
	for _, c := range counts {
		if c.Units > 0 {
			kept = append(kept, Count{c.Key, min(c.Units, noise.MaxCount)})
		}
	}
	slices.SortFunc(kept, func(a, b Count) int { return strings.Compare(a.Key, b.Key) })
	merged := kept[:0]
	for _, c := range kept {
		if last := len(merged) - 1; last >= 0 && merged[last].Key == c.Key {
			merged[last].Units = min(merged[last].Units+c.Units, noise.MaxCount)
			continue
		}
		merged = append(merged, c)
	}
	return merged
}
