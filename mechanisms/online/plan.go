package online

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Spec is what is public about a session.
type Spec struct {
	Cells        int
	Contribution privacy.Contribution
	Rows         int64 // about how many rows there are, from the policy or a release, never from the data
	Spare        int64 // how many more there may be: the hypothesis has a further cell for rows that are absent
	Updates      int   // hard answers, the hard cap
	Restarts     int   // how often the session may be restored; each takes one of the updates as well
	Median       bool  // guesses are medians over all hypotheses that give the hard answers, about, not of the nearest one
	Accountant   privacy.Accountant
}

// Plan is a checked spec with its noise. It is made by NewPlan; the zero value is refused.
type Plan struct {
	spec      Spec
	moves     int64 // by how much one unit moves a query
	split     split
	threshold int64
	width     float64 // the promised error, as a multiple of moves
	valid     bool
}

// split is the budget, exactly: what the noisy threshold costs, what a positive comparison, what its answer.
type split struct {
	threshold, comparison, answer privacy.Epsilon
	answerRho                     privacy.Rho // zCDP: instead of answer
}

const (
	maxUpdates = 1 << 20
	maxRows    = 1 << 40
	maxMoves   = 1 << 36
)

// NewPlan returns the plan that spends at most cost, with the threshold and the split that make the error at miss
// small. Only the field of the spec's accountant may be set in cost.
func NewPlan(s Spec, cost privacy.Cost, miss noise.Probability) (Plan, error) {
	moves, err := s.check()
	if err != nil {
		return Plan{}, err
	}
	total := float64(cost.Epsilon.Micro())
	if s.Accountant == privacy.ZCDP {
		total = float64(cost.Rho.Pico())
	}
	if cost.Delta != (privacy.Delta{}) || (s.Accountant == privacy.Pure) != (cost.Rho == privacy.Rho{}) || (s.Accountant == privacy.ZCDP) != (cost.Epsilon == privacy.Epsilon{}) || total <= 0 {
		return Plan{}, fmt.Errorf("cost is %s, must name the unit of the accountant %s and no other, greater than 0", cost, s.Accountant)
	}
	if err := checkMiss(miss); err != nil {
		return Plan{}, err
	}
	shape := shapeOf(s, miss)
	width := shape.cost / total
	if s.Accountant == privacy.ZCDP {
		width = math.Sqrt(width)
	}
	return s.plan(shape, width, moves, math.Floor)
}

func checkMiss(miss noise.Probability) error {
	if !(miss >= 1e-12 && miss <= .25) {
		return fmt.Errorf("miss is %v, must be from 1e-12 to 0.25", float64(miss))
	}
	return nil
}

// check returns by how much one unit moves a query: by its rows, under either relation of neighbours, because a row
// counts 0 or 1.
func (s Spec) check() (moves int64, err error) {
	c := s.Contribution
	rows := c.Rows
	if c.Groups > 0 && c.PerGroup > 0 && c.Groups <= rows/c.PerGroup {
		rows = c.Groups * c.PerGroup
	}
	for _, f := range []struct {
		name            string
		value, from, to int64
	}{
		{"cells", int64(s.Cells), 1, maxCells},
		{"rows a unit", c.Rows, 1, maxRows},
		{"groups a unit", c.Groups, 0, maxRows},
		{"rows a unit in a group", c.PerGroup, 0, maxRows},
		{"neighbors", int64(c.Neighbors), int64(privacy.AddRemove), int64(privacy.ReplaceOne)},
		{"accountant", int64(s.Accountant), int64(privacy.Pure), int64(privacy.ZCDP)},
		{"rows", s.Rows, 1, maxRows},
		{"spare rows", s.Spare, 0, maxRows},
		{"updates", int64(s.Updates), 1, maxUpdates},
		{"restarts", int64(s.Restarts), 0, int64(s.Updates) - 1},
	} {
		if f.value < f.from || f.value > f.to {
			return 0, fmt.Errorf("%s is %d, must be from %d to %d", f.name, f.value, f.from, f.to)
		}
	}
	if rows > maxMoves {
		return 0, fmt.Errorf("rows a unit is %d, must be at most %d", rows, int64(maxMoves))
	}
	if s.Median && s.Cells > maxMedian {
		return 0, fmt.Errorf("cells is %d, must be at most %d for the median", s.Cells, maxMedian)
	}
	return rows, nil
}

