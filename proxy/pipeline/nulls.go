package pipeline

import (
	"fmt"
	"math/big"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/sandbox"
)

// A domain that the rows are not in makes all of them NULL: dates of 1990 where the policy says from 2015 on. Whoever
// groups by the column sees one large group without a key, and the others empty. The note is made of the rows that are
// sent and of the plan's half-widths, as that of what is mostly noise (mostlyNoise).

// mostly is the share of what is counted that says so.
var mostly = big.NewRat(9, 10)

// beyondNoise is how many half-widths noise alone does not reach: at 95 %, once in 10^8 values.
var beyondNoise = big.NewRat(3, 1)

// mostlyNull tells of the key column whose NULLs have nearly all of what a column counts; "" where there is none. What
// they have must be more than noise makes of nothing.
func mostlyNull(plan *plans.Plan, rows sandbox.Rows) string {
	if len(rows.Columns) != len(plan.Columns) || len(rows.Data) < 2 {
		return ""
	}
	for i, c := range plan.Columns {
		off, known := widthOf(c)
		if !known || !c.Noisy || c.Bound != plans.Unbounded {
			continue
		}
		for k, key := range plan.Columns {
			if key.Noisy || key.Bound != plans.Unbounded {
				continue
			}
			null, all := sharesOf(rows.Data, k, i)
			if null.Cmp(new(big.Rat).Mul(off.rat(), beyondNoise)) <= 0 || null.Cmp(new(big.Rat).Mul(mostly, all)) < 0 {
				continue
			}
			share, _ := new(big.Rat).Quo(null, all).Float64()
			return fmt.Sprintf("%.0f %% of %s is where %s is NULL, which values outside its domain are too: "+
				"does the policy's domain fit it?", 100*share, c.Name, key.Name)
		}
	}
	return ""
}

// sharesOf adds up what a column counts where a key is NULL, and everywhere. What noise has made negative is nothing.
func sharesOf(rows [][]policy.Value, key, counted int) (null, all *big.Rat) {
	null, all = new(big.Rat), new(big.Rat)
	for _, row := range rows {
		n, ok := numberOf(row[counted])
		if !ok || n.Sign() <= 0 {
			continue
		}
		if all.Add(all, n); row[key] == nil {
			null.Add(null, n)
		}
	}
	return null, all
}
