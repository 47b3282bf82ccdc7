package marginals

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// The plans of the literature, each of whose observations has noise of its own, with their exact losses: what the cubes
// of integers are measured against. Nothing is released by them.

const (
	maxRows = 1 << 22
	maxSets = 1 << 16 // subsets of the marginals
)

// The weights' range keeps all sums of variances far inside of the floats.
const leastWeight, maxWeight = 1e-12, 1e12

// Plan is what is observed for a workload, with which noise, at which cost: a function of public things alone. It is
// immutable; the zero value is invalid.
type Plan struct {
	workload     Workload
	cost         privacy.Cost
	observations []observation
	variance     map[Set]float64 // of each residual as it is read: its covariance is variance·⊗P
}

// observation is a vector of integers that gets noise: the cells of the marginal on set, or the rows of its residual.
type observation struct {
	set      Set
	residual bool
	noise    noise.Distribution
	offset   int // among all observed integers
	length   int
}

// Best returns the plan with the least expected weighted sum of variances: under zCDP of Residuals and Histograms,
// under pure accounting Histograms, which looks at independent histograms and at one full histogram too.
func Best(w Workload, c privacy.Contribution, cost privacy.Cost) (Plan, error) {
	best, err := Histograms(w, c, cost)
	if cost.Rho.Pico() == 0 {
		return best, err
	}
	residuals, other := Residuals(w, c, cost)
	if other != nil {
		if err == nil {
			return best, nil
		}
		return Plan{}, other
	}
	if err != nil || residuals.Loss() <= best.Loss() {
		return residuals, nil
	}
	return best, nil
}

// bounds is a checked contribution: at most so many rows of a unit, under a relation.
type bounds struct {
	rows       int64
	replaceOne bool
}

// boundsOf checks a contribution. A unit's rows may fall into one cell of a small marginal even if each is in a group
// of its own in the large one, so only their number counts.
func boundsOf(c privacy.Contribution) (bounds, error) {
	b := bounds{rows: c.Rows, replaceOne: c.Neighbors == privacy.ReplaceOne}
	if c.Rows < 1 || c.Rows > maxRows {
		return b, fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, maxRows)
	}
	if c.Groups < 0 || c.PerGroup < 0 {
		return b, fmt.Errorf("groups of a unit is %d with %d rows each, must not be negative", c.Groups, c.PerGroup)
	}
	if c.Groups > 0 && c.PerGroup > 0 && c.Groups <= maxRows && c.PerGroup <= maxRows {
		b.rows = min(b.rows, c.Groups*c.PerGroup)
	}
	if c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne {
		return b, fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	return b, nil
}

// checkCost tells the accountant of a cost.
func checkCost(cost privacy.Cost) (privacy.Accountant, error) {
	e, r := cost.Epsilon.Micro(), cost.Rho.Pico()
	switch {
	case cost.Delta.Atto() != 0:
		return 0, fmt.Errorf("delta of marginals is %s, must be 0", cost.Delta)
	case e < 0 || r < 0 || (e == 0) == (r == 0):
		return 0, fmt.Errorf("cost is epsilon %s and rho %s, must name one of them, greater than 0", cost.Epsilon, cost.Rho)
	case e > 0:
		return privacy.Pure, nil
	}
	return privacy.ZCDP, nil
}

// newPlan lays the observations out and derives the residuals' variances.
//
// Derivation of the variances: an observed residual a has its own. A histogram on s with noise of variance v says of
// each residual a ⊆ s, by projecting and adding up, r_a with the covariance v·Π d_i (over s∖a)·⊗P; these are
// uncorrelated for different a, being projections of independent noise onto orthogonal spaces. So the best linear
// reading of residual a weighs what is said of it by inverse variance, and nothing else says anything about it.
func newPlan(w Workload, cost privacy.Cost, observations []observation) (Plan, error) {
	p := Plan{workload: w, cost: cost, observations: observations, variance: map[Set]float64{}}
	total := 0
	for i := range observations {
		o := &p.observations[i]
		o.offset, o.length = total, w.domain.Cells(o.set)
		if o.residual {
			o.length = int(w.domain.product(o.set, func(n float64) float64 { return float64(frameRows(int(n))) }))
			p.add(o.set, o.precision(w.domain, o.set))
		} else {
			for a := range w.below(o.set) {
				p.add(a, o.precision(w.domain, a))
			}
		}
		if total += o.length; total > MaxCells {
			return Plan{}, fmt.Errorf("observations of the marginals are more than %d", MaxCells)
		}
	}
	for a, precision := range p.variance {
		p.variance[a] = 1 / precision
	}
	if math.IsInf(w.sumOfVariances(p.variance), 1) {
		return Plan{}, errors.New("plan does not observe every marginal")
	}
	return p, nil
}

