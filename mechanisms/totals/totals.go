// Package totals bounds what a unit adds to a count or a sum in all, by a clamp that nobody has to guess
// (docs/adr/0230). Each unit's total is split between the two steps of a public ladder around it; the cells of the
// steps are released once, with noise; the clamp is chosen from what was released. For steps of 1, 3, 9 and 27 units
// with totals of 2, 2, 3 and 12 fill the cells of
//
//	1: ½ + ½    3: ½ + ½ + 1    9: 5/6    27: 1/6
//
// of which 1·1 + 3·2 + 9·5/6 + 27·1/6 = 19 is the sum, and 1·1 + 3·2 + 3·(5/6 + 1/6) = 10 the sum of totals that are
// clamped to 3. The package knows the ladder and how noisy cells are read; who splits totals is package rewrite, who
// adds noise package mechanisms.
//
// Claim. For every J the clamped sum Σ min(n, τ_J) over units is Σ_j min(τ_j, τ_J)·c_j of the cells c, so that any
// clamp may be read from one release; and a unit's shares come to 1, or to less below the first step. Proof. With n
// between τ_i and τ_{i+1}, n = (1−λ)·τ_i + λ·τ_{i+1}, the shares are 1−λ and λ. For J > i both steps count as they
// are: n. For J ≤ i both count as τ_J. τ_0 = 0, and its cell is worth nothing and is not released. ∎
//
// Sensitivity: shares are whole numbers of Parts (Shares), so that a unit moves the cells of a release by at most Parts
// in L1, and no more in L2: what one row of a sum from 0 to Parts moves. Where noise is by L2 alone, shares of several
// groups are of the root of the sum of their squares (Norm), which is less than their sum: Parts² bounds their squares.
//
// Sources. Clamps and sums from the same cells: Dong, Luo, Fang and Yi, Instance-optimal clipping for summation
// problems in the shuffle model (CCS 2024), whose cells hold whole units. Linear shares, and reading the clamp
// afterwards, are this project's.
package totals

import (
	"math"
	"math/bits"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
)

// Parts is how many parts a unit has. Shares are rounded to them: what 2^20 units add up to is off by a thousandth of
// the last step that is read, at most (Rounded).
const Parts = 1 << 30

// MaxTop is the largest total that a ladder may reach to.
const MaxTop = 1 << 58

// factor is from step to step. Coarse steps have few empty cells, each with noise, and shares make up for them.
const factor = 3

// Ladder are the steps, ascending, above 0.
type Ladder []int64

// To returns the ladder of which the last step is top, a whole number up to MaxTop; what is below 1 counts as 1.
func To(top int64) Ladder {
	var down []int64
	for step := max(top, 1); ; step = (step + factor - 1) / factor {
		if down = append(down, step); step == 1 {
			break
		}
	}
	l := make(Ladder, len(down))
	for i, step := range down {
		l[len(down)-1-i] = step
	}
	return l
}

// Interval is where totals lie from a step on, to below the next: its length is at most Wide<<Shift, so that a place in
// it, in so many halvings, is a whole number of 32 bits.
type Interval struct {
	From  int64 // 0, or a step
	Shift int
	Wide  int64 // 0 means the last, which totals beyond it are cut at the beginning of
}

// Intervals are those of a ladder, one more than it has steps.
func (l Ladder) Intervals() []Interval {
	list := make([]Interval, len(l)+1)
	for i, step := range l {
		length := step - list[i].From
		list[i].Shift = max(0, bits.Len64(uint64(length))-32)
		unit := int64(1) << list[i].Shift
		list[i].Wide = (length + unit - 1) >> list[i].Shift
		list[i+1].From = step
	}
	return list
}

// Shares splits parts, at most Parts, of a unit with a total of n ≥ 0: at is of the cell of step number below−1, above
// of the next one. Where below is 0, at is nothing's.
//
// Claim: at and above are whole numbers from 0 on and come to parts. Proof: the place (n − From) >> Shift is at most
// Wide, as n − From is at most the length of the interval; so above, which is parts · place / Wide to the nearest, is
// from 0 to parts, and at is the rest. No number on the way is beyond 2^62 + 2^31: parts is at most 2^30, and the place
// at most 2^32.
func (l Ladder) Shares(n, parts int64) (below int, at, above int64) {
	list := l.Intervals()
	for below < len(l) && n >= l[below] {
		below++
	}
	i := list[below]
	if i.Wide == 0 {
		return below, parts, 0
	}
	above = (parts*((n-i.From)>>i.Shift) + i.Wide/2) / i.Wide
	return below, parts - above, above
}

// Halvings is how often Norm halves, and Wide up to where it does: beyond, the sum is the norm.
const (
	Halvings = 6
	Wide     = 1 << 48
)

