package planner

import (
	"github.com/dpproxy/dpproxy/planner/derived"
)

// A part of a measure read back from its description: classes and masks by combination, of pieces where cells are alike.

// part reads one part of a measure of so many counters.
func (r *reader) part(counters int) *part {
	p := &part{masks: make([][]bool, counters), weights: make([][]int64, counters), shows: make([][]int32, counters)}
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
		p.cuts, p.ends = append(p.cuts, cuts), append(p.ends, c.Domain.Size())
		p.columns, p.sizes = append(p.columns, columnIndex(r.t, c)), append(p.sizes, size)
		if combinations *= size; combinations > maxCells {
			return nil
		}
	}
	if p.told = p.pieced(); !p.told {
		p.cuts, p.ends = nil, nil
	}
	runs, ok := r.classes(p, combinations)
	if !ok {
		return nil
	}
	masks := make([]string, counters) // packed; empty: none
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
	p.spread(runs, masks, combinations)
	return p
}

// cuts reads the pieces of a column of so many cells; nil: they are not.
func (r *reader) cuts(size int) []int {
	n, at := r.number(), 0
	if r.failed || n > maxCells {
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

// classes reads the runs of equal classes; none: each combination is one.
func (r *reader) classes(p *part, combinations int) (runs []derived.ClassRun, ok bool) {
	switch r.byte() {
	case 'i':
		p.classes = combinations
		return nil, true
	case 'r':
		for at := 0; at < combinations; {
			n, class := r.number(), int32(r.number())-1
			if r.failed || n == 0 || n > combinations-at {
				return nil, false
			}
			runs, at = append(runs, derived.ClassRun{Length: n, Class: class}), at+n
			p.classes = max(p.classes, int(class)+1)
		}
		return runs, true
	}
	return nil, false
}
