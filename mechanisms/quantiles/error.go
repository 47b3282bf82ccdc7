package quantiles

import (
	"math"
)

// ExpectedRows is a public guess of the number of rows.
type ExpectedRows int64

// Deviation is the standard deviation that a range release's prefix sums have on average.
type Deviation float64

// Expected returns the mean rank error, in rows, that the quantiles have when the rows are spread evenly over the
// cells; a rank within a cell is none off.
//
// A quantile in a part moves with the part's ends, in proportion to its distance from them; the three errors are taken
// to be independent, and one of e rows to show as e²/(e+λ) in cells of λ rows. The guess is for choosing alone.
func (m Mechanism) Expected(rows ExpectedRows) float64 {
	if m.levels == 0 || rows < 0 {
		return math.NaN()
	}
	each := float64(rows) / float64(m.cells)
	if m.levels == 1 {
		rate, err := m.rate(part{0, m.den}, m.nums[0])
		if err != nil {
			return math.NaN()
		}
		extreme := 0.0
		if m.nums[0] == 0 || m.nums[0] == m.den {
			extreme = float64(m.slack(rate)) / float64(m.den)
		}
		return extreme + ownError(rate.Float()*float64(m.den), each)
	}
	sum, errors := 0.0, m.errors()
	for _, at := range m.order {
		sum += shown(errors[at], each)
	}
	return sum / float64(len(m.order))
}

// shown returns e²/(e+λ).
func shown(e, each float64) float64 { return e * e / (e + each) }

// errors returns each quantile's expected rank error among rows that all differ.
func (m Mechanism) errors() []float64 {
	errors := make([]float64, len(m.nums))
	m.guess(0, len(m.nums), part{0, m.den}, 0, 0, errors)
	return errors
}

func (m Mechanism) guess(first, last int, p part, below, above float64, errors []float64) {
	if first >= last {
		return
	}
	middle := (first + last) / 2
	num := m.nums[middle]
	rate, err := m.rate(p, num)
	if err != nil {
		return
	}
	share := float64(num-p.from) / float64(p.to-p.from)
	own := 1 / (rate.Float() * float64(p.to-p.from))
	if num == 0 || num == m.den {
		own += float64(m.slack(rate)) / float64(p.to-p.from)
	}
	errors[middle] = math.Hypot(own, math.Hypot((1-share)*below, share*above))
	m.guess(first, middle, part{p.from, num}, below, errors[middle], errors)
	m.guess(middle+1, last, part{num, p.to}, errors[middle], above, errors)
}

// ownError returns the mean error of one draw: with λ rows a cell, cells j steps off weigh w^j, w = exp(−rate·λ), and
// are λ·j rows off.
func ownError(rate, each float64) float64 {
	x := rate * each
	if x < 1e-6 {
		return 1 / rate
	}
	w := math.Exp(-x)
	return each * 2 * w / (-math.Expm1(-2 * x))
}

// isotonicGain is by how much isotonic regression narrows the mean error of the prefix sums: measured on evenly spread
// rows, see BenchmarkQuantiles.
const isotonicGain = .7

// PreferRanges reports whether quantiles read from the prefix sums of a range release at the same cost are expected to
// be nearer than the mechanism's. All of it is public. That ranks within a cell are none off narrows both ways' errors
// alike.
func (m Mechanism) PreferRanges(rows ExpectedRows, prefixes Deviation) bool {
	if m.levels == 0 || rows < 0 || !(prefixes > 0) {
		return false
	}
	each := float64(rows) / float64(m.cells)
	return shown(math.Sqrt(2/math.Pi)*float64(prefixes)*isotonicGain, each) < m.Expected(rows)
}
