package choose

import (
	"math"
	"math/bits"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
)

// additive asks for counts and sums: for counters side by side, or by combination of their conditions; and for each
// grouping set by itself, or for some whose cells others add up. What has the least expected error is taken.
func (v *LeafPlanner) additive(lp *LeafPlan, counters []int) *refuse.Refusal {
	form := func(keys linear.Set) (*Request, *refuse.Refusal) { return v.plain(lp.Question, keys, counters) }
	best, refusal := v.based(lp, form)
	if refusal != nil {
		return refusal
	}
	if a, refusal := v.marginal(lp, counters, best); refusal != nil {
		return refusal
	} else if a != nil {
		lp.Requests = append(lp.Requests, a)
		return nil
	}
	if conditional(lp.Question, counters) {
		form = func(keys linear.Set) (*Request, *refuse.Refusal) {
			if a := v.split(lp.Question, keys, counters); a != nil {
				return a, nil
			}
			return nil, linear.NoMechanism.At(-1, "conditions")
		}
		if other, refusal := v.based(lp, form); refusal == nil && v.preferred(other, best) {
			best = other
		}
	}
	lp.Requests = append(lp.Requests, best...)
	return nil
}

// preferred reports whether some requests are better than others: because she has paid for them, or by their error.
func (v *LeafPlanner) preferred(some, others []*Request) bool {
	if some, others := v.Optimizer.holdsAll(some), v.Optimizer.holdsAll(others); some != others {
		return some
	}
	return v.error(some) < v.error(others)
}

// conditional tells counters with different conditions.
func conditional(q *linear.Question, counters []int) bool {
	text := func(c int) string { return linear.WhereText(q.Counters[c].Where) }
	return slices.ContainsFunc(counters, func(c int) bool { return text(c) != text(counters[0]) })
}

// sumsClearlyWorse is how much more the error of sums of finer groups must be than that of groups asked for by
// themselves for these to be asked for: totals that are sums add up.
const sumsClearlyWorse = 1.25

// based chooses the sets that are asked for; the others are read from the one of these with the fewest cells. The sets
// that no other contains are asked for; then, one by one, the one that lowers the error most.
func (v *LeafPlanner) based(lp *LeafPlan, form func(linear.Set) (*Request, *refuse.Refusal)) ([]*Request, *refuse.Refusal) {
	made := map[int]*Request{}
	var bases, rest []int
	for s, keys := range lp.Sets {
		contained := slices.ContainsFunc(lp.Sets, func(other linear.Set) bool { return len(other) > len(keys) && reuse.ContainsAll(other, keys) })
		again := slices.ContainsFunc(lp.Sets[:s], func(other linear.Set) bool { return slices.Equal(other, keys) })
		if contained || again {
			if !again {
				rest = append(rest, s)
			}
			continue
		}
		var refusal *refuse.Refusal
		if made[s], refusal = form(keys); refusal != nil {
			return nil, refusal
		}
		bases = append(bases, s)
	}
	best := v.assigned(lp, made, bases)
	for len(rest) > 0 {
		next, found := -1, best
		for i, s := range rest {
			if made[s] == nil {
				var refusal *refuse.Refusal
				if made[s], refusal = form(lp.Sets[s]); refusal != nil {
					return nil, refusal
				}
			}
			if other := v.assigned(lp, made, append(bases[:len(bases):len(bases)], s)); v.error(other)*sumsClearlyWorse < v.error(best) && v.error(other) < v.error(found) {
				next, found = i, other
			}
		}
		if next < 0 {
			break
		}
		best, bases, rest = found, append(bases, rest[next]), slices.Delete(rest, next, next+1)
	}
	return best, nil
}

