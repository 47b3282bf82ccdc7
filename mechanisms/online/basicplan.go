package online

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// BasicSpec is what is public about the median mechanism in its first form.
type BasicSpec struct {
	Cells        int
	Size         int   // rows of a candidate database; all C(Cells+Size−1, Size) of them are enumerated
	Rows         int64 // n: exact and public, which replace-one makes it
	Width        int64 // the error aimed at, in rows: ε of the paper is Width/Rows
	Queries      int64 // k: how many are answered at most
	Hard         int   // c: hard answers at most
	Contribution privacy.Contribution
	Cost         privacy.Cost // ε and δ
}

// BasicPlan is a checked BasicSpec with its noise. It is made by NewBasic; the zero value is refused.
type BasicPlan struct {
	spec    BasicSpec
	bad     int64 // easy answers with a threshold that is not good, but for δ
	moves   int64 // by how much one unit moves r, in units of 1/unit
	gamma   int64 // the distance of thresholds, in the same units
	last    int64 // the number of the last threshold
	soft    noise.Distribution
	answer  noise.Distribution
	checked bool
}

const (
	basicUnit     = 1 << 40 // r is a whole number of 2⁻⁴⁰
	maxCandidates = 1 << 20
	maxEnumerated = 1 << 26 // candidates × cells
)

// NewBasic checks a spec. It refuses where the theorem does not hold: n below 30·ln(2k/α)·log2(k)/(α'ε) in the letters
// of the paper (α the ε of the cost, ε = Width/Rows), δ = 0, or neighbours under which n is private.
func NewBasic(s BasicSpec) (BasicPlan, error) {
	if err := s.check(); err != nil {
		return BasicPlan{}, err
	}
	p := BasicPlan{spec: s}
	var err error
	if p.bad, err = badThresholds(int64(s.Hard), s.Cost.Delta); err != nil {
		return BasicPlan{}, err
	}
	// α' = ε / (2·(2c + bad)), a whole number of micro-units over share.
	share := 2 * (2*int64(s.Hard) + p.bad)
	slope := float64(s.Cost.Epsilon.Micro()) / 1e6 / float64(share)
	logs := math.Log(2*float64(s.Queries)/s.Cost.Epsilon.Float()) * (1 + 1e-9)
	// n ≥ 30·ln(2k/α)·log2(k)/(α'·Width/n).
	least := 30 * logs * math.Log2(float64(s.Queries)) / slope * (1 + 1e-9)
	if !(float64(s.Width) >= least) {
		return BasicPlan{}, fmt.Errorf("rows is %d, of which the width is %d: must be at least %.3g, so that the width is at least 30·ln(2k/ε)·log2(k)/ε' = %.3g rows, ε' = %.3g", s.Rows, s.Width, least*float64(s.Rows)/float64(s.Width), least, slope)
	}
	p.moves = (basicUnit*s.Contribution.Rows+s.Width-1)/s.Width + 3
	if share > math.MaxInt64/1_000_000/p.moves {
		return BasicPlan{}, errors.New("width is too small for as many hard answers: the noise is out of range")
	}
	if p.soft, err = noise.New(noise.Laplace, p.moves*share*1_000_000, s.Cost.Epsilon.Micro()); err != nil {
		return BasicPlan{}, err
	}
	if p.answer, err = noise.New(noise.Laplace, s.Contribution.Rows*share*1_000_000, s.Cost.Epsilon.Micro()); err != nil {
		return BasicPlan{}, err
	}
	gamma := float64(p.moves) + float64(p.moves)/slope*logs + 2
	p.last = int64(math.Floor(.15 * basicUnit / gamma))
	if p.gamma = int64(math.Ceil(gamma)); p.last > 62 {
		p.last = 62
	}
	if p.last < 0 || float64(s.Queries) > math.Pow(2, float64(p.last)) {
		return BasicPlan{}, fmt.Errorf("rows is %d, must be so many that %d thresholds fit between 3/4 and 9/10", s.Rows, int64(math.Ceil(math.Log2(float64(s.Queries)))))
	}
	p.checked = true
	return p, nil
}

func (s BasicSpec) check() error {
	for _, f := range []struct {
		name            string
		value, from, to int64
	}{
		{"cells", int64(s.Cells), 2, 1 << 12},
		{"size", int64(s.Size), 1, 255},
		{"rows", s.Rows, 1, maxRows},
		{"width", s.Width, 1, s.Rows},
		{"queries", s.Queries, 2, 1 << 40},
		{"hard answers", int64(s.Hard), 1, maxUpdates},
		{"rows a unit", s.Contribution.Rows, 1, 1 << 16},
		{"neighbors", int64(s.Contribution.Neighbors), int64(privacy.ReplaceOne), int64(privacy.ReplaceOne)},
		{"epsilon in micro-units", s.Cost.Epsilon.Micro(), 1, 2_000_000},
		{"delta in atto-units", s.Cost.Delta.Atto(), 1, 1e17},
		{"rho", s.Cost.Rho.Pico(), 0, 0},
	} {
		if f.value < f.from || f.value > f.to {
			return fmt.Errorf("%s is %d, must be from %d to %d", f.name, f.value, f.from, f.to)
		}
	}
	candidates := 1.0
	for i := 1; i <= s.Size; i++ {
		candidates = candidates * float64(s.Cells+i-1) / float64(i)
	}
	if candidates > maxCandidates*1.001 || candidates*float64(s.Cells) > maxEnumerated {
		return fmt.Errorf("candidates is %.4g, must be at most %d (and %d cells in all): fewer cells or a smaller size", candidates, maxCandidates, maxEnumerated)
	}
	return nil
}

// badThresholds returns the least y with P(more than y easy answers have a bad threshold) ≤ δ; see Basic.
func badThresholds(hard int64, delta privacy.Delta) (int64, error) {
	goal := math.Log(delta.Float()) - 1e-9
	exceeds := func(y int64) float64 {
		least := math.Inf(1)
		for i := 1; i <= 400; i++ {
			b := float64(i) * .02
			a := math.Log((4 - math.Exp(-b)) / 3 * (1 - 1e-12))
			least = min(least, math.Exp(a)-1-a*float64(y+1)+b*float64(hard))
		}
		return least
	}
	low, high := int64(0), int64(1)
	for exceeds(high) > goal {
		if high *= 2; high > 1<<40 {
			return 0, errors.New("delta is out of range")
		}
	}
	for low < high {
		middle := (low + high) / 2
		if exceeds(middle) <= goal {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return high, nil
}
