package mechanisms

import (
	"fmt"
	"math"
	"math/big"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
)

// Sensitivity returns how far one unit can move the spec's observations, taken together: the moves of all counters,
// each cut at the int64 range. The L2² of a sum over fine grids is beyond it: L2Squared has it whole.
func (s Spec) Sensitivity(c Contribution) privacy.Sensitivity {
	total := s.allMoves(c)
	return privacy.Sensitivity{L1: cutAtInt64(total.l1), L2Squared: cutAtInt64(total.squared)}
}

// L2Squared returns the square of the L2 by which one unit can move the spec's observations, taken together.
func (s Spec) L2Squared(c Contribution) *big.Int { return s.allMoves(c).squared }

func (s Spec) allMoves(c Contribution) moves {
	if !Is[*Counts](s) { // the counts that it looks at
		s = Spec{Counters: s.Counters, Cells: s.Cells, Kind: &Counts{Strategy: Strategy{Kind: Identity}}}
	}
	total := moves{new(big.Int), new(big.Int)}
	for _, sum := range s.Counts().Sums {
		total.add(s.movesOf(c, sum))
	}
	if len(s.Counts().Sums) == 0 {
		total.add(s.moves(c, counted).times(int64(s.Counters)))
	}
	return total
}

func cutAtInt64(n *big.Int) int64 {
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// moves bounds the change of the observations of one counter between neighbours: Σ|difference| and Σ difference².
//
// Claim. Let a unit have at most R rows, in at most g cells and at most m of them in one (no bounds: g = m = R); let
// each add a value in [Low, High] or nothing; let M and l be the larger and the smaller of max(High, 0) and −min(Low,
// 0). Of D cells, R' = min(R, g·m, D·m) rows can be in some. A level of blocks of b cells has at most m' = min(R', b·m)
// of them in one node; packed as tightly as can be they are q = ⌊R'/m'⌋ times m' and a rest r: let Q = q·m'² + r². Then
// a level of weight 1 moves by at most
//
//	add-remove             L1 = R'·M        L2² = M²·Q
//	replace-one, one cell  L1 = R'·(M+l)    L2² = (R'·(M+l))²
//	replace-one, more      L1 = 2R'·M       L2² = 2M²·Q + gain
//
// with a gain that is 0 for counts (l = 0; see packing.gain), a level of weight w by w and w² times as much, and the
// levels add up. A strategy that is a general matrix, for values of one sign, moves by at most R'·M times the L1 and
// (R'·M)² times the L2² that one row has; for values of both signs, which marginals alone take, replace-one moves it by
// at most twice and four times what add-remove does.
//
// Proof. A row is in at most one cell, hence in at most one node of a level; let n be the numbers of a unit's rows in
// the nodes. n lies in the polytope 0 ≤ n ≤ m', Σn ≤ R', whose corners are the packings. Add-remove: a node moves by at
// most M·n, and Σ(M·n)² is convex, so largest at a corner, where it is M²·Q. Replace-one: with n rows leaving and n̄
// coming, a node moves by at most v = M·max(n, n̄) + l·min(n, n̄); Σv ≤ M·Σ(n+n̄), and Σv² is convex in (n, n̄), so
// largest where both are packings. There Σv² = M²·Σ(n²+n̄²) + Σ [2Ml·n·n̄ − (M²−l²)·min(n, n̄)²], and gain is the
// largest that the second sum can be, however the two packings lie over each other. With one cell there is one node,
// which they share. For a matrix see ranges.Strategy; values of one sign are at most M times as many rows, added or
// left out. A sum of both signs is, for a unit's rows alone, a linear combination of columns with coefficients that add
// up to at most R'·M in size; those of two units are two of these, and norms obey the triangle inequality. The bounds
// for counts without g and m are attained: all of a unit's rows in one cell, and the other's in another.
type moves struct{ l1, squared *big.Int }

func (s Spec) moves(c Contribution, b Bound) moves {
	large, small := b.extremes()
	rows, each := unitRows(c, s.Cells), perGroup(c)
	if matrix := s.matrix(); matrix != nil {
		if b.signed() && c.Neighbors == privacy.ReplaceOne {
			one := matrix.Sensitivity(privacy.AddRemove)
			return moves{product(one.L1), product(one.L2Squared)}.scaled(2).scaled(rows).scaled(large)
		}
		one := matrix.Sensitivity(c.Neighbors)
		return moves{product(one.L1), product(one.L2Squared)}.scaled(rows).scaled(large)
	}
	m := moves{new(big.Int), new(big.Int)}
	for _, v := range s.levels() {
		m.add(pack(rows, min(rows, int64(v.block)*each)).moves(c.Neighbors, s.Cells, large, small).scaled(v.weight))
	}
	return m
}

// perGroup returns m, and unitRows R'.
func perGroup(c Contribution) int64 {
	if c.PerGroup > 0 {
		return c.PerGroup
	}
	return c.Rows
}

func unitRows(c Contribution, cells int) int64 {
	rows := min(c.Rows, int64(cells)*perGroup(c))
	if c.Groups > 0 {
		rows = min(rows, c.Groups*perGroup(c))
	}
	return rows
}

// add adds the moves of other observations to m.
func (m moves) add(other moves) {
	m.l1.Add(m.l1, other.l1)
	m.squared.Add(m.squared, other.squared)
}

// times returns the moves of n times as many observations.
func (m moves) times(n int64) moves {
	return moves{new(big.Int).Mul(m.l1, big.NewInt(n)), new(big.Int).Mul(m.squared, big.NewInt(n))}
}

// scaled returns the moves of observations that are n times as large.
func (m moves) scaled(n int64) moves {
	return moves{new(big.Int).Mul(m.l1, big.NewInt(n)), new(big.Int).Mul(m.squared, product(n, n))}
}

// packing is a unit's rows in as few nodes as can be: full ones of each, and one of rest.
type packing struct{ full, each, rest int64 }

func pack(rows, each int64) packing { return packing{rows / each, each, rows % each} }

// moves is the claim for one level of weight 1.
func (p packing) moves(neighbors privacy.Neighbors, cells int, large, small int64) moves {
	rows := p.full*p.each + p.rest
	if neighbors == privacy.ReplaceOne && cells == 1 {
		l1 := product(rows, large+small)
		return moves{l1, new(big.Int).Mul(l1, l1)}
	}
	m := moves{product(rows, large), product(p.full, p.each, p.each)}
	m.squared.Add(m.squared, product(p.rest, p.rest))
	m.squared.Mul(m.squared, product(large, large))
	if neighbors == privacy.ReplaceOne {
		m.l1.Lsh(m.l1, 1)
		m.squared.Lsh(m.squared, 1)
		m.squared.Add(m.squared, p.gain(large, small))
	}
	return m
}

// gain is the largest Σ [2Ml·n·n̄ − (M²−l²)·min(n, n̄)²] over the ways to lay two packings over each other, leaving
// apart what gains nothing. Between them the fulls of one can meet the fulls of the other, and a rest either the
// other's rest or one of its fulls, which is then met by no full: so none, one or both rests meet fulls.
func (p packing) gain(large, small int64) *big.Int {
	meet := func(n, less int64) *big.Int {
		g := product(2, large, small, n, less)
		loss := new(big.Int).Sub(product(large, large), product(small, small))
		return g.Sub(g, loss.Mul(loss, product(less, less)))
	}
	positive := func(n *big.Int) *big.Int {
		if n.Sign() < 0 {
			return new(big.Int)
		}
		return n
	}
	both, one := meet(p.each, p.each), meet(p.each, p.rest)
	best := new(big.Int).Mul(positive(both), big.NewInt(p.full))
	best.Add(best, positive(meet(p.rest, p.rest)))
	if p.full == 0 {
		return best
	}
	rest := new(big.Int).Mul(positive(both), big.NewInt(p.full-1))
	for range 2 {
		if rest.Add(rest, one).Cmp(best) > 0 {
			best.Set(rest)
		}
	}
	return best
}

func product(factors ...int64) *big.Int {
	p := big.NewInt(1)
	for _, f := range factors {
		p.Mul(p, big.NewInt(f))
	}
	return p
}

// movesOf bounds the change of the observations of one counter between neighbours.
//
// Claim. A counter that adds up different values once each, of V, moves by no more than a sum over rows with the same
// bound, of which a unit has at most V in one cell: moves holds for it with min(m, V) in the place of m. (The number of
// different values adds up 1 for each.) Proof. Let X be the values that rows of others have in a cell, x their sum, and
// A those of the unit's own rows there that are not in X. With the unit the cell is x + Σ_A, without it x. |A| is at
// most the unit's rows there, hence at most m, and at most V, and each value of A adds a number in [Low, High]: so the
// cell is x + what a sum over |A| rows is, one for each value of A. Under replace-one, with A leaving and B coming, it
// is x + Σ_A before and x + Σ_B after. These are the moves of a sum over rows of which the unit has the numbers |A| and
// |B| in the cells, and Σ|A| is at most the unit's rows, wherever they are: a row shows one value, in one cell.
// tallyValues clamps what a value adds, so that this holds whatever it is given. The bound for a number of values is
// attained where others have no rows; for sums it is not where V values cannot all be the largest.
func (s Spec) movesOf(c Contribution, sum Sum) moves {
	if sum.Values > 0 {
		c.PerGroup = min(perGroup(c), int64(sum.Values))
	}
	return s.moves(c, sum.Bound)
}

// values returns how many different values a counter tells apart, 0 for counters of rows and sums.
func (s Spec) values(counter int) int {
	if s.Counts().Sums == nil {
		return 0
	}
	return s.Counts().Sums[counter].Values
}

func (s Spec) checkValues(sum Sum) error {
	switch {
	case sum.Values < 0:
		return fmt.Errorf("number of values is %d, must not be below 0", sum.Values)
	case sum.Values == 0:
		return nil
	case s.Counts().Strategy.Kind != Identity:
		return fmt.Errorf("strategy of a number of values is %s, must be identity", s.Counts().Strategy.Kind)
	case sum.Values > MaxObservations/s.Cells:
		return fmt.Errorf("number of values is %d in each of %d cells, must be at most %d together", sum.Values, s.Cells, MaxObservations)
	}
	return nil
}

// tallyValues adds up, in each cell, the values that some row has, each once: what a group says that one of its rows
// adds (see Weighed), clamped to the bound. That is the same in all groups of a value. 2^24 numbers within ±2^40 are at
// most 2^64 together, so sums are cut at ±MaxCount when they are known exactly.
func tallyValues(values int, bound Bound) func(groups []privacy.Group, place Placement, counter int, cells []int64) {
	return func(groups []privacy.Group, place Placement, counter int, cells []int64) {
		seen, exact := make([]bool, len(cells)*values), make([]wide, len(cells))
		for at, n := range placed(groups, place, counter, len(seen)) {
			if n != 0 && !seen[at] {
				seen[at] = true
				exact[at/values] = exact[at/values].plus(min(max(n, bound.Low), bound.High))
			}
		}
		for cell, sum := range exact {
			cells[cell] = sum.cutAt(MaxCount)
		}
	}
}

// maxRows keeps the exact arithmetic of sensitivities short, maxMagnitude that of sums.
const (
	maxRows      = 1 << 22
	maxMagnitude = 1 << 40
)

// checkContribution refuses bounds that no unit can have or that contradict each other.
func checkContribution(c Contribution) error {
	switch {
	case c.Rows < 1 || c.Rows > maxRows:
		return fmt.Errorf("rows of a unit is %d, must be from 1 to %d", c.Rows, maxRows)
	case c.Groups < 0 || c.Groups > c.Rows:
		return fmt.Errorf("groups of a unit is %d, must be from 0 (not bounded) to its %d rows", c.Groups, c.Rows)
	case c.PerGroup < 0 || c.PerGroup > c.Rows:
		return fmt.Errorf("rows of a unit in one group is %d, must be from 0 (not bounded) to its %d rows", c.PerGroup, c.Rows)
	case c.Groups > 0 && c.PerGroup > 0 && c.Groups*c.PerGroup < c.Rows:
		return fmt.Errorf("rows of a unit is %d, must be at most the %d of %d groups with %d rows each", c.Rows, c.Groups*c.PerGroup, c.Groups, c.PerGroup)
	case c.Neighbors != privacy.AddRemove && c.Neighbors != privacy.ReplaceOne:
		return fmt.Errorf("neighbor relation is %d, must be add-remove or replace-one", c.Neighbors)
	}
	return nil
}

// check refuses a bound that a row cannot have, and one that makes every sum 0.
func (b Bound) check() error {
	switch {
	case b.Low > b.High:
		return fmt.Errorf("bound of a sum is from %d to %d, must not be empty", b.Low, b.High)
	case b.Low < -maxMagnitude || b.High > maxMagnitude:
		return fmt.Errorf("bound of a sum is from %d to %d, must be within ±%d", b.Low, b.High, int64(maxMagnitude))
	case b.Low == 0 && b.High == 0:
		return fmt.Errorf("bound of a sum is from 0 to 0, must hold another number")
	}
	return nil
}

// extremes returns how far the bound reaches from 0 to its farther and to its nearer side.
func (b Bound) extremes() (large, small int64) {
	up, down := max(b.High, 0), -min(b.Low, 0)
	return max(up, down), min(up, down)
}

// signed reports whether a sum can be below 0.
func (b Bound) signed() bool { return b.Low < 0 }
