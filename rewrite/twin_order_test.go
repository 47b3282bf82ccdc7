package rewrite_test

import (
	"cmp"
	"crypto/md5"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
)

// The twin's order of a unit's rows and groups, read from docs/adr/0050-rows-by-hash.md: in whole numbers of any size,
// so that nothing here is right by the same overflow as the SQL.

// twinPrime is 2^31 − 1.
const twinPrime = 2147483647

// sha256Rounds are the first eight round constants of SHA-256.
var sha256Rounds = []int64{0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5}

// part is a number that is hashed: one of size different ones.
type part struct{ number, size int64 }

// hashOf mixes a unit, in a round of its own, and the other parts, which share a round while their combinations are at
// most 2^31.
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

// unitPart is a unit's number: of a whole number its last 62 bits modulo the prime, of anything else 28 bits of its
// text's MD5.
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

// columnPart is the number of a normalised value: of its cell where values are listed, else counted from the domain's
// least value in the smallest steps that the column has; NULL comes after the last.
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
	} else { // a difference that no int8 holds is not taken: the last 62 bits are taken for the number
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

// groupedRows are the rows that count where a unit's groups are bounded: of those that the measure asks for, the unit's
// first groups by the hash of unit and group, and in each its first rows.
func groupedRows(t testing.TB, m *plans.Measure, rows []stored) [][]policy.Value {
	type group struct {
		hash   int64
		firsts []int
		rows   []owned
	}
	var kept [][]policy.Value
	for _, list := range unitRows(m.Table, rows) {
		groups := map[string]*group{}
		for _, o := range list {
			firsts, ok := classesOf(t, m, o.row)
			if !ok || !holds(t, m.Where, m.Table, o.row) {
				continue
			}
			key := fmt.Sprint(firsts)
			if groups[key] == nil {
				var parts []part
				for i, f := range firsts {
					parts = append(parts, part{int64(f), int64(m.Groups[i].Cells)})
				}
				groups[key] = &group{hash: hashOf(unitPart(m.Table, o.unit), parts), firsts: firsts}
			}
			groups[key].rows = append(groups[key].rows, o)
		}
		ranked := slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
			return cmp.Or(cmp.Compare(a.hash, b.hash), slices.Compare(a.firsts, b.firsts))
		})
		for _, g := range ranked[:min(len(ranked), int(m.Table.MaxGroups))] {
			inOrder(m.Table, g.rows)
			for _, o := range g.rows[:min(len(g.rows), int(m.Table.MaxPerGroup))] {
				kept = append(kept, o.row)
			}
		}
	}
	return kept
}

// classesOf are the first combinations of cells of a row's class in each grouping; false means it is in no group.
func classesOf(t testing.TB, m *plans.Measure, row []policy.Value) (firsts []int, ok bool) {
	at := 0
	for _, g := range m.Groups {
		combination := 0
		for range g.Columns {
			c := m.Grain[at]
			combination = combination*m.Size(at) + m.Piece(at, cellOf(t, c, row[slices.Index(m.Table.Columns, c)]))
			at++
		}
		byCell := classesByCell(g)
		class := byCell[combination]
		if class < 0 {
			return nil, false
		}
		firsts = append(firsts, slices.Index(byCell, class))
	}
	return firsts, true
}

// otherOrders are random measures of tables whose rows or groups are ordered by more than the golden ones' are: units
// of a known type, rows that are added by date, bounds of groups.
func otherOrders(t *testing.T) (list []feature) {
	const seed = 50
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range 48 {
		people, visits, _ := tables(t)
		table, grain := visits, []string{"clinic", "minutes", "cost"}
		if i%2 == 0 {
			table, grain = people, []string{"sex", "small", "member", "city", "hired"}
			if i%4 == 0 {
				table.Appends = &policy.Appends{Column: table.Column("hired")}
			}
		}
		if i%3 > 0 {
			table.Dataset.Unit.Type = policy.Int8
		}
		m := &plans.Measure{Table: table, Counters: []predicate.Pred{nil}}
		if i%3 == 0 {
			m.Where, m.Counters = randomPred(r, table, 2), []predicate.Pred{nil, randomPred(r, table, 1)}
		}
		for _, at := range r.Perm(len(grain))[:1+r.IntN(3)] {
			m.Grain = append(m.Grain, table.Column(grain[at]))
		}
		if r.IntN(2) == 0 {
			m.Cuts = randomCuts(r, m.Grain)
		}
		if i%8 < 6 {
			table.MaxGroups, table.MaxPerGroup = 1+r.Int64N(3), 1+r.Int64N(2)
			table.MaxRowsPerUnit = table.MaxGroups * table.MaxPerGroup
			m.Groups = randomGroups(r, m)
		}
		list = append(list, feature{fmt.Sprintf("ordered_%d", i), m})
	}
	return list
}

// classesByCell are the classes of a grouping, one by one.
func classesByCell(g plans.Grouping) []int32 {
	class := make([]int32, 0, g.Cells)
	for i := range g.Cells {
		if g.Runs == nil {
			class = append(class, int32(i))
		}
	}
	for _, r := range g.Runs {
		class = append(class, slices.Repeat([]int32{r.Class}, r.Length)...)
	}
	return class
}

// randomGroups puts the columns of a grain into groupings, whose combinations of cells are groups of their own, or,
// where they are not too many, in classes of several or in none.
func randomGroups(r *rand.Rand, m *plans.Measure) (list []plans.Grouping) {
	for at := 0; at < len(m.Grain); {
		g := plans.Grouping{Columns: 1 + r.IntN(len(m.Grain)-at)}
		size := 1
		for i := range g.Columns {
			size *= m.Size(at + i)
		}
		at += g.Columns
		g.Cells, g.Classes = size, size
		some := size <= 1000 && r.IntN(2) == 0
		if some {
			g.Classes = 2 + r.IntN(size)
		}
		for range size {
			if some {
				g.Runs = append(g.Runs, derived.ClassRun{Length: 1, Class: int32(r.IntN(g.Classes+1) - 1)})
			}
		}
		g.Partly = some
		list = append(list, g)
	}
	return list
}
