package pipeline

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// An answer that is mostly noise says so: SELECT city, sum(spent) FROM orders GROUP BY 1 at a small ε may be off by 490 in each row, while
// the rows shown are near 34. The note is made of the rows that are sent and of the plan's half-widths, so it says nothing that who reads
// both could not say herself; it is no part of what an answer costs or of whether there is one.

// mostlyNoise tells of the column that is most lost in its noise, where at least half of the values shown are no further from zero than they may be
// off; "" where there is none. What is computed from several counts has no half-width of its own, and rows with bounds beside them show theirs.
func mostlyNoise(plan *plans.Plan, rows sandbox.Rows) string {
	if len(rows.Columns) != len(plan.Columns) {
		return ""
	}
	told, noisy := "", 0
	var most *big.Rat
	for _, c := range plan.Columns {
		if c.Noisy {
			noisy++
		}
	}
	for i, c := range plan.Columns {
		off, known := widthOf(c)
		if !known || !c.Noisy || c.Bound != plans.Unbounded {
			continue
		}
		near, ok := middle(rows.Data, i)
		if !ok || off.cmp(near) <= 0 {
			continue
		}
		ratio := new(big.Rat).Quo(off.rat(), new(big.Rat).Add(near.rat(), big.NewRat(1, 1<<20))) // of zero, too, it is a number
		if most != nil && ratio.Cmp(most) <= 0 {
			continue
		}
		if most, told = ratio, fmt.Sprintf("mostly noise: ±%s on values near %s", off, near); noisy > 1 {
			told += " (" + c.Name + ")"
		}
	}
	return told
}

// middle is the median of the sizes of a column's values; false: it has no numbers.
func middle(rows [][]policy.Value, column int) (median width, ok bool) {
	sizes := make([]width, 0, 8)
	for _, row := range rows {
		if n, ok := sizeOf(row[column]); ok {
			sizes = append(sizes, n)
		}
	}
	if len(sizes) == 0 {
		return width{}, false
	}
	slices.SortFunc(sizes, width.cmp)
	return sizes[(len(sizes)-1)/2], true
}

func sizeOf(v policy.Value) (size width, ok bool) {
	if whole, ok := v.(int64); ok && whole != math.MinInt64 {
		return width{rows: max(whole, -whole)}, true
	}
	n := new(big.Rat)
	switch v := v.(type) {
	case int64:
		n.SetInt64(v)
	case float64:
		if n.SetFloat64(v) == nil { // infinite, or no number
			return width{}, false
		}
	case policy.Numeric:
		if v.Coefficient == nil {
			return width{}, false
		}
		n.SetInt(v.Coefficient)
		if scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(v.Scale, 0))), nil); scale.Sign() > 0 {
			n.Quo(n, new(big.Rat).SetInt(scale))
		}
	default:
		return width{}, false
	}
	return width{off: n.Abs(n)}, true
}

// toldNoise adds to the notice of an answer that it is mostly noise.
func toldNoise(notices []Notice, plan *plans.Plan, rows sandbox.Rows) []Notice {
	text := mostlyNoise(plan, rows)
	if text == "" || len(notices) == 0 {
		return notices
	}
	out := slices.Clone(notices)
	out[0].Message += "; " + text
	return out
}
