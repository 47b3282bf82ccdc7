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

// MostCells is the largest number of cells of a Dawa.
const MostCells = 1 << 20

// Dawa is a checked plan for ordered cells: a quarter of the cost chooses a partition into buckets whose cells are about
// equal, the rest observes the buckets' counts by the best tree for so many; a count is then spread evenly over its
// bucket. It is immutable; the zero value is invalid.
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
	if cells < 1 || cells > MostCells {
		return Dawa{}, fmt.Errorf("number of cells is %d, must be from 1 to %d", cells, MostCells)
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
	if _, _, err := d.buckets(min(cells, 2)); err != nil {
		return Dawa{}, err
	}
	return d, nil
}

// DawaWins tells whether a Dawa is expected to have a smaller error over all ranges than the best tree with the isotonic
// step, for a public guess of the number of rows (or a released one): few rows over many cells, ε·rows/(rows of a unit) at
// most 1000 and at least 1024 cells. ρ counts as ε = √(2ρ).
//
// On shapes of real columns over 4096 cells, at ε·rows from 30 to 3000, its error was 0.96 of that tree's (0.88 to 1.10 on
// single ones), and 0.6 of the same tree's without the isotonic step; from 10,000 on and below 1024 cells it lost more than
// it won. So the gain is small where a tree is read well.
func DawaWins(cells int, rows int64, c privacy.Contribution, cost privacy.Cost) bool {
	b, err := boundsOf(c)
	epsilon := max(cost.Epsilon.Float(), math.Sqrt(2*max(0, cost.Rho.Float())))
	return err == nil && cells >= 1024 && rows > 0 && epsilon > 0 && epsilon*float64(rows) <= 1000*float64(b.rows*b.times())
}

// Cost returns what is to be charged: all of what the plan was made with.
func (d Dawa) Cost() privacy.Cost { return d.cost }

// buckets returns the tree over n buckets (of no levels for a single one) and the noise of its nodes. Each is a function of n
// alone.
func (d Dawa) buckets(n int) (ranges.Tree, noise.Distribution, error) {
	if n == 1 {
		_, noise, err := d.observed(1, 1)
		return ranges.Tree{}, noise, err
	}
	variance := func(levels int) float64 {
		v, _, err := d.observed(n, int64(levels))
		if err != nil {
			return 0
		}
		return v
	}
	tree, err := ranges.NewTree(n, ranges.Best(n, variance))
	if err != nil {
		return ranges.Tree{}, noise.Distribution{}, err
	}
	_, noise, err := d.observed(n, int64(tree.Levels()))
	return tree, noise, err
}

// observed returns the noise of n buckets seen on so many levels: a row is in one node of each, so L1 is rows·levels, L2² is
// rows²·levels, and under replace-one, unless there is but one bucket, twice that.
func (d Dawa) observed(n int, levels int64) (float64, noise.Distribution, error) {
	times := int64(1)
	if n > 1 {
		times = d.bounds.times()
	}
	kind, num, den := noise.Laplace, d.bounds.rows*levels*times*1_000_000, d.epsilon.Micro()
	if den == 0 {
		// σ² = L2²·1e12/(2·pico), rounded up to a whole number of 1/den of a row².
		kind, den = noise.Gaussian, 1
		v := new(big.Int).Mul(big.NewInt(d.bounds.rows*d.bounds.rows*levels*times), big.NewInt(1e12))
		if v.BitLen() < 100 {
			den = 1 << 20
			v.Lsh(v, 20)
		}
		half := new(big.Int).Lsh(big.NewInt(d.rho.Pico()), 1)
		v.Add(v, half).Sub(v, big.NewInt(1)).Quo(v, half)
		if !v.IsInt64() {
			return 0, noise.Distribution{}, errors.New("noise of the buckets is out of range: the cost is too small for the rows of a unit")
		}
		num = v.Int64()
	}
	dist, err := noise.New(kind, num, den)
	if err != nil {
		return 0, dist, err
	}
	return dist.Variance(), dist, nil
}

// Bucketed is the outcome of a Dawa: where the buckets end, and the noisy nodes of the tree over them, level by level from
// the top, each left to right.
type Bucketed struct {
	Ends         []int
	Observations []int64
}

// The ends of what is observed: counts are cut at mostCount, so noise that is clipped at ±2^63 ends at ±mostNoisy either way.
const (
	mostCount = 1 << 61
	mostNoisy = 1 << 62
)

// Release opens the cells, chooses the partition and observes it. Missing cells count as 0, further ones are ignored.
//
// Claim: ε-DP, or ρ-zCDP, at the plan's cost, for its contribution.
// Neighbours and sensitivity: a unit's rows are at most rows single steps (replace-one: twice that) between the cells; the
// partition's proof stands in partition.go, the buckets' sensitivity at observed.
// Theorem: composition; the partition's ε₁-DP is ε₁²/2-zCDP (Bun, Steinke 2016).
// Proof: given the partition, the tree, the noise and the buckets are fixed; a cell enters its bucket by addition, cut at
// 2^61, which brings no two values further apart, and exact noise is added to every node.
// Limits: as for the partition. The reading is biased where buckets are not even, by an amount that the release does not tell.
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
			cells[i] = min(max(n, 0), mostCount)
		}
	}
	out := Bucketed{Ends: d.partition.choose(cells, reader)}
	if err := reader.Err(); err != nil {
		return none, err
	}
	tree, noise, err := d.buckets(len(out.Ends))
	if err != nil {
		return none, err
	}
	counts, from := make([]int64, len(out.Ends)), 0
	for i, end := range out.Ends {
		for _, n := range cells[from:end] {
			counts[i] = min(counts[i]+n, mostCount)
		}
		from = end
	}
	out.Observations = observe(tree, counts)
	for i, n := range out.Observations {
		out.Observations[i] = addNoise(n, noise.Sample(reader))
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(out), nil
}

// observe returns the nodes of the tree over the counts.
func observe(tree ranges.Tree, counts []int64) []int64 {
	if len(counts) == 1 {
		return counts
	}
	nodes := make([]int64, 0, tree.Nodes())
	for l := range tree.Levels() {
		for from := 0; from < len(counts); from += tree.Block(l) {
			sum := int64(0)
			for _, n := range counts[from:min(from+tree.Block(l), len(counts))] {
				sum = min(sum+n, mostCount)
			}
			nodes = append(nodes, sum)
		}
	}
	return nodes
}

// addNoise returns n+noise, cut at ±mostNoisy, for 0 ≤ n ≤ mostCount.
func addNoise(n, noise int64) int64 {
	if noise >= mostNoisy {
		return mostNoisy
	}
	return min(max(n+noise, -mostNoisy), mostNoisy)
}

// Prefixes returns the estimated sums of the first 0, 1, …, all cells: the buckets' counts by least squares and the isotonic
// step, each spread evenly over its cells. It is post-processing. The sum of cells from i to j−1 is the difference of two.
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
	ends := []float64{0, 0}
	if n > 1 {
		tree, _, err := d.buckets(n)
		if err != nil {
			return none, err
		}
		if len(r.Observations) != tree.Nodes() {
			return none, fmt.Errorf("number of observations is %d, must be %d", len(r.Observations), tree.Nodes())
		}
		ends = ranges.Prefixes(tree.Fit(r.Observations))
	} else if len(r.Observations) == 1 {
		ends[1] = float64(r.Observations[0])
	}
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
