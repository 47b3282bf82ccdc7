package planner

import (
	"slices"

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

// spread gives each combination its class and masks, or, where one column is made of long runs of cells, each of these.
func (p *part) spread(runs []derived.ClassRun, masks []string, combinations int) {
	on := func(mask string, at int) bool { return mask[at/8]>>(at%8)&1 == 1 }
	starts, at := []int{}, 0
	for _, run := range runs {
		starts = append(starts, at)
		at += run.Length
	}
	for _, mask := range masks {
		for at := 1; at < combinations && mask != ""; at++ {
			if at%8 == 0 && at+8 < combinations && mask[at/8] == mask[at/8-1] && (mask[at/8] == 0 || mask[at/8] == 0xff) {
				at += 7
				continue
			}
			if on(mask, at) != on(mask, at-1) {
				starts = append(starts, at)
			}
		}
	}
	slices.Sort(starts)
	if starts = slices.Compact(starts); p.told || len(p.columns) != 1 || len(runs) == 0 || len(starts) > combinations/2 {
		starts = identityOf(combinations)
	} else {
		p.cuts, p.ends, p.sizes = [][]int{starts}, []int{combinations}, []int{len(starts)}
	}
	p.class = make([]int32, len(starts))
	for c, mask := range masks {
		if mask != "" {
			p.masks[c] = make([]bool, len(starts))
		}
	}
	run, end := -1, 0 // the run of a combination, and where it ends
	for i, at := range starts {
		for len(runs) > 0 && at >= end {
			run++
			end += runs[run].Length
		}
		if p.class[i] = int32(i); run >= 0 {
			p.class[i] = runs[run].Class
		}
		for c, mask := range masks {
			if mask != "" {
				p.masks[c][i] = on(mask, at)
			}
		}
	}
	if !p.told && len(p.columns) > 1 {
		p.together()
	}
}

// together cuts columns into the longest runs of cells of which all lists say the same, where these are long.
func (p *part) together() {
	for i, size := range p.sizes {
		if size <= fewRegular {
			continue
		}
		inner := 1
		for _, n := range p.sizes[i+1:] {
			inner *= n
		}
		starts := []int{0}
		for cell := 1; cell < size && len(starts) <= size/2; cell++ {
			alike := true
			for outside := 0; outside < len(p.class) && alike; outside += size * inner {
				at := outside + cell*inner
				alike = slices.Equal(p.class[at:at+inner], p.class[at-inner:at])
				for _, mask := range p.masks {
					alike = alike && (mask == nil || slices.Equal(mask[at:at+inner], mask[at-inner:at]))
				}
			}
			if !alike {
				starts = append(starts, cell)
			}
		}
		if len(starts) > size/2 {
			continue
		}
		if p.cuts == nil {
			p.cuts, p.ends = make([][]int, len(p.columns)), slices.Clone(p.sizes)
		}
		var from []int32
		for outside := 0; outside < len(p.class); outside += size * inner {
			for _, cell := range starts {
				for k := range inner {
					from = append(from, int32(outside+cell*inner+k))
				}
			}
		}
		p.class = written(p.class, from)
		for c := range p.masks {
			p.masks[c] = written(p.masks[c], from)
		}
		p.sizes[i], p.cuts[i] = len(starts), starts
	}
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