// plan makes the noise of a shape for a width in units of what one unit moves. Costs are rounded to whole micro-units:
// down (noise up) where a cost was given, up where a width was.
func (s Spec) plan(shape shape, width float64, moves int64, round func(float64) float64) (Plan, error) {
	p := Plan{spec: s, moves: moves, width: width}
	if !(width > 0 && width*float64(moves) < maxCount/4) {
		return Plan{}, fmt.Errorf("cost leads to a width of %v times a unit's rows, out of range", width)
	}
	p.threshold = int64(math.Round(shape.threshold * width * float64(moves)))
	micro := func(epsilon float64) privacy.Epsilon {
		return privacy.MicroEpsilon(int64(round(min(epsilon, 1e6) * 1e6)))
	}
	p.split.threshold = micro(1 / (shape.thresholdScale * width))
	p.split.comparison = micro(2 / (shape.comparisonScale * width))
	if s.Accountant == privacy.Pure {
		p.split.answer = micro(1 / (shape.answerScale * width))
	} else {
		variance := shape.answerScale * width * shape.answerScale * width
		p.split.answerRho = privacy.PicoRho(int64(round(min(1e12/(2*variance), 1e18))))
	}
	if p.split.threshold.Micro() < 1 || p.split.comparison.Micro() < 1 || p.split.answer.Micro()+p.split.answerRho.Pico() < 1 {
		return Plan{}, errors.New("the cost of one step is below the smallest unit: raise the budget or declare fewer updates")
	}
	p.valid = true
	if _, err := p.sources(); err != nil {
		return Plan{}, err
	}
	if _, err := p.Cost(); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// Cost is what opening a session takes, all of it: see the proofs at threshold.go and session.go.
func (p Plan) Cost() (privacy.Cost, error) {
	if !p.valid {
		return privacy.Cost{}, errUnplanned
	}
	c, t := big.NewInt(int64(p.spec.Updates)), p.split.threshold.Micro()
	total := new(big.Int)
	if p.spec.Accountant == privacy.Pure {
		total.Mul(c, big.NewInt(p.split.comparison.Micro()+p.split.answer.Micro()))
		total.Add(total, big.NewInt(t))
		again := new(big.Int).Mul(big.NewInt(int64(p.spec.Restarts)), big.NewInt(max(0, t-p.split.answer.Micro())))
		total.Add(total, again)
	} else {
		instance := big.NewInt(t + p.split.comparison.Micro())
		total.Mul(instance, instance).Mul(total, c)
		total.Add(total, big.NewInt(1)).Rsh(total, 1)
		total.Add(total, new(big.Int).Mul(c, big.NewInt(p.split.answerRho.Pico())))
	}
	if !total.IsInt64() || total.Int64() > 1e18 {
		return privacy.Cost{}, errors.New("the cost of all updates is out of range")
	}
	if p.spec.Accountant == privacy.Pure {
		return privacy.Cost{Epsilon: privacy.MicroEpsilon(total.Int64())}, nil
	}
	return privacy.Cost{Rho: privacy.PicoRho(total.Int64())}, nil
}

var (
	errUnplanned = errors.New("plan was not made by NewPlan")
	errUnsaved   = errors.New("nothing saves the steps")
)

// sources holds the distributions of the noise.
type sources struct{ threshold, comparison, answer noise.Distribution }

func (p Plan) sources() (sources, error) {
	var d sources
	var err error
	laplace := func(times int64, e privacy.Epsilon) noise.Distribution {
		made, problem := noise.New(noise.Laplace, p.moves*times*1_000_000, e.Micro())
		err = errors.Join(err, problem)
		return made
	}
	d.threshold = laplace(1, p.split.threshold)
	d.comparison = laplace(2, p.split.comparison)
	if p.spec.Accountant == privacy.Pure {
		d.answer = laplace(1, p.split.answer)
		return d, err
	}
	variance := new(big.Rat).SetFrac(big.NewInt(p.moves), big.NewInt(2*p.split.answerRho.Pico()))
	variance.Mul(variance, new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(p.moves), big.NewInt(1e12))))
	if !variance.Num().IsInt64() || !variance.Denom().IsInt64() {
		return d, errors.Join(err, errors.New("rows a unit are too many for Gaussian answers"))
	}
	d.answer, err = noise.New(noise.Gaussian, variance.Num().Int64(), variance.Denom().Int64())
	return d, err
}

// slab returns half of the slab that a hard answer leaves to a hypothesis, as a share of all rows.
func (p Plan) slab() float64 { return learned * p.width * float64(p.moves) / p.whole() }

// whole returns the hypothesis's rows.
func (p Plan) whole() float64 { return float64(p.spec.Rows + p.spec.Spare) }
