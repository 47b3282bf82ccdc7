package keys

import (
	"fmt"
	"math"

	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// The truncated rule is optimal partition selection (Desfontaines, Voss, Gipson, Mandayam 2022), drawn with integers
// alone, and shows a count that costs nothing more.
//
// Noise X_r has P(x) ∝ q^|x| on [−r, r], q = exp(−1/t); a key with n units is shown, with n+X_r, where that is at least
// r+1. Let δ_r = P(X_r = r) = q^r(1−q)/(1+q−2q^(r+1)).
//
// Claim 1: one key, its count moved by 1, is δ_r-approximately 1/t-DP in the sense of Release. Proof: compare n+X_r and
// n+1+X_r; a count of 0, a key that does not occur, is never shown, as 0+X_r ≤ r. Given X_r > −r for the first and X_r
// < r for the second, of probability 1−δ_r each, both have the support [n−r+1, n+r] and there the probabilities
// q^|x−n|/C and q^|x−n−1|/C with the same C: within a factor 1/q. Suppressing what is below the threshold is
// post-processing of both.
//
// Claim 2: with λ = mixed/2^32 and the largest r with δ_(r−1) > δ_p ≥ δ_r, drawing r−1 in place of r with probability λ
// is (λδ_(r−1) + (1−λ)δ_r)-approximate: mix the P', the R, the Q' and the S of the two with the same weights. λ is the
// largest for which that is at most δ_p.
//
// Claim 3: m independent keys that move by 1 with 1−(1−δ_p)^m ≤ δ are δ-approximately m/t-DP and m/(2t²)-zCDP. (Under
// replace-one m is 2k: a count that falls may leave the other's support on this side, too.)
//
// Claim 4: if λδ_(r−1)+(1−λ)δ_r = δ_p, the probability of being shown is the largest that any (1/t, δ_p)-DP rule for
// one key can have, π(n) = min(e^(1/t)π(n−1)+δ_p, 1−e^(−1/t)(1−π(n−1)−δ_p), 1), for every n but 2r, where it is less by
// at most e^(−1/t)δ_p. Proof: P(X_r ≥ r+1−n) is δ_r(1+e^(1/t)+…+e^((n−1)/t)) for n ≤ r+1, and from n = r+1 on 1−π
// shrinks as in the second term until it is 0 at n = 2r+1. Both are linear in (δ, π); both of r and r−1 follow the
// first up to n = r and the second from there to n = 2r−1, so their mixture does. At n = 2r the second would take
// X_(r−1)'s part below 0, where it stays at 0. A test compares with the recursion.
//
// Limits: λ is rounded down, so δ_p is met from below, by at most 2^-32 of δ_(r−1).
const mixture = 1 << 32

// truncate sets threshold = r+1 and mixed.
func (r *Rule) truncate(each privacy.Delta) error {
	goal := each.Float() * (1 - guard)
	guess := float64(r.num) / float64(r.den) * (1 - math.Log(goal))
	if !(guess < maxThreshold/2) {
		return fmt.Errorf("threshold is up to %.3g, must be at most %d: the cost is too small", guess, int64(maxThreshold))
	}
	low, high := int64(0), int64(guess)+1
	for r.lost(high) > goal {
		high *= 2
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; r.lost(middle) <= goal {
			high = middle
		} else {
			low = middle
		}
	}
	r.threshold = high + 1
	share := (goal - r.lost(high)) / (r.lost(high-1) - r.lost(high)) * (1 - guard)
	r.mixed = uint64(max(0, min(math.Floor(share*mixture), mixture-1)))
	return nil
}

// lost returns δ_reach, in a form without cancellation.
func (r Rule) lost(reach int64) float64 {
	rate := float64(r.den) / float64(r.num)
	q, one := math.Exp(-rate), -math.Expm1(-rate)
	return math.Exp(-rate*float64(reach)) * one / (one - 2*q*math.Expm1(-rate*float64(reach)))
}

// within draws X_reach: the discrete Laplace noise given that it is in the range, or, where the range is narrower than
// the scale, a uniform proposal x kept with probability exp(−|x|/t). Either keeps a third of its proposals or more.
func (r Rule) within(reader *noise.Reader, reach int64) int64 {
	narrow := float64(reach) < float64(r.num)/float64(r.den)
	for reader.Err() == nil {
		if !narrow {
			if x := r.noise.Sample(reader); x >= -reach && x <= reach {
				return x
			}
			continue
		}
		x := int64(reader.Below(uint64(2*reach)+1)) - reach
		if reader.ExpMinusRatio(uint64(max(x, -x))*uint64(r.den), uint64(r.num)) {
			return x
		}
	}
	return 0
}

// truncatedTail returns P(X_reach ≥ m).
func (r Rule) truncatedTail(m, reach int64) float64 {
	switch {
	case m > reach:
		return 0
	case m <= -reach:
		return 1
	case m <= 0:
		return 1 - r.truncatedTail(1-m, reach)
	}
	rate := float64(r.den) / float64(r.num)
	return r.lost(reach) * math.Exp(rate*float64(reach-m)) * math.Expm1(-rate*float64(reach-m+1)) / math.Expm1(-rate)
}

// truncatedVariance is the mixture's: of each X_r the integral that the sum is for long reaches.
func (r Rule) truncatedVariance() float64 {
	share := float64(r.mixed) / mixture
	return share*r.varianceWithin(r.threshold-2) + (1-share)*r.varianceWithin(r.threshold-1)
}

// varianceWithin returns E X_reach², 2·Σ (2j−1)·P(X ≥ j) up to reach, or where that is beyond 45 scales the untruncated
// variance.
func (r Rule) varianceWithin(reach int64) float64 {
	if t := float64(r.num) / float64(r.den); float64(reach) > 45*t || reach > 1<<22 {
		return r.noise.Variance()
	}
	sum := 0.0
	for j := reach; j > 0; j-- {
		sum += 2 * float64(2*j-1) * r.truncatedTail(j, reach)
	}
	return sum
}