// precision returns 1/σ² of what the observation says of residual a.
func (o observation) precision(d Domain, a Set) float64 {
	if o.residual {
		return d.product(a, frameScale) / o.noise.Variance()
	}
	return 1 / (o.noise.Variance() * d.product(o.set&^a, func(n float64) float64 { return n }))
}

// add adds to a residual's precision, which variance holds while the plan is made.
func (p *Plan) add(a Set, precision float64) { p.variance[a] += precision }

// Loss returns the expected Σ weight·variance over all cells of the workload's marginals.
func (p Plan) Loss() float64 { return p.workload.sumOfVariances(p.variance) }

// normalAtLeast returns the discrete Gaussian whose variance parameter is the given one, rounded up by at most 2^-38 of
// it.
func normalAtLeast(variance float64) (noise.Distribution, error) {
	if !(variance > 0) || variance > 0x1p61 {
		return noise.Distribution{}, fmt.Errorf("noise variance is %g, must be greater than 0 and at most 2^61: the cost is too small for so many cells", variance)
	}
	shift := 0
	for ; shift < 60 && variance < 0x1p40; shift++ {
		variance *= 2
	}
	return noise.New(noise.Gaussian, int64(math.Ceil(variance))+1, 1<<shift)
}

// Residuals returns the best unbiased Gaussian plan for the workload: each residual is observed once. The cost must
// name ρ.
//
// Claim: under add-remove no Gaussian matrix mechanism of that ρ has a smaller weighted sum of variances (Xiao, He,
// Zhang, Kifer 2023, ResidualPlanner). With v the loss and c the load of a residual, the least Σ v·σ² subject to Σ c/σ²
// ≤ 2ρ/rows² has σ² = √(c/v)·Σ√(v·c)·rows²/(2ρ), by Cauchy and Schwarz: (Σ√(v·c))² ≤ Σ v·σ²·Σ c/σ². Under replace-one
// the loads of several patterns of differing attributes bind at once; multiplicative weights on the patterns find the
// least sum, and what they find is scaled to keep them all. Proof of privacy: constraints, in load.go, with the
// precisions of the noise as it was rounded.
func Residuals(w Workload, c privacy.Contribution, cost privacy.Cost) (Plan, error) {
	b, err := boundsOf(c)
	if err != nil {
		return Plan{}, err
	}
	if w.loss == nil {
		return Plan{}, errors.New("workload is the zero value, must be made by NewWorkload")
	}
	accountant, err := checkCost(cost)
	if err != nil {
		return Plan{}, err
	}
	if accountant != privacy.ZCDP {
		return Plan{}, fmt.Errorf("cost of residuals is epsilon %s, must name rho", cost.Epsilon)
	}
	constraints := w.someConstraints(b.replaceOne)
	precision := w.precisions(constraints)
	// 2ρ/rows², rounded down.
	budget := 2 * cost.Rho.Float() / (float64(b.rows) * float64(b.rows)) / margin
	scale := budget / worst(constraints, precision)
	observations := make([]observation, len(w.closure))
	for i, a := range w.closure {
		d, err := normalAtLeast(margin * w.domain.product(a, frameScale) / (precision[i] * scale))
		if err != nil {
			return Plan{}, fmt.Errorf("residual %v: %w", a.Attributes(), err)
		}
		observations[i] = observation{set: a, residual: true, noise: d}
	}
	return newPlan(w, cost, observations)
}

