package mechanisms

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// ownRows lists every number of rows by cell and value that one unit can have: at most c.Rows, in at most c.Groups
// cells, at most c.PerGroup in one.
func ownRows(cells, values int, c Contribution) [][]int64 {
	lists := [][]int64{}
	var fill func(rows []int64, left, here int64, groups int64)
	fill = func(rows []int64, left, here, groups int64) {
		if len(rows)%values == 0 {
			here = 0
		}
		if len(rows) == cells*values {
			lists = append(lists, append([]int64(nil), rows...))
			return
		}
		for n := int64(0); n <= left; n++ {
			opened := int64(0)
			if here == 0 && n > 0 {
				opened = 1
			}
			if opened > groups || c.PerGroup > 0 && here+n > c.PerGroup {
				break
			}
			fill(append(rows[:len(rows):len(rows)], n), left-n, here+n, groups-opened)
		}
	}
	groups := c.Groups
	if groups == 0 {
		groups = c.Rows
	}
	fill(nil, c.Rows, 0, groups)
	return lists
}

func groupsFrom(lists ...[]int64) []privacy.Group {
	groups := make([]privacy.Group, len(lists[0]))
	for i := range groups {
		groups[i] = privacy.Group{Cells: []int32{int32(i)}, Counts: []int64{0}}
		for _, l := range lists {
			groups[i].Counts[0] += l[i]
		}
	}
	return groups
}

// TestValuesMoveNoFurther: whatever values others' rows have, no rows of one unit move the numbers of different values,
// or the sums of them, further than Sensitivity says, and some move them as far. A sum that counts each row of a value
// is caught.
func TestValuesMoveNoFurther(t *testing.T) {
	for _, k := range []struct {
		cells, values int
		c             Contribution
		exact         bool
		weights       []int64 // of sums, by value
	}{
		{1, 3, Contribution{Rows: 2}, true, nil},
		{1, 2, Contribution{Rows: 4}, true, nil},
		{2, 2, Contribution{Rows: 3}, false, nil}, // a replacement that leaves one cell for another needs more cells
		{2, 3, Contribution{Rows: 4}, false, nil},
		{3, 2, Contribution{Rows: 3}, false, nil},
		{4, 2, Contribution{Rows: 3}, true, nil},
		{3, 2, Contribution{Rows: 3, Groups: 1}, true, nil},
		{4, 2, Contribution{Rows: 4, Groups: 2, PerGroup: 3}, true, nil},
		{4, 1, Contribution{Rows: 2, PerGroup: 1}, true, nil},
		{1, 3, Contribution{Rows: 2}, false, []int64{3, 7, 9}},
		{1, 3, Contribution{Rows: 4}, false, []int64{-5, 0, 8}},
		{1, 2, Contribution{Rows: 1}, true, []int64{-5, 8}},
		{2, 2, Contribution{Rows: 3}, false, []int64{-4, -9}},
		{2, 3, Contribution{Rows: 2, Groups: 1, PerGroup: 2}, false, []int64{-6, 5, 6}},
		{3, 2, Contribution{Rows: 3, Groups: 2}, false, []int64{1, 40}},
	} {
		bound, weight := counted, func(int) int64 { return 1 }
		if k.weights != nil {
			bound = Bound{min(slices.Min(k.weights), 0), max(slices.Max(k.weights), 0)}
			weight = func(value int) int64 { return k.weights[value] }
		}
		all := ownRows(k.cells, k.values, k.c)
		for _, k.c.Neighbors = range []privacy.Neighbors{privacy.AddRemove, privacy.ReplaceOne} {
			s, err := Sums([]Counter{{Bound: bound, Values: k.values}}, k.cells, k.c, silent)
			if err != nil {
				t.Fatal(err)
			}
			exact := func(own, others []int64) []int64 {
				cells := make([]int64, k.cells)
				groups := Weighed(s, privacy.Seal(groupsFrom(own, others)), func(cells []int32, _ int) int64 { return weight(int(cells[0]) % k.values) })
				tallyValues(k.values, bound)(sealed.Open(groups), inOrder, 0, cells)
				return cells
			}
			most, bound := privacy.Sensitivity{}, s.Sensitivity(k.c)
			for others := range 1 << (k.cells * k.values) {
				present := make([]int64, k.cells*k.values)
				for i := range present {
					present[i] = int64(others>>i&1) * 2
				}
				after := make([][]int64, len(all))
				for i, own := range all {
					after[i] = exact(own, present)
				}
				against := after[:1] // without rows
				if k.c.Neighbors == privacy.ReplaceOne {
					against = after
				}
				for _, one := range after {
					for _, other := range against {
						d := distances(one, other)
						most.L1, most.L2Squared = max(most.L1, d.L1), max(most.L2Squared, d.L2Squared)
					}
				}
			}
			name := fmt.Sprintf("%d cells of %d values, %+v, weights %d", k.cells, k.values, k.c, k.weights)
			if most.L1 > bound.L1 || most.L2Squared > bound.L2Squared {
				t.Errorf("%s: a unit moves by %+v, bound %+v", name, most, bound)
			}
			if k.exact && most != bound {
				t.Errorf("%s: a unit moves by at most %+v, bound %+v", name, most, bound)
			}
		}
	}
}