// Norm bounds the root of the sum of squares of whole numbers from 0 on, by the largest of them and by their sum. It is
// the root where there is one number; of k equal ones it is at most 1.07 times as much, up to 2^12 of them.
//
// Claim: Σ s² ≤ Norm². Proof. Σ s² is at most the largest times the sum, which is the square of the geometric mean of
// 2^h times the one and 2^−h times the other; the arithmetic mean is no less, nor is what Norm rounds up. And Σ s² is
// at most the square of the sum. ∎ No number on the way is beyond 2^48 · 2^6.
func Norm(largest, sum int64) int64 {
	if sum >= Wide {
		return sum
	}
	least := sum
	for h := range Halvings + 1 {
		power := int64(1) << h
		least = min(least, (largest*power+(sum+power-1)/power+1)/2)
	}
	return least
}

// Rounded bounds how far the rounding of shares moves a sum of so many units up to a step: by a part of each, of one
// group, and by two where groups share a unit's parts.
func Rounded(units, step int64) float64 { return 2 * float64(units) * float64(step) / Parts }

// Worth is what so many parts of a step are, rounded up, at most MaxTop.
func Worth(parts, step int64) int64 {
	return int64(min(math.Ceil(float64(parts)*float64(step)/Parts), MaxTop))
}

// Law is the noise of a cell, in parts: the scale of the Laplace, or the deviation of the Gaussian.
type Law struct {
	Kind  noise.Kind
	Scale float64
}

// rule is by which a step is kept: where its cell, in units of the noise, is above what is asked of one with gap steps
// below it that were left out; the first where it is above first; and what a clamped sum is added of the last step, in
// units of the noise, for what is beyond it. Constants are of a search over drawn shapes (docs/adr/0230).
type rule struct {
	above         func(gap float64) float64
	first, beyond float64
}

// afterLaplace and afterGaussian are so that an empty cell passes the rarer the dearer it is: with each step it adds
// three times as much, and passes with e^−2 of the chance, or e^−ln 3 where noise has Gaussian tails.
func afterLaplace(gap float64) float64  { return 2.5 + 2*gap }
func afterGaussian(gap float64) float64 { return math.Sqrt(1.9*1.9 + 2*math.Log(factor)*gap) }

// missed is the probability that some empty cell is taken for the first.
const missed = 0.02

// ruleFor is the rule for cells of which each is so many noises, in units of their common deviation, or of the
// Laplace's scale where there is one.
func ruleFor(steps, noises int, kind noise.Kind) rule {
	if noises == 1 && kind == noise.Laplace {
		return rule{afterLaplace, math.Log(float64(steps) / (2 * missed)), .5}
	}
	first := math.Sqrt2 * math.Erfinv(1-2*missed/float64(steps))
	if kind == noise.Laplace { // whose tails are longer, of few
		first *= 1 + .9/float64(noises)
	}
	return rule{afterGaussian, first, .25}
}

// Kept is how much of a ladder is read.
type Kept struct {
	Steps int     // 0: so few units show that nothing is read
	Add   float64 // to the sum of a single row, for what is beyond the last of them
	Shown int     // of which the cells show units
	Least float64 // so many parts a cell must hold for that, where none below it shows any
}

// Unseen bounds what a row holds in the steps above those that are read, as far as to two steps beyond those that show:
// its cells, and two deviations of their noise more. Units that add more than the last of these are in no bound.
func (c Released) Unseen(row int, k Kept) (parts float64, upTo int64) {
	noises := 2 * c.Law.Scale * math.Sqrt(float64(c.Each))
	for j := k.Steps; j < min(k.Shown+2, len(c.Ladder)); j++ {
		parts += (max(float64(c.Cells[row][j]), 0) + noises) * float64(c.Ladder[j])
		upTo = c.Ladder[j]
	}
	return parts, upTo
}

// Released are noisy cells of a ladder, by row and step, each the sum of so many that were released.
type Released struct {
	Ladder Ladder
	Cells  [][]int64
	Each   int
	Law    Law
}

// Keep chooses the clamps of totals that one statement asks of the same units, mostly a number of rows and sums over
// them: of each, up to which step all rows of the answer are read. It depends on nothing but what was released.
// quotients says that nothing but quotients of them is shown.
func Keep(released []Released, quotients bool) []Kept {
	climbs, kept := make([]climb, len(released)), make([]Kept, len(released))
	for k, c := range released {
		climbs[k] = c.climb()
		kept[k] = climbs[k].alone()
	}
	if len(climbs) > 1 {
		lost := 1.
		if quotients {
			lost = lostInQuotients
		}
		together(kept, climbs, lost)
	}
	for k, c := range climbs {
		kept[k].Shown, kept[k].Least = len(c.steps), c.least
	}
	return kept
}

