package marginals

import (
	"math"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// Wanted is a sum of cells of a cube, and how much its squared error matters.
type Wanted struct {
	Spans  []ranges.Span
	Weight float64
}

// Goal is what marginals of a cube are to be observed for. Whatever is wanted, its error is a weighted sum of the variances
// of residuals, so that the best plans for weighted marginals are the best for it as well.
type Goal struct {
	Shape     []int
	Wanted    []Wanted
	Norm      ranges.Norm // what the noise is calibrated to
	Neighbors privacy.Neighbors
}

// Candidates returns strategies that may be the best: under L2 residuals (Residuals), and histograms on some of the
// marginals (Histograms), each with whole weights instead of noises of its own.
func (g Goal) Candidates() []ranges.Description {
	w, err := g.workload()
	if err != nil {
		return nil
	}
	var list []ranges.Description
	if g.Norm == ranges.L2 {
		precision := w.precisions(w.constraints(g.Neighbors == privacy.ReplaceOne))
		wanted := make([]float64, len(precision))
		for i, a := range w.closure {
			wanted[i] = math.Sqrt(precision[i] / w.domain.product(a, frameScale))
		}
		list = append(list, g.described(w.closure, wanted, true))
	}
	if d, ok := g.histograms(w); ok {
		list = append(list, d)
	}
	return list
}

// histograms returns the strategy of the best shares that are found.
func (g Goal) histograms(w Workload) (ranges.Description, bool) {
	if w.pairs() > mostPairs {
		return ranges.Description{}, false
	}
	s := w.search(w.closure, g.accountant())
	best, least := []float64(nil), math.Inf(1)
	for _, start := range s.starts() {
		if shares, loss := s.descend(start); loss < least {
			best, least = shares, loss
		}
	}
	if best == nil {
		return ranges.Description{}, false
	}
	if g.Norm == ranges.L2 {
		for i, share := range best {
			best[i] = math.Sqrt(share)
		}
	}
	return g.described(w.closure, best, false), true
}

func (g Goal) accountant() privacy.Accountant {
	if g.Norm == ranges.L2 {
		return privacy.ZCDP
	}
	return privacy.Pure
}

// described makes whole weights of real ones: as large as a cube lets them be, up to 2^20, so that the smallest keep digits.
// What rounds to nothing is observed least where its residual would be missing, else not at all.
func (g Goal) described(sets []Set, wanted []float64, residual bool) ranges.Description {
	cells := 1
	for _, n := range g.Shape {
		cells *= n
	}
	scale := math.Inf(1)
	for i, s := range sets {
		if wanted[i] > 0 {
			most := math.Min(float64(int64(1<<mostObservedBits)/int64(cells)>>bits.OnesCount64(uint64(s))), 1<<20)
			scale = math.Min(scale, most/wanted[i])
		}
	}
	d := ranges.Description{Kind: ranges.KindMarginals, Cells: cells, Radices: g.Shape}
	for i, s := range sets {
		if wanted[i] > 0 || residual {
			weight := int64(math.Max(1, math.Floor(wanted[i]*scale)))
			d.Marginals = append(d.Marginals, ranges.Marginal{Attributes: uint64(s), Residual: residual, Weight: weight})
		}
	}
	return d
}

// workload is the closure of the marginals that decide what is wanted, with the losses of all that is wanted.
func (g Goal) workload() (Workload, error) {
	d, err := NewDomain(g.Shape...)
	if err != nil {
		return Workload{}, err
	}
	all := Set(1)<<len(g.Shape) - 1
	full, err := newCube(g.Shape, d.Cells(all), []ranges.Marginal{{Attributes: uint64(all), Weight: 1}})
	if err != nil {
		return Workload{}, err
	}
	total, needed := make([]float64, len(full.closure)), map[Set]bool{}
	for _, wanted := range g.Wanted {
		most := 0.0
		losses := full.losses(wanted.Spans)
		for at, loss := range losses {
			most = math.Max(most, loss*full.outside(full.closure[at]))
		}
		for at, loss := range losses {
			if loss*full.outside(full.closure[at]) > most*1e-12 {
				needed[full.closure[at]] = true
				total[at] += wanted.Weight * loss
			}
		}
	}
	sets := make([]Set, 0, len(needed))
	for s := range needed {
		sets = append(sets, s)
	}
	w := Workload{domain: d, loss: map[Set]float64{}}
	most := 0.0
	for _, x := range total {
		most = math.Max(most, x)
	}
	for _, s := range maximal(sets) {
		w.marginals = append(w.marginals, Marginal{Set: s, Weight: 1})
		for a := range s.subsets {
			w.loss[a] = math.Max(total[full.known[a]], most*1e-9) // what nobody asks for is still part of what is
		}
	}
	for _, a := range full.closure {
		if _, ok := w.loss[a]; ok {
			w.closure = append(w.closure, a)
		}
	}
	if len(w.closure) == 0 {
		return NewWorkload(d, Marginal{Weight: 1})
	}
	return w, nil
}

// Rest returns strategies for all attributes but the first: their cells, and their marginals by their cells. There are none
// where there are no others.
func (g Goal) Rest(first int) []ranges.Description {
	rest := Goal{Shape: g.Shape[first:], Norm: g.Norm, Neighbors: g.Neighbors}
	if len(rest.Shape) == 0 {
		return nil
	}
	cells := 1
	for _, n := range rest.Shape {
		cells *= n
	}
	all := ranges.Marginal{Attributes: 1<<len(rest.Shape) - 1, Weight: 1}
	list := []ranges.Description{{Kind: ranges.KindMarginals, Cells: cells, Radices: rest.Shape, Marginals: []ranges.Marginal{all}}}
	for _, wanted := range g.Wanted {
		rest.Wanted = append(rest.Wanted, Wanted{sideOf(wanted.Spans, cells), wanted.Weight})
	}
	if w, err := rest.workload(); err == nil {
		if d, ok := rest.histograms(w); ok {
			list = append(list, d)
		}
	}
	return list
}

// sideOf returns the cells of the last attributes, so many, that some cell of the spans has.
func sideOf(spans []ranges.Span, cells int) []ranges.Span {
	on := make([]bool, cells)
	for _, s := range spans {
		for i := s.From; i < s.To && i < s.From+cells; i++ {
			on[i%cells] = true
		}
	}
	var side []ranges.Span
	for from := 0; from < cells; from++ {
		to := from
		for to < cells && on[to] {
			to++
		}
		if to > from {
			side = append(side, ranges.Span{From: from, To: to})
			from = to
		}
	}
	return side
}
