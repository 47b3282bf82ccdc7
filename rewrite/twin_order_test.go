package rewrite_test

import (
	"cmp"
	"crypto/md5"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/dpproxy/dpproxy/policy"
)

// The twin's order of a unit's rows and groups, read from docs/adr/0050-rows-by-hash.md: in whole numbers of any size, so that
// nothing here is right by the same overflow as the SQL.

// twinPrime is 2^31 − 1.
const twinPrime = 2147483647

// sha256Rounds are the first eight round constants of SHA-256.
var sha256Rounds = []int64{0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5}

// part is a number that is hashed: one of size different ones.
type part struct{ number, size int64 }

// hashOf mixes a unit, in a round of its own, and the other parts, which share a round while their combinations are at most 2^31.
func hashOf(unit part, others []part) int64 {
	mixed, size := []int64{unit.number}, int64(0)
	for _, p := range others {
		together := new(big.Int).Mul(big.NewInt(size), big.NewInt(p.size))
		if size > 0 && together.Cmp(big.NewInt(twinPrime+1)) <= 0 {
			last := len(mixed) - 1
			mixed[last], size = mixed[last]*p.size+p.number, together.Int64()
			continue
		}
		mixed, size = append(mixed, p.number), p.size
	}
	for _, c := range sha256Rounds[4:7] {
		mixed = append(mixed, c%(twinPrime+1))
	}
	state := big.NewInt(sha256Rounds[7] % (twinPrime + 1))
	for i, x := range mixed {
		state.Xor(state, big.NewInt(x))
		state.Mul(state, big.NewInt(sha256Rounds[i%4]%(twinPrime+1)))
		state.Mod(state, big.NewInt(twinPrime))
	}
	return state.Int64()
}

// unitPart is a unit's number: of a whole number its last 62 bits modulo the prime, of anything else 28 bits of its text's MD5.
func unitPart(table *policy.Table, unit policy.Value) part {
	if table.UnitType().Integer() {
		low := new(big.Int).Mod(big.NewInt(unit.(int64)), new(big.Int).Lsh(big.NewInt(1), 62))
		return part{low.Mod(low, big.NewInt(twinPrime)).Int64(), twinPrime + 1}
	}
	digits := fmt.Sprintf("%x", md5.Sum([]byte(fmt.Sprint(unit))))[:7]
	number, err := strconv.ParseInt(digits, 16, 64)
	if err != nil {
		panic(err)
	}
	return part{number, 1<<28 + 1}
}

// columnPart is the number of a normalised value: of its cell where values are listed, else counted from the domain's least
// value in the smallest steps that the column has; NULL comes after the last.
func columnPart(c *policy.Column, v policy.Value) part {
	if !c.Domain.Ordered() {
		size := int64(c.Domain.Size())
		if v == nil {
			return part{size, size + 1}
		}
		at, _ := c.Domain.Cell(v)
		return part{int64(at), size + 1}
	}
	steps := stepsOf(c)
	least, most := floorOf(new(big.Rat).Mul(scalarOf(c.Domain.Min), steps)), new(big.Rat).Mul(scalarOf(c.Domain.Max), steps)
	width := new(big.Int).Neg(floorOf(most.Neg(most))) // the ceiling
	width.Sub(width, least)
	size := new(big.Int).Add(width, big.NewInt(1))
	wide := size.Cmp(big.NewInt(twinPrime)) >= 0
	if wide {
		size.SetInt64(twinPrime)
	}
	if v == nil {
		return part{size.Int64(), size.Int64() + 1}
	}
	number := floorOf(new(big.Rat).Mul(scalarOf(v), steps))
	if width.IsInt64() || c.Type == policy.NumericType {
		number.Sub(number, least)
	} else { // a difference that no int8 holds is not taken: the last 62 bits stand for the number
		number.Mod(number, new(big.Int).Lsh(big.NewInt(1), 62))
	}
	if wide {
		number.Mod(number, size)
	}
	return part{number.Int64(), size.Int64() + 1}
}

// stepsOf is how many steps a column's values are counted in from one whole number to the next.
func stepsOf(c *policy.Column) *big.Rat {
	power := func(base int64, n int) *big.Rat {
		return new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(n)), nil))
	}
	switch least := c.Domain.Min.(type) {
	case policy.Numeric: // the digits that are stored; nine where the type does not say
		_, scale := policy.NumericTypmod(c.Typmod)
		if c.Typmod < 0 {
			scale = 9
		}
		return power(10, int(max(scale, least.Scale, c.Domain.Max.(policy.Numeric).Scale, c.Domain.Step.Decimal.Scale)))
	case float64: // as many bits as leave the largest number 61
		_, exponent := math.Frexp(max(math.Abs(least), math.Abs(c.Domain.Max.(float64))))
		return power(2, min(61-exponent, 200))
	}
	return power(1, 0)
}

// floorOf is the largest whole number that is not above r.
func floorOf(r *big.Rat) *big.Int {
	return new(big.Int).Div(r.Num(), r.Denom()) // the denominator is positive: Euclid's quotient is the floor
}

// owned is a normalised row with the unit whose it is.
type owned struct {
	unit policy.Value
	row  []policy.Value
}

// inOrder sorts rows of one unit: by their date where rows are only added, by hash, and by their contents.
func inOrder(table *policy.Table, rows []owned) {
	dated := -1
	if table.Appends != nil {
		dated = slices.Index(table.Columns, table.Appends.Column)
	}
	hash := func(o owned) int64 {
		var parts []part
		for i, c := range table.Columns {
			if i != dated {
				parts = append(parts, columnPart(c, o.row[i]))
			}
		}
		return hashOf(unitPart(table, o.unit), parts)
	}
	slices.SortStableFunc(rows, func(a, b owned) int {
		if dated >= 0 {
			if order := beforeAt(table.Columns[dated], a.row[dated], b.row[dated]); order != 0 {
				return order
			}
		}
		return cmp.Or(cmp.Compare(hash(a), hash(b)), before(table, a.row, b.row))
	})
}

