package quantiles

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/selection"
)

// The largest mechanisms.
const (
	MaxCells     = selection.MaxCandidates
	MaxQuantiles = 1 << 10
	MaxRows      = 1 << 10 // of a unit
	maxTotal     = 1 << 61 // of the rows times the common denominator
	maxPlaces    = 1 << 18 // that cells are divided into
)

// Mechanism draws quantiles. It is public and immutable; the zero value is invalid.
type Mechanism struct {
	cells     int
	fine      int     // places a cell, over which its rows are spread where there are several levels
	den       int64   // common to all quantiles
	nums      []int64 // the different quantiles, ascending, over den
	order     []int   // of each asked quantile, its place in nums
	rows      int64
	neighbors privacy.Neighbors
	rule      selection.Rule
	levels    int
	strength  selection.Strength // of each level
}

// overOne returns the quantiles' numerators over their common denominator.
func overOne(quantiles []Quantile) (nums []int64, den int64, err error) {
	den = 1
	for _, q := range quantiles {
		if q.den == 0 {
			return nil, 0, errors.New("quantile was not made by NewQuantile")
		}
		if den = den / gcd(den, q.den) * q.den; den > MaxDenominator {
			return nil, 0, fmt.Errorf("common denominator of the quantiles is %d or more, must be at most %d", den, MaxDenominator)
		}
	}
	for _, q := range quantiles {
		nums = append(nums, q.num*(den/q.den))
	}
	return nums, den, nil
}

// New calibrates quantiles over cells in order to a cost, which names ε (permute-and-flip) or ρ (exponential
// mechanism).
func New(cells int, quantiles []Quantile, c privacy.Contribution, cost privacy.Cost) (Mechanism, error) {
	switch {
	case cells < 1 || cells > MaxCells:
		return Mechanism{}, fmt.Errorf("cells is %d, must be from 1 to %d", cells, MaxCells)
	case len(quantiles) < 1 || len(quantiles) > MaxQuantiles:
		return Mechanism{}, fmt.Errorf("quantiles is %d, must be from 1 to %d", len(quantiles), MaxQuantiles)
	case c.Rows < 1 || c.Rows > MaxRows:
		return Mechanism{}, fmt.Errorf("rows a unit is %d, must be from 1 to %d", c.Rows, MaxRows)
	case c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne:
		return Mechanism{}, fmt.Errorf("neighbors is %d, must be add-remove or replace-one", c.Neighbors)
	}
	m := Mechanism{cells: cells, rows: c.Rows, neighbors: c.Neighbors, rule: selection.RuleFor(cost)}
	var err error
	if m.nums, m.den, err = overOne(quantiles); err != nil {
		return Mechanism{}, err
	}
	asked := slices.Clone(m.nums)
	slices.Sort(m.nums)
	m.nums = slices.Compact(m.nums)
	for _, num := range asked {
		m.order = append(m.order, sort.Search(len(m.nums), func(i int) bool { return m.nums[i] >= num }))
	}
	m.levels, m.fine = bits.Len(uint(len(m.nums))), 1
	for m.levels > 1 && m.fine*2*cells <= maxPlaces {
		m.fine *= 2
	}
	if m.strength, err = selection.Calibrate(m.rule, m.levels, cost); err != nil {
		return Mechanism{}, err
	}
	for i := range m.nums { // the rates of all draws
		if _, err := m.rate(part{0, m.den}, m.nums[i]); err != nil {
			return Mechanism{}, err
		}
	}
	return m, nil
}

// Levels returns how many draws a row takes part in, ⌊log2 m⌋ + 1 for m different quantiles.
func (m Mechanism) Levels() int { return m.levels }

var errNotMade = errors.New("quantiles was not made by New")

// part is an interval of shares, over den.
type part struct{ from, to int64 }

// spread bounds, in units of 1/den of a row, how much further a unit can raise one cell's loss than another's.
//
// Claim, for a quantile num of den = to − from, with m rows a unit: 2·max(num, den − num)·m under add-remove. Under
// replace-one 2·den·m where there is one part, twice the add-remove bound where there are several. Proof: cell j's loss
// is max(A, B, 0), A = num·n − den·C_j + shift, B = den·C_{j−1} − num·n − shift, C_j the rows in cells up to j, n all
// rows, shift public. One more row, in cell t, moves A by num − den·[t ≤ j] and B by den·[t < j] − num: A and B, thus
// the loss, move by at most max(num, den − num) in either direction. Replaced within the part, a row from t to t' > t
// moves A by +den and B by −den or both by 0; the losses by at most den in either direction. A row that leaves one part
// for another, or for no cell, is removed there and added here; 2·max(num, den − num) is at least den. m rows: m such
// steps.
func (m Mechanism) spread(p part, num int64) int64 {
	most := 2 * max(num-p.from, p.to-num) * m.rows
	switch {
	case m.neighbors == privacy.AddRemove:
		return most
	case m.levels == 1:
		return 2 * (p.to - p.from) * m.rows
	}
	return 2 * most
}

func (m Mechanism) rate(p part, num int64) (selection.Rate, error) {
	return m.strength.Rate(m.spread(p, num))
}

