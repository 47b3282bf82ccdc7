package aggregate

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/ast"
	"github.com/dpproxy/dpproxy/planner/derived"
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
// 1 − 2β, which is a k with P(|Z| > w) ≤ 2β (package mechanisms, Errors). Z is symmetric, so that P(Z > w) ≤ β, and the
// group is shown where n + Z > k − 1 + w, which needs Z > w. Groups are leaf rows: a cell of a joint key is one, and so
// is each row of GROUPING SETS. k, β and w are public, and the comparison is of a released number: post-processing.
//
// Limits: it is of one release. Who asks again at a further cost draws again. What a condition leaves, as in
// FILTER (WHERE …) or in a statement without keys, is no group, nor is the value that a median or a mode is.

// findFrequency finds the rule of a question's groups.
func findFrequency(g *Grouping) {
	keys := g.Question.Keys
	if g.Fanned != nil {
		keys = g.Fanned.privateKeys()
	}
	t, seen := g.Rows.Table, map[*policy.Column]bool{}
	for _, k := range keys {
		for _, at := range k.Cols {
			g.Question.Frequency = g.Question.Frequency.Both(t.MinFrequency()).Both(ofColumn(t.Columns[at], seen))
		}
	}
}

// ofColumn is the rule of a column, and of those that its values depend on: of one that is computed from rows, and says
// no column, of any below. Those that were seen are left out.
func ofColumn(c *policy.Column, seen map[*policy.Column]bool) policy.Frequency {
	if seen[c] {
		return policy.Frequency{}
	}
	seen[c] = true
	f, parts := c.Frequency, slices.Concat(derived.DecidedBy(c), c.Product)
	if c.Beside != nil {
		parts = append(parts, c.Beside)
	}
	if len(parts) == 0 && c.Table != nil && c.Table.Derived != nil {
		for _, b := range c.Table.Base() {
			parts = append(parts, b.Columns...)
		}
	}
	for _, part := range parts {
		f = f.Both(ofColumn(part, seen))
	}
	return f
}

// frequent has groups keep that rule. It refuses candidates of a public list whose units nothing counts.
func frequent(g *Grouping) *refuse.Refusal {
	if g.Question.Frequency.Units == 0 {
		return nil
	}
	each := []*Grouping{g}
	if g.Fanned != nil {
		each = g.Fanned.each
	}
	units := linear.Counter{}
	if g.Rows.Table.MaxRowsPerUnit > 1 {
		units.Units = &linear.Units{}
	}
	if units.Units != nil && g.Fanned != nil {
		return candidateAggregate.At(ast.Location(g.Sel.FromClause[0]))
	}
	n := 0
	for _, sub := range each {
		n = sub.Question.Add(units)
		sub.Question.WidthOf(n, linear.OfFrequency)
	}
	g.Question.Counters = each[0].Question.Counters
	g.above(n, linear.OfFrequency)
	return nil
}
