package histograms

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/ranges"
)

// MaxCells is the largest number of cells of a Dawa.
const MaxCells = 1 << 20

// Dawa is a checked plan for ordered cells: a quarter of the cost chooses a partition into buckets whose cells are
// about equal, the rest observes the buckets' counts by the best strategy for so many; a count is then spread evenly
// over its bucket. It is immutable; the zero value is invalid.
type Dawa struct {
	cells     int
	bounds    bounds
	cost      privacy.Cost
	partition partitioner
	epsilon   privacy.Epsilon // of the buckets, or
	rho       privacy.Rho
}

// NewDawa checks the parameters. The cost names ε, or ρ: the partition's part is then ε²/2 of it.
func NewDawa(cells int, c privacy.Contribution, cost privacy.Cost) (Dawa, error) {
	if cells < 1 || cells > MaxCells {
		return Dawa{}, fmt.Errorf("number of cells is %d, must be from 1 to %d", cells, MaxCells)
	}
	b, err := boundsOf(c)
	if err != nil {
		return Dawa{}, err
	}
	d := Dawa{cells: cells, bounds: b, cost: cost}
	e, r := cost.Epsilon.Micro(), cost.Rho.Pico()
	switch {
	case cost.Delta.Atto() != 0:
		return Dawa{}, fmt.Errorf("delta of a dawa histogram is %s, must be 0", cost.Delta)
	case e < 0 || r < 0 || (e == 0) == (r == 0):
		return Dawa{}, fmt.Errorf("cost is epsilon %s and rho %s, must name one of them, greater than 0", cost.Epsilon, cost.Rho)
	case e > 0:
		d.epsilon = privacy.MicroEpsilon(e - e/4)
		e /= 4
	default:
		// ε = √(2ρ/4), rounded down; its own ρ, rounded up, is what it takes.
		e = new(big.Int).Sqrt(big.NewInt(r / 2)).Int64()
		d.rho = privacy.PicoRho(r - privacy.MicroEpsilon(e).Rho().Pico())
	}
	if e == 0 {
		return Dawa{}, fmt.Errorf("cost is %s, too small to be split", cost)
	}
	steps := b.rows * b.times()
	if float64(32*steps)*1e6/float64(e) >= 1<<28 {
		return Dawa{}, fmt.Errorf("cost is %s, too small for %d rows of a unit", cost, b.rows)
	}
	if d.partition.noise, err = noise.New(noise.Laplace, 32*steps*1_000_000, e); err != nil {
		return Dawa{}, fmt.Errorf("partition: %w", err)
	}
	d.partition.scale = (32*steps*1_000_000 + e - 1) / e
	if _, _, err := d.buckets(1); err != nil {
		return Dawa{}, err
	}
	if _, _, err := d.buckets(min(cells, 2)); err != nil {
		return Dawa{}, err
	}
	return d, nil
}

// buckets returns the strategy for n buckets with the least expected error over all ranges of them, and its noise. A
// row is in one bucket, so that the observations of neighbours are rows times the strategy's sensitivity apart in L1,
// rows² times in squared L2.
func (d Dawa) buckets(n int) (ranges.Description, noise.Distribution, error) {
	goal := ranges.Goal{Cells: n, Workload: ranges.AllRanges, Norm: ranges.L2, Neighbors: privacy.AddRemove}
	if d.epsilon.Micro() > 0 {
		goal.Norm = ranges.L1
	}
	if d.bounds.replaceOne {
		goal.Neighbors = privacy.ReplaceOne
	}
	chosen, _ := ranges.Choose(goal, func(s privacy.Sensitivity) float64 {
		dist, err := d.calibrate(s)
		if err != nil {
			return 0
		}
		return dist.Variance()
	})
	strategy, err := ranges.Open(chosen)
	if err != nil {
		return chosen, noise.Distribution{}, fmt.Errorf("cost is %s, too small for %d rows of a unit: %w", d.cost, d.bounds.rows, err)
	}
	dist, err := d.calibrate(strategy.Sensitivity(goal.Neighbors))
	return chosen, dist, err
}

