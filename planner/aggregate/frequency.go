package aggregate

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// min_frequency: k, with a probability β. Of SELECT ward, count(*) FROM visits GROUP BY ward a ward is shown where a
// count of its units is above a threshold, whatever the statement shows of it:
//
//	HAVING count(DISTINCT person_id) > k − 1 + w
//
// Claim: a group of fewer than k units is shown by one release with a probability of at most β.
//
// Proof: the count is n + Z, n the group's units whose rows satisfy WHERE, Z the noise of the release, or of what is
// made of several, that the count is read from; n is an integer, at most k − 1. w is the half-width at the confidence
// 1 − 2β, so that P(|Z| > w) ≤ 2β (package mechanisms, Errors). Z is symmetric, being a sum of discrete Laplace or
// Gaussian noises, so that P(Z > w) ≤ β, and the group is shown where n + Z > k − 1 + w, which needs Z > w. What a
// model answers is not read (package choose, symmetric). Of
// units' totals (ADR 230) a group's are at most n, and a part of each more for the rounding of shares. They are read up
// to a step that is chosen from the noise too: w is then that at β by the number of steps, for the step that is read,
// so that of all steps together Z is above its w with a probability of at most β, whichever is chosen. Groups are leaf
// rows: a cell of a joint key is one, and so is each row of GROUPING SETS. k, β and w are public, and the comparison is
// of released numbers: post-processing.
//
// Limits: it is of one release. Who asks again at a further cost draws again. What a condition leaves, as in
// FILTER (WHERE …) or in a statement without keys, is no group, nor is the value that a median or a mode is. Where what
// a unit adds is clamped a group's units count less, and units that are NULL (null_unit: each) do not count.

// findFrequency finds the rule of a question's groups, if it has keys. A list's own columns are keys by what compares
// them with the rows.
func findFrequency(g *Grouping) {
	keys := g.Question.Keys
	if g.Fanned != nil {
		keys = append(slices.Concat(g.Fanned.own...), g.Fanned.privateKeys()...)
	}
	t := g.Rows.Table
	own, computed := t.MinFrequency()
	if computed.Units == 0 {
		return
	}
	for _, k := range keys {
		for _, at := range k.Cols {
			g.Question.Frequency = g.Question.Frequency.Both(own).Both(ofColumn(t.Columns[at], computed))
		}
	}
}

// ofColumn is the rule of a column, and of one that is computed, in a way that is not looked at, that of what may be.
func ofColumn(c *policy.Column, computed policy.Frequency) (f policy.Frequency) {
	for f = c.Frequency; c.Input != nil; c = c.Input {
		f = f.Both(c.Input.Frequency)
	}
	switch {
	case c.Beside != nil:
		f = f.Both(c.Beside.Frequency)
	case c.Product != nil:
		for _, part := range c.Product {
			f = f.Both(part.Frequency)
		}
	case c.Source == "":
		f = f.Both(computed)
	}
	return f
}

// frequent has groups keep that rule. It refuses candidates of a public list whose units nothing counts.
func frequent(g *Grouping) *refuse.Refusal {
	if g.Question.Frequency.Units == 0 {
		return nil
	}
	each, units := []*Grouping{g}, linear.Counter{}
	if g.Fanned != nil {
		each = g.Fanned.each
	}
	if g.Rows.Table.MaxRowsPerUnit > 1 {
		if units.Units = (&linear.Units{}); g.Fanned != nil {
			return candidateAggregate.At(ast.Location(g.Sel.FromClause[0]))
		}
	}
	n := 0
	for _, sub := range each {
		n = sub.Question.Add(units)
		sub.Question.WidthOf(n, linear.OfFrequency)
	}
	g.Question.Counters = each[0].Question.Counters
	above(g, n, linear.OfFrequency)
	return nil
}
