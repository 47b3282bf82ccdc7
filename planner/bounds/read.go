package bounds

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/policy"
)

// What a histogram of units says is written as the policy has it: `domain: {min: 0, max: 500, step: 0.01}`,
// `max_rows_per_unit: 15`. All of it is a function of what was released.

// Answer is what became of a question.
type Answer struct {
	Question
	mechanisms.Ends
	Low, High  policy.Value // the ends of a column, where they are found
	Rows       int64        // the number of a unit's rows
	Reaches    bool         // values reach the first or the last cell, so that there may be some beyond all that is looked at
	confidence mechanisms.Confidence
}

// Answer reads the ends that were found.
func (q Question) Answer(e mechanisms.Ends, confidence mechanisms.Confidence) Answer {
	a := Answer{Question: q, Ends: e, confidence: confidence}
	if !e.Found() {
		return a
	}
	l := q.Domain.Ladder
	if q.Column == nil {
		a.Rows = l.Ends[e.To].(int64)
		a.Reaches = e.To == q.Domain.Regular && e.To > 1
		return a
	}
	a.Low, a.High = l.Ends[e.From], l.Ends[e.To]
	a.Reaches = e.From == 0 || e.To == q.Domain.Regular
	return a
}

// Values is how many of a domain's cells are of values.
func (q Question) Values() int { return q.Domain.Regular }

// maxFine is how many cells of its type's own unit a number may have; with more, cells are so wide that there are about
// coarse of them.
const (
	maxFine = 100_000
	coarse  = 10_000
)

// maxHourly is over how many years moments are distinguished by the hour.
const maxHourly = 40

func year(date string) int {
	n, _ := strconv.Atoi(date[:4])
	return n
}

// YAML is the line of the policy, without a margin.
func (a Answer) YAML() string {
	if a.Column == nil {
		return fmt.Sprintf("max_rows_per_unit: %d", a.Rows)
	}
	c := a.Column
	item := "- {name: " + scalarText(c.Name)
	if c.Source != c.Name {
		item += ", source: " + scalarText(c.Source)
	}
	item += ", type: " + typeText(c) + ", domain: " + a.domain()
	if a.Found() && !c.Type.Moment() {
		item += ", outside: clamp"
	}
	if c.Comment != "" {
		item += ", comment: " + quoted(c.Comment)
	}
	return item + "}"
}

// domain is the column's, as the policy writes it.
func (a Answer) domain() string {
	if !a.Found() {
		return "private"
	}
	c := a.Column
	low, high := policy.FormatValue(c.Type, a.Low), policy.FormatValue(c.Type, a.High)
	switch c.Type {
	case policy.DateType:
		return fmt.Sprintf("{min: %s, below: %s, step: 1 day}", low, high)
	case policy.TimestampT, policy.TimestampTZ:
		step := "hour"
		if year(high)-year(low) > maxHourly {
			step = "day"
		}
		return fmt.Sprintf("{min: %s, below: %s, step: 1 %s}", low[:10], high[:10], step)
	}
	step := a.step()
	return fmt.Sprintf("{min: %s, max: %s, step: %s}", plain(a.onStep(decimal(a.Low), step, false)), plain(a.onStep(decimal(a.High), step, true)), plain(step))
}

// onStep is the next multiple of a step, down or up, so that an end has no digits that no cell has. Whole numbers, and
// ends that would be beyond the type, stay as they are.
func (a Answer) onStep(end, step policy.Numeric, up bool) policy.Numeric {
	if a.Column.Type.Integer() {
		return end
	}
	scale := max(end.Scale, step.Scale)
	q, rest := new(big.Int).DivMod(end.At(scale), step.At(scale), new(big.Int)) // q rounds down
	if up && rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	at := policy.Numeric{Coefficient: q.Mul(q, step.At(scale)), Scale: scale}
	if p, s := policy.NumericTypmod(a.Column.Typmod); a.Column.Type == policy.NumericType && p >= 0 {
		most := policy.Numeric{Coefficient: new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p-s)), nil)}
		if new(big.Int).Abs(at.At(scale)).Cmp(most.At(scale)) >= 0 {
			return end
		}
	}
	return at
}

