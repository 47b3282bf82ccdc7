package planner

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

// addThreshold puts an alarm into the leaf that shows it.
func (p assembly) addThreshold(c *linear.ThresholdColumn, w *choose.Path) {
	column := &p.Leaves[c.Leaf].Counts[c.Counter]
	column.Type = policy.Bool
	run := &column.Runs[0]
	run.Threshold = &plans.ThresholdQuestion{Least: c.Least}
	if w != nil {
		run.Measure, run.Threshold = p.measure(w.Measure), w.Threshold
	}
}

// ranked shows which candidates were chosen, by their rank.
func (p assembly) ranked(leaf *plans.Leaf, w *choose.Path) {
	c := w.TopK
	scale, _ := c.Scale.Float64()
	run := plans.Run{Measure: p.measure(w.Measure), Spans: make([][]mechanisms.Span, leaf.Rows)}
	run.Selected = &plans.SelectedValue{Kind: c.Choice.Kind, Top: c.Choice.Most, At: c.At, Weighed: c.Own, Rank: w.Measure.Spec.RankError(p.Confidence) * scale}
	leaf.Counts[0].Runs = []plans.Run{run}
}

func (p assembly) addSyntheticRows(tables []*outerquery.SyntheticTable, c reuse.Context) *refuse.Refusal {
	for _, u := range tables {
		m := &plans.SyntheticRows{Measure: p.measure(u.Measure), Columns: u.Columns}
		for _, part := range u.Cells.Factors {
			m.Sizes = append(m.Sizes, part.Classes)
			i := slices.Index(u.Release.Columns, u.Release.Table.Columns[part.Columns[0]])
			m.From = append(m.From, u.Release.Cells(i))
			hidden := -1
			if cell := u.Release.Columns[i].HiddenCell(); cell >= 0 {
				hidden = slices.Index(m.From[len(m.From)-1], cell)
			}
			m.Hidden = append(m.Hidden, hidden)
		}
		leaf := &plans.Leaf{Name: u.Name, Synthetic: m, Rows: u.Release.Rows, SQL: "made-up rows of " + u.Release.Name}
		for _, column := range u.Columns {
			of := -1
			if column.Numbered() {
				of = plans.RowNumber
			}
			for i, part := range u.Cells.Factors {
				if u.Release.Table.Columns[part.Columns[0]] == column {
					of = i
				}
			}
			m.Of = append(m.Of, of)
			typ, typmod := column.DescribedType()
			leaf.Keys = append(leaf.Keys, plans.KeyColumn{Name: column.Name, Type: typ, Typmod: typmod})
		}
		p.Leaves = append(p.Leaves, leaf)
		p.Notes = append(p.Notes, fmt.Sprintf("the rows of %s are synthetic: made up by %s, none is that of a %s", u.Release.Name, reuse.MadeBy(u.Measure.Spec), u.Release.Table.Dataset.Unit.Name))
		if !u.Measure.Held && !p.Cost.Fits(c.Share(1)) {
			return outerquery.UnpaidRows.At(-1, u.Release.Table.Name, u.Release.Name, p.Cost.String())
		}
	}
	return nil
}

// addChoices puts what is asked by itself, choices and comparisons, into the leaves that show it.
func (p assembly) addChoices(leaves, list []*choose.LeafPlan, paths [][]*choose.Path) {
	for i, own := range list {
		s, w := own.Requests[0].Query, paths[i][0]
		switch asked := s.Asked.(type) {
		case *linear.ThresholdColumn:
			p.addThreshold(asked, w)
		case *linear.Chosen:
			p.addChoice(leaves[asked.Leaf], s, w)
		case linear.Counted: // is in a leaf plan of its own question
		}
	}
}

// addChoice fills the columns of a choice: each is one run a grouping set.
func (p assembly) addChoice(lp *choose.LeafPlan, s *linear.Query, w *choose.Path) {
	asked, measure := s.Chosen(), -1
	if w != nil {
		measure = p.measure(w.Measure)
	}
	leaf := p.Leaves[asked.Leaf]
	for n, c := range lp.Counters {
		if c.Choice != nil && c.Choice.Set == asked.Of {
			selected := choose.ChosenColumn(s, lp, c.Choice, w, p.Confidence)
			run := &leaf.Counts[n].Runs[asked.Set]
			if run.Measure, run.Selected = measure, selected; w != nil && w.Reading != nil {
				run.Counter = w.Reading.Counters[0]
			}
			leaf.Counts[n].Type, leaf.Counts[n].Typmod = c.Choice.Typ, c.Choice.Typmod
		}
	}
}

// first makes a fresh measure the first level of a ladder, where it can be one: of her own, counted, under the pure
// accountant, and cheaper than the dearest statement.
func (p assembly) first(m *plans.Measure) {
	if p.Dataset == nil || p.Dataset.Accountant != privacy.Pure || m.Refinement != nil || m.Held || m.Shared || m.Open != nil || m.Continual != nil {
		return
	}
	level, top := m.Cost.Epsilon, p.Dataset.Defaults.MaxEpsilon
	if level.Micro() >= top.Micro() {
		return
	}
	if finest, ok := m.Spec.At(level, top); ok && finest.Refinable(m.Spec, finest) {
		m.Refinement = &plans.Refinement{Level: level, Top: top, Spec: finest}
	}
}

// mixedRow are the terms of a row that is made up of some cells of a question.
func (p assembly) mixedRow(w *choose.Path, counter int, cells []int) []plans.Term {
	var row []plans.Term
	for _, cell := range cells {
		for _, t := range w.Reading.Mix.Terms[counter][cell] {
			t.Measure = p.measure(w.Others[t.Measure])
			row = append(row, t)
		}
	}
	return row
}