// slack returns how many units of 1/den of a row an extreme is kept away from the end: beyond the last row the cells
// are all alike, and at that distance together weigh an eighth of one at the right place.
func (m Mechanism) slack(rate selection.Rate) int64 {
	return int64(min(math.Ceil(math.Log(8*float64(m.cells*m.fine))/rate.Float()), maxTotal))
}

// Release opens the sealed cells and returns a cell for each quantile, in the order asked, not decreasing with the
// share.
//
// Claim: as Cost says, ε-DP or ρ-zCDP, for the contribution's neighbours. Theorem: Smith 2011 (a quantile by the
// exponential mechanism), Kaplan, Schnapp, Stemmer 2022 (the recursion). Proof: where there are several levels, cells
// are divided into places and their rows dealt out to these in turn: one row more in a cell is one more in exactly one
// place. So places may be taken for cells; they keep rows of one cell apart, so that a quantile that falls into a large
// cell divides it where it should. The middle quantile is drawn from all rows with a loss of the spread proved above.
// Its place's rows are halved by count between the part below and the part above, those further off fall to one part;
// each part then has its own quantiles, as shares of its own rows. One row more in the halved place is one row more in
// exactly one half. So the parts of a level are disjoint and, given the levels above, a unit's rows move them like m
// rows of theirs in all: their draws' ranges, as proved for selection.Mechanism.Select, add up to at most the level's
// ε. A level is thus ε-DP, its log ratios in an interval of length ε, hence ε²/8-zCDP for the exponential mechanism;
// the levels compose one after another. Extremes: the target of share 0 is moved up, of share 1 down, by a public
// number of rows (slack): a shift, which is in the proof. Cells are cut at a public number, rows are left out by it and
// none are added. Limits: the error in a part adds to that of its ends. The time depends on the cells; privacy of
// timing is the proxy's.
func (m Mechanism) Release(truth privacy.Sensitive[[]int64], random io.Reader) (privacy.Released[[]int], error) {
	var none privacy.Released[[]int]
	switch {
	case m.levels == 0:
		return none, errNotMade
	case !truth.Valid():
		return none, errors.New("truth was never sealed")
	}
	d := drawing{Mechanism: m, counts: m.places(sealed.Open(truth)), random: noise.NewReader(random), found: make([]int, len(m.nums))}
	if err := d.draw(0, len(d.counts)-1, 0, len(m.nums), part{0, m.den}); err != nil {
		return none, err
	}
	released := make([]int, len(m.order))
	for i, at := range m.order {
		released[i] = d.found[at] / m.fine
	}
	return sealed.Release(released), nil
}

// places deals the rows of each cell out to its places, evenly: to the places in the order of their reversed numbers.
func (m Mechanism) places(cells []int64) []int64 {
	counts := make([]int64, m.cells*m.fine)
	most := maxTotal / m.den / int64(m.cells)
	shift := 65 - bits.Len(uint(m.fine)) // fine is a power of two
	for j, n := range cells[:min(len(cells), m.cells)] {
		n = min(max(n, 0), most)
		each, rest := n/int64(m.fine), n%int64(m.fine)
		for i := range m.fine {
			place := j*m.fine + int(bits.Reverse64(uint64(i))>>shift)
			counts[place] = each
			if int64(i) < rest {
				counts[place]++
			}
		}
	}
	return counts
}

// drawing is a release under way.
type drawing struct {
	Mechanism
	counts []int64 // of the places
	random *noise.Reader
	found  []int
}

// draw finds the quantiles first to last−1, which share the rows in the places low to high.
func (d *drawing) draw(low, high, first, last int, p part) error {
	if first >= last {
		return nil
	}
	middle := (first + last) / 2
	num := d.nums[middle]
	rate, err := d.rate(p, num)
	if err != nil {
		return err
	}
	chosen, err := selection.Draw(d.rule, d.losses(low, high, p, num, d.slack(rate)), rate, d.random)
	if err != nil {
		return err
	}
	chosen += low
	d.found[middle] = chosen
	above := d.counts[chosen] / 2
	d.counts[chosen] -= above
	if err := d.draw(low, chosen, first, middle, part{p.from, num}); err != nil {
		return err
	}
	d.counts[chosen] = above
	return d.draw(chosen, high, middle+1, last, part{num, p.to})
}

// losses returns the loss of each place from low to high, less the least: how far the share's rank is from the ranks of
// the place's rows, in units of 1/den of a row.
func (d *drawing) losses(low, high int, p part, num, slack int64) []uint64 {
	den, total := p.to-p.from, int64(0)
	for _, n := range d.counts[low : high+1] {
		total += n
	}
	target := (num - p.from) * total
	switch num {
	case 0:
		target += slack
	case d.den:
		target -= slack
	}
	losses, below := make([]uint64, high-low+1), int64(0)
	least := uint64(math.MaxUint64)
	for j := range losses {
		upTo := below + den*d.counts[low+j]
		losses[j] = uint64(max(target-upTo, below-target, 0))
		least = min(least, losses[j])
		below = upTo
	}
	for j := range losses {
		losses[j] -= least
	}
	return losses
}
