package mechanisms

import (
	"errors"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The ends of what a release can say: every observation is a function of its exact true sum plus exact noise.
const (
	MaxCount = noise.MaxCount
	MaxNoisy = noise.MaxNoisy
)

// Release opens the sealed groups, observes them by the spec's strategy and adds the spec's noise from random.
// Unknown placements, counts outside the int64 range and a failing source of randomness are handled without
// regard to the counts: sums saturate, and an error of random is returned before anything is opened or not at all.
//
// Claim: the release is ε-DP (discrete Laplace) or ρ-zCDP (discrete Gaussian) for the contribution and the cost that
// the spec was made of. Neighbours and sensitivity: those of the contribution; see moves and movesOf, which bound the
// observations' change. Theorem: discrete Laplace of scale t on each of integers that move by at most L1 together is
// L1/t-DP (Ghosh, Roughgarden, Sundararajan 2009); discrete Gaussian of variance parameter σ² is L2²/(2σ²)-zCDP
// (Canonne, Kamath, Steinke 2020, Theorem 4 with independent coordinates). Counters with noises of their own are
// mechanisms side by side: L1/t and L2²/(2σ²) add up over them, and the shares of the cost that they were given add up
// to it. Proof: a value enters the cells by addition, a cell its nodes by addition. Values of one sign are cut at
// MaxCount on the way, others when their exact sum is known: both are functions of the exact sum of the cells, or
// nodes, which bring no two values further apart, so the sensitivity of the exact observations holds. Different values
// are counted exactly. The noise is drawn before the groups are opened and added to every observation; cutting at
// ±MaxNoisy afterwards is post-processing. Limits: the time that the samplers take depends on the noise, and the time
// of observing on the number of groups; privacy of timing is the proxy's. A placement that panics leaves its group out.
func Release(spec Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (privacy.Released[Noisy], error) {
	var none privacy.Released[Noisy]
	if err := spec.check(); err != nil {
		return none, err
	}
	if place == nil {
		return none, errors.New("placement is nil, must be a function")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	return spec.Kind.release(spec, place, truth, random)
}

func (c *Counts) release(spec Spec, place Placement, truth privacy.Sensitive[[]privacy.Group], random io.Reader) (none privacy.Released[Noisy], _ error) {
	observations, err := spec.draw(random)
	if err != nil {
		return none, err
	}
	width := spec.observed()
	for counter := range spec.Counters {
		cells, add := make([]int64, spec.Cells), tally
		if spec.bound(counter).signed() {
			add = tallySigned
		}
		if n := spec.values(counter); n > 0 {
			add = tallyValues(n, spec.bound(counter))
		}
		add(sealed.Open(truth), place, counter, cells)
		spec.observe(cells, observations[counter*width:(counter+1)*width])
	}
	return sealed.Release(Noisy{Observations: observations}), nil
}

// FixedWork marks a source of randomness: what is drawn from it takes work that does not go with how large the noise
// is. The distributions are the same, exactly. Limits: noise alone. Choices, refinements, made-up rows and the keys
// that are found take as long as scores, what was held and the number of keys make them; and all of it only as far as
// mechanisms/noise/fixed.go says.
func FixedWork(random io.Reader) io.Reader { return noise.FixedWork(random) }

// draw returns the noise of every observation.
func (s Spec) draw(random io.Reader) ([]int64, error) {
	reader, width := noise.NewReader(random), s.observed()
	drawn := make([]int64, s.Counters*width)
	for counter := range s.Counters {
		if err := s.noise(counter).fill(reader, drawn[counter*width:(counter+1)*width]); err != nil {
			return nil, err
		}
	}
	if err := reader.Err(); err != nil {
		return nil, err
	}
	return drawn, nil
}

// drawSome returns the noise of so many observations of the first counter.
func (s Spec) drawSome(observations int, random io.Reader) ([]int64, error) {
	reader, drawn := noise.NewReader(random), make([]int64, observations)
	if err := s.noise(0).fill(reader, drawn); err != nil {
		return nil, err
	}
	return drawn, reader.Err()
}

// observe adds what the strategy sees of the cells to the noise.
func (s Spec) observe(cells, noisy []int64) {
	if m := s.matrix(); m != nil {
		for i, n := range m.Observe(cells) {
			noisy[i] = noise.Add(n, noisy[i])
		}
		return
	}
	at := 0
	for _, v := range s.levels() {
		for from := 0; from < len(cells); from += v.block {
			sum := wide{}
			for _, c := range cells[from:min(from+v.block, len(cells))] {
				sum = sum.plus(c)
			}
			noisy[at] = noise.Add(sum.cutAt(MaxCount/v.weight)*v.weight, noisy[at])
			at++
		}
	}
}

// cellOf returns the cell of a group, or −1 if there is none. A placement is total by contract; one that is not must
// not turn what the database holds into an error.
func cellOf(place Placement, cells []int32, counter, limit int) (cell int) {
	defer func() {
		if recover() != nil {
			cell = -1
		}
	}()
	if cell = place(cells, counter); cell >= limit {
		return -1
	}
	return cell
}

// addCount returns sum+n, n counting as 0 below it, cut at MaxCount.
func addCount(sum, n int64) int64 {
	if n <= 0 {
		return sum
	}
	return min(sum+min(n, MaxCount), MaxCount)
}

// Drawing is by what a paid measurement becomes a release. Of the fields behind Weigh at most one is set, which names
// the mechanism; with none it is Release, or Open where the Spec goes on. The claim and the proof are those of the
// mechanism.
type Drawing struct {
	Spec   Spec
	Place  Placement
	Weigh  func(cells []int32, counter int) int64 // see Weighed
	Keys   *Discovery                             // Discover
	Levels []Level                                // ReleaseLevels, the finest first
	First  *Spec                                  // ReleaseFirst, below this finest level
	Held   *Held                                  // Refine; nothing is observed
	Step   *Step                                  // Grow; without it a Spec that grows begins, and nothing is observed
	Save   func(step []byte) error                // of a release that goes on: see Open
}

// Held is a level that is refined, and the finest one that it was made of.
type Held struct {
	Spec   Spec
	Shown  privacy.Released[Noisy]
	Finest Finest
}

// Drawn is what a drawing gives.
type Drawn struct {
	Noisy  privacy.Released[Noisy]
	Finest Finest                    // where a ladder begins
	Levels []privacy.Released[Noisy] // instead of Noisy
	Live   Live                      // where it goes on
}

// Draw draws a release of what was counted for it.
func (d Drawing) Draw(truth privacy.Sensitive[[]privacy.Group], random io.Reader) (out Drawn, err error) {
	switch {
	case d.Spec.GoesOn():
		out.Noisy = sealed.Release(Noisy{}) // the opening alone tells nothing
		out.Live, err = Open(d.Spec, d.Place, truth, random, d.Save)
	case d.Held != nil:
		out.Noisy, err = Refine(d.Held.Spec, d.Held.Shown, d.Spec, d.Held.Finest, random)
	case d.Step != nil:
		out.Noisy, err = Grow(d.Spec, *d.Step, d.Place, truth, random)
	case d.Spec.Grows():
		out.Noisy, err = Begin(d.Spec)
	case d.Keys != nil:
		out.Noisy, err = Discover(*d.Keys, truth, random)
	case len(d.Levels) > 0:
		out.Levels, err = ReleaseLevels(d.Levels, d.Place, Weighed(d.Spec, truth, d.Weigh), random)
	case d.First != nil:
		out.Noisy, out.Finest, err = ReleaseFirst(d.Spec, *d.First, d.Place, Weighed(d.Spec, truth, d.Weigh), random)
	default:
		out.Noisy, err = Release(d.Spec, d.Place, Weighed(d.Spec, truth, d.Weigh), random)
	}
	return out, err
}
