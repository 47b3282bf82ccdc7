package inspect

import (
	"github.com/dpproxy/dpproxy/policy"
)

// ComparedKeys lists the pairs of columns that the planner may compare: those that name units, those through which
// units are found, and join keys of like declared types. A key is also compared with itself, in a self-join.
func ComparedKeys(d *policy.Dataset) [][2]*policy.Column {
	var keys []*policy.Column
	for _, t := range d.Tables {
		if t.Analysed() {
			continue
		}
		keys = append(keys, t.Keys...)
	}
	var pairs [][2]*policy.Column
	for i, a := range keys {
		for _, b := range keys[i:] {
			if a.Comparable(b) {
				pairs = append(pairs, [2]*policy.Column{a, b})
			}
		}
	}
	return pairs
}
