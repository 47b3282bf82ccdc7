package accounting

import (
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Histogram returns how far one unit can move the counts of a histogram in which each row is in at most one group.
//
// Claim: with R rows a unit in at most g groups, at most m in each (0: no bound but R), the counts of neighbours differ by
// at most
//
//	add-remove     L1 = R' = min(R, g·m)    L2² = ⌊R'/m⌋·m² + (R' mod m)²
//	replace-one    L1 = 2R'                 L2² twice as much
//
// Proof: a unit's rows are a vector a with 0 ≤ a ≤ m, at most g of it not 0, Σa ≤ R'. Σa² is convex, so greatest where the
// rows are in as few groups as m allows. Under replace-one the difference is a−b of two such vectors, and |a−b|² ≤
// |a|²+|b|², a·b not being negative. All bounds are attained.
func Histogram(c privacy.Contribution) (privacy.Sensitivity, error) {
	const most = 1 << 22
	for _, x := range []struct {
		name  string
		n     int64
		least int64
	}{{"rows of a unit", c.Rows, 1}, {"groups of a unit", c.Groups, 0}, {"rows of a unit in a group", c.PerGroup, 0}} {
		if x.n < x.least || x.n > most {
			return privacy.Sensitivity{}, fmt.Errorf("%s is %d, must be from %d to %d", x.name, x.n, x.least, most)
		}
	}
	times := int64(1)
	switch c.Neighbors {
	case privacy.AddRemove:
	case privacy.ReplaceOne:
		times = 2
	default:
		return privacy.Sensitivity{}, fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	rows, each := c.Rows, c.PerGroup
	if each == 0 || each > rows {
		each = rows
	}
	if c.Groups != 0 {
		rows = min(rows, c.Groups*each)
	}
	full, rest := rows/each, rows%each
	return privacy.Sensitivity{L1: times * rows, L2Squared: times * (full*each*each + rest*rest)}, nil
}
