package planner

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// assembly is a plan that is being put together from the paths that were chosen.
type assembly struct{ *plans.Plan }

// addLeaves puts the answers of all questions into the plan.
func (p assembly) addLeaves(c chosenPaths, notes *semantics.Notes) {
	for i, lp := range c.all[:c.questions] {
		p.addLeaf(i, lp, c.paths[i], notes)
		for _, a := range lp.Requests {
			a.NoteBounds(notes)
		}
		lp.Question.NoteClamped(notes)
		p.noteFew(p.Leaves[i], notes)
	}
	p.addChoices(c.all[:c.questions], c.all[c.questions:], c.paths[c.questions:], notes)
}

// addLeaf puts a question's answer into the plan: the rows of its grouping sets, one set after the other.
func (p assembly) addLeaf(i int, lp *choose.LeafPlan, paths []*choose.Path, notes *semantics.Notes) {
	leaf := &plans.Leaf{Name: plans.LeafName(i), SQL: lp.SQL}
	leaf.Found = slices.ContainsFunc(lp.Keys, func(e *semantics.Expr) bool { return semantics.Closed(lp.Table, e) != nil })
	for k, e := range lp.Keys {
		t, typmod := e.Type(), e.Typmod()
		leaf.Keys = append(leaf.Keys, plans.KeyColumn{Name: plans.KeyName(k), Type: t, Typmod: typmod})
	}
	for n := range lp.Counters {
		leaf.Counts = append(leaf.Counts, plans.CountColumn{Name: lp.ColumnName(n),
			Unit: linear.UnitOf(lp.Counters[n].Sum), Width: lp.Counters[n].Width != nil})
	}
	for s, keys := range lp.Sets {
		order := lp.Frames[s].ShownRows()
		if hidden := lp.Frames[s].Concealed(); len(hidden) > 0 {
			notes.Add("what is outside the domain of " + plans.ColumnNames(hidden) + " has no group of its own, and is in totals")
		}
		leaf.Rows += len(order)
		for k := range lp.Keys {
			for _, cell := range order {
				leaf.Keys[k].Values = append(leaf.Keys[k].Values, lp.ValueOf(k, lp.Frames[s], keys, cell))
			}
		}
		for n := range leaf.Counts {
			leaf.Counts[n].Runs = append(leaf.Counts[n].Runs, plans.Run{Measure: -1, Spans: make([][]mechanisms.Span, len(order))})
		}
		for j, a := range lp.Requests {
			if paths[j] != nil && paths[j].TopK == nil && slices.Contains(a.Reads, s) {
				p.fill(leaf, a, paths[j], lp.Frames[s], keys, order)
			}
		}
	}
	p.fillWidths(leaf, lp, notes)
	if lp.Turned != nil {
		leaf = lp.Turned.Over(leaf, lp.At)
		if len(paths) == 1 && paths[0] != nil && paths[0].TopK != nil {
			p.ranked(leaf, paths[0])
		}
	}
	p.Leaves = append(p.Leaves, leaf)
}

// fill reads the last runs of the columns that a request fills.
func (p assembly) fill(leaf *plans.Leaf, a *choose.Request, w *choose.Path, frame *linear.Query, keys linear.Set, order []int) {
	measure, spots := p.measure(w.Measure), a.Spots(frame, keys)
	for _, f := range a.Projections {
		c := a.Counting[f.Counter]
		if c < 0 {
			continue
		}
		runs := leaf.Counts[f.Of].Runs
		run := &runs[len(runs)-1]
		if w.Reading == nil {
			run.Measure = measure
			run.Selected = &plans.SelectedValue{Kind: mechanisms.Largest, Top: a.Counted().First, At: slices.Clone(order), Rank: p.Measures[measure].Spec.RankError(p.Confidence)}
			continue
		}
		if a.Ladder != nil {
			p.climbed(run, a, w, order, spots, measure)
			continue
		}
		if w.Reading.Mix != nil {
			run.Measure, run.Mix = measure, make([][]plans.Term, len(order))
			for r, row := range order {
				run.Mix[r] = p.mixedRow(w, c, a.CellsOf(f, row, spots))
			}
			continue
		}
		if run.Measure, run.Counter = measure, w.Reading.Counters[c]; a.Values[c] != nil && a.Sums[c] == nil {
			run.Most = int64(a.Shown(c))
		}
		var list [][]mechanisms.Span
		for r, row := range order {
			list = list[:0]
			for _, cell := range a.CellsOf(f, row, spots) {
				list = append(list, w.Reading.Spans[c][cell])
			}
			run.Spans[r] = plans.JoinSpans(list)
		}
	}
}

