package pipeline

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/policy"
)

// hasChoices tells a plan in which something was chosen, and not read from counts.
func hasChoices(plan *plans.Plan) bool {
	return slices.ContainsFunc(plan.Measures, func(m *plans.Measure) bool { return mechanisms.Is[*mechanisms.Choice](m.Spec) })
}

// picked reads a value of a column that is chosen; NULL where there is no candidate, or there seem to be no rows.
func picked(c *plans.CountColumn, row int, readings []reading, answers runAnswers) policy.Value {
	for i := range c.Runs {
		run := &c.Runs[i]
		if row >= len(run.Spans) {
			row -= len(run.Spans)
			continue
		}
		p := run.Selected
		if p != nil && p.Top > 0 {
			at := slices.Index(readings[run.Measure].noisy.Value().Observations, int64(p.At[row]))
			return int64((p.Top - at) % (p.Top + 1)) // of −1, which is not chosen: 0
		}
		if p == nil || run.Measure < 0 || p.At[row] < 0 || amongNone(p, row, readings, answers) {
			return nil
		}
		if p.Spans != nil {
			return countedOf(run, row, readings[run.Measure].estimate)
		}
		all := readings[run.Measure].noisy.Value().Observations
		if p.At[row] >= len(all) || all[p.At[row]] < 0 || all[p.At[row]] >= int64(len(p.Values[row])) {
			return nil
		}
		return p.Values[row][all[p.At[row]]]
	}
	return nil
}

// amongNone reports whether the rows that a value is chosen among do not show in the count of them that is there too.
func amongNone(p *plans.SelectedValue, row int, readings []reading, answers runAnswers) bool {
	run := p.Among
	if run == nil || row >= len(run.Spans) {
		return false
	}
	if answers[run] != nil {
		return answers[run][row].Value <= p.Least
	}
	if run.Mix != nil {
		return mixedValue(run.Mix[row], readings) <= p.Least
	}
	return readings[run.Measure].estimate.Sum(run.Counter, run.Spans[row]).Value() <= p.Least
}

// countedOf reads a value from counts.
func countedOf(run *plans.Run, row int, e *mechanisms.Estimate) policy.Value {
	p := run.Selected
	values := p.Values[row]
	if p.Kind == mechanisms.Largest {
		best, most := policy.Value(nil), int64(0)
		for i, spans := range p.Spans[row] {
			if n := e.Sum(run.Counter, spans).Value(); n > most {
				best, most = values[i], n
			}
		}
		return best
	}
	cdf := e.CDF(run.Counter, p.Spans[row]).Value()
	if cdf.Rows() < .5 || cdf.Rows() <= float64(p.Least) {
		return nil
	}
	if p.Between {
		return cdf.Cont(p.Share, func(cell int) float64 { f, _ := values[cell].(float64); return f })
	}
	return values[cdf.Disc(p.Share)]
}

// pickText says how far a chosen column is off.
func pickText(p *plans.SelectedValue, at string) string {
	rank := int64(math.Ceil(p.Rank))
	if p.Weighed {
		return fmt.Sprintf("the score of each that is chosen is at most %s below the best left %s", scoreText(p.Rank), at)
	}
	if p.Top > 1 {
		return fmt.Sprintf("each of the %d keys has at most %d rows fewer than one in its place could have %s", p.Top, rank, at)
	}
	if p.Kind != mechanisms.Quantiles {
		if p.Spans != nil {
			return fmt.Sprintf("read from counts with error ±%d %s each", rank, at)
		}
		return fmt.Sprintf("at most %d rows fewer than the most frequent one has %s", rank, at)
	}
	text := fmt.Sprintf("rank error ±%d rows %s", rank, at)
	if steps, of, ok := p.Steps(); ok {
		text += fmt.Sprintf(" (±%d of its %d values, were the expected %d rows spread evenly)", steps, of, p.Rows)
	}
	return text
}

