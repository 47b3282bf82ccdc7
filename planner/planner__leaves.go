package planner

import (
	"fmt"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// addAlarm puts an alarm into the leaf that shows it.
func (p assembly) addAlarm(s *solved, w *way) {
	column := &p.Leaves[s.alarm.sheet].Counts[s.alarm.counter]
	column.Type = policy.Bool
	run := &column.Runs[0]
	run.Alarm = &AlarmQuestion{Least: s.alarm.least}
	if w != nil {
		run.Measure, run.Alarm = p.measure(w.measure), w.alarm
	}
}

// ranked shows which candidates were chosen, by their rank.
func (p assembly) ranked(leaf *Leaf, w *way) {
	c := w.contest
	scale, _ := c.scale.Float64()
	run := Run{Measure: p.measure(w.measure), Spans: make([][]mechanisms.Span, leaf.Rows)}
	run.Pick = &Pick{Kind: c.choice.Kind, Top: c.choice.Most, At: c.at, Weighed: c.own, Rank: w.measure.Spec.RankError(p.Confidence) * scale}
	leaf.Counts[0].Runs = []Run{run}
}

// addMadeUps puts made-up rows into the plan.
func (p assembly) addMadeUps(b *binder) *refuse.Refusal {
	for _, u := range b.madeUps {
		m := &MadeUp{Measure: p.measure(u.measure), columns: u.columns}
		for _, part := range u.cells.parts {
			m.sizes = append(m.sizes, part.classes)
			i := slices.Index(u.release.Columns, u.release.Table.Columns[part.columns[0]])
			m.from = append(m.from, u.release.Cells(i))
		}
		leaf := &Leaf{Name: u.name, MadeUp: m, Rows: u.release.Rows, SQL: "made-up rows of " + u.release.Name}
		for _, c := range u.columns {
			of := -1
			for i, part := range u.cells.parts {
				if u.release.Table.Columns[part.columns[0]] == c {
					of = i
				}
			}
			m.of = append(m.of, of)
			leaf.Keys = append(leaf.Keys, KeyColumn{Name: c.Name, Type: c.Type, Typmod: c.Typmod})
		}
		p.Leaves = append(p.Leaves, leaf)
		p.Notes = append(p.Notes, fmt.Sprintf("the rows of %s are synthetic: made up by %s, none is that of a %s", u.release.Name, madeBy(u.measure.Spec), u.release.Table.Dataset.Unit.Name))
		if !u.measure.Held && !p.Cost.Fits(b.c.share(1)) {
			return unpaidRows.At(-1, u.release.Table.Name, u.release.Name, p.Cost.String())
		}
	}
	return nil
}

// addChoices puts what is chosen into the leaves that show it: each column of a choice is one run a grouping set.
func (p assembly) addChoices(sheets, list []*sheet, ways [][]*way) {
	for i, own := range list {
		s, w := own.asks[0].solved, ways[i][0]
		if s.alarm != nil {
			p.addAlarm(s, w)
			continue
		}
		sh, leaf, measure := sheets[s.chosen.sheet], p.Leaves[s.chosen.sheet], -1
		if w != nil {
			measure = p.measure(w.measure)
		}
		for n, c := range sh.counters {
			if c.choice != nil && c.choice.set == s.chosen.of {
				pick := chosenColumn(s, sh, c.choice, w, p.Confidence)
				run := &leaf.Counts[n].Runs[s.chosen.set]
				if run.Measure, run.Pick = measure, pick; w != nil && w.reading != nil {
					run.Counter = w.reading.counters[0]
				}
				leaf.Counts[n].Type = c.choice.typ
			}
		}
	}
}

// first makes a fresh measure the first level of a ladder, where it can be one: of her own, counted, under the pure
// accountant, and cheaper than the dearest statement.
func (p assembly) first(m *Measure) {
	if p.Dataset == nil || p.Dataset.Accountant != privacy.Pure || m.Ladder != nil || m.Held || m.Shared || m.Open != nil || m.Growth != nil {
		return
	}
	level, top := m.Cost.Epsilon, p.Dataset.Defaults.MaxEpsilon
	if level.Micro() >= top.Micro() {
		return
	}
	if finest, ok := m.Spec.At(level, top); ok && finest.Refinable(m.Spec, finest) {
		m.Ladder = &Ladder{Level: level, Top: top, Spec: finest}
	}
}

// fillTop reads the ranks of the chosen rows.
func (p assembly) fillTop(run *Run, s *solved, order []int) {
	run.Pick = &Pick{Kind: mechanisms.Largest, Top: s.first, At: slices.Clone(order), Rank: p.Measures[run.Measure].Spec.RankError(p.Confidence)}
}

// mixedRow are the terms of a row that is made up of some cells of a question.
func (p assembly) mixedRow(w *way, counter int, cells []int) []Term {
	var row []Term
	for _, cell := range cells {
		for _, t := range w.reading.mix.terms[counter][cell] {
			t.Measure = p.measure(w.others[t.Measure])
			row = append(row, t)
		}
	}
	return row
}