// fillWidths fills the columns that are half-widths: in all rows of a grouping set the largest, as the notice tells it.
func (p assembly) fillWidths(leaf *plans.Leaf, lp *choose.LeafPlan, notes *semantics.Notes) {
	widest, threshold, climbs := int64(0), int64(0), false
	for n, c := range lp.Counters {
		if c.Width == nil {
			continue
		}
		if c.Use == linear.OfFrequency {
			p.fillFewest(&leaf.Counts[n], &leaf.Counts[*c.Width], lp, notes)
			continue
		}
		for i := range leaf.Counts[n].Runs {
			run, of, times := &leaf.Counts[n].Runs[i], &leaf.Counts[*c.Width].Runs[i], int64(1)
			if c.Use == linear.OfValues {
				times = 2
			}
			if of.Ladder != nil {
				run.Off, run.Known, climbs = of, times, climbs || c.Use == linear.OfMeans
				continue
			}
			switch run.Known = times * p.RunError(of).HalfWidth; c.Use {
			case linear.OfMeans:
				widest = max(widest, run.Known)
			case linear.OfValues:
				threshold = max(threshold, run.Known)
			}
		}
	}
	if threshold > 0 {
		notes.Add("(DISTINCT …) is of the declared values that more than " + predicate.Text(threshold) + " rows have, which is twice the error of their counts: it may miss rarer ones, and GROUP BY shows the counts")
	}
	if widest > 0 {
		notes.Add("avg, variance and the like are NULL where the count of their rows is within its own error, at most " + predicate.Text(widest))
	}
	if climbs {
		notes.Add("avg, variance and the like are NULL where the count of their rows is within its own error")
	}
}

// fillFewest fills a column with what a count of units is above in a group that min_frequency shows. Of totals that is
// known once they are read.
func (p assembly) fillFewest(column, of *plans.CountColumn, lp *choose.LeafPlan, notes *semantics.Notes) {
	f, most, climbs := lp.Frequency, int64(0), false
	for i := range column.Runs {
		run, of := &column.Runs[i], &of.Runs[i]
		if of.Ladder != nil {
			run.Off, of.Frequency, climbs = of, f, true
			continue
		}
		run.Known = f.Units - 1 + p.RunErrorAt(of, f.Confidence()).HalfWidth
		most = max(most, run.Known)
	}
	text := fmt.Sprintf("groups of fewer than %d units (%s) are not shown (min_frequency)", f.Units,
		lp.Table.Dataset.UnitName())
	if !climbs && most > 0 {
		text += fmt.Sprintf(": one is shown if more than %d are counted in it", most)
	}
	notes.Add(text)
}

// noteFew notes where the number of different values is lost in its noise.
func (p assembly) noteFew(leaf *plans.Leaf, notes *semantics.Notes) {
	for _, c := range leaf.Counts {
		for _, run := range c.Runs {
			if run.Most == 0 || run.Measure < 0 {
				continue
			}
			if e := p.Measures[run.Measure].Spec.Only(run.Counter).Error(predicate.One(0), p.Confidence); e.HalfWidth >= run.Most {
				notes.Add("there are at most " + predicate.Text(run.Most) + " different values, fewer than the error of their number: GROUP BY tells more")
			}
		}
	}
}

// measure adds a measure once and returns its index.
func (p assembly) measure(m *plans.Measure) int {
	same := func(have *plans.Measure) bool { return have == m || have.Held && m.Held && have.HeldID == m.HeldID }
	if at := slices.IndexFunc(p.Measures, same); at >= 0 {
		return at
	}
	p.first(m)
	p.Measures = append(p.Measures, m)
	p.Cost = p.Cost.Plus(m.Cost)
	return len(p.Measures) - 1
}

// noteErrors adds to each column that is a count of one leaf its largest expected error.
func (p assembly) noteErrors(from *outerquery.Shown) {
	if from == nil || from.Leaf < 0 {
		return
	}
	leaf := p.Leaves[from.Leaf]
	for i, linear := range from.Linear {
		if i < len(p.Columns) && from.Counts[i] < 0 && p.Columns[i].Noisy {
			p.Columns[i].Off = p.offBy(leaf, linear)
			p.Columns[i].Climbs = climbing(leaf, linear)
		}
	}
	for i, source := range from.Counts {
		if source < 0 || i >= len(p.Columns) {
			continue
		}
		of := &leaf.Counts[source]
		if p.Columns[i].Source = of; of.Climbs() {
			p.Columns[i].Climbs = []plans.Climbing{{Of: of, Worth: big.NewRat(1, 1)}}
		}
		if of.Type != 0 || of.Climbs() {
			continue
		}
		var e mechanisms.Error // without a measure the count is a public fact
		for r := range of.Runs {
			if own := p.RunError(&of.Runs[r]); own.HalfWidth >= e.HalfWidth {
				e = own
			}
		}
		p.Columns[i].Error = &e
	}
}

