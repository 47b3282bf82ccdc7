package marginals

import (
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

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

func (w Workload) search(sets []Set, norm ranges.Norm) *search {
	s := &search{w: w, sets: sets, power: 1}
	if norm == ranges.L1 {
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
