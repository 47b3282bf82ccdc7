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
// sent and of the plan's half-widths, as that of what is mostly noise (mostlyNoise). Whoever counts what such a column
// has, or what is in a large part of its domain, sees nothing that noise does not show either (nothingInside).

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

// expectedOver is how many times what noise may show the table's expected rows must be for a notice.
const expectedOver = 10

// nothingInside tells of the column of which an answer counts the rows in at least half of its domain, and finds no
// more than noise makes of nothing, though the policy expects many rows; "" where there is none.
func nothingInside(plan *plans.Plan, rows sandbox.Rows) string {
	if len(rows.Data) != 1 || len(rows.Columns) != len(plan.Columns) {
		return ""
	}
	var shown *big.Rat // by noise
	for i, c := range plan.Columns {
		off, known := widthOf(c)
		n, number := numberOf(rows.Data[0][i])
		if !known || !number || !c.Noisy || c.Bound != plans.Unbounded {
			continue
		}
		within := new(big.Rat).Mul(off.rat(), beyondNoise)
		if n.Cmp(within) > 0 {
			return ""
		}
		if shown == nil || within.Cmp(shown) > 0 {
			shown = within
		}
	}
	if shown == nil {
		return ""
	}
	for at, m := range plan.Measures {
		expected := big.NewRat(m.Table.ExpectedRows, expectedOver)
		if c := plan.HalfRead(at); c != nil && expected.Cmp(shown) > 0 {
			return fmt.Sprintf("no row that noise would show is counted, and values of %s outside its domain count as "+
				"NULL: does the policy's domain fit it?", c.Name)
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
