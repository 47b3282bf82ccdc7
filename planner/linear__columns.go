package planner

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// columns are all columns that a question reads; ok is false when it compares off the grid.
func (s *solved) columns() (columns []*policy.Column, ok bool) {
	columns, ok = predicate.Columns(s.filter, nil)
	for _, p := range s.counts {
		var onGrid bool
		columns, onGrid = predicate.Columns(p, columns)
		ok = ok && onGrid
	}
	for _, c := range s.grain {
		columns = predicate.WithColumn(columns, s.table.Columns[c])
	}
	return columns, ok
}

// together cuts a column into the pieces of a measure's part, and of what the question says of it: of the cells of a piece
// either says the same. Nil: one of them tells each cell apart.
func (s *solved) together(of *part, i int, c *policy.Column) []int {
	if of.told || of.cuts == nil || of.cuts[i] == nil {
		return of.startsOf(i)
	}
	starts := slices.Clone(of.cuts[i])
	for _, p := range s.parts {
		k := slices.Index(p.columns, columnIndex(s.table, c))
		if k < 0 {
			continue
		}
		own := p.startsOf(k)
		if own == nil {
			return nil
		}
		starts = append(starts, own...)
	}
	for _, q := range append([]predicate.Pred{s.filter}, s.counts...) {
		forEachCells(q, c, func(spans []mechanisms.Span) {
			for _, span := range spans {
				starts = append(starts, span.From, span.To)
			}
		})
	}
	starts = slices.DeleteFunc(starts, func(cell int) bool { return cell >= of.ends[i] })
	slices.Sort(starts)
	return slices.Compact(starts)
}

// startsOf are the first cells of the pieces of the i-th column; nil: each cell is one.
func (p *part) startsOf(i int) []int {
	if p.cuts == nil {
		return nil
	}
	return p.cuts[i]
}

// divides tells whether a question asks for a part of some piece of cells that the measure does not tell apart: then the
// measure does not answer it.
func (s *solved) divides(m *solved) bool {
	for _, p := range m.parts {
		for i, at := range p.columns {
			if !p.told || p.cuts[i] == nil {
				continue
			}
			c, divided := m.table.Columns[at], false
			cut := func(cell int) {
				if cell < c.Domain.Size() {
					divided = divided || p.cuts[i][p.pieceOf(i, cell)] != cell
				}
			}
			for _, q := range append([]predicate.Pred{s.filter}, s.counts...) {
				forEachCells(q, c, func(spans []mechanisms.Span) {
					for _, span := range spans {
						cut(span.From)
						cut(span.To)
					}
				})
			}
			for _, own := range s.parts {
				k := slices.Index(own.columns, columnIndex(s.table, c))
				if k < 0 {
					continue
				}
				if own.startsOf(k) == nil {
					return true
				}
				for _, start := range own.cuts[k] {
					cut(start)
				}
			}
			if divided {
				return true
			}
		}
	}
	return false
}

// distinctions numbers the pieces of a column, of each of which a cell is known, so that those with one number are alike to
// the question, whatever the cells of other columns are.
func (s *solved) distinctions(c *policy.Column, size int, cell func(piece int) int) []int32 {
	keys := make([][]byte, size)
	mark := func(p predicate.Pred) {
		forEachCells(p, c, func(spans []mechanisms.Span) {
			for i := range keys {
				keys[i] = append(keys[i], bit(predicate.Contains(spans, cell(i))))
			}
		})
	}
	mark(s.filter)
	for _, p := range s.counts {
		mark(p)
	}
	for _, p := range s.parts {
		at := slices.IndexFunc(p.columns, func(i int) bool { return s.table.Columns[i] == c })
		if at < 0 {
			continue
		}
		inner := 1
		for _, size := range p.sizes[at+1:] {
			inner *= size
		}
		for n := range keys {
			piece := p.pieceOf(at, cell(n))
			for outside := range len(p.class) / inner / p.sizes[at] {
				for i := range inner {
					i += (outside*p.sizes[at] + piece) * inner
					keys[n] = binary.AppendVarint(keys[n], int64(p.class[i]))
					for _, mask := range p.masks {
						if mask != nil {
							keys[n] = append(keys[n], bit(mask[i]))
						}
					}
				}
			}
		}
	}
	out, seen := make([]int32, len(keys)), map[string]int32{}
	for i, key := range keys {
		n, ok := seen[string(key)]
		if !ok {
			n = int32(len(seen))
			seen[string(key)] = n
		}
		out[i] = n
	}
	return out
}

// forEachCells calls f for each condition on cells of a column in a predicate.
func forEachCells(p predicate.Pred, c *policy.Column, f func([]mechanisms.Span)) {
	switch p := p.(type) {
	case predicate.AllOf:
		for _, q := range p {
			forEachCells(q, c, f)
		}
	case predicate.AnyOf:
		for _, q := range p {
			forEachCells(q, c, f)
		}
	case predicate.InCells:
		if p.Column == c {
			f(p.Spans)
		}
	}
}

// conditionOf is the condition of a counter's row in a cell of a question; false where it is not one on each of its
// columns.
func (s *solved) conditionOf(counter, cell int) (predicate.Pred, bool) {
	p := predicate.All(s.filter, s.counts[counter])
	for i := len(s.parts) - 1; i >= 0; i-- {
		part := s.parts[i]
		if len(part.columns) != 1 {
			return nil, false
		}
		class := int32(cell % part.classes)
		cell /= part.classes
		var in spansOf
		for c, of := range part.class {
			if of == class && (part.masks[counter] == nil || part.masks[counter][c]) {
				s := part.cellsOf(0, c, s.table.Columns[part.columns[0]].Domain.Size())
				in.addRange(s.From, s.To)
			}
		}
		p = predicate.All(p, predicate.Cells(s.table.Columns[part.columns[0]], in))
	}
	return p, true
}

// addsUp is what a counter adds up, as releases tell it: nothing but rows, or a product of factors. False: something else.
func (s *solved) addsUp(counter int) (string, bool) {
	if s.values[counter] != nil || s.sums[counter] != nil && s.sums[counter].expr != nil {
		return "", false
	}
	if s.sums[counter] == nil {
		return "", true
	}
	return string(encodeSum(nil, s.summed()[counter])), true
}

// mostPlain is up to how many combinations each is looked at, without a thought whether some are alike. Tests set it.
var mostPlain = 1 << 12

// combinationsOf is the product of sizes, or more than maxCells.
func combinationsOf(sizes []int) int {
	n := 1
	for _, size := range sizes {
		if n *= size; n > maxCells {
			return maxCells + 1
		}
	}
	return n
}

func bit(yes bool) byte {
	if yes {
		return 1
	}
	return 0
}

// inCells lists the predicates over one column within another.
func inCells(p predicate.Pred, column *policy.Column, list []predicate.InCells) []predicate.InCells {
	switch p := p.(type) {
	case predicate.AllOf:
		for _, q := range p {
			list = inCells(q, column, list)
		}
	case predicate.AnyOf:
		for _, q := range p {
			list = inCells(q, column, list)
		}
	case predicate.InCells:
		if p.Column == column {
			list = append(list, p)
		}
	}
	return list
}

// kind is how a measure of the question's own cells is called.
func (s *solved) kind() string {
	if s.marginals != nil {
		return MarginalsKind
	}
	if len(s.grain) > 0 {
		return "histogram"
	}
	return "count"
}

// about names the columns of a question.
func (s *solved) about() string {
	columns, _ := s.columns()
	if len(columns) == 0 {
		return ""
	}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return ": " + strings.Join(names, ", ")
}
