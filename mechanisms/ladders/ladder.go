// Package ladders refines a release: the same cells asked again with more accuracy cost the difference, not the whole.
// The finest level is drawn as data plus noise and kept sealed; a Step makes a coarser level of a finer one, and a
// Between makes each level that is asked for later as it would have been had it been drawn with them. GaussianStep is
// the step under zCDP, where one draw serves several levels of trust.
//
// Claim (pure): levels, each made of the next finer by a Step or drawn Between two, are each discrete Laplace noise of
// its own scale, as if it had been drawn alone; and whoever sees all levels up to that of ε_i has seen what is ε_i-DP.
// So a finer level costs its ε less that of the finest one paid for. Neighbours and sensitivity: those of the finest
// level's noise. Source: gradual release (Koufogiannis, Han, Pappas 2015), here for the discrete Laplace. Proof: the
// finest level is a discrete Laplace mechanism; a coarser one is made of it and fresh randomness alone. So the levels
// up to one are a post-processing of it, and it, by its law (Step.Draw, Between.Draw), is ε_i-DP. On every outcome the
// loss of all levels seen is at most ε of the finest, whatever made one go on to it, and losses on an outcome are what
// a pure budget adds up.
//
// Under zCDP going on to a level costs ε²/2 of it each time, nothing taken off. Given the levels seen, with a loss L of
// theirs, the loss of the finer one beside them lies in [−ε−L, ε−L], of length 2ε: ε²/2-zCDP (Cesar and Rogers 2021).
// The difference of two ε²/2 would not do for who goes on only where the coarse answer was of a kind and spends the
// difference elsewhere if not: TestRefiningUnderZCDP has the loss, exactly.
//
// Limits: noise belongs to the data that it was drawn for. Reusing it, or noise re-derived from a seed, against changed
// data is not private: the difference of the two answers would show the change bare. After a change draw anew, at the
// full cost. Noise is clipped as in package noise.
package ladders

import "github.com/dpproxy/dpproxy/mechanisms/noise"

// maxNoisy are the ends of noisy counts.
const maxNoisy = noise.MaxNoisy

// add returns a+b for a in ±maxNoisy, cut there.
func add(a, b int64) int64 {
	return min(max(a+min(max(b, -maxNoisy), maxNoisy), -maxNoisy), maxNoisy)
}
