package planner

import (
	"encoding/binary"
	"slices"

	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Matched are the rows of From, each once for every row of a public table that it matches (docs/adr/0029). Which it matches
// is known when the statement is planned, for each combination of cells of some columns: the private database sees numbers
// alone, of combinations and of public rows. A row is there as often as its combination has matches, so a unit's rows are
// multiplied by the most matches that one combination has, and by no more.
type Matched struct {
	From    *policy.Table
	Args    []*policy.Column // of From, by name
	Matches []Match          // by combination, then row
	Rows    int              // of the public table, as far as they are numbered
	Outer   bool             // rows of From without a match stay, with NULL for the public row
	Kept    bool             // rows of the public table without a match are to be seen: a further column says that a row is of From
}

// Match is a combination of the arguments' cells, the first column's slowest, and a public row that it matches.
type Match struct{ Combination, Row int32 }

// mostMatches is how many public rows one private row may match; mostPairs, how many matches are told to the database.
const (
	mostMatches = 1 << 10
	mostPairs   = 1 << 14
)

func (m *Matched) Inputs() []*policy.Table { return []*policy.Table{m.From} }

// Meaning is canonical: public rows are numbered in the order of their values, and what these are is in what is made of them.
func (m *Matched) Meaning() []byte {
	b := encodeInputs([]byte("matched"), m)
	b = binary.AppendUvarint(b, uint64(len(m.Args)))
	for _, c := range m.Args {
		b = encodeText(b, c.Name)
	}
	b = binary.AppendUvarint(b, uint64(m.Rows))
	b = binary.AppendUvarint(b, uint64(len(m.Matches)))
	for _, match := range m.Matches {
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(match.Combination)), uint64(match.Row))
	}
	for _, flag := range []bool{m.Outer, m.Kept} {
		if b = append(b, 'n'); flag {
			b[len(b)-1] = 'y'
		}
	}
	return b
}

// most is the largest number of allowed matches of one combination.
func (m *Matched) most(allowed func(row int32) bool) int64 {
	most, here := int64(0), int64(0)
	for i, match := range m.Matches {
		if i > 0 && match.Combination != m.Matches[i-1].Combination {
			here = 0
		}
		if allowed(match.Row) {
			here++
		}
		most = max(most, here)
	}
	if m.Outer {
		most = max(most, 1)
	}
	return most
}

// matched makes the table of a Matched: the columns and keys of From, then the public row. It is nil where a unit could have
// too many rows.
func matched(m *Matched, public string) *policy.Table {
	times := max(m.most(func(int32) bool { return true }), 1)
	if times > mostMatches || m.From.MaxRowsPerUnit > mostDerivedRows/times {
		return nil
	}
	t := newDerived(m, m.From.MaxRowsPerUnit*times)
	t.Name = derivedName(m.From) + " with " + public
	addAll(t, m.From)
	nulls := policy.NullExclude
	if m.Outer {
		nulls = policy.NullCell
	}
	domain := steppedDomain(policy.Int4, -1, 0, int64(max(m.Rows, 1)-1), nulls)
	if domain == nil {
		return nil
	}
	addColumn(t, &policy.Column{Name: "row of " + public, Type: policy.Int4, Typmod: -1}, m.From, domain)
	if m.Kept {
		addColumn(t, &policy.Column{Name: "has " + m.From.Name, Type: policy.Bool, Typmod: -1}, m.From, truths())
	}
	return t
}

// row is the position of the column that says which public row it is.
func (m *Matched) row() int { return len(m.From.Columns) }

// matchedIn is the Matched whose rows a table has, with further columns or without; nil: none.
func matchedIn(t *policy.Table) *Matched {
	switch d := t.Derived.(type) {
	case *Matched:
		return d
	case *Computed:
		return matchedIn(d.From)
	}
	return nil
}

// implied tells whether a condition holds of every pair that there is, by its columns' cells.
func (v *solver) implied(e *expr) bool {
	m := matchedIn(v.table)
	if m == nil || m.Outer || !slices.Contains(e.cols, m.row()) {
		return false
	}
	sizes, places := make([]int, len(m.Args)), make([]int, len(m.Args))
	for i, c := range m.Args {
		sizes[i], places[i] = c.Domain.Size(), slices.Index(m.From.Columns, c)
	}
	for _, c := range e.cols {
		if c != m.row() && !slices.Contains(places, c) {
			return false
		}
	}
	cells := make([]int, len(sizes))
	for _, match := range m.Matches {
		decode(int(match.Combination), sizes, cells)
		for i, c := range places {
			v.box.set(c, cells[i])
		}
		v.box.set(m.row(), int(match.Row))
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
	m := matchedIn(v.table)
	if m == nil || v.s.perGroup > 0 || v.s.empty {
		return
	}
	row := v.table.Columns[m.row()]
	var filters []Pred
	for _, q := range conjunctsOf(v.s.filter) {
		if columns, onGrid := columnsOf(q, nil); onGrid && len(columns) == 1 && columns[0] == row {
			filters = append(filters, q)
		}
	}
	allowed := func(j int32) bool {
		return !slices.ContainsFunc(filters, func(q Pred) bool { return !satisfied(q, func(*policy.Column) int { return int(j) }) })
	}
	placed := m.most(allowed)
	each := placed
	if p := v.partOfColumn(m.row()); p != nil && !p.told && p.combinations()/max(row.Domain.Size(), 1)*max(len(m.Matches), 1) <= maxCells {
		placed, each = m.classes(p, slices.Index(p.columns, m.row()), allowed)
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

// classes is the most matches of one combination that are in some class, and the most in one, over all cells of the part's
// other columns; at is the place of the public row among its columns.
func (m *Matched) classes(p *part, at int, allowed func(int32) bool) (placed, each int64) {
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
