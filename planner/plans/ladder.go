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

// Climbs are the runs of totals of a leaf: those whose clamps are chosen together in one list, the count of rows first.
func (l *Leaf) Climbs() (list [][]*Run) {
	climbs := func(c *CountColumn, r int) bool { return c.Runs[r].Ladder != nil }
	for i := range l.Counts {
		own := &l.Counts[i]
		for r := range own.Runs {
			if !climbs(own, r) || own.Rows != nil && climbs(&l.Counts[*own.Rows], r) {
				continue
			}
			runs := []*Run{&own.Runs[r]}
			for s := range l.Counts {
				if sum := &l.Counts[s]; sum.Rows != nil && *sum.Rows == i && climbs(sum, r) {
					runs = append(runs, &sum.Runs[r])
				}
			}
			list = append(list, runs)
		}
	}
	return list
}

// Climbed is a run of totals as it is read.
type Climbed struct {
	totals.Kept
	Clamp int64 // of the last step that is read
	Off   int64 // the half-width of what is read, the choice of the clamp included, at the plan's confidence
	Above int64 // about so many units add more than that, a noisy number
	UpTo  int64 // where coverage is of all: Off bounds what units have up to a total of that; 0 means the clamp
}

// wider is how much wider the noise of what is read is where the last step was chosen for it: the exact law of a fixed
// one times this covers what is kept in 95 % of draws (totals.TestReadings).
var wider = map[mechanisms.NoiseKind]float64{mechanisms.DiscreteLaplace: 4. / 3, mechanisms.DiscreteGaussian: 9. / 8}

// Climb chooses the clamps of a list of Climbs, of what the cells of their measures sum up to.
func (p *Plan) Climb(runs []*Run, sum func(t Term) int64) []Climbed {
	released := make([]totals.Released, len(runs))
	for i, run := range runs {
		released[i] = p.released(run, sum)
	}
	list := make([]Climbed, len(runs))
	for i, kept := range totals.Keep(released[0], released[1:]...) {
		list[i] = p.climbed(runs[i], released[i], kept)
	}
	return list
}

// released are the cells of a run, by row and step; those of totals below 0 are added to the others.
func (p *Plan) released(run *Run, sum func(t Term) int64) totals.Released {
	own := p.Measures[run.Measure].Spec.Counts().Sums[0].Noise
	law := totals.Law{Kind: own.Kind, Scale: own.Spread()}
	if own.Kind == mechanisms.DiscreteGaussian {
		law.Scale = math.Sqrt(law.Scale)
	}
	c := totals.Released{Ladder: run.Ladder, Cells: make([][]int64, len(run.Mix)), Each: 1, Law: law}
	for r, row := range run.Mix {
		c.Cells[r] = make([]int64, len(run.Ladder))
		noises := make([]int, len(run.Ladder))
		for _, t := range row {
			j := run.stepOf(t)
			c.Cells[r][j] += sum(t)
			noises[j] += mechanisms.CellsIn(t.Spans)
			c.Each = max(c.Each, noises[j])
		}
	}
	return c
}

// climbed is how a run is read up to the steps that are kept of it.
func (p *Plan) climbed(run *Run, of totals.Released, kept totals.Kept) Climbed {
	c := Climbed{Kept: kept}
	if c.Steps == 0 {
		return c
	}
	c.Clamp = run.Ladder[c.Steps-1]
	read := Run{Measure: run.Measure, Mix: make([][]Term, len(run.Mix))}
	above, units := new(big.Int), new(big.Int)
	for r, row := range of.Cells {
		read.Mix[r] = run.Read(r, c)
		for j, n := range row {
			if units.Add(units, big.NewInt(n)); j == c.Steps || j == c.Steps+1 {
				above.Add(above, big.NewInt(n))
			}
		}
	}
	units.Quo(units, big.NewInt(totals.Parts))
	off := float64(p.WidestError(&read, p.Confidence).HalfWidth) * wider[of.Law.Kind]
	if p.CoversAll {
		most := 0.
		for r := range of.Cells {
			own, upTo := of.Unseen(r, kept)
			most, c.UpTo = max(most, own), upTo
		}
		off += most / totals.Parts
	}
	c.Off = int64(math.Ceil(min(off, totals.MaxTop) + totals.Rounded(max(0, units.Int64()), c.Clamp)))
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