// Histograms returns a plan of whole histograms, each with independent noise, whose shares of the cost were chosen for
// the least weighted sum of variances. It looks at histograms on all subsets of the marginals and on all attributes
// together; starts are independent histograms on the wanted marginals, on the largest of them, on all subsets, and one
// full histogram. The cost names ε (discrete Laplace) or ρ (discrete Gaussian).
//
// Claim: ε-DP, or ρ-zCDP. Neighbours: add-remove, replace-one, a unit in at most rows rows. Sensitivity: a row is in
// one cell of a histogram, so neighbours are rows apart in L1, rows² in squared L2; replace-one doubles both, but for
// the histogram of one cell. Theorem and proof: each histogram has discrete Laplace noise of scale L1/ε_s, or discrete
// Gaussian noise of variance at least L2²/(2ρ_s); the ε_s, the ρ_s, whole micro- and pico-units, add up to at most the
// cost. Limits: the search is local and the problem not convex, so the shares are the best that were found, never worse
// than the starts.
func Histograms(w Workload, c privacy.Contribution, cost privacy.Cost) (Plan, error) {
	if w.loss == nil {
		return Plan{}, errors.New("workload is the zero value, must be made by NewWorkload")
	}
	candidates := append([]Set(nil), w.closure...)
	if w.pairs() > maxPairs {
		candidates = candidates[:0]
		for _, m := range w.marginals {
			candidates = append(candidates, m.Set)
		}
	}
	if all := w.union(); !slices.Contains(candidates, all) && w.domain.Cells(all) <= MaxCells {
		candidates = append(candidates, all)
	}
	accountant, err := checkCost(cost)
	if err != nil {
		return Plan{}, err
	}
	norm := ranges.L1
	if accountant == privacy.ZCDP {
		norm = ranges.L2
	}
	s := w.search(candidates, norm)
	best, least := []float64(nil), math.Inf(1)
	for _, start := range s.starts() {
		if shares, loss := s.descend(start); loss < least {
			best, least = shares, loss
		}
	}
	return histograms(w, c, cost, candidates, best)
}

// Independent returns the plan of one histogram for each marginal of the workload, the cost split to suit their weights
// (in proportion to the cube root of weight·cells for ε, to the square root for ρ): what is usually done, to compare
// with. Its histograms are read together, as any plan's.
func Independent(w Workload, c privacy.Contribution, cost privacy.Cost) (Plan, error) {
	accountant, err := checkCost(cost)
	if err != nil {
		return Plan{}, err
	}
	sets, shares := make([]Set, len(w.marginals)), make([]float64, len(w.marginals))
	for i, m := range w.marginals {
		sets[i] = m.Set
		shares[i] = share(accountant, m.Weight*float64(w.domain.Cells(m.Set)))
	}
	return histograms(w, c, cost, sets, shares)
}

// Cube returns the plan of one histogram over all attributes of the workload.
func Cube(w Workload, c privacy.Contribution, cost privacy.Cost) (Plan, error) {
	if all := w.union(); w.domain.Cells(all) > MaxCells {
		return Plan{}, fmt.Errorf("cube has more than %d cells", MaxCells)
	}
	return histograms(w, c, cost, []Set{w.union()}, []float64{1})
}

// share returns the best share, up to a common factor, of something whose loss is a/share² under pure, a/share under
// zCDP accounting.
func share(accountant privacy.Accountant, a float64) float64 {
	if accountant == privacy.Pure {
		return math.Cbrt(a)
	}
	return math.Sqrt(a)
}

// histograms gives each set its share of the cost.
func histograms(w Workload, c privacy.Contribution, cost privacy.Cost, sets []Set, shares []float64) (Plan, error) {
	b, err := boundsOf(c)
	if err != nil {
		return Plan{}, err
	}
	if w.loss == nil {
		return Plan{}, errors.New("workload is the zero value, must be made by NewWorkload")
	}
	accountant, err := checkCost(cost)
	if err != nil {
		return Plan{}, err
	}
	observations, total := []observation{}, sum(shares)
	for i, s := range sets {
		times := int64(1)
		if b.replaceOne && s != 0 {
			times = 2
		}
		part := shares[i] / total * (1 - 0x1p-40)
		var d noise.Distribution
		if accountant == privacy.Pure {
			micro := int64(part * float64(cost.Epsilon.Micro()))
			if micro == 0 {
				continue
			}
			d, err = noise.New(noise.Laplace, times*b.rows*1_000_000, micro)
		} else {
			pico := int64(part * float64(cost.Rho.Pico()))
			if pico == 0 {
				continue
			}
			d, err = normalAtLeast(margin * float64(times) * float64(b.rows) * float64(b.rows) * 1e12 / (2 * float64(pico)))
		}
		if err != nil {
			return Plan{}, fmt.Errorf("histogram %v: %w", s.Attributes(), err)
		}
		observations = append(observations, observation{set: s, noise: d})
	}
	if len(observations) == 0 {
		return Plan{}, fmt.Errorf("cost is %s, too small to be split", cost)
	}
	return newPlan(w, cost, observations)
}

