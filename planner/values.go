package planner

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// Counters of different values. The database counts rows by the cells of what is counted, and the mechanism counts the
// values that have rows.

// values are what a counter counts the different ones of: an expression, NULL left out, or a row of several, in which NULL
// is a value like others.
type values struct {
	of  []*expr
	row bool
}

// name tells values from others; nil has none.
func (v *values) name() string {
	if v == nil {
		return ""
	}
	names := make([]string, len(v.of))
	for i, e := range v.of {
		names[i] = e.canon
	}
	return "|different " + strconv.FormatBool(v.row) + " " + strings.Join(names, ", ")
}

// parts are the expressions, none of nil.
func (v *values) parts() []*expr {
	if v == nil {
		return nil
	}
	return v.of
}

// columns are the positions that the values read.
func (v *values) columns() []int {
	var out []int
	for _, e := range v.parts() {
		out = union(out, e.cols)
	}
	return out
}

// show numbers the different values of a counter over the combinations of a part's cells, in order of their first
// occurrence among those where the counter counts.
func (v *solver) show(p *part, counter int) *refuse.Refusal {
	shows, seen := make([]int32, len(p.class)), map[string]int32{}
	for _, e := range v.s.values[counter].of {
		if e.form == formColumn && v.table.Columns[e.cols[0]].Domain.Other >= 0 {
			v.notes.add("values of " + v.table.Columns[e.cols[0]].Name + " outside its domain count as one")
		}
	}
	cells := make([]int, len(p.columns))
	for at := range shows {
		decode(at, p.sizes, cells)
		v.put(p, cells)
		text, known, refusal := v.valueText(v.s.values[counter])
		if refusal != nil {
			return refusal
		}
		if shows[at] = -1; !known || p.class[at] < 0 || p.masks[counter] != nil && !p.masks[counter][at] {
			continue
		}
		if _, before := seen[text]; !before {
			seen[text] = int32(len(seen))
		}
		shows[at] = seen[text]
	}
	p.shows[counter] = shows
	return nil
}

// valueText names the values in the present box; not known: NULL, which is no value.
func (v *solver) valueText(values *values) (text string, known bool, refusal *refuse.Refusal) {
	list := make([]policy.Value, len(values.of))
	for i, e := range values.of {
		if e.form == formColumn && !v.table.Columns[e.cols[0]].Domain.Single() {
			c := v.table.Columns[e.cols[0]]
			v.notes.add("values of " + c.Name + " within one of its steps of " + stepOf(c) + " count as one")
			list[i] = v.box.low[e.cols[0]]
			continue
		}
		value, steady, refusal := v.box.value(e)
		if refusal == nil && !steady {
			refusal = v.box.unsteady(e)
		}
		if refusal != nil {
			return "", false, refusal
		}
		list[i] = value
	}
	return keyText(list), values.row || list[0] != nil, nil
}

// shown is how many different values a counter tells apart, shownValues that of all counters.
func (s *solved) shown(counter int) int {
	if s.values[counter] == nil {
		return 0
	}
	most := int32(0) // of a constant, which no part decides, there is one
	for _, p := range s.parts {
		if p.shows[counter] == nil {
			continue
		}
		most = -1
		for _, n := range p.shows[counter] {
			most = max(most, n)
		}
		break
	}
	return int(most) + 1
}

func (s *solved) shownValues() []int {
	out := make([]int, len(s.values))
	for c := range out {
		out[c] = s.shown(c)
	}
	return out
}

// withinCells bounds the groups in which the database looks for different values.
func (v *solver) withinCells() *refuse.Refusal {
	most := 0
	for c := range v.s.values {
		most = max(most, v.s.shown(c))
	}
	if most > 0 && v.s.cells > maxCells/most {
		return tooManyCells.At(v.positionOfKeys(), strconv.Itoa(v.s.cells*most), maxCells)
	}
	return nil
}

// encodeValues adds which combinations show which value to a description.
func (s *solved) encodeValues(b []byte, counter int) []byte {
	b = binary.AppendUvarint(b, uint64(s.shown(counter)))
	for i, p := range s.parts {
		if p.shows[counter] != nil {
			b = p.encodeClasses(binary.AppendUvarint(b, uint64(i)), p.shows[counter])
		}
	}
	return b
}

// contribution is what one unit can put into the question's groups.
func (s *solved) contribution() mechanisms.Contribution { return s.contributionTo(s.cells) }

// contributionTo is what one unit can put into a measure over so many groups, each within one of the question's.
func (s *solved) contributionTo(groups int) mechanisms.Contribution {
	c := s.table.ContributionTo(groups)
	if s.rows > 0 {
		c.Rows = s.rows
	}
	if s.perGroup > 0 {
		c.PerGroup = s.perGroup
	}
	return c
}