func (p assembly) digest(text string, values []policy.Value) plans.Digest {
	h := sha256.New()
	b := predicate.EncodeText(nil, text)
	for _, v := range values {
		b = predicate.EncodeText(b, predicate.Text(v))
	}
	for _, m := range p.Measures {
		b = append(b, m.Digest[:]...)
		b = predicate.EncodeText(b, m.Cost.String())
	}
	h.Write(b)
	return plans.Digest(h.Sum(nil))
}

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
func (p assembly) addChoices(leaves, list []*choose.LeafPlan, paths [][]*choose.Path, notes *semantics.Notes) {
	least := int64(0)
	for i, own := range list {
		s, w := own.Requests[0].Query, paths[i][0]
		switch asked := s.Asked.(type) {
		case *linear.ThresholdColumn:
			p.addThreshold(asked, w)
		case *linear.Chosen:
			least = max(least, p.addChoice(leaves[asked.Leaf], s, w))
		case linear.Counted: // is in a leaf plan of its own question
		}
	}
	if least > 0 {
		notes.Add("medians and the like are NULL where the count of their rows is within its own error, at most " +
			predicate.Text(least))
	}
}

// addChoice fills the columns of a choice: each is one run a grouping set. It returns the largest number of rows of
// which they are NULL.
func (p assembly) addChoice(lp *choose.LeafPlan, s *linear.Query, w *choose.Path) (least int64) {
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
			p.choosesAmong(lp, leaf, asked, selected)
			least = max(least, selected.Least)
			leaf.Counts[n].Type, leaf.Counts[n].Typmod = c.Choice.Typ, c.Choice.Typmod
		}
	}
	return least
}

// choosesAmong has a choice be NULL where a count that is asked for too, of the rows that it is among, is within its
// own error: what is chosen among no rows is any value.
func (p assembly) choosesAmong(
	lp *choose.LeafPlan, leaf *plans.Leaf, asked *linear.Chosen, selected *plans.SelectedValue,
) {
	where := lp.Question.Choices[asked.Of].Where
	for n := range lp.Counters {
		c, run := &lp.Counters[n], &leaf.Counts[n].Runs[asked.Set]
		if selected.Spans == nil && c.CountsRowsOf(where) && run.Measure >= 0 && run.Ladder == nil {
			selected.Among, selected.Least = run, p.RunError(run).HalfWidth
			return
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

// climbed reads a run of units' totals: of each row a term for each step of the ladder, and each sign, whose weight is
// the step.
func (p assembly) climbed(
	run *plans.Run, a *choose.Request, w *choose.Path, order []int, spots map[int][]int, measure int,
) {
	run.Measure, run.Mix = measure, make([][]plans.Term, len(order))
	steps := a.Ladder
	if len(steps) > 1 { // the clamp is chosen, and not given
		run.Ladder = steps
	}
	for r, row := range order {
		spans := make([][][]mechanisms.Span, 2*len(steps))
		for _, cell := range a.CellsOf(a.Projections[0], row, spots) {
			step := a.StepOf(cell)
			spans[step] = append(spans[step], w.Reading.Spans[0][cell])
		}
		for i, list := range spans {
			if len(list) == 0 {
				continue
			}
			t := plans.Term{Measure: measure, Counter: w.Reading.Counters[0], Spans: plans.JoinSpans(list)}
			t.Num, t.Den = steps[i%len(steps)], totals.Parts
			if i >= len(steps) {
				t.Num = -t.Num
			}
			run.Mix[r] = append(run.Mix[r], t)
		}
	}
}

// climbing are the columns of units' totals that a linear function of a leaf's columns is made of, if it is of nothing
// else.
func climbing(leaf *plans.Leaf, linear *outerquery.Linear) (list []plans.Climbing) {
	if linear == nil {
		return nil
	}
	for _, w := range linear.Counts {
		if !leaf.Counts[w.Column].Climbs() {
			return nil
		}
		list = append(list, plans.Climbing{Of: &leaf.Counts[w.Column], Worth: new(big.Rat).Abs(w.Worth)})
	}
	return list
}