// assigned lets each set be read from one of the bases.
func (v *LeafPlanner) assigned(lp *LeafPlan, made map[int]*Request, bases []int) []*Request {
	asks := make([]*Request, len(bases))
	for i, s := range bases {
		same := *made[s]
		asks[i] = &same
	}
	for s, keys := range lp.Sets {
		var from *Request
		for _, a := range asks {
			if reuse.ContainsAll(a.set, keys) && (from == nil || a.Cells < from.Cells) {
				from = a
			}
		}
		from.Reads = append(from.Reads, s)
	}
	for _, a := range asks {
		a.weight *= float64(len(a.Reads))
	}
	return asks
}

// weight is the expected squared error of all that one set's rows take from a request, at the whole cost. An ask of a
// finer set that is read for a coarser one adds up the same cells, so weighs the same. Sums are measured by their
// range, as mechanisms.Counter is.
func (v *LeafPlanner) weight(a *Request) float64 {
	if !a.Wanted() {
		return 0
	}
	spec, err := a.Fresh(v.nominal())
	if err != nil {
		if spec, err = a.Fresh(v.Optimizer.Share(1)); err != nil {
			return math.Inf(1)
		}
	}
	total := 0.
	for _, f := range a.Projections {
		c := a.Counting[f.Counter]
		if c < 0 {
			continue
		}
		total += a.WeightOf(c) * v.Optimizer.variance(spec.Only(c)) * float64(a.CellsWhere(f.condition))
	}
	return total
}

// nominal is the cost at which requests are weighed: the whole, and no more than ε 1 or ρ 1/2. Noise on whole numbers
// is next to none where a cost is large, which says nothing of what a request errs by with a part of it.
func (v *LeafPlanner) nominal() privacy.Cost {
	c := v.Optimizer.Share(1)
	c.Epsilon, c.Rho = privacy.MicroEpsilon(min(c.Epsilon.Micro(), 1_000_000)), privacy.PicoRho(min(c.Rho.Pico(), 500_000_000_000))
	return c
}

// Order is the power of a part of the cost that errors fall with: noise grows as 1/cost (pure) or 1/√cost (zCDP).
func Order(a privacy.Accountant) float64 {
	if a == privacy.ZCDP {
		return 1
	}
	return 2
}

// Divided is the least sum of errors w/s^p over shares s that add up to 1: s is in proportion to w^(1/(p+1)).
func Divided(weights []float64, p float64) float64 {
	sum := 0.
	for _, w := range weights {
		sum += math.Pow(w, 1/(p+1))
	}
	return math.Pow(sum, p+1)
}

func (v *LeafPlanner) order() float64 { return Order(v.Optimizer.Context.Accountant()) }

// error is the least sum of the requests' errors when they share a cost.
func (v *LeafPlanner) error(asks []*Request) float64 {
	weights := make([]float64, len(asks))
	for i, a := range asks {
		weights[i] = a.weight
	}
	return Divided(weights, v.order())
}

// shares are the parts of the cost that a leaf plan's requests take, in 2^-20ths, those that measure nothing none.
func (v *LeafPlanner) shares(asks []*Request) []int64 {
	total, wanted := 0., make([]float64, len(asks))
	some := 0
	for i, a := range asks {
		if a.Wanted() {
			wanted[i] = math.Pow(max(a.weight, math.SmallestNonzeroFloat64), 1/(v.order()+1))
			total += wanted[i]
			some++
		}
	}
	out := make([]int64, len(asks))
	for i, a := range asks {
		if a.Wanted() && some == 1 {
			out[i] = WholeShare
		} else if a.Wanted() {
			out[i] = max(1, int64(wanted[i]/total*(WholeShare-float64(some))))
		}
	}
	return out
}

const WholeShare = 1 << 20

// PartOfCost is so many 2^-20ths of a cost, rounded down.
func PartOfCost(c privacy.Cost, part int64) privacy.Cost {
	if part == WholeShare {
		return c
	}
	of := func(n int64) int64 {
		high, low := bits.Mul64(uint64(n), uint64(part))
		return int64(high<<44 | low>>20)
	}
	return privacy.Cost{Epsilon: privacy.MicroEpsilon(of(c.Epsilon.Micro())), Rho: privacy.PicoRho(of(c.Rho.Pico()))}
}
