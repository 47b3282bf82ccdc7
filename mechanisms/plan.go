package mechanisms

import (
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// NewConfidence checks p.
func NewConfidence(p float64) (Confidence, error) { panic("to be written") }

// Float returns the probability.
func (c Confidence) Float() float64 { return c.p }

// Plain returns the Spec that counts each cell once at the given cost.
// Cost names ε (pure: discrete Laplace) or ρ (zCDP: discrete Gaussian), never both.
func Plain(counters, cells int, c Contribution, cost privacy.Cost) (Spec, error) {
	panic("to be written")
}

// Ranges returns the Spec with the least expected error over all ranges of the cells at the given cost.
func Ranges(cells int, c Contribution, cost privacy.Cost) (Spec, error) { panic("to be written") }

// Sensitivity returns how far one unit can move the spec's observations, taken together.
func (s Spec) Sensitivity(c Contribution) privacy.Sensitivity { panic("to be written") }

// Error returns the expected error of the sum of the cells in spans (disjoint, sorted) of one counter, as Estimate.Sum
// gives it. It needs no data.
func (s Spec) Error(spans []Span, confidence Confidence) Error { panic("to be written") }

// Estimate is the best linear reading of a release: least squares over all its observations; for Tree also isotonic on
// prefixes. It is post-processing. It is safe for concurrent use.
type Estimate struct { /* to be written */
}

// NewEstimate reads a release made by spec. It fails if the number of observations is not the spec's.
func NewEstimate(spec Spec, released privacy.Released[Noisy]) (*Estimate, error) {
	panic("to be written")
}

// Sum returns the estimated sum of the cells in spans (disjoint, sorted) of one counter, rounded to a whole number.
func (e *Estimate) Sum(counter int, spans []Span) privacy.Released[int64] { panic("to be written") }

// Redraw returns an Estimate around the released one with fresh noise on every observation: what a bootstrap of computed
// columns reruns the outer query on. It is post-processing; random need not be cryptographic.
func (e *Estimate) Redraw(random RandomSource) *Estimate { panic("to be written") }

// RandomSource yields random bytes; crypto/rand.Reader in production.
type RandomSource = interface{ Read(p []byte) (int, error) }
