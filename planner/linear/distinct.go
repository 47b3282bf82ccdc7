package linear

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Counters of different values: count(DISTINCT age), sum(DISTINCT age). The database counts rows by the cells of what
// is counted, and the mechanism counts the values that have rows, or adds up what each of them weighs.

// DistinctValues are what a counter counts, or adds up, the different ones of: an expression, NULL left out, or a row
// of several, in which NULL is a value like others.
type DistinctValues struct {
	Of  []*semantics.Expr
	Row bool
}

// name tells values from others; nil has none.
func (v *DistinctValues) name() string {
	if v == nil {
		return ""
	}
	names := make([]string, len(v.Of))
	for i, e := range v.Of {
		names[i] = e.Canon
	}
	return "|different " + strconv.FormatBool(v.Row) + " " + strings.Join(names, ", ")
}

// parts are the expressions, none of nil.
func (v *DistinctValues) parts() []*semantics.Expr {
	if v == nil {
		return nil
	}
	return v.Of
}

// columns are the positions that the values read.
func (v *DistinctValues) columns() []int {
	var out []int
	for _, e := range v.parts() {
		out = semantics.Union(out, e.Cols)
	}
	return out
}

// show numbers the different values of a counter over the combinations of a factor's cells, in order of their first
// occurrence among those where the counter counts.
func (v *Solver) show(p *Factor, counter int) *refuse.Refusal {
	shows, seen := make([]int32, len(p.Class)), map[string]int32{}
	for _, e := range v.Query.Values[counter].Of {
		if e.Form == semantics.FormColumn && v.Table.Columns[e.Cols[0]].Domain.Other >= 0 {
			v.Notes.Add("values of " + v.Table.Columns[e.Cols[0]].Name + " outside its domain count as one")
		}
	}
	cells := make([]int, len(p.Columns))
	for at := range shows {
		Decode(at, p.Sizes, cells)
		v.put(p, cells)
		text, known, refusal := v.valueText(v.Query.Values[counter])
		if refusal != nil {
			return refusal
		}
		if shows[at] = -1; !known || p.Class[at] < 0 || p.Masks[counter] != nil && !p.Masks[counter][at] {
			continue
		}
		if _, before := seen[text]; !before {
			seen[text] = int32(len(seen))
		}
		shows[at] = seen[text]
	}
	p.Shows[counter] = shows
	return nil
}

// valueText names the values in the present box; not known: NULL, which is no value.
func (v *Solver) valueText(values *DistinctValues) (text string, known bool, refusal *refuse.Refusal) {
	list := make([]policy.Value, len(values.Of))
	for i, e := range values.Of {
		if e.Form == semantics.FormColumn && !v.Table.Columns[e.Cols[0]].Domain.Single() {
			c := v.Table.Columns[e.Cols[0]]
			v.Notes.Add("values of " + c.Name + " within one of its steps of " + semantics.StepOf(c) + " count as one")
			list[i] = v.Box.Low[e.Cols[0]]
			continue
		}
		value, refusal := v.Box.Steady(e)
		if refusal != nil {
			return "", false, refusal
		}
		list[i] = value
	}
	return semantics.KeyText(list), values.Row || list[0] != nil, nil
}

// Shown is how many different values a counter tells apart, shownValues that of all counters.
func (s *Query) Shown(counter int) int {
	if s.Values[counter] == nil {
		return 0
	}
	most := int32(0) // of a constant, which no factor decides, there is one
	for _, p := range s.Factors {
		if p.Shows[counter] == nil {
			continue
		}
		most = -1
		for _, n := range p.Shows[counter] {
			most = max(most, n)
		}
		break
	}
	return int(most) + 1
}

func (s *Query) shownValues() []int {
	out := make([]int, len(s.Values))
	for c := range out {
		out[c] = s.Shown(c)
	}
	return out
}

// withinCells bounds the groups in which the database looks for different values.
func (v *Solver) withinCells() *refuse.Refusal {
	most := 0
	for c := range v.Query.Values {
		most = max(most, v.Query.Shown(c))
	}
	if most > 0 && v.Query.Cells > plans.MaxCells/most {
		return TooManyCells.At(v.PositionOfKeys(), strconv.Itoa(v.Query.Cells*most), plans.MaxCells)
	}
	return nil
}

// encodeValues adds which combinations show which value to a description.
func (s *Query) encodeValues(b []byte, counter int) []byte {
	b = binary.AppendUvarint(b, uint64(s.Shown(counter)))
	for i, p := range s.Factors {
		if p.Shows[counter] != nil {
			b = p.encodeClasses(binary.AppendUvarint(b, uint64(i)), p.Shows[counter])
		}
	}
	return b
}

// Contribution is what one unit can put into the question's groups.
func (s *Query) Contribution() mechanisms.Contribution { return s.ContributionTo(s.Cells) }

// ContributionTo is what one unit can put into a measure over so many groups, each within one of the question's.
func (s *Query) ContributionTo(groups int) mechanisms.Contribution {
	c := s.Table.ContributionTo(groups)
	if s.Rows > 0 {
		c.Rows = s.Rows
	}
	if s.PerGroup > 0 {
		c.PerGroup = s.PerGroup
	}
	return c
}
