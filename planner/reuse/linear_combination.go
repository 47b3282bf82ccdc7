package reuse

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// A count, or a sum, of the rows of a condition is looked for among the sums and differences of released cells: a
// vector over atoms that is to be written as a rational combination of the generators' vectors. Generators are sums of
// the cells of a release that the atoms do not tell apart, so that with independent noise in each cell no other
// combination of cells is more exact. Of all combinations the one with the least variance is taken: weights of its free
// generators are rounded to fractions, and the others follow exactly, so that the combination counts exactly what is
// asked (docs/adr/0022).

// generator is a sum of cells of one counter of a release.
type generator struct {
	from     *View
	counter  int
	spans    []mechanisms.Span
	variance float64
	atoms    []float64 // 1 where it counts
}

// weighted is a generator with its weight.
type weighted struct {
	*generator
	weight *big.Rat
}

// mixture is a combination of releases, and its variance.
type mixture struct {
	terms    []weighted
	variance float64
}

// combination writes the rows of a condition, counted or added up, by the releases; nil means they do not add up to it.
func combination(t *Combining, wanted predicate.Pred, adds string, from []*View) *mixture {
	conditions := []predicate.Pred{wanted}
	var parts []*ofPart
	type counterOf struct {
		s       *View
		counter int
		parts   []*ofPart
	}
	var counters []counterOf
	for _, s := range from {
		conditions = append(conditions, s.Measure.Filter)
		for c, pred := range s.Measure.Counts {
			if s.Measure.Adds[c] != adds {
				continue
			}
			of := counterOf{s, c, nil}
			for _, p := range s.Measure.Factors {
				of.parts = append(of.parts, newOfFactor(s.Measure.Table, p, c))
			}
			conditions, parts = append(conditions, pred), append(parts, of.parts...)
			counters = append(counters, of)
		}
	}
	x := newAxes(conditions, parts)
	if x == nil || len(counters) == 0 {
		return nil
	}
	for _, p := range parts {
		p.group(x.of(p.column))
	}
	goal := x.vector(wanted, nil, nil)
	var all []*generator
	for _, c := range counters {
		all = append(all, t.generators(x, goal, c.s, c.counter, c.parts)...)
		if len(all) > maxGenerators {
			return nil
		}
	}
	return leastVariance(all, goal)
}

// Combining is what a search knows besides the releases.
type Combining struct {
	*Views
	Confidence mechanisms.Confidence
}

// vector is 1 on the atoms where a condition and another hold and each factor is in its group.
func (x *axes) vector(p, q predicate.Pred, groups []placedGroup) []float64 {
	var out []float64
	x.eachAtom(func(blocks []int) {
		place := func(a *axis) int { return a.first[blocks[x.byColumn[a.column]]] }
		in := 0.
		if x.holds(p, place) && x.holds(q, place) && !slices.ContainsFunc(groups, func(g placedGroup) bool { return !g.blocks[blocks[g.axis]] }) {
			in = 1
		}
		out = append(out, in)
	})
	return out
}

// placedGroup is a group of classes on an axis.
type placedGroup struct {
	classGroup
	axis int
}

// generators are those of one counter of a release: of independent cells one for each combination of groups, of others
// the one whose column's cells are those that are wanted.
func (t *Combining) generators(x *axes, goal []float64, s *View, counter int, parts []*ofPart) (out []*generator) {
	m := s.Measure
	if s.Holding.Spec.Counts().Strategy.Kind != mechanisms.Identity {
		g := t.projected(x, goal, s, counter, parts)
		if g == nil {
			return nil
		}
		return []*generator{g}
	}
	each := t.errors(s, counter).Variance(predicate.One(0))
	combinations := 1
	for _, p := range parts {
		if combinations *= len(p.groups); combinations > maxGenerators {
			return nil
		}
	}
	for at := range combinations {
		groups, spans, size := make([]placedGroup, len(parts)), predicate.One(0), 1
		for i, p := range parts {
			g := p.groups[at%len(p.groups)]
			at /= len(p.groups)
			groups[i] = placedGroup{g, x.byColumn[p.column]}
			spans = refine(spans, g.classes, p.classes)
			size *= mechanisms.CellsIn(g.classes)
		}
		out = append(out, &generator{s, counter, spans, each * float64(size), x.vector(m.Filter, m.Counts[counter], groups)})
	}
	return out
}

