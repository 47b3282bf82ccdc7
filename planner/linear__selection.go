package planner

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/policy"
)

// choiceSet is what is to be chosen of the values of one argument.
type choiceSet struct {
	kind   mechanisms.ChoiceKind
	arg    *expr
	where  []*expr // FILTER, and the argument's NOT NULL
	shares []mechanisms.Share
	canon  string
}

// choice is one column of the leaf: one of a set's choices.
type choice struct {
	set     int
	at      int  // place in the set's shares
	between bool // percentile_cont: a double precision, between two rows where they are counted
	typ     policy.Type
}

// chosen is what makes a question a choice: its cells are those of its argument within the groups of another question.
type chosen struct {
	sheet  int // that shows it
	set    int // of the sheet's
	of     int // of the question's choices
	kind   mechanisms.ChoiceKind
	shares []mechanisms.Share // ascending
	groups [][]int            // the question's cells, by group and then by value
	byKeys map[string]int     // group by the values of its keys
	values []policy.Value     // of the argument, by cell
	blocks []mechanisms.Block
}

// group sorts the cells of a choice by group and value.
func (s *solved) group() {
	c, last := s.chosen, len(s.keys)-1
	c.byKeys, c.values = map[string]int{}, make([]policy.Value, s.cells)
	ranks := make([][]int, last)
	for k := range ranks {
		ranks[k] = s.ranks(k)
	}
	before := -1
	for _, cell := range s.rowOrder() {
		if before < 0 || s.differ(ranks, before, cell) {
			c.byKeys[s.keysText(cell, identityOf(last))] = len(c.groups)
			c.groups = append(c.groups, nil)
		}
		g := len(c.groups) - 1
		c.groups[g] = append(c.groups[g], cell)
		c.values[cell] = s.keyValue(last, cell)
		before = cell
	}
	for _, cells := range c.groups {
		if n := len(c.blocks); n > 0 && c.blocks[n-1].Cells == len(cells) {
			c.blocks[n-1].Groups++
		} else {
			c.blocks = append(c.blocks, mechanisms.Block{Groups: 1, Cells: len(cells)})
		}
	}
}

// differ tells whether some of the first keys are different in two cells.
func (s *solved) differ(ranks [][]int, a, b int) bool {
	for k, r := range ranks {
		if r != nil && r[s.classOf(k, a)] != r[s.classOf(k, b)] {
			return true
		}
	}
	return false
}

// choice is the Spec of a choice at a cost.
func (s *solved) choice(cost privacy.Cost) (mechanisms.Spec, error) {
	ch := mechanisms.Choice{Kind: s.chosen.kind, Blocks: s.chosen.blocks, Shares: s.chosen.shares}
	if ch.Kind != mechanisms.Quantiles {
		ch.Most = 1
	}
	return mechanisms.NewChoice(ch, s.contribution(), cost)
}

// choiceMeasure is the measure of a choice: the same counts as the question's, placed in the order of groups and values.
func (s *solved) choiceMeasure() *Measure {
	kind, name := "quantile", s.table.Name+s.about()
	if s.chosen.kind == mechanisms.Largest {
		kind = "mode"
	}
	m := s.measure(kind, name)
	order, place := make([]int32, s.cells), m.Place
	at := int32(0)
	for _, cells := range s.chosen.groups {
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
	b := binary.AppendUvarint(append(m.described, "choice"...), uint64(s.chosen.kind))
	for _, share := range s.chosen.shares {
		b = binary.AppendUvarint(binary.AppendUvarint(append(b, '/'), uint64(share.Num)), uint64(share.Den))
	}
	hash := sha256.New()
	for _, block := range s.chosen.blocks {
		fmt.Fprintf(hash, "%d of %d\n", block.Groups, block.Cells)
	}
	_ = binary.Write(hash, binary.BigEndian, order)
	m.described = append(append(b, '#'), hash.Sum(nil)...)
	m.Digest = sha256.Sum256(m.described)
	return m
}

// groupRows is the public guess of the rows in one group.
func (s *solved) groupRows() int64 { return s.table.ExpectedRows / int64(len(s.chosen.groups)) }