// scoreText writes a score, which may be a fraction, with three digits at least.
func scoreText(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(math.Ceil(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// pickErrors says how far the chosen values of a plan are off, and the answers to its questions, each text once, and of
// equal errors in rank the one that is the most in values. Beside other columns it names those that are chosen.
func pickErrors(plan *plans.Plan, at string) []string {
	var lines []string
	type said struct {
		line, steps int
		names       []string
	}
	ranks := map[string]*said{}
	for _, leaf := range plan.Leaves {
		for i := range leaf.Counts {
			c := &leaf.Counts[i]
			for _, run := range c.Runs {
				text, steps := pickedError(plan, &run, at)
				if text == "" {
					continue
				}
				rank, _, _ := strings.Cut(text, " (")
				before := ranks[rank]
				if before == nil {
					before = &said{line: len(lines), steps: steps}
					ranks[rank], lines = before, append(lines, text)
				} else if steps > before.steps {
					before.steps, lines[before.line] = steps, text
				}
				for _, name := range shownAs(plan, c) {
					if !slices.Contains(before.names, name) {
						before.names = append(before.names, name)
					}
				}
			}
		}
	}
	for _, s := range ranks {
		if len(s.names) > 0 && len(s.names) < shownColumns(plan) {
			lines[s.line] = namesText(s.names) + ": " + lines[s.line]
		}
	}
	return lines
}

// pickedError says how far what is chosen of a run is off, or the answer to its question, and by how many of its
// values; "" where neither is.
func pickedError(plan *plans.Plan, run *plans.Run, at string) (text string, steps int) {
	switch {
	case run.Measure < 0:
		return "", 0
	case run.Threshold != nil:
		margin := plan.Measures[run.Measure].Spec.Margin(plan.Confidence)
		return fmt.Sprintf("an answer is right where the count is at least %d away from its threshold, %s", margin, at), 0
	case run.Selected != nil:
		steps, _, _ = run.Selected.Steps()
		return pickText(run.Selected, at), steps
	}
	return "", 0
}

// shownAs names the columns that are a leaf's column as it is.
func shownAs(plan *plans.Plan, of *plans.CountColumn) (names []string) {
	for i, c := range plan.Columns {
		if c.Source == of && isShown(c) {
			names = append(names, columnName(plan, i))
		}
	}
	return names
}

// mechanismOf names what is drawn; how it is drawn, permute-and-flip say, is the law with the least error at the cost:
// the exponential mechanism's own under a ρ, and under an ε one that is noisy max with noise of one side.
func mechanismOf(k mechanisms.ChoiceKind) string {
	if k == mechanisms.Largest || k == mechanisms.Popular {
		return "noisy max"
	}
	return "exponential mechanism"
}

// choiceText names a mechanism that chooses.
func choiceText(s mechanisms.Spec, ch *mechanisms.Choice) string {
	groups, cells := 0, 0
	for _, b := range ch.Blocks {
		groups, cells = groups+b.Groups, max(cells, b.Cells)
	}
	if ch.Kind == mechanisms.Dearest {
		cells = len(ch.Weights)
	}
	text := mechanismOf(ch.Kind)
	if by := s.Chooser(); by != text {
		text += " (" + by + ")"
	}
	text += fmt.Sprintf(" over %d candidates", cells)
	switch {
	case ch.Kind == mechanisms.Popular && len(ch.Weights) > 0:
		text += ", scored by weights times counts; a row may count for all of them"
	case ch.Kind == mechanisms.Popular:
		text += "; a row may count for all of them"
	case ch.Kind == mechanisms.Dearest:
		text += ", scored by weights times sums of cells: a row counts for all candidates that it meets"
	}
	if groups > 1 {
		text += fmt.Sprintf(" in each of %d groups, whose costs do not add up", groups)
	}
	if n := len(ch.Shares); n > 1 {
		text += fmt.Sprintf("; %d quantiles, found by halving", n)
	}
	return text
}

// summedIn is what a row adds to a count column.
func summedIn(c plans.CountColumn, measure int, m *plans.Measure) mechanisms.Bound {
	for _, run := range c.Runs {
		if run.Measure == measure && run.Selected == nil && run.Counter < len(m.Spec.Counts().Sums) {
			return m.Spec.Counts().Sums[run.Counter].Bound
		}
	}
	return mechanisms.Bound{Low: 0, High: 1}
}
