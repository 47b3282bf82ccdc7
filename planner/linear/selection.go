package linear

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Rankings of candidates in cells: SELECT p.price FROM prices p JOIN bids b ON b.bid >= p.price GROUP BY 1 ORDER BY
// p.price * count(*) DESC LIMIT 1 asks for the best of public candidates by a score that is linear in counts.

// TopK is a ranking in cells: the choice, and what is counted for it. Where the rows that candidates meet are nested,
// as bids of at least a price are, rows are counted by how many candidates they meet, each once; else each candidate
// has a counter, and a row counts in any number of them.
type TopK struct {
	*Query
	Choice  mechanisms.Choice
	Bound   int64   // of what a row adds to a counter
	Level   []int32 // by cell, nested: how many candidates a row in it meets
	At      []int   // by candidate: its number in the choice, −1: it meets no row
	Scale   *big.Rat
	Own     bool                                                 // weights are not all one
	Counted func(off func(counter int, cells []int) int64) int64 // by how many rows the candidates' counters are off at most, of those that are looked at
}

// Candidates is the number of those that can be chosen.
func (c *TopK) Candidates() int {
	if c.Choice.Kind == mechanisms.Dearest {
		return len(c.Choice.Weights)
	}
	return len(c.Counts)
}

// FirstCells tells the cell of a column in a cell of a question whose keys are bare columns: the first of its class.
func (s *Query) FirstCells() func(c *policy.Column, cell int) int {
	first := make([][]int, len(s.Factors))
	for i, p := range s.Factors {
		first[i] = slices.Repeat([]int{-1}, p.Classes)
		for at, class := range p.Class {
			if class >= 0 && first[i][class] < 0 {
				first[i][class] = at
			}
		}
	}
	return func(c *policy.Column, cell int) int {
		for i := len(s.Factors) - 1; i >= 0; i-- {
			p := s.Factors[i]
			at := first[i][cell%p.Classes]
			cell /= p.Classes
			k := slices.IndexFunc(p.Columns, func(at int) bool { return s.Table.Columns[at] == c })
			if k < 0 {
				continue
			}
			cells := make([]int, len(p.Sizes))
			Decode(at, p.Sizes, cells)
			return p.firstOf(k, cells[k])
		}
		return -1
	}
}