// refine are the cells of classes within each cell of spans.
func refine(spans, classes []mechanisms.Span, size int) (out []mechanisms.Span) {
	if len(classes) == 1 && classes[0] == (mechanisms.Span{From: 0, To: size}) {
		for _, s := range spans {
			out = append(out, mechanisms.Span{From: s.From * size, To: s.To * size})
		}
		return out
	}
	for _, s := range spans {
		for cell := s.From; cell < s.To; cell++ {
			for _, c := range classes {
				out = append(out, mechanisms.Span{From: cell*size + c.From, To: cell*size + c.To})
			}
		}
	}
	return predicate.Unite(out, nil)
}

// projected reads a release over one column, whose cells' errors are not independent, at the cells of that column that
// what is wanted lies in.
func (t *Combining) projected(x *axes, goal []float64, s *View, counter int, parts []*ofPart) *generator {
	if len(parts) != 1 {
		return nil
	}
	p, at := parts[0], x.byColumn[parts[0].column]
	wanted, i := make([]bool, x.list[at].blocks), 0
	x.eachAtom(func(blocks []int) {
		wanted[blocks[at]] = wanted[blocks[at]] || goal[i] != 0
		i++
	})
	all := placedGroup{classGroup{nil, make([]bool, len(wanted))}, at}
	for _, g := range p.groups {
		if in := slices.Index(g.blocks, true); wanted[in] {
			all.classes = append(all.classes, g.classes...)
			for b, own := range g.blocks {
				all.blocks[b] = all.blocks[b] || own
			}
		}
	}
	if !slices.Equal(all.blocks, wanted) {
		return nil
	}
	spans := predicate.Unite(all.classes, nil)
	return &generator{s, counter, spans, t.errors(s, counter).Variance(spans), x.vector(s.Measure.Filter, s.Measure.Counts[counter], []placedGroup{all})}
}

func (t *Combining) errors(s *View, counter int) *mechanisms.Errors {
	return s.Holding.Spec.Only(counter).Errors(t.Confidence)
}

// leastVariance solves for the weights.
func leastVariance(all []*generator, goal []float64) *mixture {
	rows := distinctRows(all, goal)
	pivots, free := eliminate(rows, len(all))
	if pivots == nil {
		return nil
	}
	n := len(all)
	slope := func(r, f int) float64 { return rows[r][free[f]] }
	// Over the free weights x: Σ over pivots of v·(b − M·x)² + Σ of v·x².
	matrix := make([][]float64, len(free))
	for i := range matrix {
		matrix[i] = make([]float64, len(free)+1)
		matrix[i][i] = all[free[i]].variance
		for r, p := range pivots {
			for j := range free {
				matrix[i][j] += all[p].variance * slope(r, i) * slope(r, j)
			}
			matrix[i][len(free)] += all[p].variance * slope(r, i) * rows[r][n]
		}
	}
	if at, _ := eliminate(matrix, len(free)); len(at) < len(free) {
		return nil
	}
	weights := make([]*big.Rat, n)
	for i, f := range free {
		weights[f] = big.NewRat(int64(math.Round(matrix[i][len(free)]*weightSteps)), weightSteps)
	}
	for r, p := range pivots {
		w := fraction(rows[r][n])
		for i, f := range free {
			w.Sub(w, new(big.Rat).Mul(fraction(slope(r, i)), weights[f]))
		}
		weights[p] = w
	}
	return exactMixture(all, weights, goal)
}

// weightSteps is the denominator that free weights are rounded to.
const weightSteps = 1 << 10

// distinctRows are the atoms' equations, each once, with the goal behind.
func distinctRows(all []*generator, goal []float64) (rows [][]float64) {
	seen := map[string]bool{}
	for atom, g := range goal {
		row, key := make([]float64, len(all)+1), make([]byte, len(all)+1)
		for i, a := range all {
			row[i] = a.atoms[atom]
			key[i] = byte(a.atoms[atom])
		}
		row[len(all)], key[len(all)] = g, byte(g)
		if !seen[string(key)] {
			seen[string(key)] = true
			rows = append(rows, row)
		}
	}
	return rows
}

// eliminate brings rows of n coefficients and a right side into reduced echelon form: row r is that of pivot r. pivots
// is nil where the equations contradict each other.
func eliminate(rows [][]float64, n int) (pivots, free []int) {
	const small = 1e-9
	pivots = []int{}
	for c := range n {
		r, best := len(pivots), -1
		for i := r; i < len(rows); i++ {
			if size := math.Abs(rows[i][c]); size > small && (best < 0 || size > math.Abs(rows[best][c])+small) {
				best = i
			}
		}
		if best < 0 {
			free = append(free, c)
			continue
		}
		rows[r], rows[best] = rows[best], rows[r]
		by := rows[r][c]
		for j := c; j <= n; j++ {
			rows[r][j] /= by
		}
		for i := range rows {
			if factor := rows[i][c]; i != r && factor != 0 {
				for j := c; j <= n; j++ {
					rows[i][j] -= factor * rows[r][j]
				}
			}
		}
		pivots = append(pivots, c)
	}
	for _, row := range rows[len(pivots):] {
		if math.Abs(row[n]) > small {
			return nil, nil
		}
	}
	return pivots, free
}

