package mechanisms

import (
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

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
