package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// implied tells whether a condition holds of every pair that there is, by its columns' cells.
func (v *solver) implied(e *expr) bool {
	m := derived.MatchedIn(v.table)
	if m == nil || m.Outer || !slices.Contains(e.cols, m.Row()) {
		return false
	}
	sizes, places := make([]int, len(m.Args)), make([]int, len(m.Args))
	for i, c := range m.Args {
		sizes[i], places[i] = c.Domain.Size(), slices.Index(m.From.Columns, c)
	}
	for _, c := range e.cols {
		if c != m.Row() && !slices.Contains(places, c) {
			return false
		}
	}
	cells := make([]int, len(sizes))
	for _, match := range m.Matches {
		decode(int(match.Combination), sizes, cells)
		for i, c := range places {
			v.box.set(c, cells[i])
		}
		v.box.set(m.Row(), int(match.Row))
		if holds, steady, refusal := v.box.value(e); refusal != nil || !steady || holds != true {
			return false
		}
	}
	return true
}

// multiply bounds the rows of a unit that are placed, and those placed into one cell, where each row is there once for each
// match: by the most matches that the conditions on public columns leave, and the most of them that have equal keys.
//
// Proof. A unit has at most R rows in From. A row of combination x becomes one row for each match (x, j), of which those
// are placed whose j satisfies every conjunct of the filter that reads j alone, and whose class, by j and the cells of the
// part's other columns, is not −1. Their number is at most that over all j and all cells of the other columns, and so is
// the number of them in one class. A cell is in one class of each part.
func (v *solver) multiply() {
	m := derived.MatchedIn(v.table)
	if m == nil || v.s.perGroup > 0 || v.s.empty {
		return
	}
	row := v.table.Columns[m.Row()]
	var filters []predicate.Pred
	for _, q := range conjunctsOf(v.s.filter) {
		if columns, onGrid := predicate.Columns(q, nil); onGrid && len(columns) == 1 && columns[0] == row {
			filters = append(filters, q)
		}
	}
	allowed := func(j int32) bool {
		return !slices.ContainsFunc(filters, func(q predicate.Pred) bool {
			return !predicate.Satisfied(q, func(*policy.Column) int { return int(j) })
		})
	}
	placed := m.Most(allowed)
	each := placed
	if p := v.partOfColumn(m.Row()); p != nil && !p.told && p.combinations()/max(row.Domain.Size(), 1)*max(len(m.Matches), 1) <= maxCells {
		placed, each = matchClasses(m, p, slices.Index(p.columns, m.Row()), allowed)
	}
	v.s.rows, v.s.perGroup = m.From.MaxRowsPerUnit*max(placed, 1), m.From.MaxRowsPerUnit*max(each, 1)
}

func (v *solver) partOfColumn(column int) *part {
	for _, p := range v.s.parts {
		if slices.Contains(p.columns, column) {
			return p
		}
	}
	return nil
}

// matchClasses is the most matches of one combination that are in some class, and the most in one, over all cells of the part's
// other columns; at is the place of the public row among its columns.
func matchClasses(m *derived.Matched, p *part, at int, allowed func(int32) bool) (placed, each int64) {
	inner, class := 1, p.byCell(p.class) // combinations of the columns after it
	for i := at + 1; i < len(p.sizes); i++ {
		inner *= p.end(i)
	}
	rows := p.end(at)
	for other := range len(class) / rows {
		outside, within := other/inner, other%inner
		for from := 0; from < len(m.Matches); {
			to := from
			all, counts := int64(0), map[int32]int64{}
			for ; to < len(m.Matches) && m.Matches[to].Combination == m.Matches[from].Combination; to++ {
				j := m.Matches[to].Row
				class := class[(outside*rows+int(j))*inner+within]
				if class < 0 || !allowed(j) {
					continue
				}
				all++
				counts[class]++
				each = max(each, counts[class])
			}
			placed = max(placed, all)
			from = to
		}
	}
	if m.Outer {
		placed, each = max(placed, 1), max(each, 1)
	}
	return placed, each
}

// ofRow evaluates a column of the public table by the number of its row.
type ofRow struct {
	rows   [][]policy.Value
	at     int // the number's column
	typ    policy.Type
	typmod int32
	column int
}

func (k ofRow) Type() policy.Type { return k.typ }
func (k ofRow) Typmod() int32     { return k.typmod }

func (k ofRow) Eval(row scalar.Row) (policy.Value, error) {
	n, ok := row[k.at].(int64)
	if !ok || n < 0 || n >= int64(len(k.rows)) {
		return nil, nil
	}
	return k.rows[n][k.column], nil
}