// step is the width of a cell: the type's unit, or 1, 2 or 5 times a power of ten.
func (a Answer) step() policy.Numeric {
	width := decimal(a.High)
	least := decimal(a.Low)
	scale := max(width.Scale, least.Scale, 0)
	units := new(big.Int).Sub(width.At(scale), least.At(scale))
	unit, known := int32(0), a.Column.Type.Integer()
	if _, s := policy.NumericTypmod(a.Column.Typmod); a.Column.Type == policy.NumericType && s >= 0 {
		unit, known = s, true
	}
	if known {
		fine := policy.Numeric{Coefficient: units, Scale: scale}.At(max(unit, scale))
		own := policy.NewNumeric(1, unit)
		if new(big.Int).Quo(fine, own.At(max(unit, scale))).Cmp(big.NewInt(maxFine)) <= 0 {
			return own
		}
	}
	whole := policy.Numeric{Coefficient: units, Scale: scale}
	cells := policy.NewNumeric(coarse, 0)
	for k := int32(-30); ; k++ {
		for _, digit := range []int64{1, 2, 5} {
			step := policy.NewNumeric(digit, -k)
			if k > 0 {
				step = policy.Numeric{Coefficient: new(big.Int).Mul(big.NewInt(digit), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(k)), nil))}
			}
			if product := (policy.Numeric{Coefficient: new(big.Int).Mul(step.Coefficient, cells.Coefficient), Scale: step.Scale}); product.Cmp(whole) >= 0 {
				return step
			}
		}
	}
}

// decimal is a number of any type.
func decimal(v policy.Value) policy.Numeric {
	switch v := v.(type) {
	case policy.Numeric:
		return v
	case int64:
		return policy.NewNumeric(v, 0)
	case float64:
		n, err := policy.ParseNumeric(strconv.FormatFloat(v, 'f', -1, 64))
		if err == nil {
			return n
		}
	}
	return policy.Numeric{}
}

// plain writes a number with the digits that it has.
func plain(v policy.Value) string {
	text := decimal(v).String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Says tells in plain words what was found and how far it may be off, in lines for comments.
func (a Answer) Says(unit string) []string {
	of := "of one row of each " + unit
	if a.Column == nil || a.Table.Dataset.Unit.Row {
		of = "of each " + unit
	}
	sure := fmt.Sprintf("%g %%", 100*a.confidence.Float())
	if !a.Found() {
		return []string{fmt.Sprintf("%s: nothing shows. About %d (±%d) %ss in all, and fewer than %d at one place are not told from noise; a larger ε tells more", a.Name(), max(a.Units, 0), a.UnitsOff, unit, a.Shows)}
	}
	lines := []string{fmt.Sprintf("%s: %s, about %d (±%d) in all; from %d at one place on they show", a.Name(), of, max(a.Units, 0), a.UnitsOff, a.Shows)}
	above := fmt.Sprintf("about %d (±%d), at most %d", max(a.Above, 0), a.AboveOff, a.MostAbove)
	if a.Column == nil {
		lines = append(lines, fmt.Sprintf("more rows have %s; each ± at %s, the bound and the limit together too", above, sure))
	} else {
		lines = append(lines, fmt.Sprintf("below lie about %d (±%d), at most %d; above %s; each ± at %s, the ends and the limits together too", max(a.Below, 0), a.BelowOff, a.MostBelow, above, sure))
	}
	if a.Reaches {
		lines = append(lines, "they reach the end of all that is looked at: there may be more beyond it")
	}
	return lines
}

// typeText is a type as a policy in one line has it: what has commas in it is quoted.
func typeText(c *policy.Column) string {
	text := c.Type.Format(c.Typmod)
	if strings.Contains(text, ",") {
		return quoted(text)
	}
	return text
}

// scalarText is a name, in quotes unless YAML takes it for text as it is.
func scalarText(name string) string {
	for i, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && (i == 0 || r < '0' || r > '9') {
			return quoted(name)
		}
	}
	switch strings.ToLower(name) {
	case "", "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return quoted(name)
	}
	return name
}

// quoted is a text in YAML's double quotes.
func quoted(s string) string { return fmt.Sprintf("%q", s) }
