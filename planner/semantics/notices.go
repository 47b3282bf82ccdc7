package semantics

import (
	"strings"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// What is told of a plan for people: notices, each once, and the steps of columns in them ("1 day", "0.01").

// StepOf writes the step of a column for people.
func StepOf(c *policy.Column) string {
	d := c.Domain
	if BetweenMoments(c) {
		step := d.Min.(int64)
		return StepText(&policy.Domain{Type: policy.TimestampT, Min: policy.Timestamp(step), Max: policy.Timestamp(d.Max.(int64)), Step: d.Step})
	}
	return StepText(d)
}

// BetweenMoments tells a computed column of what lies between two moments, in microseconds.
func BetweenMoments(c *policy.Column) bool {
	if c.Domain == nil {
		return false
	}
	_, whole := c.Domain.Min.(int64)
	operands := derived.OperandsOf(c)
	return whole && len(operands) > 0 && isInstant(operands[0].Type)
}

// StepText writes the step of an ordered domain for people.
func StepText(d *policy.Domain) string {
	switch d.Min.(type) {
	case policy.Date:
		return Plural(d.Step.Whole, "day")
	case policy.Timestamp, policy.Timestamptz:
		for _, u := range []struct {
			name   string
			micros int64
		}{{"day", 86_400_000_000}, {"hour", 3_600_000_000}, {"minute", 60_000_000}, {"second", 1_000_000}, {"microsecond", 1}} {
			if d.Step.Whole%u.micros == 0 {
				return Plural(d.Step.Whole/u.micros, u.name)
			}
		}
	case int64:
		return predicate.Text(d.Step.Whole)
	}
	return predicate.Text(predicate.CanonicalValue(d.Step.Decimal))
}

// Plural counts units for people: 1 row, 2 rows.
func Plural(n int64, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return predicate.Text(n) + " " + unit + "s"
}

// Notes are what the NOTICE will say, each once.
type Notes []string

// Add adds a notice, if it is not there, in whatever case of letters.
func (n *Notes) Add(text string) {
	for _, have := range *n {
		if strings.EqualFold(have, text) {
			return
		}
	}
	*n = append(*n, text)
}

// AddAll adds several.
func (n *Notes) AddAll(texts []string) {
	for _, text := range texts {
		n.Add(text)
	}
}
