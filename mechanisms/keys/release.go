package keys

import (
	"errors"
	"io"

	"github.com/dpproxy/dpproxy/mechanisms/internal/sealed"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Release adds noise to each key's number of units and returns the keys, in the order of their bytes, whose noisy
// number reaches the threshold, with that number.
//
// Claim: a δ-approximate ε-DP mechanism (Truncated made with ε) or a δ-approximate ρ-zCDP one (Gaussian, and Truncated
// made with ρ), for the cost that New was given. That is: for neighbours D, D' there are P', Q' with M(D) = (1−δ)P' +
// δR, M(D') = (1−δ)Q' + δS and P', Q' within ε, or ρ, of each other. It implies (ε, δ)-DP: M(D)(O) ≤ (1−δ)e^ε Q'(O) + δ
// ≤ e^ε M(D')(O) + δ.
// Neighbours: add-remove and replace-one of a unit with at most k keys.
// Sensitivity: a unit is counted once a key, so it moves m counts by 1: m = k, or 2k under replace-one.
// Theorem: approximate zCDP, Bun and Steinke 2016, section 8; thresholds, Korolova et al. 2009; the exact noises as in
// package noise. Several such releases, beside others, compose as docs/mechanisms/accounting.md proves.
//
// Proof for thresholds (Truncated: in truncated.go). Let C be the keys that occur in both databases, A those in D
// alone, B those in D' alone. The differing unit is the only one that has a key of A, or of B, so |A|, |B| ≤ k and
// their counts are 1. Each is shown with probability P(1+noise ≥ threshold) ≤ δ_p independently, so with 1−(1−δ_p)^k ≤
// δ none of A is shown in M(D) but with a probability of at most δ, and none of B in M(D'). Let P' be M(D) given that,
// for then it is the release of the keys in C alone, and Q' accordingly; where the probability is less than δ, R takes
// the rest from P'. The counts of C differ in at most m keys by 1, so P' and Q' are post-processings of noise of scale
// t = m/ε on integers at an L1 distance ≤ m, or of variance m/(2ρ) at a squared distance ≤ m.
//
// Limits: time, and how much of random is used, depend on the number of keys that occur. Keys are compared as bytes:
// whoever normalises them does so before they are counted. Noise is drawn for the keys that occur alone, after they are
// opened; when random fails nothing is returned.
func (r Rule) Release(truth privacy.Sensitive[[]Count], random io.Reader) (privacy.Released[[]Noisy], error) {
	var none privacy.Released[[]Noisy]
	if !r.Valid() {
		return none, errors.New("rule was not made by New")
	}
	if !truth.Valid() {
		return none, errors.New("truth was never sealed")
	}
	reader := noise.NewReader(random)
	shown := []Noisy{}
	for _, c := range ordered(sealed.Open(truth)) {
		drawn, threshold := r.draw(reader)
		if n := noise.Add(c.Units, drawn); n >= threshold {
			shown = append(shown, Noisy{c.Key, n})
		}
		if reader.Err() != nil {
			break
		}
	}
	if err := reader.Err(); err != nil {
		return none, err
	}
	return sealed.Release(shown), nil
}

// draw returns the noise of one key and the threshold that goes with it.
func (r Rule) draw(reader *noise.Reader) (drawn, threshold int64) {
	if r.kind != Truncated {
		return r.noise.Sample(reader), r.threshold
	}
	threshold = r.threshold
	if r.mixed > 0 && reader.Below(mixture) < r.mixed {
		threshold--
	}
	return r.within(reader, threshold-1), threshold
}
