package proxy

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/sandbox"
)

// picksOf lists a leaf's columns that are chosen, by place among its columns.
func picksOf(leaf *planner.Leaf) map[int]*planner.Pick {
	picks := map[int]*planner.Pick{}
	for i, k := range leaf.Keys {
		if k.Pick != nil {
			picks[i] = k.Pick
		}
	}
	for i, c := range leaf.Counts {
		if c.Pick != nil {
			picks[len(leaf.Keys)+i] = c.Pick
		}
	}
	return picks
}

// hasPicks tells a plan that chooses.
func hasPicks(plan *planner.Plan) bool {
	return slices.ContainsFunc(plan.Leaves, func(l *planner.Leaf) bool { return len(picksOf(l)) > 0 })
}

// withPicks fills in the columns of a leaf that are chosen.
func (a *Answerer) withPicks(s *Session, leaf *planner.Leaf, ids []int64, table sandbox.Table) (sandbox.Table, error) {
	for at, pick := range picksOf(leaf) {
		if pick.Measure < 0 {
			continue // no row can be there: NULL
		}
		saved, err := a.estimate(s, ids[pick.Measure])
		if err != nil {
			return sandbox.Table{}, err
		}
		value := chosenOf(pick, saved.noisy)
		if pick.Spans != nil {
			value = countedOf(pick, saved.estimate)
		}
		// What value reads was released: all of it is post-processing.
		table.Rows = privacy.PostProcess(table.Rows, func(rows sandbox.Rows) sandbox.Rows {
			for r, row := range rows.Data {
				if row[at] = nil; pick.At[r] >= 0 {
					row[at] = value(r)
				}
			}
			return rows
		})
	}
	return table, nil
}

// chosenOf reads the values of a column that was chosen.
func chosenOf(p *planner.Pick, noisy privacy.Released[mechanisms.Noisy]) func(row int) policy.Value {
	return func(row int) policy.Value {
		all := noisy.Value().Observations
		if p.At[row] >= len(all) {
			return nil
		}
		if cell := all[p.At[row]]; cell >= 0 && cell < int64(len(p.Values[row])) {
			return p.Values[row][cell]
		}
		return nil
	}
}

// countedOf reads the values of a column from counts: NULL where there seem to be no rows.
func countedOf(p *planner.Pick, e *mechanisms.Estimate) func(row int) policy.Value {
	return func(row int) policy.Value {
		values := p.Values[row]
		if p.Kind == mechanisms.Largest {
			best, most := policy.Value(nil), int64(0)
			for i, spans := range p.Spans[row] {
				if n := e.Sum(p.Counter, spans).Value(); n > most {
					best, most = values[i], n
				}
			}
			return best
		}
		cdf := e.CDF(p.Counter, p.Spans[row]).Value()
		if cdf.Rows() < .5 {
			return nil
		}
		if p.Between {
			return cdf.Cont(p.Share, func(cell int) float64 { f, _ := values[cell].(float64); return f })
		}
		return values[cdf.Disc(p.Share)]
	}
}

// pickText says how far a chosen column is off.
func pickText(p *planner.Pick, at string) string {
	rank := int64(math.Ceil(p.Rank))
	if p.Kind != mechanisms.Quantiles {
		if p.Spans != nil {
			return fmt.Sprintf("read from counts with error ±%d %s each", rank, at)
		}
		return fmt.Sprintf("at most %d rows fewer than the most frequent one %s", rank, at)
	}
	text := fmt.Sprintf("rank error ±%d rows %s", rank, at)
	if steps, of, ok := p.Steps(); ok {
		text += fmt.Sprintf(" (±%d of its %d values, were the expected %d rows spread evenly)", steps, of, p.Rows)
	}
	return text
}

// pickErrors says how far the chosen columns of a plan are off, each text once.
func pickErrors(plan *planner.Plan, at string) []string {
	var lines []string
	for _, leaf := range plan.Leaves {
		for i := range len(leaf.Keys) + len(leaf.Counts) {
			p := picksOf(leaf)[i]
			if p == nil || p.Measure < 0 {
				continue
			}
			if text := pickText(p, at); !slices.Contains(lines, text) {
				lines = append(lines, text)
			}
		}
	}
	return lines
}

// explainPicks describes the measures that a leaf's chosen columns are read from.
func explainPicks(plan *planner.Plan, leaf *planner.Leaf, queries []rewrite.Query) []explainedLeaf {
	var out []explainedLeaf
	seen := map[int]int{}
	picks := picksOf(leaf)
	for i := range len(leaf.Keys) + len(leaf.Counts) {
		p := picks[i]
		if p == nil || p.Measure < 0 {
			continue
		}
		line := nameOfColumn(leaf, i) + ": " + pickText(p, "at "+percent(plan.Confidence))
		if at, known := seen[p.Measure]; known {
			out[at].Errors = append(out[at].Errors, line)
			continue
		}
		m := plan.Measures[p.Measure]
		e := explainLeaf(plan, &planner.Leaf{Name: leaf.Name, SQL: leaf.SQL, Rows: leaf.Rows}, m, queries[p.Measure])
		e.Errors = []string{line}
		seen[p.Measure], out = len(out), append(out, e)
	}
	return out
}

func nameOfColumn(leaf *planner.Leaf, at int) string {
	if at < len(leaf.Keys) {
		return leaf.Keys[at].Name
	}
	return leaf.Counts[at-len(leaf.Keys)].Name
}

// choiceText names a mechanism that chooses.
func choiceText(s mechanisms.Spec) string {
	ch := s.Choice
	groups, cells := 0, 0
	for _, b := range ch.Blocks {
		groups, cells = groups+b.Groups, max(cells, b.Cells)
	}
	text := s.Chooser() + fmt.Sprintf(" over %d candidates", cells)
	if groups > 1 {
		text += fmt.Sprintf(" in each of %d groups, whose costs do not add up", groups)
	}
	if n := len(ch.Shares); n > 1 {
		text += fmt.Sprintf("; %d quantiles, found by halving", n)
	}
	return text
}