// fraction is the simplest fraction near a number that elimination of small whole numbers gave. It is checked later.
func fraction(x float64) *big.Rat {
	for den := int64(1); den <= 64; den++ {
		if num := math.Round(x * float64(den)); math.Abs(x*float64(den)-num) < 1e-6 {
			return big.NewRat(int64(num), den)
		}
	}
	return new(big.Rat)
}

// exactMixture checks, without rounding, that the weights give what is wanted, and adds the variances up.
func exactMixture(all []*generator, weights []*big.Rat, goal []float64) *mixture {
	m := &mixture{}
	for i, w := range weights {
		if w.Sign() == 0 {
			continue
		}
		if w.Num().BitLen() > 40 || w.Denom().BitLen() > 30 {
			return nil
		}
		m.terms = append(m.terms, weighted{all[i], w})
		f, _ := w.Float64()
		m.variance += f * f * all[i].variance
	}
	for atom, g := range goal {
		sum := new(big.Rat)
		for _, t := range m.terms {
			if t.atoms[atom] != 0 {
				sum.Add(sum, t.weight)
			}
		}
		if sum.Cmp(new(big.Rat).SetInt64(int64(g))) != 0 {
			return nil
		}
	}
	return m
}

// A line is the measures whose conditions are the same but for the cells of one column: sums and differences of them
// are measures of other cells of it. Neighbours on a line are found by the ends of their spans.
type line struct {
	bySpans map[string]*bucket
	ends    map[int]map[int]*bucket // one span alone: by one of its ends, then by the other
}

// lineKey names the line of a column on which the other conditions are others.
func lineKey(others []predicate.Pred, c *policy.Column) string {
	return string(append(predicate.EncodeText(nil, c.Name), predicate.Encode(nil, predicate.All(others...))...))
}

func (l *line) add(spans []mechanisms.Span, s *View) {
	bucketOf(l.bySpans, string(predicate.EncodeSpans(nil, spans))).add(s)
	if len(spans) != 1 {
		return
	}
	for _, e := range [][2]int{{spans[0].From, spans[0].To}, {spans[0].To, spans[0].From}} {
		if l.ends[e[0]] == nil {
			l.ends[e[0]] = map[int]*bucket{}
		}
		if l.ends[e[0]][e[1]] == nil {
			l.ends[e[0]][e[1]] = &bucket{}
		}
		l.ends[e[0]][e[1]].add(s)
	}
}

// Bounds of what is looked at on a line.
const (
	maxWhole = 24 // a line of so few different spans is looked at whole
	maxMeets = 4
	maxChain = 24
)

// near lists what may add up to the cells of spans, of so many in all.
func (l *line) near(spans []mechanisms.Span, size int) (found []*View) {
	if len(l.bySpans) <= maxWhole {
		for _, b := range l.bySpans {
			found = append(found, b.all()...)
		}
		return found
	}
	for _, s := range append(slices.Clone(spans), predicate.Outside(spans, size)...) {
		found = append(found, l.ends[s.From][s.To].all()...)
		found = append(found, l.meets(s.From, s.To)...)
		found = append(found, l.chain(s.From, s.To)...)
	}
	return found
}

// meets lists pairs of spans, one from each end, that end at the same place.
func (l *line) meets(from, to int) (found []*View) {
	near, far := l.ends[from], l.ends[to]
	if len(near) > len(far) {
		near, far = far, near
	}
	var places []int
	for place := range near {
		if far[place] != nil && place != from && place != to {
			places = append(places, place)
		}
	}
	// The least wide together first: what lies between is nearest to what is asked.
	slices.SortFunc(places, func(a, b int) int {
		if d := reachOf(a, from, to) - reachOf(b, from, to); d != 0 {
			return d
		}
		return a - b
	})
	for _, place := range places[:min(len(places), maxMeets)] {
		found = append(append(found, near[place].all()...), far[place].all()...)
	}
	return found
}

func reachOf(place, from, to int) int { return max(from-place, place-to, 0) }

// chain lists spans that follow each other from one end to the other, the longest first.
func (l *line) chain(from, to int) (found []*View) {
	for range maxChain {
		next := from
		for end := range l.ends[from] {
			if end > next && end <= to {
				next = end
			}
		}
		if next == from {
			return nil
		}
		found = append(found, l.ends[from][next].all()...)
		if from = next; from == to {
			return found
		}
	}
	return nil
}
