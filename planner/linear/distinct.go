package linear

import (
	"encoding/binary"
	"slices"
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
	values := v.Query.Values[counter]
	for _, e := range values.Of {
		if e.Form != semantics.FormColumn {
			continue
		}
		c := v.Table.Columns[e.Cols[0]]
		if c.Domain.Other >= 0 {
			v.Notes.Add("values of " + c.Name + " outside its domain count as one")
		}
		if !c.Domain.Single() {
			v.Notes.Add("values of " + c.Name + " within one of its steps of " + semantics.StepOf(c) + " count as one")
		}
	}
	shows, name := make([]int32, len(p.Class)), v.namesOf(p, values)
	v.Env.Work.Take(len(shows), 8)
	var seen []int32 // by name: one more than its number, 0 is none yet
	count, cells := int32(0), make([]int, len(p.Columns))
	for at := range shows {
		Decode(at, p.Sizes, cells)
		of, refusal := name(cells)
		if refusal != nil {
			return refusal
		}
		if shows[at] = -1; of < 0 || p.Class[at] < 0 || p.Masks[counter] != nil && !p.Masks[counter][at] {
			continue
		}
		if of >= len(seen) {
			seen = append(seen, make([]int32, of+1-len(seen))...)
		}
		if seen[of] == 0 {
			count++
			seen[of] = count
		}
		shows[at] = seen[of] - 1
	}
	p.Shows[counter] = shows
	return nil
}

// namesOf name values by the pieces of a combination, by small numbers; −1 is NULL, which is no value. The cells of one
// column in order are values of their own, of which none is made.
func (v *Solver) namesOf(p *Factor, values *DistinctValues) func(pieces []int) (int, *refuse.Refusal) {
	if only := values.Of[0]; len(values.Of) == 1 && only.Form == semantics.FormColumn {
		d, i := v.Table.Columns[only.Cols[0]].Domain, slices.Index(p.Columns, only.Cols[0])
		if d.Ordered() && !d.Type.Floating() {
			return func(pieces []int) (int, *refuse.Refusal) {
				v.Env.Work.Step(1)
				if p.firstOf(i, pieces[i]) == d.Null && !values.Row {
					return -1, nil
				}
				return pieces[i], nil
			}
		}
	}
	names := map[string]int{}
	return func(pieces []int) (int, *refuse.Refusal) {
		v.put(p, pieces)
		text, known, refusal := v.valueText(values)
		if refusal != nil || !known {
			return -1, refusal
		}
		name, before := names[text]
		if !before {
			name = len(names)
			names[text] = name
		}
		return name, nil
	}
}

// valueText names the values in the present box; not known: NULL, which is no value.
func (v *Solver) valueText(values *DistinctValues) (text string, known bool, refusal *refuse.Refusal) {
	list := make([]policy.Value, len(values.Of))
	for i, e := range values.Of {
		if e.Form == semantics.FormColumn && !v.Table.Columns[e.Cols[0]].Domain.Single() {
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
func (s *Query) encodeValues(b []byte, counter, most int) []byte {
	from := len(b)
	b = binary.AppendUvarint(b, uint64(s.Shown(counter)))
	for i, p := range s.Factors {
		if p.Shows[counter] != nil {
			b = p.encodeClasses(binary.AppendUvarint(b, uint64(i)), p.Shows[counter])
		}
	}
	return shortened(b, from, most)
}

// Contribution is what one unit can put into the question's groups.
func (s *Query) Contribution() mechanisms.Contribution { return s.ContributionTo(s.Cells) }

// Bounded refuses what is counted by rows of which a unit may have any number.
func (s *Query) Bounded() *refuse.Refusal {
	if !s.Table.AnyRows || s.PerGroup == 1 || !s.Measured() {
		return nil
	}
	return AnyRows.At(-1, s.Table.Dataset.Unit.Name, s.Table.Name)
}

// ContributionTo is what one unit can put into a measure over so many groups, each within one of the question's.
func (s *Query) ContributionTo(groups int) mechanisms.Contribution {
	return s.Table.ContributionOf(groups, s.Rows, s.PerGroup)
}

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
