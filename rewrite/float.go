package rewrite

import (
	"math"
	"math/big"
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
)

// The cells of a floating domain begin at low(i) = (a + i·b)/10^s, rounded once to the column's type, where a and b are
// whole numbers below 2^50 and s ≤ 22. Then a + i·b and 10^s are floating numbers without error, so the single division
// rounds correctly and both databases find the boundary that policy.Domain.Low names. The cell of a value is guessed as
// g = ⌊(v·10^s − a)/b⌋, which is off by at most one, and corrected by comparing with low(g) and low(g + 1).
//
// PostgreSQL fails on overflow and on underflow to zero. No step here overflows, because all of them stay below 2^51 or
// within the domain; the division by b cannot underflow, because it is reached only where v ≥ low(1).

// exactFloat bounds a and a + n·b.
const exactFloat = 1 << 50

// grid holds a, b and 10^s.
type grid struct {
	least, step, power float64
}

func (w cells) grid(c *policy.Column) grid {
	bits := 64
	if c.Type == policy.Float4 {
		bits = 32
	}
	least, err := policy.ParseNumeric(strconv.FormatFloat(c.Domain.Min.(float64), 'f', -1, bits))
	step := c.Domain.Step.Decimal
	if err != nil || step.Coefficient == nil || step.Coefficient.Sign() <= 0 {
		w.fail("column %s: a floating domain without bounds or step", c.Name)
		return grid{}
	}
	scale := max(least.Scale, step.Scale)
	a, b := least.At(scale), step.At(scale)
	end := new(big.Int).Mul(b, big.NewInt(int64(c.Domain.Regular)+1))
	end.Add(end, a)
	limit := big.NewInt(exactFloat)
	if scale > 22 || a.CmpAbs(limit) > 0 || b.CmpAbs(limit) > 0 || end.CmpAbs(limit) > 0 {
		w.fail("column %s: its bounds and step have too many digits together; use a coarser step or the type numeric", c.Name)
		return grid{}
	}
	return grid{float64(a.Int64()), float64(b.Int64()), math.Pow10(int(scale))}
}

func (w cells) floatCell(c *policy.Column, n string) string {
	regular := c.Domain.Regular
	if regular == 1 {
		return "CASE WHEN " + n + " IS NOT NULL THEN 0 END"
	}
	g := w.grid(c)
	scaled := n
	if g.power != 1 {
		scaled = w.operate(n, "*", w.float(g.power))
	}
	if g.least != 0 {
		scaled = w.operate(scaled, "-", w.float(g.least))
	}
	guess := w.call("floor", w.divide(scaled, w.float(g.step)))
	next := w.operate(guess, "+", w.float(1))
	corrected := "CASE WHEN " + w.operate(n, "<", w.low(c, g, guess)) + " THEN " + w.operate(guess, "-", w.float(1)) +
		" WHEN " + w.operate(n, ">=", w.low(c, g, next)) + " THEN " + next + " ELSE " + guess + " END"
	first, _ := c.Domain.Low(1).(float64)
	return "CASE WHEN " + w.operate(n, ">=", w.float(first)) + " THEN LEAST(" + corrected + ", " +
		w.float(float64(regular-1)) + ") WHEN " + n + " IS NOT NULL THEN " + w.float(0) + " END"
}

// low is the boundary below the cell of that number.
func (w cells) low(c *policy.Column, g grid, number string) string {
	at := w.operate(number, "*", w.float(g.step))
	if g.least != 0 {
		at = w.operate(at, "+", w.float(g.least))
	}
	if g.power != 1 {
		at = w.divide(at, w.float(g.power))
	}
	if c.Type == policy.Float4 {
		at = w.cast(at, "float4")
	}
	return at
}