// TestValuesAreCountedOnce: several groups may show the same value, and a group without rows shows none.
func TestValuesAreCountedOnce(t *testing.T) {
	s, err := Sums([]Counter{{Bound: counted}, {Bound: counted, Values: 3}}, 2, oneRow, silent)
	if err != nil {
		t.Fatal(err)
	}
	place := func(cells []int32, counter int) int {
		if counter == 0 {
			return int(cells[0])
		}
		if cells[1] < 0 || cells[1] > 2 {
			return -1
		}
		return int(cells[0])*3 + int(cells[1])
	}
	group := func(cell, value int32, n int64) privacy.Group {
		return privacy.Group{Cells: []int32{cell, value}, Counts: []int64{n, n}}
	}
	truth := []privacy.Group{group(0, 0, 5), group(0, 2, 1), group(0, 2, 7), group(0, 1, 0), group(1, 1, 4), group(1, -1, 2), group(1, 9, 3)}
	r, err := Release(s, place, privacy.Seal(truth), seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(r.Value().Observations); got != "[13 9 2 1]" {
		t.Errorf("observed %s", got)
	}
}

// TestValuesAreAddedUpOnce: a value weighs what one of its rows does, however many there are, and no more than the
// bound says.
func TestValuesAreAddedUpOnce(t *testing.T) {
	s, err := Sums([]Counter{{Bound: Bound{-10, 20}, Values: 3}, {Bound: Bound{-10, 20}}, {Bound: counted, Values: 3}}, 1, oneRow, silent)
	if err != nil {
		t.Fatal(err)
	}
	place := func(cells []int32, counter int) int {
		if counter == 1 {
			return 0
		}
		return int(cells[0])
	}
	weigh := func(cells []int32, counter int) int64 {
		if counter == 2 {
			return 1
		}
		return []int64{-7, 0, 50}[cells[0]]
	}
	for rows, want := range map[[3]int64]string{{0, 0, 0}: "[0 0 0]", {5, 2, 0}: "[-7 -35 2]", {1, 0, 1}: "[13 43 2]", {-3, 9, 2}: "[20 100 2]"} {
		var groups []privacy.Group
		for value, n := range rows {
			groups = append(groups, privacy.Group{Cells: []int32{int32(value)}, Counts: []int64{max(n, 0), max(n, 0), n}})
		}
		groups = append(groups, privacy.Group{Cells: []int32{0}, Counts: []int64{max(rows[0], 0), 0, rows[0]}}) // the same value in another group
		r, err := Release(s, place, Weighed(s, privacy.Seal(groups), weigh), seeded(1))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(r.Value().Observations); got != want {
			t.Errorf("%v rows: observed %s, want %s", rows, got, want)
		}
	}
}

func TestValuesRefused(t *testing.T) {
	for want, c := range map[string]Counts{
		"counter 1: number of values is -1, must not be below 0":                                      {Sums: []Sum{{Bound: counted, Values: -1}}},
		"counter 1: number of values is 16777216 in each of 2 cells, must be at most 16777216 togeth": {Sums: []Sum{{Bound: counted, Values: MaxObservations}}},
		"counter 1: strategy of a number of values is tree, must be identity":                         {Strategy: Strategy{Kind: Tree, Radices: []int{2}}, Sums: []Sum{{Bound: counted, Values: 2}}},
	} {
		if c.Strategy.Kind == 0 {
			c.Strategy.Kind = Identity
		}
		c.Sums[0].Noise = Noise{Kind: DiscreteLaplace, Num: 1, Den: 1}
		if err := (Spec{1, 2, &c}).check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
