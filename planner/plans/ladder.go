package plans

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
)

// Climbing is a column of a leaf that is made of units' totals, and what one of its whole numbers is worth in a sum.
type Climbing struct {
	Of    *CountColumn
	Worth *big.Rat
}

// Climbs reports whether a column has rows whose clamp is chosen from what was released: their errors are known then.
func (c *CountColumn) Climbs() bool {
	for i := range c.Runs {
		if c.Runs[i].Ladder != nil {
			return true
		}
	}
	return false
}

// Climbed is a run of totals as it is read.
type Climbed struct {
	totals.Kept
	Clamp int64 // of the last step that is read
	Off   int64 // the half-width of what is read, the choice of the clamp included, at the plan's confidence
	Above int64 // about so many units add more than that, a noisy number
}

// wider is how much wider the noise of what is read is where the last step was chosen for it: the exact law of a fixed
// one times this covers what is kept in 95 % of draws (totals.TestReadings).
var wider = map[mechanisms.NoiseKind]float64{mechanisms.DiscreteLaplace: 4. / 3, mechanisms.DiscreteGaussian: 9. / 8}

// Climb chooses the clamp of a run, of what the cells of its measure sum up to.
func (p *Plan) Climb(run *Run, sum func(t Term) int64) Climbed {
	spec := p.Measures[run.Measure].Spec
	own := spec.Counts().Sums[0].Noise
	law := totals.Law{Kind: own.Kind, Scale: own.Spread()}
	if own.Kind == mechanisms.DiscreteGaussian {
		law.Scale = math.Sqrt(law.Scale)
	}
	cells, each := make([][]int64, len(run.Mix)), 1
	for r, row := range run.Mix {
		cells[r] = make([]int64, len(run.Ladder))
		noises := make([]int, len(run.Ladder))
		for _, t := range row {
			j := run.stepOf(t)
			cells[r][j] += sum(t)
			noises[j] += mechanisms.CellsIn(t.Spans)
			each = max(each, noises[j])
		}
	}
	c := Climbed{Kept: run.Ladder.Keep(cells, each, law)}
	if c.Steps == 0 {
		return c
	}
	c.Clamp = run.Ladder[c.Steps-1]
	kept := Run{Measure: run.Measure, Mix: make([][]Term, len(run.Mix))}
	above, units := new(big.Int), new(big.Int)
	for r, row := range cells {
		kept.Mix[r] = run.Read(r, c)
		for j, n := range row {
			if units.Add(units, big.NewInt(n)); j == c.Steps || j == c.Steps+1 {
				above.Add(above, big.NewInt(n))
			}
		}
	}
	units.Quo(units, big.NewInt(totals.Parts))
	off := float64(p.WidestError(&kept, p.Confidence).HalfWidth) * wider[own.Kind]
	c.Off = int64(math.Ceil(off + totals.Rounded(max(0, units.Int64()), c.Clamp)))
	c.Above = max(0, above.Quo(above, big.NewInt(totals.Parts)).Int64())
	return c
}

// stepOf is the step that a term of a run of totals is of.
func (r *Run) stepOf(t Term) int { return slices.Index(r.Ladder, max(t.Num, -t.Num)) }

// Read are the terms of a row that a climbed run adds up.
func (r *Run) Read(row int, c Climbed) (list []Term) {
	for _, t := range r.Mix[row] {
		if r.stepOf(t) < c.Steps {
			list = append(list, t)
		}
	}
	return list
}
