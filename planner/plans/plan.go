// Package plans is what a plan is made of: what is measured, at what cost, which leaves the outer query reads, and how
// each of their rows is read from a measure. Of
//
//	SELECT sex, count(*) AS n FROM people WHERE age >= 30 GROUP BY sex HAVING count(*) > 100
//
// there is one Measure, the count of rows with age in [30, 120) by sex, two cells; one Leaf with the key sex and a
// column of counts, whose two rows are read from a cell each; and the Outer query, a projection of that leaf which
// keeps n > 100. Whoever runs a plan (rewrite, proxy/pipeline) needs this package and none of those that made it.
package plans

import (
	"math/big"
	"slices"
	"sync/atomic"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/accounting"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/pgcatalog"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// Digest names a measure by its meaning: source, unit, bounds, domains, rules for NULL and outside values, neighbours,
// predicate, cells. It does not contain the noise: a measure may be held at several exactnesses.
type Digest [32]byte

// Plan is an answer to one SELECT that costs Cost and no more, whatever the data.
type Plan struct {
	Statement    Digest          // of a plan that buys something, as a whole; receipts and audit lines carry it
	Dataset      *policy.Dataset // nil for a query without private tables and outside any dataset
	Measures     []*Measure      // what is bought or read again, each once
	Leaves       []*Leaf         // what the outer query sees, named leaf_1, leaf_2, …
	Outer        Outer           // what happens above the boundary
	Columns      []OutColumn     // of the answer
	Outputs      []Output        // its columns as the statement names them; nil means not all are known
	Inner        []*Inner        // sub-queries that are answered first: then the statement is planned again, for no more than the rest of Cost
	Finds        []*Measure      // keys that are found first: then the statement is planned again, for no more than the rest of Cost
	Cost         privacy.Cost    // Σ over the measures that are not held, Finds, and Inner
	Priced       string          // of a dataset of either accountant: why Cost is in this unit; empty means there was nothing to choose
	Notes        []string        // for the NOTICE: off-grid constants, steps, clamping, row bounding, hints
	Confidence   mechanisms.Confidence
	CoversAll    bool
	Alternatives []Alternative // what was weighed, where the context asks for it
	Asked        *atomic.Bool  // whether an expression has asked for the time
	ErrorColumns bool          // SET dp.error_columns = on
	Significant  bool          // SET dp.digits = significant
	Bounds       []parse.Bound // dp.low(x) and dp.high(x)
	Rated        *Rated        // whose rows are shown; nil means they are not those of one leaf
	Probed       []string      // private tables whose rows were asked for and of which none are shown: SET dp.probes = empty
}

// Rated is a leaf whose rows are the answer's, and what sets the errors of the columns of a plan over it.
type Rated struct {
	Leaf   int
	Errors func(*Plan)
}

// AllTogether returns the columns with errors that all values of a column keep to at once, at the plan's confidence,
// and how many rows there are at most; as they are, and 0 rows, where that is not known.
func (p *Plan) AllTogether() (columns []OutColumn, rows int) {
	if p.Rated == nil {
		return p.Columns, 0
	}
	rows = p.Leaves[p.Rated.Leaf].Rows
	each, err := mechanisms.NewConfidence(1 - (1-p.Confidence.Float())/float64(max(rows, 1)))
	if err != nil {
		return p.Columns, 0
	}
	again := *p
	again.Columns, again.Confidence = slices.Clone(p.Columns), each
	p.Rated.Errors(&again)
	return again.Columns, rows
}

// Charge is what the plan costs by either accountant: with what is answered first the most that it may come to, as Cost
// is.
func (p *Plan) Charge() accounting.Charge {
	var c accounting.Charge
	if len(p.Inner) > 0 {
		own := p.Cost
		for _, in := range p.Inner {
			c, own = c.Plus(in.Plan.Charge()), own.Less(in.Plan.Cost)
		}
		return c.Plus(accounting.Price(own))
	}
	for _, m := range append(slices.Clone(p.Measures), p.Finds...) {
		if !m.Held {
			c = c.Plus(accounting.Price(m.Cost))
		}
	}
	return c
}

// Buys reports whether anything of the plan is not held yet.
func (p *Plan) Buys() bool {
	return len(p.Inner)+len(p.Finds) > 0 || slices.ContainsFunc(p.Measures, func(m *Measure) bool { return !m.Held })
}

// Timeless reports whether the plan, run up to now, has not depended on the time of its making.
func (p *Plan) Timeless() bool { return p.Asked != nil && !p.Asked.Load() }

// OutColumn is one column of the answer.
type OutColumn struct {
	Name   string
	Type   policy.Type
	Typmod int32
	Error  *mechanisms.Error // the largest error over rows where the column is a count read from one leaf; nil means computed
	Off    *big.Rat          // the largest half-width over rows where the column is a linear function of counts and sums
	Source *CountColumn      // the leaf's column that it is, as it is; nil means computed
	Number pgcatalog.Number  // what catalogs know it by, where it is a table's
	Climbs []Climbing        // of which it is a sum, whose errors are known once they are released; none otherwise
	Noisy  bool              // the column depends on released counts, not on keys and constants alone
	Bound  Bound             // whether it is shown itself
}

// Bound is what is shown of a column.
type Bound uint8

// The bounds: a column itself, or an end of its interval, by dp.low(x) and dp.high(x).
const (
	Unbounded Bound = iota
	LowBound
	HighBound
)

// Bounded are columns of which some are asked for by their bounds.
func Bounded(columns []OutColumn, asked []parse.Bound) []OutColumn {
	if len(asked) == 0 || len(columns) == 0 {
		return columns
	}
	columns = slices.Clone(columns)
	for _, b := range asked {
		if columns[b.Column].Bound = LowBound; b.High {
			columns[b.Column].Bound = HighBound
		}
	}
	return columns
}

// WantsErrors reports whether the answer shows errors of its columns.
func (p *Plan) WantsErrors() bool { return p.ErrorColumns || len(p.Bounds) > 0 }

// Measure is one thing that can be bought: a vector of counts over the cells of a table, with its noise.
type Measure struct {
	Digest     Digest
	Kind       string          // "count", "histogram" or "range"
	Name       string          // for dp.releases and notices: people_age, or a short description
	Shared     bool            // a declared release: drawn once for the dataset, paid once by each user
	Declared   *policy.Release // nil unless Shared
	Table      *policy.Table
	Grain      []*policy.Column     // the SQL groups by the cells of these; empty means one group
	Cuts       [][]int              // by column of the grain: the first cell of each piece of cells that the SQL tells apart; nil means each cell
	Where      predicate.Pred       // nil: every row
	Counters   []predicate.Pred     // one count per counter and group, over the rows where it holds; nil means every row
	Sums       []*Sum               // by counter, nil counts rows; nil means all of them do
	Weigh      Weighing             // what a group's rows add to a counter whose Sum has no factors; nil means there is none
	Place      mechanisms.Placement // from a group to a cell of the spec
	Groups     []Grouping           // the same, part by part: the SQL bounds a unit's groups by them where the policy says so
	Rows       int64                // the most rows of a unit that are placed into cells; 0 means as many as the table has
	PerGroup   int64                // the most rows of a unit that are placed into one cell; 0 means as many as are placed
	Spec       mechanisms.Spec
	Cost       privacy.Cost         // what she pays for it, zero when Held
	Open       *policy.Column       // the measure finds the keys of this column, and nothing of the above but the table holds
	Finding    mechanisms.Discovery // Open: how
	Continual  *Continual           // a release that grows; nil means one that is drawn once
	Window     *Window              // of a step of such a release: where its rows lie
	Held       bool                 // she has paid for it already: nothing is run
	HeldID     int64                // Held: the ledger's id of the saved release
	Refinement *Refinement          // nil: it refines none
	Why        string               // for EXPLAIN: why this way and not another

	Described []byte // the canonical encoding of its meaning
}

// Contribution is what one unit can put into the measure.
func (m *Measure) Contribution() mechanisms.Contribution {
	return m.Table.ContributionOf(m.Spec.Cells, m.Rows, m.PerGroup)
}

// Size is how many cells, or pieces of cells, the SQL tells apart of the i-th column of the grain.
func (m *Measure) Size(i int) int {
	if m.Cuts == nil || m.Cuts[i] == nil {
		return m.Grain[i].Domain.Size()
	}
	return len(m.Cuts[i])
}

// Piece is the number of the piece of the i-th column of the grain that a cell is in: the cell, where each is one.
func (m *Measure) Piece(i, cell int) int {
	if m.Cuts == nil {
		return cell
	}
	return PieceIn(m.Cuts[i], cell)
}

// PieceIn is the number of the piece that a cell is in, by the first cells of pieces; nil means each cell is one.
func PieceIn(starts []int, cell int) int {
	if starts == nil {
		return cell
	}
	at, first := slices.BinarySearch(starts, cell)
	if first {
		return at
	}
	return at - 1
}

// Grouping is how the cells of some columns of the grain make up the groups that are released: the columns of all
// groupings, one after the other, are the grain, and two combinations of cells are in one group when they are in one
// class of each grouping.
type Grouping struct {
	Columns int                // of the grain
	Cells   int                // combinations of their cells
	Runs    []derived.ClassRun // of these combinations, the first column's slowest, where the policy bounds groups; nil means each is a class of its own
	Classes int
	Partly  bool // a counter leaves out some of the combinations
}

// Weighing is what one row adds to a counter, by the cells of its group. It is a function of public things alone.
type Weighing func(cells []int32, counter int) int64

// Leaf is a released table that the outer query reads: constant key columns, and counts read from measures.
type Leaf struct {
	Name      string
	Keys      []KeyColumn // values by row
	Counts    []CountColumn
	Rows      int
	Synthetic *SyntheticRows // its rows are made up, and its keys have no values here
	Found     bool           // some of its keys are of open columns: found, and not declared
	SQL       string         // the leaf as the analyst wrote it, deparsed, for EXPLAIN
}

// CertainRows is how many rows a leaf has whatever is released; 0 means perhaps none, since its keys are found, or its
// rows made up.
func (l *Leaf) CertainRows() int {
	if l.Found || l.Synthetic != nil {
		return 0
	}
	return l.Rows
}

// KeyColumn is one group key; Values has one entry a row.
type KeyColumn struct {
	Name   string
	Type   policy.Type
	Typmod int32
	Values []policy.Value
}

// CountColumn is one column of counts, or of values that were chosen. Its rows are read in runs.
type CountColumn struct {
	Name   string
	Type   policy.Type // of what is chosen; 0 means counts, which are bigint
	Typmod int32       // of a char that is chosen
	Unit   *big.Rat    // what one of a sum's whole numbers is worth in the answer; nil means rows are counted
	Width  bool        // these are half-widths of another column, or twice those
	Runs   []Run
}

// Run is how consecutive rows of a column are read, as many as it has Spans: each is the sum of cells of one counter of
// a measure.
type Run struct {
	Measure   int // index into Plan.Measures; −1: nothing is counted, the rows are Known, which is public
	Counter   int
	Spans     [][]mechanisms.Span // by row; disjoint, sorted
	Known     int64               // of Measure −1: 0, or the half-width of another column
	Off       *Run                // of Measure −1: the rows are Known half-widths of this run, which is climbed, or where Known is 0 its Fewest
	Threshold *ThresholdQuestion  // a yes or no is asked instead
	Mix       [][]Term            // by row: it is read so instead, as a rounded sum over several measures; Measure is one of them
	Selected  *SelectedValue      // the rows are read so instead
	Frequency policy.Frequency    // of Ladder: the rule that its Climbed says the least of
	Ladder    totals.Ladder       // of Mix: its terms are of these steps, up to a clamp (Climb); nil means all are read
	Most      int64               // above 0: the true value is at most that, and not below 0, which is public
}

// IsSum reports whether each row is a sum over cells of one measure, or a public fact.
func (r *Run) IsSum() bool { return r.Threshold == nil && r.Mix == nil && r.Selected == nil }

// Measures lists the measures that a leaf is read from, none where the leaf is public.
func (l *Leaf) Measures() []int {
	if l.Synthetic != nil {
		return []int{l.Synthetic.Measure}
	}
	var list []int
	for _, c := range l.Counts {
		for _, r := range c.Runs {
			if r.Measure >= 0 && !slices.Contains(list, r.Measure) {
				list = append(list, r.Measure)
			}
			for _, row := range r.Mix {
				for _, t := range row {
					if !slices.Contains(list, t.Measure) {
						list = append(list, t.Measure)
					}
				}
			}
		}
	}
	slices.Sort(list)
	return list
}

// At is how a row of the column is read.
func (c *CountColumn) At(row int) (run *Run, spans []mechanisms.Span) {
	for i := range c.Runs {
		if run = &c.Runs[i]; row < len(run.Spans) {
			return run, run.Spans[row]
		}
		row -= len(run.Spans)
	}
	return nil, nil
}

// In is the place of a row of the column within a run of it.
func (c *CountColumn) In(run *Run, row int) int {
	for i := range c.Runs {
		if &c.Runs[i] == run {
			break
		}
		row -= len(c.Runs[i].Spans)
	}
	return row
}

// Direct is an outer query that needs no engine: a projection of one leaf, filtered, sorted and cut. Expressions see
// the row's key columns followed by its count columns. Leaf −1 is the single empty row of a SELECT without FROM.
type Direct struct {
	Leaf   int
	Having scalar.Expr   // nil: every row
	Items  []scalar.Expr // one per answer column
	Sort   []SortKey
	Limit  int64 // −1: none
	Offset int64
}

// SortKey is one ORDER BY expression.
type SortKey struct {
	By         scalar.Expr
	Descending bool
	NullsFirst bool
}

// MarginalsKind is the kind of a measure of several grouping sets at once.
const MarginalsKind = "marginals"

// Price plans the discovery for a cost. A unit has as many keys as it has groups or rows.
func (m *Measure) Price(cost privacy.Cost) (err error) {
	c := m.Table.ContributionTo(2)
	if m.Table.AnyRows {
		c.Rows = mechanisms.FewKeys(cost)
	}
	if m.Finding, err = mechanisms.NewDiscovery(c, cost); err == nil {
		m.Cost, m.Spec, m.Why = cost, m.Finding.Spec(1), "the keys of "+m.Open.Name+" are not known yet"
	}
	return err
}

// PlanOfFinds is the plan that buys what a plan finds first.
func (p *Plan) PlanOfFinds() *Plan {
	first := &Plan{Dataset: p.Dataset, Measures: p.Finds, Confidence: p.Confidence, Statement: p.Statement}
	for _, m := range p.Finds {
		first.Cost = first.Cost.Plus(m.Cost)
	}
	return first
}
