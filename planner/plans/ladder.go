package plans

import (
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
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

// Climbs are the runs of totals of a leaf by grouping set, counts of rows first: their clamps are chosen together.
func (l *Leaf) Climbs() [][]*Run {
	var sets [][]*Run
	for _, sums := range []bool{false, true} {
		for i := range l.Counts {
			for r := range l.Counts[i].Runs {
				run := &l.Counts[i].Runs[r]
				if run.Ladder == nil || (l.Counts[i].Unit != nil) != sums {
					continue
				}
				for len(sets) <= r {
					sets = append(sets, nil)
				}
				sets[r] = append(sets[r], run)
			}
		}
	}
	return slices.DeleteFunc(sets, func(runs []*Run) bool { return len(runs) == 0 })
}

// quotients reports whether totals are shown in quotients and the like alone, and none as it is.
func (p *Plan) quotients() bool {
	return !slices.ContainsFunc(p.Columns, func(c OutColumn) bool { return len(c.Climbs) > 0 })
}

// Climbed is a run of totals as it is read.
type Climbed struct {
	totals.Kept
	Clamp  int64 // of the last step that is read
	Off    int64 // the half-width of what is read, the choice of the clamp included, at the plan's confidence
	Fewest int64 // a count above it is one that the run's min_frequency shows
	Above  int64 // about so many units add more than that, a noisy number
	Kind   mechanisms.NoiseKind
	Root   bool // the clamp is of the root of the sum of squares of what a unit has in all groups

	// Where coverage is of all: a bound of what units have above the clamp, up to totals of so much. 0 means it is not.
	Unseen, UpTo int64
}

// Width is so many half-widths of a run, or, of none, its Fewest.
func (c Climbed) Width(times int64) int64 {
	if times == 0 {
		return c.Fewest
	}
	return times * c.Off
}

// wider is how much wider the noise of what is read is where the last step was chosen for it: the exact law of a fixed
// one times this covers what is kept in 95 % of draws (totals.TestReadings).
var wider = map[mechanisms.NoiseKind]float64{mechanisms.DiscreteLaplace: 4. / 3, mechanisms.DiscreteGaussian: 9. / 8}

// Climb chooses the clamps of one list of Climbs, of what the cells of their measures sum up to.
func (p *Plan) Climb(runs []*Run, sum func(t Term) int64) []Climbed {
	released := make([]totals.Released, len(runs))
	for i, run := range runs {
		released[i] = p.released(run, sum)
	}
	list := make([]Climbed, len(runs))
	for i, kept := range totals.Keep(released, p.quotients()) {
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
	c := Climbed{Kept: kept, Kind: of.Law.Kind, Root: derived.BySquares(p.Measures[run.Measure].Table)}
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
		c.Unseen = int64(math.Ceil(min(most/totals.Parts, totals.MaxTop)))
	}
	c.Off = int64(math.Ceil(off + totals.Rounded(max(0, units.Int64()), c.Clamp)))
	if f := run.Frequency; f.Units > 0 {
		each := policy.Frequency{Units: f.Units, Beta: f.Beta / float64(len(run.Ladder))}
		own := float64(p.WidestError(&read, each.Confidence()).HalfWidth)
		c.Fewest = f.Units - 1 + int64(math.Ceil(own+totals.Rounded(f.Units, c.Clamp)+max(0, c.Add)))
	}
	c.Above = max(0, above.Quo(above, big.NewInt(totals.Parts)).Int64())
	return c
}

// ByClamp is about the root mean squared error of a value that is made of units' totals, for each 1 that its clamp
// comes to be, where that of all its cells together is a variance in parts; not ok where t is no table of shares. Up to
// which step they are read is not known, but that each is some three times the one below it, so that the squares of all
// come to about 9/8 of the last one's.
func ByClamp(t *policy.Table, variance float64) (off float64, ok bool) {
	l, ok := t.Derived.(*derived.Laddered)
	if ok {
		off = math.Sqrt(variance/float64(len(l.Steps))*9/8) / totals.Parts
	}
	return off, ok
}

// fewSteps is after how many steps what is below them no longer counts in their errors.
const fewSteps = 8

// OffByClamp is about how far off a run of totals is for each 1 that its clamp comes to be, without what is above. A
// step is some three times the one below it: so what is read up to it errs by little more than it does itself. It is
// that of the row that is read from most cells.
func (p *Plan) OffByClamp(run *Run) *big.Rat {
	cells := func(row []Term) (n int) {
		for _, t := range row {
			n += mechanisms.CellsIn(t.Spans)
		}
		return n
	}
	row := slices.MaxFunc(run.Mix, func(a, b []Term) int { return cells(a) - cells(b) })
	one := Run{Measure: run.Measure, Ladder: run.Ladder, Mix: [][]Term{row}}
	kept := Plan{Measures: p.Measures, Confidence: p.Confidence}
	nothing := kept.released(&one, func(Term) int64 { return 0 })
	c := kept.climbed(&one, nothing, totals.Kept{Steps: min(len(run.Ladder), fewSteps)})
	return big.NewRat(c.Off, c.Clamp)
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