// calibrate returns the noise of the buckets for a strategy of the given sensitivity.
func (d Dawa) calibrate(s privacy.Sensitivity) (noise.Distribution, error) {
	if d.epsilon.Micro() > 0 {
		if s.L1 > math.MaxInt64/1_000_000/d.bounds.rows {
			return noise.Distribution{}, errors.New("scale of the buckets' noise is out of range")
		}
		return noise.New(noise.Laplace, s.L1*d.bounds.rows*1_000_000, d.epsilon.Micro())
	}
	// σ² = L2²·rows²·1e12/(2·pico), rounded up to a multiple of 1/den.
	den := int64(1)
	v := new(big.Int).Mul(big.NewInt(s.L2Squared), big.NewInt(1e12))
	v.Mul(v, big.NewInt(d.bounds.rows*d.bounds.rows))
	half := new(big.Int).Lsh(big.NewInt(d.rho.Pico()), 1)
	if v.BitLen()-half.BitLen() < 40 {
		den = 1 << 20
		v.Lsh(v, 20)
	}
	v.Add(v, half).Sub(v, big.NewInt(1)).Quo(v, half)
	if !v.IsInt64() {
		return noise.Distribution{}, errors.New("variance of the buckets' noise is out of range")
	}
	return noise.New(noise.Gaussian, v.Int64(), den)
}

// Bucketed is the outcome of a Dawa: where the buckets end, the strategy by which they were observed, a function of
// their number alone, and its noisy observations.
type Bucketed struct {
	Ends         []int
	Strategy     ranges.Description
	Observations []int64
}

// Release opens the cells, chooses the partition and observes it. Missing cells count as 0, further ones are ignored.
//
// Claim: ε-DP, or ρ-zCDP, at the plan's cost, for its contribution. Neighbours and sensitivity: a unit's rows are at
// most rows single steps (replace-one: twice that) between the cells; the partition's proof is in partition.go, the
// buckets' sensitivity at buckets. Theorem: composition; the partition's ε₁-DP is ε₁²/2-zCDP (Bun, Steinke 2016).
// Proof: given the partition, the strategy, the noise and the buckets are fixed; a cell enters its bucket by addition,
// cut at 2^61, which brings no two values further apart, and exact noise is added to every observation. Limits: as for
// the partition. Where a source of randomness fails, how far it got depends on the data. The reading is biased where
// buckets are not even, by an amount that the release does not tell.
func (d Dawa) Release(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[Bucketed], error) {
	var none privacy.Released[Bucketed]
	if d.cells == 0 {
		return none, errors.New("plan is the zero value, must be made by NewDawa")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	cells := make([]int64, d.cells)
	for i, n := range sealed.Open(truth) {
		if i < len(cells) {
			cells[i] = min(max(n, 0), noise.MaxCount)
		}
	}
	out := Bucketed{Ends: d.partition.choose(cells, reader)}
	if err := reader.Err(); err != nil {
		return none, err
	}
	described, law, err := d.buckets(len(out.Ends))
	if err != nil {
		return none, err
	}
	strategy, err := ranges.Open(described)
	if err != nil {
		return none, err
	}
	counts, from := make([]int64, len(out.Ends)), 0
	for i, end := range out.Ends {
		for _, n := range cells[from:end] {
			counts[i] = min(counts[i]+n, noise.MaxCount)
		}
		from = end
	}
	out.Strategy, out.Observations = described, strategy.Observe(counts)
	for i, n := range out.Observations {
		out.Observations[i] = noise.Add(n, law.Sample(reader))
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(out), nil
}

// Prefixes returns the estimated sums of the first 0, 1, …, all cells: the buckets' counts by least squares and the
// isotonic step, each spread evenly over its cells. It is post-processing. The sum of cells from i to j−1 is the
// difference of two.
func (d Dawa) Prefixes(released privacy.Released[Bucketed]) (privacy.Released[[]float64], error) {
	var none privacy.Released[[]float64]
	if d.cells == 0 || !released.Valid() {
		return none, errors.New("plan or release is the zero value, must be made by NewDawa and Release")
	}
	r := released.Value()
	n := len(r.Ends)
	if n == 0 || r.Ends[n-1] != d.cells {
		return none, fmt.Errorf("release does not end at %d cells: it is another plan's", d.cells)
	}
	strategy, err := ranges.Open(r.Strategy)
	if err != nil {
		return none, err
	}
	if strategy.Cells() != n || len(r.Observations) != strategy.Observations() {
		return none, fmt.Errorf("number of observations is %d of %d cells, must be %d of %d", len(r.Observations), strategy.Cells(), strategy.Observations(), n)
	}
	ends := ranges.Prefixes(strategy.Fit(r.Observations))
	ranges.Isotonic(ends)
	prefixes, from := make([]float64, 1, d.cells+1), 0
	for i, end := range r.Ends {
		for at := from + 1; at <= end; at++ {
			prefixes = append(prefixes, ends[i]+(ends[i+1]-ends[i])*float64(at-from)/float64(end-from))
		}
		from = end
	}
	return sealed.Release(prefixes), nil
}
