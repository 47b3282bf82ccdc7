package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// heldMeasure is a measure read back from its description: what each counter counts or adds up, by the cells of some
// columns.
type heldMeasure struct {
	*solved
	kind   string
	name   string
	shared bool
	adds   []string // by counter: the encoding of what is added up, empty: rows are counted; "?": neither, it cannot be read
	digest Digest
	body   []byte // what the digest is of
}

// isPlain tells a count of every row by cells.
func (m *heldMeasure) isPlain() bool {
	return m.filter == nil && len(m.counts) == 1 && m.counts[0] == nil && m.adds[0] == "" && !slices.ContainsFunc(m.parts, func(p *part) bool { return p.masks[0] != nil })
}

// copied is a copy that can be changed.
func (m *heldMeasure) copied() *heldMeasure {
	own, counts := *m, *m.solved
	own.solved = &counts
	return &own
}

// plain is what it counts, where that is every row.
func (m *heldMeasure) plain() *solved {
	if !m.isPlain() {
		return nil
	}
	return m.solved
}

// held is the measure as it was bought.
func (m *heldMeasure) held() *Measure {
	out := m.measure(m.kind, m.name)
	out.Digest, out.described, out.Shared = m.digest, m.body, m.shared
	return out
}

// describedHead reads what a description says before its meaning. It is not ok when the digest is of another meaning.
func describedHead(h Holding) (shared bool, kind, name string, ok bool) {
	r := reader{b: h.Described}
	version := r.byte()
	shared, kind, name = r.byte() == 1, r.text(), r.text()
	return shared, kind, name, !r.failed && version == describedVersion && Digest(sha256.Sum256(r.b)) == h.Digest
}

// readDescribed is readHeld for counts of every row.
func readDescribed(h Holding, t *policy.Table) *heldMeasure {
	if m := readHeld(h, t); m != nil && m.isPlain() {
		return m
	}
	return nil
}

// readHeld rebuilds a measure over t from a holding. It is nil when the holding means something else now: its table's
// meaning has changed, its digest disagrees with its description, or what it counts cannot be read back.
func readHeld(h Holding, t *policy.Table) *heldMeasure {
	r := reader{b: h.Described, t: t}
	if r.byte() != describedVersion {
		return nil
	}
	m := &heldMeasure{shared: r.byte() == 1, digest: h.Digest}
	m.kind, m.name, m.body = r.text(), r.text(), r.b
	if r.failed || Digest(sha256.Sum256(r.b)) != h.Digest || r.text() != knownOf(t).fingerprint {
		return nil
	}
	s := &solved{question: &question{table: t}, cells: 1}
	if s.filter = r.pred(); r.failed {
		return nil
	}
	n := r.number()
	if r.failed || n != h.Spec.Counters || h.Spec.Choice != nil || h.Spec.Online != nil || h.Spec.Synthetic != nil {
		return nil
	}
	for range n {
		s.counts = append(s.counts, r.pred())
	}
	for k := r.number(); k > 0 && !r.failed; k-- {
		p := r.part(n)
		if p == nil {
			return nil
		}
		s.parts = append(s.parts, p)
		s.grain = append(s.grain, p.columns...)
		if s.cells *= p.classes; s.cells > maxCells || s.cells == 0 {
			return nil
		}
	}
	if len(r.b) == 1 && r.b[0] == 'g' {
		s.grows, r.b = true, nil
	}
	s.sums, s.values, m.adds = make([]*summand, n), make([]*values, n), make([]string, n)
	m.solved = s
	if m.readSums(&r); r.failed || s.cells != h.Spec.Cells {
		return nil
	}
	return m
}

// readSums reads what the counters add up: products of factors; weights and values are noted and not read.
func (m *heldMeasure) readSums(r *reader) {
	for len(r.b) > 0 && !r.failed {
		if r.b[0] == 'm' {
			r.marginals()
			continue
		}
		sign, c := r.byte(), r.number()
		if c >= len(m.counts) || sign != '+' {
			for i := range m.adds {
				m.adds[i] = "?"
			}
			r.b = nil
			return
		}
		before := r.b
		sum, kind := &summand{}, r.byte()
		if kind == 'q' {
			sum.over, kind = r.signed(), r.byte()
		}
		switch kind {
		case 's':
			if factors := r.factors(); len(factors) > 0 {
				sum.terms = one(factors)
			}
		case 'l':
			for n := r.number(); n > 0 && !r.failed; n-- {
				sum.terms = append(sum.terms, SumTerm{Times: r.signed(), Factors: r.factors()})
			}
		default:
			r.failed = true
			return
		}
		sum.bound = mechanisms.Bound{Low: r.signed(), High: r.signed()}
		if len(sum.terms) == 0 { // weights by cells
			for i := range m.adds {
				m.adds[i] = "?"
			}
			r.b = nil
			return
		}
		m.sums[c], m.adds[c] = sum, string(before[:len(before)-len(r.b)])
	}
}

// reader walks a description; after the first fault all it reads is zero.
type reader struct {
	b      []byte
	t      *policy.Table
	failed bool
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.failed = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > 1<<31 {
		r.failed = true
		return 0
	}
	r.b = r.b[size:]
	return int(n)
}

func (r *reader) signed() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *reader) text() string {
	n := r.number()
	if n > len(r.b) {
		r.failed = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// mostNested bounds the depth of a predicate that is read back.
const mostNested = 16

// pred reads a predicate.
func (r *reader) pred() Pred { return r.nested(mostNested) }

func (r *reader) nested(depth int) Pred {
	if r.failed = r.failed || depth == 0; r.failed {
		return nil
	}
	switch r.byte() {
	case 't':
		return nil
	case 'n':
		return Never{}
	case 'a':
		return AllOf(r.several(depth))
	case 'o':
		return AnyOf(r.several(depth))
	case 'i':
		c := r.column()
		var spans []mechanisms.Span
		for n := r.number(); n > 0 && !r.failed; n-- {
			spans = append(spans, mechanisms.Span{From: r.number(), To: r.number()})
		}
		return InCells{c, spans}
	case 'c':
		c, op, text := r.column(), r.text(), r.text()
		if r.failed {
			return nil
		}
		v, err := policy.ParseValue(c.Type, text)
		if r.failed = err != nil || opposite[op] == "" || textOf(canonicalValue(v)) != text; r.failed {
			return nil
		}
		return Compare{c, op, v}
	}
	r.failed = true
	return nil
}

func (r *reader) several(depth int) (list []Pred) {
	for n := r.number(); n > 0 && !r.failed; n-- {
		list = append(list, r.nested(depth-1))
	}
	return list
}

func (r *reader) column() *policy.Column {
	c := r.t.Column(r.text())
	if c == nil || c.Domain == nil {
		r.failed = true
	}
	return c
}

// marginals reads over which sets marginals were wanted: their spec says what can be read.
func (r *reader) marginals() {
	r.byte()
	for n := r.number(); n > 0 && !r.failed; n-- {
		for k := r.number(); k > 0 && !r.failed; k-- {
			r.number()
		}
	}
}

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
func (p *part) spread(runs []ClassRun, masks []string, combinations int) {
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
func (r *reader) classes(p *part, combinations int) (runs []ClassRun, ok bool) {
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
			runs, at = append(runs, ClassRun{n, class}), at+n
			p.classes = max(p.classes, int(class)+1)
		}
		return runs, true
	}
	return nil, false
}
