package planner

import (
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// classify evaluates the part's conditions and keys on every combination of its columns' cells and numbers the
// combinations of equal keys, in order of their first occurrence.
func (v *solver) classify(p *part) *refuse.Refusal {
	product := big.NewInt(1)
	for _, c := range p.columns {
		d := v.table.Columns[c].Domain
		if d == nil {
			return domainMissing.At(v.positionOfKeys(), v.table.Columns[c].Name)
		}
		p.sizes = append(p.sizes, d.Size())
		product.Mul(product, big.NewInt(int64(d.Size())))
	}
	p.within = v.within(p)
	tooMany := product.Cmp(big.NewInt(int64(maxCells))) > 0
	if !v.cut(p, tooMany) {
		return tooManyCells.At(v.firstPosition(p), product.String(), maxCells)
	}
	combinations := 1
	for _, size := range p.sizes {
		combinations *= size
	}
	v.env.Work.Take(combinations, 8+len(v.s.counts))
	p.class, p.beyond, p.outside = make([]int32, combinations), make([]int32, combinations), map[string]int32{}
	p.masks = make([][]bool, len(v.s.counts))
	for c := range p.only {
		p.masks[c] = make([]bool, combinations)
	}
	seen := map[string]int32{}
	pieces, cells := make([]int, len(p.columns)), make([]int, len(p.columns))
	for at := range p.class {
		decode(at, p.sizes, pieces)
		v.put(p, pieces)
		for i, piece := range pieces {
			cells[i] = p.firstOf(i, piece)
		}
		if refusal := v.classifyOne(p, at, cells, seen); refusal != nil {
			return refusal
		}
	}
	p.classes = len(seen)
	p.shows = make([][]int32, len(v.s.counts))
	for c, values := range v.s.values {
		if columns := values.columns(); len(columns) > 0 && shares(p.columns, columns) {
			if refusal := v.show(p, c); refusal != nil {
				return refusal
			}
		}
	}
	for _, sum := range v.s.sums {
		v.refine(p, sum)
	}
	p.weights = make([][]int64, len(v.s.counts))
	for c, sum := range v.s.sums {
		if sum != nil && sum.expr != nil && shares(p.columns, sum.expr.cols) {
			p.weights[c] = v.spread(sum, p)
		}
	}
	return nil
}

// classifyOne handles one combination, to which the box is set; cells are the first ones in it.
func (v *solver) classifyOne(p *part, at int, cells []int, seen map[string]int32) *refuse.Refusal {
	// Expressions are evaluated on every combination, also where the condition fails: an error must not depend on it.
	admitted := v.admitted(p, cells)
	for _, e := range p.filters {
		holds, refusal := v.decide(e)
		if refusal != nil {
			return refusal
		}
		admitted = admitted && holds
	}
	for c, list := range p.only {
		counts := true
		for _, e := range list {
			holds, refusal := v.decide(e)
			if refusal != nil {
				return refusal
			}
			counts = counts && holds
		}
		p.masks[c][at] = counts
	}
	if v.hidden(p, cells) {
		p.class[at] = -1
		return nil
	}
	values, refusal := v.keysOf(p)
	if refusal != nil {
		return refusal
	}
	p.place(at, values, seen, admitted)
	return nil
}

// keysOf evaluates the part's keys on the box.
func (v *solver) keysOf(p *part) ([]policy.Value, *refuse.Refusal) {
	values := make([]policy.Value, len(p.keys))
	for i, k := range p.keys {
		value, refusal := v.key(v.s.keys[k])
		if refusal != nil {
			return nil, refusal
		}
		if k >= len(v.s.keys)-v.s.conditions {
			value = value == true
		}
		values[i] = value
	}
	return values, nil
}

// place numbers combinations of equal keys: as a class those that the condition admits, among what is left out the others.
func (p *part) place(at int, values []policy.Value, seen map[string]int32, admitted bool) {
	name, numbers := keyText(values), seen
	if !admitted {
		numbers = p.outside
	}
	number, known := numbers[name]
	if !known {
		number = int32(len(numbers))
		numbers[name] = number
		if admitted {
			p.values = append(p.values, values)
		}
	}
	if p.class[at] = number; !admitted {
		p.class[at], p.beyond[at] = -1, number
	}
}

// admitted tells whether the filter leaves the cells in sight: keys that it excludes are not rows of the answer.
func (v *solver) admitted(p *part, cells []int) bool {
	for _, q := range p.within {
		if !predicate.Satisfied(q, func(c *policy.Column) int {
			return cells[slices.IndexFunc(p.columns, func(i int) bool { return v.table.Columns[i] == c })]
		}) {
			return false
		}
	}
	return true
}

// within are the conjuncts of the filter that the part's cells decide.
func (v *solver) within(p *part) []predicate.Pred {
	var out []predicate.Pred
	for _, q := range conjunctsOf(v.s.filter) {
		columns, onGrid := predicate.Columns(q, nil)
		if onGrid && !slices.ContainsFunc(columns, func(c *policy.Column) bool { return !slices.Contains(p.columns, columnIndex(v.table, c)) }) {
			out = append(out, q)
		}
	}
	return out
}

// decidesKeys lists, for each conjunct of the filter over several columns that are all keys', these columns: their cells
// are looked at together, so that groups in which no row can be are not shown. Where that takes too many combinations,
// they are shown.
func (v *solver) decidesKeys(lists ...[]*expr) [][]int {
	var read, keys []int
	for i, list := range lists {
		for _, e := range list {
			if read = union(read, e.cols); i == 0 {
				keys = union(keys, e.cols)
			}
		}
	}
	combinations := 1
	for _, c := range read {
		d := v.table.Columns[c].Domain
		if d == nil || combinations*d.Size() > maxCells {
			return nil
		}
		combinations *= d.Size()
	}
	var out [][]int
	for _, q := range conjunctsOf(v.s.filter) {
		columns, onGrid := predicate.Columns(q, nil)
		var at []int
		for _, c := range columns {
			at = union(at, []int{columnIndex(v.table, c)})
		}
		if onGrid && len(at) > 1 && !slices.ContainsFunc(at, func(c int) bool { return !slices.Contains(keys, c) }) {
			out = append(out, at)
		}
	}
	return out
}

// decide evaluates a condition on the box.
func (v *solver) decide(e *expr) (bool, *refuse.Refusal) {
	value, steady, refusal := v.box.value(e)
	if refusal != nil {
		return false, refusal
	}
	if !steady {
		return false, v.box.unsteady(e)
	}
	return value == true, nil
}

// key evaluates a group key on the box. A bare column stands for its step, by the step's low end.
func (v *solver) key(e *expr) (policy.Value, *refuse.Refusal) {
	if e.form == formColumn {
		if c := v.table.Columns[e.cols[0]]; !c.Domain.Single() {
			v.notes.add(c.Name + " is grouped by its steps of " + stepOf(c) + ", each shown by its low end")
		}
		return v.box.low[e.cols[0]], nil
	}
	value, steady, refusal := v.box.value(e)
	if refusal == nil && !steady {
		refusal = v.box.unsteady(e)
	}
	return value, refusal
}

func (v *solver) firstPosition(p *part) int {
	if len(p.keys) > 0 {
		return v.s.keys[p.keys[0]].pos
	}
	if len(p.filters) > 0 {
		return p.filters[0].pos
	}
	return -1
}

// decode writes the digits of a combination, the first column's slowest.
func decode(at int, sizes []int, cells []int) {
	for i := len(sizes) - 1; i >= 0; i-- {
		cells[i] = at % sizes[i]
		at /= sizes[i]
	}
}

// placement maps the cells of the grain to a cell of the measure.
func (s *solved) placement() mechanisms.Placement {
	parts, values := s.parts, s.shownValues()
	return func(cells []int32, counter int) int {
		out, from, shown := 0, 0, int32(0)
		for _, p := range parts {
			at := p.combination(cells[min(from, len(cells)):])
			if at < 0 {
				return -1
			}
			from += len(p.sizes)
			class := p.class[at]
			if class < 0 || counter < len(p.masks) && counter >= 0 && p.masks[counter] != nil && !p.masks[counter][at] {
				return -1
			}
			if counter >= 0 && counter < len(p.shows) && p.shows[counter] != nil {
				if shown = p.shows[counter][at]; shown < 0 {
					return -1
				}
			}
			out = out*p.classes + int(class)
		}
		if counter >= 0 && counter < len(values) && values[counter] > 0 {
			return out*values[counter] + int(shown)
		}
		return out
	}
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

// hidden tells whether the part's keys read an open column in a cell that is no key: what has not been found is not shown.
func (v *solver) hidden(p *part, cells []int) bool {
	for i, at := range p.columns {
		c := v.table.Columns[at]
		if c.Open == nil || cells[i] != c.Domain.Other && (cells[i] != c.Domain.Null || c.NullKey) {
			continue
		}
		if slices.ContainsFunc(p.keys, func(k int) bool { return slices.Contains(v.s.keys[k].cols, at) }) {
			return true
		}
	}
	return false
}
