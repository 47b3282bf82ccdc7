// Package linear takes an aggregation as a linear map on cells. A Question is what a SELECT asks of a table's rows:
// conditions, group keys, counters. Solve folds what the database can test into a predicate and evaluates the rest on
// every combination of cells (or pieces of them) of the columns that it reads: the Query that comes of it says for each
// group and counter which cells are added up with which weight. Of
//
//	SELECT age / 10, count(*), sum(income) FROM people WHERE sex = 'f' GROUP BY 1
//
// the grain is age, whose cells fall into twelve classes, one for each key; the filter is a predicate; and there are
// two counters, of which one adds up a whole number of each row.
package linear

import (
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Question is one aggregation over the rows of one private table, as the binder found it: what a leaf answers.
type Question struct {
	Table    *policy.Table
	Where    []*semantics.Expr // a conjunction
	Keys     []*semantics.Expr
	Counters []Counter
	Choices  []*ChoiceSet
	Top      int // above 0: so many keys are shown, in the order of the only counter, which is not
	SQL      string
	Turned   Turned // nil: the rows meet no public list

	Sets         []Set       // GROUPING SETS, in keys; nil means one of all
	Levels       map[int]Set // keys that are grouping(…) of these keys: constants of a set
	conditions   int         // how many of the last keys are conditions, of which it matters whether they hold
	Preserved    int         // as in rows
	Apart        bool        // equal counters stay apart
	OffGrid      plans.OffGrid
	PerGroup     int64            // the most rows of a unit in one group of equal keys; 0 means as many as the table has
	Frequency    policy.Frequency // of its groups
	UnknownError *UnknownError    // an aggregate whose error cannot be known beforehand
}

// Counter is one count of rows, or a sum over them.
type Counter struct {
	Where []*semantics.Expr // FILTER and the argument's NOT NULL; empty means every row
	Sum   *Summand
	Canon string
	Worth *big.Rat // of rows: what one of them is worth in the answer at most; nil means one

	Values    *DistinctValues // of which different ones are counted, or added up where there is a Sum; nil means rows are
	Units     *Units          // of which different ones are counted
	Choice    *Choice         // instead of counting
	Threshold *ThresholdTest  // instead of counting
	Width     *int            // instead of counting: the half-width of the counter of that index, which is public
	Use       WidthUse        // of Width

	Presence string // it says whether a value of this column has rows: counted with those of its other values
}

// CountsRows reports whether c counts rows, and not what is in them.
func (c *Counter) CountsRows() bool {
	return c.Sum == nil && c.Values == nil && c.Units == nil && c.Choice == nil && c.Threshold == nil && c.Width == nil
}

// CountsRowsOf reports whether c counts rows of which those where some conditions hold are a part: each of its own
// conditions is one of these.
func (c *Counter) CountsRowsOf(where []*semantics.Expr) bool {
	return c.CountsRows() && !slices.ContainsFunc(c.Where, func(own *semantics.Expr) bool {
		return !slices.ContainsFunc(where, func(e *semantics.Expr) bool { return e.Canon == own.Canon })
	})
}

// CounterFor returns the index of a counter of rows, adding it at first use.
func (q *Question) CounterFor(where []*semantics.Expr) int { return q.SumFor(where, nil) }

// SumFor returns the index of a sum, adding it at first use.
func (q *Question) SumFor(where []*semantics.Expr, sum *Summand) int {
	return q.Add(Counter{Where: where, Sum: sum})
}

// WidthUse is what a half-width decides.
type WidthUse uint8

const (
	OfMeans     WidthUse = iota // an average over rows whose count is not above it is NULL
	OfGroups                    // a group whose count is above it is a row
	OfValues                    // twice the half-width: a value whose count is above it is one of those that are there
	OfFrequency                 // a group whose count is above it is shown: what one of too few units rarely has
)

// WidthOf returns the index of the half-width of a counter, adding it at first use: see CountColumn.Known.
func (q *Question) WidthOf(n int, use WidthUse) int {
	canon := [...]string{"half-width of ", "half-width, of groups, of ", "twice the half-width of ", "fewest by "}[use]
	canon += q.Counters[n].Canon
	for i, have := range q.Counters {
		if have.Width != nil && *have.Width == n && have.Use == use {
			return i
		}
	}
	q.Counters = append(q.Counters, Counter{Where: q.Counters[n].Where, Canon: canon, Width: &n, Use: use})
	return len(q.Counters) - 1
}

// ColumnName is the name of a counter's column of the leaf: n1, n2, … for what is counted, w2, g2, t2 and f2 for
// the half-width of n2 by its use.
func (q *Question) ColumnName(n int) string {
	if of := q.Counters[n].Width; of != nil {
		return "wgtf"[q.Counters[n].Use:][:1] + q.ColumnName(*of)[1:]
	}
	counted := 0
	for _, c := range q.Counters[:n] {
		if c.Width == nil {
			counted++
		}
	}
	return plans.CountName(counted)
}

// Add returns the index of a counter, adding it at first use.
func (q *Question) Add(c Counter) int {
	if c.Canon = WhereText(c.Where); c.Sum != nil || c.Values != nil || c.Units != nil {
		c.Canon = c.Sum.Name() + c.Values.name() + c.Units.Name() + " where " + c.Canon
	}
	for i, have := range q.Counters {
		if have.Canon == c.Canon && !q.Apart {
			q.Counters[i].Worth = moreWorth(have.Worth, c.Worth)
			return i
		}
	}
	q.Counters = append(q.Counters, c)
	return len(q.Counters) - 1
}

// moreWorth is the larger of two, of which nil is one, and nil for one.
func moreWorth(a, b *big.Rat) *big.Rat {
	one := big.NewRat(1, 1)
	if a == nil {
		a = one
	}
	if b == nil {
		b = one
	}
	if a.Cmp(b) < 0 {
		a = b
	}
	if a.Cmp(one) == 0 {
		return nil
	}
	return a
}

// WhereText names a conjunction.
func WhereText(where []*semantics.Expr) string {
	parts := make([]string, len(where))
	for i, e := range where {
		parts[i] = e.Canon
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " and ")
}

// Query is a question in cells: what the private database is asked, and which cells make up each row of the answer.
type Query struct {
	*Question
	Filter    predicate.Pred
	Counts    []predicate.Pred  // by measured counter
	Sums      []*Summand        // by measured counter: nil counts rows
	Worths    []*big.Rat        // by measured counter, none for other questions than those of statements
	Values    []*DistinctValues // by measured counter: nil counts rows, or adds up
	Counting  []int             // question's counter → measured counter, −1: it can count nothing
	Grain     []int             // column positions, by name
	Factors   []*Factor
	Cells     int
	Empty     bool // no row can satisfy the condition, whatever the data
	Asked     Asked
	Marginals *Marginals // nil: each cell is counted once
	Rows      int64      // above 0: the most rows of a unit that are placed at all
	Continual bool       // a release that grows: its cells are closed one by one
	Closed    int        // of grows: so many are
	Work      *scalar.Work
}

// Turned is a question over rows that meet a public list, which is asked with the counters of all candidates side by
// side; its answer is turned over, so that candidates are rows.
type Turned interface {
	// Flat is what is asked; at says by candidate and counter of the question which of its counters are whose.
	Flat() (q *Question, at [][]int)
	// Over is a leaf of what was asked turned over: its rows once for each candidate.
	Over(flat *plans.Leaf, at [][]int) *plans.Leaf
	// Ranking is nil where more is shown than the first candidates.
	Ranking() *Ranking
}

// Factor is a set of grain columns whose cells decide together over some keys and conditions. Parts are independent, so
// the cells of the measure are their product.
type Factor struct {
	Columns     []int   // positions in the table
	Sizes       []int   // of each: how many pieces it has
	Cuts        [][]int // by column: the first cell of each piece; nil means each cell is one. Below, a combination is one of pieces
	Ends        []int   // of cuts, by column: how many cells it has
	PiecesInSQL bool    // the SQL tells pieces apart, and not cells
	Class       []int32 // by combination: a class of equal keys, −1 where the condition fails
	Classes     int
	beyond      []int32   // by combination: a number of equal keys among those where the condition fails
	Masks       [][]bool  // by measured counter (nil means all) and combination: whether the counter counts there
	Weights     [][]int64 // by measured counter: what it adds up of a row in each combination; nil means not decided here
	Shows       [][]int32 // by measured counter and combination: the number of the value that it counts once, −1: none; nil means not decided here
	Keys        []int     // question's keys decided here
	Values      [][]policy.Value
	shown       []bool // by class: it is more than what the policy hides
	filters     []*semantics.Expr
	within      []predicate.Pred          // conjuncts of the filter over these columns alone
	only        map[int][]*semantics.Expr // counter conditions evaluated here, by measured counter
}

// Solver solves one question.
type Solver struct {
	semantics.Lowerer
	Query *Query
}

// Solve folds a question's conditions and keys into cells.
func Solve(q *Question, env scalar.Env, n *semantics.Notes) (*Query, *refuse.Refusal) {
	for _, k := range q.Keys { // one that is the same for all rows is not evaluated with the cells
		if k.IsConstant() {
			if _, refusal := k.Value(nil); refusal != nil {
				return nil, refusal
			}
		}
	}
	own := *q
	v := &Solver{semantics.Lowerer{Table: q.Table, Env: env, Box: semantics.NewBox(q.Table, env), Notes: n, OffGrid: q.OffGrid}, &Query{Question: &own, Asked: Counted{}, Work: env.Work}}
	residual, refusal := v.Fold(q.Where, &v.Query.Filter)
	if refusal != nil {
		return nil, refusal
	}
	only, refusal := v.foldCounters()
	if refusal != nil {
		return nil, refusal
	}
	residual, only = v.narrow(residual, only)
	v.Query.Factors = v.split(residual, only)
	_, v.Query.Empty = v.Query.Filter.(predicate.Never)
	v.Query.Cells = 1
	for _, p := range v.Query.Factors {
		if refusal := v.classify(p); refusal != nil {
			return nil, refusal
		}
		v.Query.Grain = append(v.Query.Grain, p.Columns...)
		if p.Classes == 0 {
			v.Query.Cells, v.Query.Empty = 0, true
		} else if v.Query.Cells *= p.Classes; v.Query.Cells > plans.MaxCells {
			return nil, TooManyCells.At(v.PositionOfKeys(), strconv.Itoa(v.Query.Cells), plans.MaxCells)
		}
	}
	if refusal := v.withinCells(); refusal != nil {
		return nil, refusal
	}
	v.multiply()
	v.Query.orderCounters()
	return v.Query, nil
}

// PositionOfKeys is where the statement names the first key; −1: there is none.
func (v *Solver) PositionOfKeys() int {
	if len(v.Query.Keys) > 0 {
		return v.Query.Keys[0].Pos
	}
	return -1
}

// Fold adds what the database can test to pred and returns the other conditions.
func (v *Solver) Fold(where []*semantics.Expr, pred *predicate.Pred) (residual []*semantics.Expr, refusal *refuse.Refusal) {
	own := *v // what matters here does so no longer once the conditions are folded
	for _, e := range semantics.DecidingFirst(Conjuncts(where)) {
		if len(e.Cols) > 1 && v.listed(e, *pred) {
			continue
		}
		t, ok, refusal := own.Lower(e)
		if refusal != nil {
			return nil, refusal
		}
		switch {
		case !ok && !v.implied(e):
			residual = append(residual, e)
		case ok:
			*pred = predicate.All(*pred, t.Holds)
			own.Matters(e, t.Holds)
		}
	}
	return residual, nil
}

// Conjuncts flattens ANDs.
func Conjuncts(where []*semantics.Expr) []*semantics.Expr {
	var out []*semantics.Expr
	for _, e := range where {
		if e.Form == semantics.FormAnd {
			out = append(out, Conjuncts(e.Args)...)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// split joins keys and conditions that share a column into one factor; factors are in the order of their first column's
// name.
func (v *Solver) split(residual []*semantics.Expr, only map[int][]*semantics.Expr) []*Factor {
	type item struct {
		columns []int
		put     func(p *Factor)
	}
	var items []item
	for k, e := range v.Query.Keys {
		if !e.IsConstant() {
			items = append(items, item{e.Cols, func(p *Factor) { p.Keys = append(p.Keys, k) }})
		}
	}
	for _, e := range residual {
		items = append(items, item{e.Cols, func(p *Factor) { p.filters = append(p.filters, e) }})
	}
	for _, sum := range v.Query.Sums {
		if sum != nil && sum.Expr != nil {
			items = append(items, item{sum.Expr.Cols, func(*Factor) {}})
		}
	}
	lists := [][]*semantics.Expr{v.Query.Keys, residual}
	for _, values := range v.Query.Values {
		lists = append(lists, values.parts())
		if columns := values.columns(); len(columns) > 0 {
			items = append(items, item{columns, func(*Factor) {}})
		}
	}
	for c := range v.Query.Counts {
		for _, e := range only[c] {
			items = append(items, item{e.Cols, func(p *Factor) { p.only[c] = append(p.only[c], e) }})
		}
	}
	lists = slices.AppendSeq(lists, maps.Values(only))
	for _, columns := range v.decidesKeys(lists...) {
		items = append(items, item{columns, func(*Factor) {}})
	}
	var parts []*Factor
	for _, it := range items {
		joined := &Factor{Columns: it.columns, only: map[int][]*semantics.Expr{}}
		it.put(joined)
		rest := parts[:0:0]
		for _, p := range parts {
			if !shares(p.Columns, joined.Columns) {
				rest = append(rest, p)
				continue
			}
			joined.Columns = semantics.Union(p.Columns, joined.Columns)
			joined.Keys = append(p.Keys, joined.Keys...)
			joined.filters = append(p.filters, joined.filters...)
			for c, list := range p.only {
				joined.only[c] = append(list, joined.only[c]...)
			}
		}
		parts = append(rest, joined)
	}
	sortFactors(v.Table, parts)
	return parts
}

// sortFactors orders the columns of each factor, and the factors by their first column, by name: a policy may list its
// columns in any order.
func sortFactors(t *policy.Table, parts []*Factor) {
	byName := func(a, b int) int { return strings.Compare(t.Columns[a].Name, t.Columns[b].Name) }
	for _, p := range parts {
		p.Columns = slices.Clone(p.Columns)
		slices.SortFunc(p.Columns, byName)
		slices.Sort(p.Keys)
	}
	slices.SortFunc(parts, func(a, b *Factor) int {
		if len(a.Columns) == 0 || len(b.Columns) == 0 { // of a constant that is added up
			return len(a.Columns) - len(b.Columns)
		}
		return byName(a.Columns[0], b.Columns[0])
	})
}

func shares(a, b []int) bool {
	return slices.ContainsFunc(a, func(c int) bool { return slices.Contains(b, c) })
}

// UnknownError is an aggregate whose error depends on the data.
type UnknownError struct {
	Name string
	Pos  int
}

// Key is a join key in sight. As a column is, it is a position: rows that get a wider table keep theirs, where a
// pointer into the narrower one's keys would be of a table that is no longer read.
type Key struct {
	Name    string
	At      int // in table.Keys
	Present int // position, counted from 1, of the boolean column that says whether it is not NULL; 0 means it never is
}

// On is the question over the same rows for some of the keys and conditions.
func (q *Question) On(keys Set, conditions []*semantics.Expr, counters []Counter) *Question {
	sub := &Question{Table: q.Table, Where: q.Where, Counters: counters, SQL: q.SQL, conditions: len(conditions),
		PerGroup: q.PerGroup, OffGrid: q.OffGrid, Frequency: q.Frequency}
	for _, k := range keys {
		sub.Keys = append(sub.Keys, q.Keys[k])
	}
	sub.Keys = append(sub.Keys, conditions...)
	return sub
}

// GroupingSets are the sets of a question; without GROUPING SETS there is one of all keys.
func (q *Question) GroupingSets() []Set {
	if q.Sets != nil {
		return q.Sets
	}
	var all Set
	for k := range q.Keys {
		if q.Levels[k] == nil {
			all = append(all, k)
		}
	}
	return []Set{all}
}

// KeysText names the values of some keys in a cell.
func (s *Query) KeysText(cell int, keys []int) string {
	values := make([]policy.Value, len(keys))
	for i, k := range keys {
		values[i] = s.KeyValue(k, cell)
	}
	return semantics.KeyText(values)
}

// Units are a counter of different units: of the rows of a table with one row for each unit and group (docs/adr/0012).
// With a further join key, of different values of it, each within one unit.
type Units struct {
	Key *Key // nil: the unit's own
}

// Name tells counters of units from others; nil is none.
func (u *Units) Name() string {
	if u == nil {
		return ""
	}
	if u.Key == nil {
		return "|units"
	}
	return "|units " + strconv.Itoa(u.Key.At)
}