// Levelled is the top-k of nested candidates; nil means they are not nested.
func (s *Query) Levelled(met [][]bool, weights []int64) *TopK {
	k := len(met)
	sizes, order := make([]int, k), semantics.IdentityOf(k)
	for i := range met {
		for _, m := range met[i] {
			if m {
				sizes[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	c := &TopK{Query: s, At: semantics.IdentityOf(k), Level: make([]int32, s.Cells)}
	for cell := range c.Level {
		for p := range k { // from the candidate that meets the fewest cells on: once one meets this, all later ones must
			switch meets := met[order[p]][cell]; {
			case meets:
				c.Level[cell]++
			case c.Level[cell] > 0:
				return nil
			}
		}
	}
	from := make([]int64, k)
	for p, i := range order {
		if from[i] = int64(k - p); sizes[i] == 0 {
			c.At[i] = -1
		}
	}
	c.Choice = mechanisms.Choice{Kind: mechanisms.Dearest, Blocks: []mechanisms.Block{{Groups: 1, Cells: k + 1}}, Weights: weights, From: from}
	return c
}

// Spec is the choice at a cost. What a row adds is at most the bound, so a unit's rows are no more than so many times
// as many rows that add one.
func (c *TopK) Spec(share privacy.Cost) (mechanisms.Spec, error) {
	each := c.Contribution()
	if c.Bound > 1 {
		if each.Rows > mechanisms.MaxWeight/c.Bound {
			return mechanisms.Spec{}, NoMechanism.At(-1, "the values are too large")
		}
		each = mechanisms.Contribution{Rows: each.Rows * c.Bound, Neighbors: each.Neighbors}
	}
	return mechanisms.NewChoice(c.Choice, each, share)
}

// Measure is what is counted for the choice.
func (c *TopK) Measure() *plans.Measure {
	kind := "popular"
	if c.Choice.Kind == mechanisms.Dearest {
		kind = "dearest"
	}
	m := c.Query.Measure(kind, c.Table.Name+c.About())
	if c.Level != nil {
		place, level := m.Place, c.Level
		m.Place = func(cells []int32, counter int) int {
			if cell := place(cells, counter); cell >= 0 && level[cell] > 0 {
				return int(level[cell])
			}
			return -1
		}
	}
	b := binary.AppendUvarint(append(m.Described, kind...), uint64(c.Choice.Most))
	hash := sha256.New()
	for _, list := range [][]int64{c.Choice.Weights, c.Choice.From, {c.Bound}} {
		_ = binary.Write(hash, binary.BigEndian, int64(len(list)))
		_ = binary.Write(hash, binary.BigEndian, list)
	}
	_ = binary.Write(hash, binary.BigEndian, c.Level)
	m.Described = append(b, hash.Sum(nil)...)
	m.Digest = sha256.Sum256(m.Described)
	return m
}

// Ranking is the score by which the first candidates are shown.
type Ranking struct {
	Most  int
	Terms []Term // by candidate
}

// Term is a candidate's score: weight · count, or weight · sum.
type Term struct {
	Weight *big.Rat
	Where  []*semantics.Expr
	Sum    *Summand // nil: rows are counted
	Bound  int64    // of what a row adds
	Same   bool     // the sum is of a number that is the same in all rows that the candidate meets
}

// Times multiplies the weight by a constant that is not below 0.
func (t *Term) Times(e *semantics.Expr) bool {
	if !e.IsConstant() {
		return false
	}
	v, refusal := e.Value(nil)
	if refusal != nil || v == nil {
		return false
	}
	x, ok := derived.RatOf(v)
	if !ok || x.Sign() < 0 {
		return false
	}
	t.Weight = new(big.Rat).Mul(t.Weight, x)
	return true
}

// Weights are the terms' weights as whole numbers of 1/scale; false means they are too far apart, or all zero.
func (r *Ranking) Weights() (whole []int64, scale *big.Rat, ok bool) {
	common := big.NewInt(1)
	for _, t := range r.Terms {
		d := t.Weight.Denom()
		common.Mul(common, new(big.Int).Quo(d, new(big.Int).GCD(nil, nil, common, d)))
	}
	divisor, largest := new(big.Int), int64(0)
	numbers := make([]*big.Int, len(r.Terms))
	for i, t := range r.Terms {
		numbers[i] = new(big.Int).Quo(new(big.Int).Mul(t.Weight.Num(), common), t.Weight.Denom())
		divisor.GCD(nil, nil, divisor, numbers[i])
	}
	if divisor.Sign() == 0 {
		return nil, nil, false
	}
	for _, n := range numbers {
		n.Quo(n, divisor)
		if n.Cmp(big.NewInt(mechanisms.MaxWeight)) > 0 {
			return nil, nil, false
		}
		whole = append(whole, n.Int64())
		largest = max(largest, n.Int64())
	}
	return whole, new(big.Rat).SetFrac(divisor, common), largest > 0
}

// InCommon takes the conditions that all candidates have out of their own.
func InCommon(own [][]*semantics.Expr) (rest [][]*semantics.Expr, all []*semantics.Expr) {
	rest = make([][]*semantics.Expr, len(own))
	times := map[string]int{}
	for i, list := range own {
		rest[i] = Conjuncts(list)
		here := map[string]bool{}
		for _, e := range rest[i] {
			if !here[e.Canon] {
				here[e.Canon] = true
				times[e.Canon]++
			}
		}
	}
	shared := func(e *semantics.Expr) bool { return times[e.Canon] == len(own) }
	for _, e := range rest[0] {
		if shared(e) && !slices.ContainsFunc(all, func(have *semantics.Expr) bool { return have.Canon == e.Canon }) {
			all = append(all, e)
		}
	}
	for i := range rest {
		rest[i] = slices.DeleteFunc(slices.Clone(rest[i]), shared)
	}
	return rest, all
}

// What is chosen and not counted: of SELECT sex, percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM people GROUP BY
// sex the cells are ages within each sex, in order.

// ChoiceSet is what is to be chosen of the values of one argument.
type ChoiceSet struct {
	Kind   mechanisms.ChoiceKind
	Arg    *semantics.Expr
	Where  []*semantics.Expr // FILTER, and the argument's NOT NULL
	Shares []mechanisms.Share
	Canon  string
}

// Choice is one column of the leaf: one of a set's choices.
type Choice struct {
	Set     int
	At      int  // place in the set's shares
	Between bool // percentile_cont: a double precision, between two rows where they are counted
	Typ     policy.Type
	Typmod  int32 // of a char
}

// Chosen is what makes a question a choice: its cells are those of its argument within the groups of another question.
type Chosen struct {
	Leaf   int // that shows it
	Set    int // of the leaf plan's
	Of     int // of the question's choices
	Kind   mechanisms.ChoiceKind
	Shares []mechanisms.Share // ascending
	Groups [][]int            // the question's cells, by group and then by value
	ByKeys map[string]int     // group by the values of its keys
	Values []policy.Value     // of the argument, by cell
	blocks []mechanisms.Block
}

// Group sorts the cells of a choice by group and value.
func (s *Query) Group() {
	c, last := s.Chosen(), len(s.Keys)-1
	c.ByKeys, c.Values = map[string]int{}, make([]policy.Value, s.Cells)
	ranks := make([][]int, last)
	for k := range ranks {
		ranks[k] = s.ranks(k)
	}
	before := -1
	for _, cell := range s.RowOrder() {
		if before < 0 || s.differ(ranks, before, cell) {
			c.ByKeys[s.KeysText(cell, semantics.IdentityOf(last))] = len(c.Groups)
			c.Groups = append(c.Groups, nil)
		}
		g := len(c.Groups) - 1
		c.Groups[g] = append(c.Groups[g], cell)
		c.Values[cell] = s.KeyValue(last, cell)
		before = cell
	}
	for _, cells := range c.Groups {
		if n := len(c.blocks); n > 0 && c.blocks[n-1].Cells == len(cells) {
			c.blocks[n-1].Groups++
		} else {
			c.blocks = append(c.blocks, mechanisms.Block{Groups: 1, Cells: len(cells)})
		}
	}
}

// differ reports whether some of the first keys are different in two cells.
func (s *Query) differ(ranks [][]int, a, b int) bool {
	for k, r := range ranks {
		if r != nil && r[s.classOf(k, a)] != r[s.classOf(k, b)] {
			return true
		}
	}
	return false
}

// Choice is the Spec of a choice at a cost.
func (s *Query) Choice(cost privacy.Cost) (mechanisms.Spec, error) {
	ch := mechanisms.Choice{Kind: s.Chosen().Kind, Blocks: s.Chosen().blocks, Shares: s.Chosen().Shares}
	if ch.Kind != mechanisms.Quantiles {
		ch.Most = 1
	}
	return mechanisms.NewChoice(ch, s.Contribution(), cost)
}

// ChoiceMeasure is the measure of a choice: the same counts as the question's, placed in the order of groups and
// values.
func (s *Query) ChoiceMeasure() *plans.Measure {
	kind, name := "quantile", s.Table.Name+s.About()
	if s.Chosen().Kind == mechanisms.Largest {
		kind = "mode"
	}
	m := s.Measure(kind, name)
	order, place := make([]int32, s.Cells), m.Place
	at := int32(0)
	for _, cells := range s.Chosen().Groups {
		for _, cell := range cells {
			order[cell] = at
			at++
		}
	}
	m.Place = func(cells []int32, counter int) int {
		if cell := place(cells, counter); cell >= 0 {
			return int(order[cell])
		}
		return -1
	}
	b := binary.AppendUvarint(append(m.Described, "choice"...), uint64(s.Chosen().Kind))
	for _, share := range s.Chosen().Shares {
		b = binary.AppendUvarint(binary.AppendUvarint(append(b, '/'), uint64(share.Num)), uint64(share.Den))
	}
	hash := sha256.New()
	for _, block := range s.Chosen().blocks {
		fmt.Fprintf(hash, "%d of %d\n", block.Groups, block.Cells)
	}
	_ = binary.Write(hash, binary.BigEndian, order)
	m.Described = append(append(b, '#'), hash.Sum(nil)...)
	m.Digest = sha256.Sum256(m.Described)
	return m
}

// GroupRows is the public guess of the rows in one group.
func (s *Query) GroupRows() int64 { return s.Table.ExpectedRows / int64(len(s.Chosen().Groups)) }

// SELECT count(*) > 500 FROM visits WHERE …, with dp.alarms on, compares a count with a constant and tells yes or no.

// ThresholdTest is a comparison of a count with a constant.
type ThresholdTest struct {
	Where []*semantics.Expr
	Least int64 // the count is compared with, from below
	Any   bool  // of bool_or: it is enough that a row is there, so noise alone must not say so
}

// ThresholdColumn says which column of which leaf plan shows an alarm.
type ThresholdColumn struct {
	Leaf, Counter int
	*ThresholdTest
}

// Bound is what the count is compared with: that of bool_or is so much higher that, where no row has it, the answer is
// no at the confidence.
func (a *ThresholdTest) Bound(spec mechanisms.Spec, c mechanisms.Confidence) int64 {
	if a.Any {
		return a.Least + spec.Margin(c)
	}
	return a.Least
}