// climb are the steps that show: by the cells of all rows together each is above what the rule asks.
type climb struct {
	Released
	rule  rule
	least float64 // parts that the first of them is above
	steps []read
}

// read is what is read up to a step, what is beyond it, and the mean size of its noise, of a row in the mean, in parts.
type read struct{ sum, beyond, noise float64 }

func (c Released) climb() climb {
	noises, unit, size := c.Each*len(c.Cells), c.Law.Scale, 1.06*c.Law.Scale
	if c.Law.Kind == noise.Gaussian {
		size *= math.Sqrt(2 / math.Pi)
	}
	if noises > 1 {
		if unit *= math.Sqrt(float64(noises)); c.Law.Kind == noise.Laplace {
			unit *= math.Sqrt2
		}
	}
	r, list, top, sum := ruleFor(len(c.Ladder), noises, c.Law.Kind), make([]read, len(c.Ladder)), 0, 0.
	for j, step := range c.Ladder {
		cell, above := 0., r.first
		for _, row := range c.Cells {
			cell += float64(row[j])
		}
		if top > 0 {
			above = r.above(float64(j - top))
		}
		if cell/unit > above {
			top = j + 1
		}
		sum += max(cell, 0) * float64(step) / float64(len(c.Cells))
		list[j] = read{sum: sum, noise: float64(step) * size}
	}
	list = list[:top]
	for j := range list {
		list[j].beyond = list[top-1].sum - list[j].sum
	}
	return climb{c, r, r.first * unit, list}
}

// alone is what is kept of totals that are asked by themselves: of one row all that shows; of several up to the step
// with the least of what is beyond it and of the error of its noise.
func (c climb) alone() Kept {
	top := len(c.steps)
	switch {
	case top == 0 || len(c.Cells) == 1 && c.Each > 1: // of both signs: what is beyond on one side is on the other too
		return Kept{Steps: top}
	case len(c.Cells) == 1:
		return Kept{Steps: top, Add: c.rule.beyond * float64(c.Ladder[top-1]) * c.Law.Scale / Parts}
	}
	best, least := 0, math.Inf(1)
	for j, s := range c.steps {
		if own := s.beyond + s.noise; own < least {
			best, least = j+1, own
		}
	}
	return Kept{Steps: best}
}

// A quotient errs by what is beyond both clamps as far as units that add more have other means: lostInQuotients is what
// of it counts. What is beyond one of them alone is an error as it is. Two clamps are of the same units where the
// quotient of what they keep leads from one to the other, within apart of a step. Constants are of a search over drawn
// shapes (docs/adr/0230).
const lostInQuotients, apart = .15, .5

// share is the error of what is read up to a step, in proportion, where the other clamp is so many steps above it: the
// noise, what of what is beyond counts, and what is between the clamps, or may be there and not show.
func (c climb) share(j int, above, lost float64) float64 {
	own, top := c.steps[j], len(c.steps)-1
	between := 0.
	for q := 1; above > apart && j+q < len(c.Ladder); q++ {
		part := min(1, above-apart)
		if j+q <= top {
			between += part * (c.steps[j+q].sum - c.steps[j+q-1].sum)
		} else {
			unseen := c.rule.above(float64(j+q-top-1)) * c.steps[top].noise
			between += part * unseen * ratio(c.Ladder[j+q], c.Ladder[top])
		}
		above--
	}
	return (own.noise+between)/max(own.sum, 1) + lost*own.beyond/max(c.steps[top].sum, 1)
}

// together chooses clamps that are of the same units as that of the first, with the least error: the sum of readings up
// to a device with a thousand times what others send, over a number of readings without its, is no average of anything.
// Where one shows nothing the others are as they are alone.
func together(kept []Kept, climbs []climb, lost float64) {
	first, least := climbs[0], math.Inf(1)
	for i, base := range first.steps {
		own, steps := 0., []Kept{{Steps: i + 1}}
		for _, c := range climbs[1:] {
			best, error := 0, 0.
			for j, sum := range c.steps {
				mean := max(sum.sum, 1) / max(base.sum, 1)
				above := math.Log(mean*ratio(first.Ladder[i], c.Ladder[j])) / math.Log(factor)
				if e := c.share(j, above, lost) + first.share(i, -above, lost); best == 0 || e < error {
					best, error = j+1, e
				}
			}
			own, steps = own+error, append(steps, Kept{Steps: best})
		}
		if own > 0 && own < least { // 0: none of the others shows anything
			least = own
			copy(kept, steps)
		}
	}
}

func ratio(a, b int64) float64 { return float64(a) / float64(b) }