// NewWorkload checks the marginals: each once, each of at most MaxCells cells, all weights finite and greater than 0.
func NewWorkload(d Domain, marginals ...Marginal) (Workload, error) {
	if len(d.sizes) == 0 {
		return Workload{}, fmt.Errorf("domain has no attributes, must be made by NewDomain")
	}
	if len(marginals) < 1 || len(marginals) > maxSets {
		return Workload{}, fmt.Errorf("number of marginals is %d, must be from 1 to %d", len(marginals), maxSets)
	}
	w := Workload{domain: d, marginals: append([]Marginal(nil), marginals...), loss: map[Set]float64{}}
	seen := map[Set]bool{}
	for _, m := range marginals {
		switch {
		case bits.Len64(uint64(m.Set)) > len(d.sizes):
			return Workload{}, fmt.Errorf("marginal %v has attribute %d, must be below %d", m.Set.Attributes(), bits.Len64(uint64(m.Set))-1, len(d.sizes))
		case seen[m.Set]:
			return Workload{}, fmt.Errorf("marginal %v occurs twice, must occur once", m.Set.Attributes())
		case !(m.Weight >= leastWeight && m.Weight <= maxWeight):
			return Workload{}, fmt.Errorf("weight of marginal %v is %g, must be from %g to %g", m.Set.Attributes(), m.Weight, leastWeight, maxWeight)
		case d.Cells(m.Set) > MaxCells:
			return Workload{}, fmt.Errorf("marginal %v has more than %d cells", m.Set.Attributes(), MaxCells)
		case bits.OnesCount64(uint64(m.Set)) > 16:
			return Workload{}, fmt.Errorf("marginal %v has %d attributes, must have at most 16", m.Set.Attributes(), bits.OnesCount64(uint64(m.Set)))
		}
		seen[m.Set] = true
		for a := range m.Set.subsets {
			w.loss[a] += m.Weight * float64(d.Cells(m.Set)) * d.variance(m.Set, a)
		}
		if len(w.loss) > maxSets {
			return Workload{}, fmt.Errorf("marginals have more than %d subsets", maxSets)
		}
	}
	for a := range w.loss {
		w.closure = append(w.closure, a)
	}
	sort.Slice(w.closure, func(i, j int) bool {
		a, b := w.closure[i], w.closure[j]
		if m, n := bits.OnesCount64(uint64(a)), bits.OnesCount64(uint64(b)); m != n {
			return m < n
		}
		return a < b
	})
	return w, nil
}

// sumOfVariances returns Σ loss·variance over the residuals.
func (w Workload) sumOfVariances(variance map[Set]float64) float64 {
	sum := 0.0
	for _, a := range w.closure { // in order, so that the same plan says the same sum
		v, ok := variance[a]
		if !ok {
			return math.Inf(1)
		}
		sum += w.loss[a] * v
	}
	return sum
}

// variance returns what one unit of the variance of residual a adds to the variance of a cell of the marginal s.
//
// Derivation: write P_i for the projection of attribute i's cells onto the vectors of sum 0, J_i/d_i for the one onto
// the constant ones. Marginal s is x = Σ over a ⊆ s of (⊗ P_i over a) ⊗ (⊗ J_i/d_i over s∖a) x, that is, the residual
// r_a = (⊗ P_i) x_a of the marginal x_a, spread evenly: each cell takes r_a / Π d_i over s∖a. A residual is read with
// covariance σ_a²·⊗ P_i, whose diagonal is Π (1 − 1/d_i), and residuals are uncorrelated with each other.
func (d Domain) variance(s, a Set) float64 {
	return d.trace(a) / square(d.product(s&^a, func(n float64) float64 { return n }))
}

// maxPairs is the number of pairs of a set and one of its subsets up to which the search looks at all of them.
const maxPairs = 1 << 20

// pairs returns the number of pairs of a set of the closure and one of its subsets.
func (w Workload) pairs() int {
	n := 0
	for _, a := range w.closure {
		n += 1 << bits.OnesCount64(uint64(a))
	}
	return n
}

// someConstraints is constraints for more attributes than cubes have: the sets of those that differ are not listed
// then. Each residual has its own worst one: none in common with it (0, or the row alone, for the total 1), or the one
// attribute of it with the fewest cells.
func (w Workload) someConstraints(replaceOne bool) [][]float64 {
	if !replaceOne || bits.OnesCount64(uint64(w.union())) <= MaxCubeAttributes {
		return w.constraints(replaceOne)
	}
	alone := w.constraints(false)
	for i, a := range w.closure {
		least := math.Inf(1)
		for _, n := range w.domain.shape(a) {
			least = math.Min(least, float64(n))
		}
		if a != 0 {
			alone[0][i] *= 2 * (1 + 1/(least-1))
		}
	}
	return alone
}
