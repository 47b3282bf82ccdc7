package marginals

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Histograms returns a plan of whole histograms, each with independent noise, whose shares of the cost were chosen for the
// least weighted sum of variances. It looks at histograms on all subsets of the marginals and on all attributes
// together; starts are independent histograms on the wanted marginals, on the largest of them, on all subsets, and one
// full histogram. The cost names ε (discrete Laplace) or ρ (discrete Gaussian).
//
// Claim: ε-DP, or ρ-zCDP. Neighbours: add-remove, replace-one, a unit in at most rows rows.
// Sensitivity: a row is in one cell of a histogram, so neighbours are rows apart in L1, rows² in squared L2; replace-one
// doubles both, but for the histogram of one cell.
// Theorem and proof: each histogram has discrete Laplace noise of scale L1/ε_s, or discrete Gaussian noise of variance at
// least L2²/(2ρ_s); the ε_s, the ρ_s, whole micro- and pico-units, add up to at most the cost.
// Limits: the search is local and the problem not convex, so the shares are the best that were found, never worse than the
// starts.
func Histograms(w Workload, c privacy.Contribution, cost privacy.Cost) (Plan, error) {
	if w.loss == nil {
		return Plan{}, errors.New("workload is the zero value, must be made by NewWorkload")
	}
	candidates := append([]Set(nil), w.closure...)
	if w.pairs() > mostPairs {
		candidates = candidates[:0]
		for _, m := range w.marginals {
			candidates = append(candidates, m.Set)
		}
	}
	if all := w.union(); !slices.Contains(candidates, all) && w.domain.Cells(all) <= MostCells {
		candidates = append(candidates, all)
	}
	accountant, err := checkCost(cost)
	if err != nil {
		return Plan{}, err
	}
	s := w.search(candidates, accountant)
	best, least := []float64(nil), math.Inf(1)
	for _, start := range s.starts() {
		if shares, loss := s.descend(start); loss < least {
			best, least = shares, loss
		}
	}
	return histograms(w, c, cost, candidates, best)
}

// Independent returns the plan of one histogram for each marginal of the workload, the cost split to suit their weights
// (in proportion to the cube root of weight·cells for ε, to the square root for ρ): what is usually done, to compare with.
// Its histograms are read together, as any plan's.
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
	if all := w.union(); w.domain.Cells(all) > MostCells {
		return Plan{}, fmt.Errorf("cube has more than %d cells", MostCells)
	}
	return histograms(w, c, cost, []Set{w.union()}, []float64{1})
}

// share returns the best share, up to a common factor, of something whose loss is a/share² under pure, a/share under zCDP
// accounting.
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

// mostPairs is the number of pairs of a set and one of its subsets up to which the search looks at all of them.
const mostPairs = 1 << 20

// search looks for the best shares. A histogram on s with the share e of the cost says of each residual a ⊆ s its value
// with a precision e²/Π d_i (pure; e/Π d_i under zCDP) over s∖a, up to a factor that all have in common.
type search struct {
	w        Workload
	sets     []Set
	power    float64
	residual []int // of the closure, below each set, one after the other
	spread   []float64
	from     []int // where those of a set begin
}

func (w Workload) search(sets []Set, accountant privacy.Accountant) *search {
	s := &search{w: w, sets: sets, power: 1}
	if accountant == privacy.Pure {
		s.power = 2
	}
	at := map[Set]int{}
	for i, a := range w.closure {
		at[a] = i
	}
	for _, set := range sets {
		s.from = append(s.from, len(s.residual))
		for a := range w.below(set) {
			s.residual = append(s.residual, at[a])
			s.spread = append(s.spread, 1/w.domain.product(set&^a, func(n float64) float64 { return n }))
		}
	}
	s.from = append(s.from, len(s.residual))
	return s
}

// starts returns the shares to begin with.
func (s *search) starts() [][]float64 {
	weights := map[Set]float64{}
	for _, m := range s.w.marginals {
		weights[m.Set] = m.Weight * float64(s.w.domain.Cells(m.Set))
	}
	top := map[Set]bool{}
	for _, m := range maximal(s.w.closure) {
		top[m] = true
	}
	wanted, largest, even, full := make([]float64, len(s.sets)), make([]float64, len(s.sets)), make([]float64, len(s.sets)), make([]float64, len(s.sets))
	holds := false
	for i, set := range s.sets {
		wanted[i] = math.Pow(weights[set], 1/(s.power+1))
		if top[set] {
			largest[i] = wanted[i]
		}
		even[i] = 1
		if set == s.w.union() {
			full[i], holds = 1, true
		}
	}
	starts := [][]float64{wanted, largest, even}
	if holds {
		starts = append(starts, full)
	}
	return starts
}

// loss returns Σ loss/precision and, for each set, minus its derivative by the set's share.
func (s *search) loss(shares, gain []float64) float64 {
	precision := make([]float64, len(s.w.closure))
	for k, e := range shares {
		for j := s.from[k]; e > 0 && j < s.from[k+1]; j++ {
			precision[s.residual[j]] += math.Pow(e, s.power) * s.spread[j]
		}
	}
	sum := 0.0
	for i, a := range s.w.closure {
		sum += s.w.loss[a] / precision[i]
	}
	for k, e := range shares {
		gain[k] = 0
		for j := s.from[k]; e > 0 && j < s.from[k+1]; j++ {
			i := s.residual[j]
			gain[k] += s.w.loss[s.w.closure[i]] / square(precision[i]) * s.spread[j]
		}
		gain[k] *= s.power * math.Pow(e, s.power-1)
	}
	return sum
}

// descend follows the shares downhill: at the best ones the gains of all used sets are equal, and for sets that have
// nothing in common one step of share·gain^(1/(power+1)) gets there.
func (s *search) descend(shares []float64) ([]float64, float64) {
	shares = append([]float64(nil), shares...)
	gain, step := make([]float64, len(shares)), 1/(s.power+1)
	best, least := []float64(nil), math.Inf(1)
	for range 300 {
		total := sum(shares)
		for k := range shares {
			if shares[k] /= total; shares[k] < 1e-6 {
				shares[k] = 0
			}
		}
		loss := s.loss(shares, gain)
		if math.IsInf(loss, 1) && best == nil {
			return nil, loss
		}
		if loss >= least {
			step /= 2
			shares = append(shares[:0], best...)
			if s.loss(shares, gain); step < 1e-3 {
				break
			}
		} else {
			if loss > least*(1-1e-9) {
				break
			}
			best, least = append(best[:0], shares...), loss
		}
		for k, e := range shares {
			if e > 0 {
				shares[k] = e * math.Pow(gain[k], step)
			}
		}
	}
	return best, least
}
