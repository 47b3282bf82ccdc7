package rewrite

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
)

// Which of the measures that are bought at one moment share a scan (joint.go writes it): those over the same rows, as
// long as the scan's answer stays small, and as long as one scan takes less than one for each. Of
//
//	count(*) WHERE seen >= '2025-12-01', count(*) WHERE seen >= '2025-12-01' AND sex = 'f', count(*) WHERE born < '1930-01-01'
//
// the first two share one, WHERE seen >= '2025-12-01'; the third has its own, for a scan of all three would be one of
// all rows, and an index finds either's.
//
// Claim. Which measures are read in one scan is a function of their plans. Proof. together reads the measures and the
// policy, never rows. So what one failure says is public, too: all measures of a scan have no groups then.

// A scan is of at most so many measures and counters, so that the text stays of one size with those of single measures,
// and its answer of so many combinations of cells, which are in memory together.
const (
	maxLeaves   = 16
	maxCounters = 128
	maxRows     = 1 << 17
)

// fewJoint is how many combinations of stored values a tally for several measures may have: beyond it, adding up the
// tally for each measure is no less than reading the rows again.
const fewJoint = 1 << 14

// maxTried is how many scans over the same rows are looked at for a measure: those that were begun last.
const maxTried = 4

// readTogether are measures that are read in one scan, and their places in a list.
type readTogether struct {
	by       shared
	places   []int
	measures []*plans.Measure
	counters int
	rows     int            // of the answer, at most
	grain    *plans.Measure // by what they are tallied; nil means their rows are numbered
}

// together parts measures into those that are read in one scan, in order.
func together(list []*plans.Measure, d dialect.Dialect) (sets []*readTogether) {
next:
	for i, m := range list {
		own := readTogether{places: []int{i}, measures: []*plans.Measure{m}, counters: len(m.Counters), rows: maxCombinations(m)}
		if len(list) > 1 {
			own.by = sharedBy(m, d)
		}
		if own.by.table != nil && (mayBeStored(m.Table, d) || m.Table.Derived != nil) {
			own.grain = merged(&plans.Measure{Table: m.Table}, m)
		}
		tried := 0
		for _, set := range slices.Backward(sets) {
			if own.by == (shared{}) || tried == maxTried {
				break
			}
			if set.by != own.by {
				continue
			}
			if tried++; set.takes(&own, d) {
				continue next
			}
		}
		sets = append(sets, &own)
	}
	return sets
}

// takes adds a measure over the same rows to a scan, if it may be read there.
func (s *readTogether) takes(own *readTogether, d dialect.Dialect) bool {
	m := own.measures[0]
	if len(s.places) == maxLeaves || s.counters+own.counters > maxCounters || s.rows+own.rows > maxRows {
		return false
	}
	if s.grain != nil {
		grain := merged(s.grain, m)
		if writerOf(m, d, assumed{}).tallyRows(grain) > fewJoint {
			return false
		}
		s.grain = grain
	}
	s.places, s.measures = append(s.places, own.places...), append(s.measures, m)
	s.counters, s.rows = s.counters+own.counters, s.rows+own.rows
	return true
}

// maxCombinations is how many combinations of cells a measure has, or one more than a scan may have.
func maxCombinations(m *plans.Measure) int {
	rows := 1
	for i := range m.Grain {
		if rows *= m.Size(i); rows > maxRows {
			return maxRows + 1
		}
	}
	return rows
}

// mayBeStored reports whether the rows of a table of the policy are read as they are stored, as far as may be expected:
// where a unit has one row a constraint most often proves it (where rows are not kept none is believed).
func mayBeStored(t *policy.Table, d dialect.Dialect) bool {
	return alwaysStored(t) || t.MaxRowsPerUnit == 1 && provable(t) && d.OneScan && !d.KeepsNoRows
}

// alwaysStored reports whether they are, whatever constraints there are.
func alwaysStored(t *policy.Table) bool { return t.Dataset.Unit.Row || t.RowRank != "" }

// shared is what measures that may be read in one scan have alike; the zero value: a measure is read by itself.
type shared struct {
	table *policy.Table
	rows  string // of a derived table: the text that reads them; of one that is read as it is stored: the conditions by which an index may find them
}

// sharedBy finds it. A derived table's rows are kept for several measures where they are numbered whatever constraints
// prove: else reading them twice takes less than keeping them, and they are tallied, for measures of one SELECT, or
// each measure reads them.
func sharedBy(m *plans.Measure, d dialect.Dialect) shared {
	a := assumed{}
	if m.Table.Derived != nil {
		a.single = singles(m.Table, d)
	}
	w := writerOf(m, d, a)
	switch {
	case m.Open != nil || m.Window != nil || w.groupsBounded(m):
		return shared{}
	case m.Table.Derived == nil && mayBeStored(m.Table, d):
		if !d.OneScan {
			return shared{}
		}
		return shared{table: m.Table, rows: w.narrowConditions(m)}
	}
	w.used = m.Table.Columns
	text, bound := w.source()
	switch {
	case w.numberings > 0 && d.KeepsNoRows:
		return shared{}
	case w.err != nil || w.numberings == 0 && (m.Table.Derived == nil || !d.OneScan):
		return shared{}
	case w.numberings == 0:
		return shared{table: m.Table, rows: w.narrowConditions(m)}
	case m.Table.Derived == nil:
		return shared{table: m.Table}
	}
	return shared{rows: text + "\x00" + strings.Join(bound, "") + "\x00" + joinedArgs(w.args)}
}

// A condition is narrow where it holds in less than an eighth of its column's cells.
const narrow = 8

// narrowConditions are the narrow ones of a measure, by which an index may find its rows: measures that are read in one
// scan have the same ones.
func (w *composed) narrowConditions(m *plans.Measure) string {
	var texts []string
	for _, c := range w.conditionsOf(m) {
		if isNarrow(c.pred) {
			texts = append(texts, c.text)
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, "\x00")
}

func isNarrow(p predicate.Pred) bool {
	switch p := p.(type) {
	case predicate.Never:
		return true
	case predicate.AnyOf:
		return !slices.ContainsFunc(p, func(part predicate.Pred) bool { return !isNarrow(part) })
	case predicate.AllOf:
		return slices.ContainsFunc(p, isNarrow)
	case predicate.InCells:
		return mechanisms.CellsIn(p.Spans)*narrow < p.Column.Domain.Size()
	case predicate.Compare:
		d := p.Column.Domain
		below, ok := d.Cell(p.Value)
		switch {
		case p.Op == "=":
			return true
		case !ok || !d.Ordered():
			return false
		case p.Op == "<" || p.Op == "<=":
			return below*narrow < d.Size()
		}
		return p.Op != "<>" && (d.Size()-below)*narrow < d.Size()
	}
	return false
}
