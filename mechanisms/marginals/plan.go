package marginals

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Plan is what is observed for a workload, with which noise, at which cost: a function of public things alone. It is
// immutable; the zero value is invalid.
type Plan struct {
	workload     Workload
	cost         privacy.Cost
	observations []observation
	sources      []Set
	variance     map[Set]float64 // of each residual as it is read: its covariance is variance·⊗P
	most         int64           // at which the cells of a source are cut
}

// observation is a vector of integers that gets noise: the cells of the marginal on set, or the rows of its residual.
type observation struct {
	set      Set
	residual bool
	noise    noise.Distribution
	source   int
	offset   int // among all observed integers
	length   int
}

// Best returns the plan with the least expected weighted sum of variances: under zCDP of Residuals and Histograms, under
// pure accounting Histograms, which looks at independent histograms and at one full histogram too.
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

const mostRows = 1 << 22

// boundsOf checks a contribution. A unit's rows may fall into one cell of a small marginal even if each is in a group of
// its own in the large one, so only their number counts.
func boundsOf(c privacy.Contribution) (bounds, error) {
	b := bounds{rows: c.Rows, replaceOne: c.Neighbors == privacy.ReplaceOne}
	if c.Rows < 1 || c.Rows > mostRows {
		return b, fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, mostRows)
	}
	if c.Groups < 0 || c.PerGroup < 0 {
		return b, fmt.Errorf("groups of a unit is %d with %d rows each, must not be negative", c.Groups, c.PerGroup)
	}
	if c.Groups > 0 && c.PerGroup > 0 && c.Groups <= mostRows && c.PerGroup <= mostRows {
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

// newPlan lays the observations out, gives each the smallest source that holds it and derives the residuals' variances.
//
// Derivation of the variances: an observed residual a has its own. A histogram on s with noise of variance v says of each
// residual a ⊆ s, by projecting and adding up, r_a with the covariance v·Π d_i (over s∖a)·⊗P; these are uncorrelated for
// different a, being projections of independent noise onto orthogonal spaces. So the best linear reading of residual a
// weighs what is said of it by inverse variance, and nothing else says anything about it.
func newPlan(w Workload, cost privacy.Cost, observations []observation) (Plan, error) {
	p := Plan{workload: w, cost: cost, observations: observations, variance: map[Set]float64{}, most: 1 << 61}
	observed := make([]Set, len(observations))
	for i, o := range observations {
		observed[i] = o.set
	}
	p.sources = maximal(observed)
	total := 0
	for i := range observations {
		o := &p.observations[i]
		o.source = p.sourceOf(o.set)
		o.offset, o.length = total, w.domain.Cells(o.set)
		if o.residual {
			o.length = int(w.domain.product(o.set, func(n float64) float64 { return float64(frameRows(int(n))) }))
			p.add(o.set, o.precision(w.domain, o.set))
		} else {
			for a := range w.below(o.set) {
				p.add(a, o.precision(w.domain, a))
			}
		}
		if total += o.length; total > MostCells {
			return Plan{}, fmt.Errorf("observations of the marginals are more than %d", MostCells)
		}
	}
	for a, precision := range p.variance {
		p.variance[a] = 1 / precision
	}
	for _, s := range p.sources {
		cells, most := 1, int64(1<<61)
		for _, n := range w.domain.shape(s) {
			if cells *= 1 + frameRows(n); cells > MostCells {
				return Plan{}, fmt.Errorf("marginal %v with its residuals has more than %d cells", s.Attributes(), MostCells)
			}
			most /= frameGrowth(n)
		}
		p.most = min(p.most, most)
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

// sourceOf returns the source with the fewest cells that holds s.
func (p *Plan) sourceOf(s Set) int {
	best := -1
	for i, t := range p.sources {
		if s.within(t) && (best < 0 || p.workload.domain.Cells(t) < p.workload.domain.Cells(p.sources[best])) {
			best = i
		}
	}
	return best
}

func (p *Plan) valid() error {
	if p.sources == nil {
		return errors.New("plan is the zero value, must be made by a constructor")
	}
	return nil
}

// Sources returns the sets whose tallies Release wants, in this order: GROUP BY over the attributes of each.
func (p Plan) Sources() []Set { return slices.Clone(p.sources) }

// Cost returns what is to be charged: all of what the plan was made with.
func (p Plan) Cost() privacy.Cost { return p.cost }

// Observed returns the number of integers that are released.
func (p Plan) Observed() int {
	last := p.observations[len(p.observations)-1]
	return last.offset + last.length
}

// MostCount returns the count at which a cell of a source is cut: at least a billion.
func (p Plan) MostCount() int64 { return p.most }

// Loss returns the expected Σ weight·variance over all cells of the workload's marginals.
func (p Plan) Loss() float64 { return p.workload.sumOfVariances(p.variance) }

// Variance returns the exact variance of each cell of the marginal on s, a subset of a marginal of the workload.
func (p Plan) Variance(s Set) (float64, error) {
	if err := p.has(s); err != nil {
		return 0, err
	}
	v := 0.0
	for a := range s.subsets {
		v += p.variance[a] * p.workload.domain.variance(s, a)
	}
	return v, nil
}

func (p *Plan) has(s Set) error {
	if err := p.valid(); err != nil {
		return err
	}
	if _, ok := p.workload.loss[s]; !ok {
		return fmt.Errorf("marginal %v is in no marginal of the workload", s.Attributes())
	}
	return nil
}

// normalAtLeast returns the discrete Gaussian whose variance parameter is the given one, rounded up by at most 2^-38 of it.
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
