package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/policy"
)

// contest is a race in cells: the choice, and what is counted for it. Where the rows that candidates meet are nested, as
// bids of at least a price are, rows are counted by how many candidates they meet, each once; else each candidate has a
// counter, and a row counts in any number of them.
type contest struct {
	*solved
	choice  mechanisms.Choice
	bound   int64   // of what a row adds to a counter
	level   []int32 // by cell, nested: how many candidates a row in it meets
	at      []int   // by candidate: its number in the choice, −1: it meets no row
	scale   *big.Rat
	own     bool                                                 // weights are not all one
	counted func(off func(counter int, cells []int) int64) int64 // by how many rows the candidates' counters are off at most, of those that are looked at
}

// candidates is the number of those that can be chosen.
func (c *contest) candidates() int {
	if c.choice.Kind == mechanisms.Dearest {
		return len(c.choice.Weights)
	}
	return len(c.counts)
}

// firstCells tells the cell of a column in a cell of a question whose keys are bare columns: the first of its class.
func (s *solved) firstCells() func(c *policy.Column, cell int) int {
	first := make([][]int, len(s.parts))
	for i, p := range s.parts {
		first[i] = slices.Repeat([]int{-1}, p.classes)
		for at, class := range p.class {
			if class >= 0 && first[i][class] < 0 {
				first[i][class] = at
			}
		}
	}
	return func(c *policy.Column, cell int) int {
		for i := len(s.parts) - 1; i >= 0; i-- {
			p := s.parts[i]
			at := first[i][cell%p.classes]
			cell /= p.classes
			k := slices.IndexFunc(p.columns, func(at int) bool { return s.table.Columns[at] == c })
			if k < 0 {
				continue
			}
			cells := make([]int, len(p.sizes))
			decode(at, p.sizes, cells)
			return p.firstOf(k, cells[k])
		}
		return -1
	}
}

// levelled is the contest of nested candidates; nil: they are not nested.
func (s *solved) levelled(met [][]bool, weights []int64) *contest {
	k := len(met)
	sizes, order := make([]int, k), identityOf(k)
	for i := range met {
		for _, m := range met[i] {
			if m {
				sizes[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	c := &contest{solved: s, at: identityOf(k), level: make([]int32, s.cells)}
	for cell := range c.level {
		for p := range k { // from the candidate that meets the fewest cells on: once one meets this, all later ones must
			switch meets := met[order[p]][cell]; {
			case meets:
				c.level[cell]++
			case c.level[cell] > 0:
				return nil
			}
		}
	}
	from := make([]int64, k)
	for p, i := range order {
		if from[i] = int64(k - p); sizes[i] == 0 {
			c.at[i] = -1
		}
	}
	c.choice = mechanisms.Choice{Kind: mechanisms.Dearest, Blocks: []mechanisms.Block{{Groups: 1, Cells: k + 1}}, Weights: weights, From: from}
	return c
}

// spec is the choice at a cost. What a row adds is at most the bound, so a unit's rows are no more than so many times as
// many rows that add one.
func (c *contest) spec(share privacy.Cost) (mechanisms.Spec, error) {
	each := c.contribution()
	if c.bound > 1 {
		if each.Rows > mechanisms.MostWeight/c.bound {
			return mechanisms.Spec{}, noMechanism.At(-1, "the values are too large")
		}
		each = mechanisms.Contribution{Rows: each.Rows * c.bound, Neighbors: each.Neighbors}
	}
	return mechanisms.NewChoice(c.choice, each, share)
}

// measure is what is counted for the choice.
func (c *contest) measure() *Measure {
	kind := "popular"
	if c.choice.Kind == mechanisms.Dearest {
		kind = "dearest"
	}
	m := c.solved.measure(kind, c.table.Name+c.about())
	if c.level != nil {
		place, level := m.Place, c.level
		m.Place = func(cells []int32, counter int) int {
			if cell := place(cells, counter); cell >= 0 && level[cell] > 0 {
				return int(level[cell])
			}
			return -1
		}
	}
	b := binary.AppendUvarint(append(m.described, kind...), uint64(c.choice.Most))
	hash := sha256.New()
	for _, list := range [][]int64{c.choice.Weights, c.choice.From, {c.bound}} {
		_ = binary.Write(hash, binary.BigEndian, int64(len(list)))
		_ = binary.Write(hash, binary.BigEndian, list)
	}
	_ = binary.Write(hash, binary.BigEndian, c.level)
	m.described = append(b, hash.Sum(nil)...)
	m.Digest = sha256.Sum256(m.described)
	return m
}

// race is the score by which the first candidates are shown.
type race struct {
	most  int
	terms []term // by candidate
}

// term is a candidate's score: weight · count, or weight · sum.
type term struct {
	weight *big.Rat
	where  []*expr
	sum    *summand // nil: rows are counted
	bound  int64    // of what a row adds
	same   bool     // the sum is of a number that is the same in all rows that the candidate meets
}

// times multiplies the weight by a constant that is not below 0.
func (t *term) times(e *expr) bool {
	if !e.isConstant() {
		return false
	}
	v, refusal := e.value(nil)
	if refusal != nil || v == nil {
		return false
	}
	x, ok := derived.RatOf(v)
	if !ok || x.Sign() < 0 {
		return false
	}
	t.weight = new(big.Rat).Mul(t.weight, x)
	return true
}

// weights are the terms' weights as whole numbers of 1/scale; false: they are too far apart, or all zero.
func (r *race) weights() (whole []int64, scale *big.Rat, ok bool) {
	common := big.NewInt(1)
	for _, t := range r.terms {
		d := t.weight.Denom()
		common.Mul(common, new(big.Int).Quo(d, new(big.Int).GCD(nil, nil, common, d)))
	}
	divisor, largest := new(big.Int), int64(0)
	numbers := make([]*big.Int, len(r.terms))
	for i, t := range r.terms {
		numbers[i] = new(big.Int).Quo(new(big.Int).Mul(t.weight.Num(), common), t.weight.Denom())
		divisor.GCD(nil, nil, divisor, numbers[i])
	}
	if divisor.Sign() == 0 {
		return nil, nil, false
	}
	for _, n := range numbers {
		n.Quo(n, divisor)
		if n.Cmp(big.NewInt(mechanisms.MostWeight)) > 0 {
			return nil, nil, false
		}
		whole = append(whole, n.Int64())
		largest = max(largest, n.Int64())
	}
	return whole, new(big.Rat).SetFrac(divisor, common), largest > 0
}
