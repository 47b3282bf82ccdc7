package reuse

import (
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/plans"
)

// A factor of a measure read back from its description: classes and masks by combination, of pieces where cells are
// alike.

// factor reads one factor of a measure of so many counters.
func (r *reader) part(counters int) *linear.Factor {
	p := &linear.Factor{Masks: make([][]bool, counters), Weights: make([][]int64, counters), Shows: make([][]int32, counters)}
	combinations := 1
	for n := r.number(); n > 0 && !r.failed; n-- {
		c := r.column()
		size := r.number()
		if r.failed {
			return nil
		}
		var cuts []int
		if size == 0 {
			if cuts = r.cuts(c.Domain.Size()); cuts == nil {
				return nil
			}
			size = len(cuts)
		} else if c.Domain.Size() != size {
			return nil
		}
		p.Cuts, p.Ends = append(p.Cuts, cuts), append(p.Ends, c.Domain.Size())
		p.Columns, p.Sizes = append(p.Columns, plans.ColumnIndex(r.t, c)), append(p.Sizes, size)
		if combinations *= size; combinations > plans.MaxCells {
			return nil
		}
	}
	if p.PiecesInSQL = p.Pieced(); !p.PiecesInSQL {
		p.Cuts, p.Ends = nil, nil
	}
	runs, ok := r.classes(p, combinations)
	if !ok {
		return nil
	}
	masks := make([]string, counters) // packed; empty means none
	for c := range masks {
		switch r.byte() {
		case 't':
		case 'm':
			if masks[c] = r.text(); len(masks[c]) != (combinations+7)/8 {
				return nil
			}
		default:
			return nil
		}
	}
	if r.failed {
		return nil
	}
	p.Spread(runs, masks, combinations)
	return p
}

// cuts reads the pieces of a column of so many cells; nil means they are not.
func (r *reader) cuts(size int) []int {
	n, at := r.number(), 0
	if r.failed || n > plans.MaxCells {
		return nil
	}
	starts := make([]int, 0, n)
	for len(starts) < n {
		count, length := r.number(), r.number()
		if r.failed || count == 0 || length == 0 || count > n-len(starts) || length > (size-at)/count {
			return nil
		}
		for ; count > 0; count-- {
			starts = append(starts, at)
			at += length
		}
	}
	if at != size {
		return nil
	}
	return starts
}

// classes reads the runs of equal classes; none means each combination is one.
func (r *reader) classes(p *linear.Factor, combinations int) (runs []derived.ClassRun, ok bool) {
	switch r.byte() {
	case 'i':
		p.Classes = combinations
		return nil, true
	case 'r':
		for at := 0; at < combinations; {
			n, class := r.number(), int32(r.number())-1
			if r.failed || n == 0 || n > combinations-at {
				return nil, false
			}
			runs, at = append(runs, derived.ClassRun{Length: n, Class: class}), at+n
			p.Classes = max(p.Classes, int(class)+1)
		}
		return runs, true
	}
	return nil, false
}
