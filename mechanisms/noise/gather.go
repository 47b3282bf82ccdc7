package noise

import (
	"cmp"
	"math"
	"slices"
)

const (
	fewTerms = 256       // different terms of a sum that is left as it is
	maxTerms = 512       // different terms of a sum that is inverted
	moving   = 1. / 400  // the deviation of what moved weights add, of the sum's deviation
	share    = 1. / 1000 // of alpha: the tail that the moves take
)

// gathered replaces the weights of a sum of very many terms by few, and says by how much that may have moved the sum.
//
// Claim: with Y the gathered sum, P(|X| ≥ a+moved) ≤ P(|Y| ≥ a) + (alpha − left).
// Proof: Y has the same noises as X under other weights, so that X − Y is a weighted sum of them too, and by Chernoff
// |X − Y| ≥ moved with probability alpha − left at most. Nothing is asked of the shape of the noises. In a group whose
// weights move by at most r, a noise that moves by δ has ln E exp(θδ·noise) ≤ δ/r·ln E exp(θr·noise), which is convex
// and 0 at 0; so the group's moves count as Σδ/r noises that move by r.
func gathered(sum []summand, alpha Probability) (few []summand, left Probability, moved float64) {
	if len(sum) <= fewTerms {
		return sum, alpha, 0
	}
	sorted := slices.Clone(sum)
	slices.SortFunc(sorted, func(a, b summand) int {
		return cmp.Or(a.of.compare(b.of), cmp.Compare(b.weight, a.weight))
	})
	most := varianceOf(sorted) * moving * moving / (fewTerms / 2)
	groups := grouped(sorted, most)
	for len(groups) > maxTerms { // ends: without a limit there are as many as distributions, and those are counted apart
		if most *= 1.5; math.IsInf(most, 1) || most == 0 {
			break
		}
		groups = grouped(sorted, most)
	}
	var moves []summand
	for _, g := range groups {
		one, move := meanOf(g)
		few = append(few, one)
		if move.count > 0 {
			moves = append(moves, move)
		}
	}
	if len(moves) == 0 {
		return few, alpha, 0
	}
	return few, alpha * (1 - share), reachOf(moves, alpha*share)
}

// grouped cuts sorted terms into runs of one distribution whose moves have a variance of at most most.
func grouped(sorted []summand, most float64) (groups [][]summand) {
	from, count, mean, squares := 0, 0.0, 0.0, 0.0
	for i, s := range sorted {
		grown := count + s.count
		step := s.weight - mean
		if i > from && (s.of != sorted[from].of || (squares+step*step*count*s.count/grown)*s.unit > most) {
			groups = append(groups, sorted[from:i])
			from, count, mean, squares = i, 0, 0, 0
			grown, step = s.count, s.weight
		}
		squares += step * step * count * s.count / grown
		mean += step * s.count / grown
		count = grown
	}
	return append(groups, sorted[from:])
}

// meanOf gives the terms of a group their mean weight, and returns the moves as one term.
func meanOf(group []summand) (one, move summand) {
	one, move = group[0], group[0]
	if len(group) == 1 {
		return one, summand{}
	}
	one.count, one.weight = 0, 0
	for _, s := range group {
		one.count += s.count
		one.weight += s.count * s.weight
	}
	one.weight /= one.count
	move.count, move.weight = 0, max(group[0].weight-one.weight, one.weight-group[len(group)-1].weight)*(1+1e-12)
	for _, s := range group {
		move.count += s.count * math.Abs(s.weight-one.weight) / move.weight
	}
	return one, move
}
