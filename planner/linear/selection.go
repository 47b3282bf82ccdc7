package linear

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

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
