package planner

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
)

// question is one aggregation over the rows of one private table, as the binder found it: what a leaf answers.
type question struct {
	table    *policy.Table
	where    []*expr // a conjunction
	keys     []*expr
	counters []counter
	choices  []*choiceSet
	top      int // above 0: so many keys are shown, in the order of the only counter, which is not
	sql      string
	turned   turned // nil: the rows meet no public list

	sets       []set       // GROUPING SETS, in keys; nil: one of all
	levels     map[int]set // keys that are grouping(…) of these keys: constants of a set
	conditions int         // how many of the last keys are conditions, of which it matters whether they hold
	kept       int         // as in rows
	apart      bool        // equal counters stay apart
	offGrid    OffGrid
	perGroup   int64   // the most rows of a unit in one group of equal keys; 0: as many as the table has
	untold     *untold // an aggregate whose error cannot be told beforehand
}

// counter is one count of rows, or a sum over them.
type counter struct {
	where []*expr // FILTER and the argument's NOT NULL; empty: every row
	sum   *summand
	canon string
	worth *big.Rat // of rows: what one of them is worth in the answer at most; nil: one

	values *values  // of which different ones are counted; nil: rows are
	units  *units   // of which different ones are counted
	choice *choice  // instead of counting
	alarm  *alarmed // instead of counting
	width  *int     // instead of counting: the half-width of the counter of that index, which is public
}

// counterFor returns the index of a counter of rows, adding it at first use.
func (q *question) counterFor(where []*expr) int { return q.sumFor(where, nil) }

// sumFor returns the index of a sum, adding it at first use.
func (q *question) sumFor(where []*expr, sum *summand) int {
	return q.add(counter{where: where, sum: sum})
}

// widthOf returns the index of the half-width of a counter, adding it at first use: see CountColumn.Known.
func (q *question) widthOf(n int) int {
	canon := "half-width of " + q.counters[n].canon
	for i, have := range q.counters {
		if have.width != nil && *have.width == n {
			return i
		}
	}
	q.counters = append(q.counters, counter{where: q.counters[n].where, canon: canon, width: &n})
	return len(q.counters) - 1
}

// columnName is the name of a counter's column of the leaf: n1, n2, … for what is counted, w2 for the half-width of n2.
func (q *question) columnName(n int) string {
	if of := q.counters[n].width; of != nil {
		return "w" + q.columnName(*of)[1:]
	}
	counted := 0
	for _, c := range q.counters[:n] {
		if c.width == nil {
			counted++
		}
	}
	return countName(counted)
}

// add returns the index of a counter, adding it at first use.
func (q *question) add(c counter) int {
	if c.canon = whereText(c.where); c.sum != nil || c.values != nil || c.units != nil {
		c.canon = c.sum.name() + c.values.name() + c.units.name() + " where " + c.canon
	}
	for i, have := range q.counters {
		if have.canon == c.canon && !q.apart {
			q.counters[i].worth = moreWorth(have.worth, c.worth)
			return i
		}
	}
	q.counters = append(q.counters, c)
	return len(q.counters) - 1
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

// whereText names a conjunction.
func whereText(where []*expr) string {
	parts := make([]string, len(where))
	for i, e := range where {
		parts[i] = e.canon
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), " and ")
}

// solved is a question in cells: what the private database is asked, and which cells make up each row of the answer.
type solved struct {
	*question
	filter    predicate.Pred
	counts    []predicate.Pred // by measured counter
	sums      []*summand       // by measured counter: nil counts rows
	worths    []*big.Rat       // by measured counter, none for other questions than those of statements
	values    []*values        // by measured counter: nil counts rows, or adds up
	counting  []int            // question's counter → measured counter, −1: it can count nothing
	grain     []int            // column positions, by name
	parts     []*part
	cells     int
	empty     bool // no row can satisfy the condition, whatever the data
	chosen    *chosen
	alarm     *alarmOf   // a yes or no is asked
	contest   *contest   // the names of some counters will do
	marginals *marginals // nil: each cell is counted once
	rows      int64      // above 0: the most rows of a unit that are placed at all
	first     int        // above 0: the numbers of so many cells with the most rows will do
	grows     bool       // a release that grows: its cells are closed one by one
	closed    int        // of grows: so many are
	work      *scalar.Work
}

// turned is a question over rows that meet a public list, which is asked with the counters of all candidates side by side;
// its answer is turned over, so that candidates are rows.
type turned interface {
	// Flat is what is asked; at says by candidate and counter of the question which of its counters are whose.
	Flat() (q *question, at [][]int)
	// Over is a leaf of what was asked turned over: its rows once for each candidate.
	Over(flat *Leaf, at [][]int) *Leaf
	// Race is nil where more is shown than the first candidates.
	Race() *race
}

// part is a set of grain columns whose cells decide together over some keys and conditions. Parts are independent, so
// the cells of the measure are their product.
type part struct {
	columns []int   // positions in the table
	sizes   []int   // of each: how many pieces it has
	cuts    [][]int // by column: the first cell of each piece; nil: each cell is one. Below, a combination is one of pieces
	ends    []int   // of cuts, by column: how many cells it has
	told    bool    // the SQL tells pieces apart, and not cells
	class   []int32 // by combination: a class of equal keys, −1 where the condition fails
	classes int
	beyond  []int32          // by combination: a number of equal keys among those where the condition fails
	outside map[string]int32 // these numbers, by key
	masks   [][]bool         // by measured counter (nil: all) and combination: whether the counter counts there
	weights [][]int64        // by measured counter: what it adds up of a row in each combination; nil: not decided here
	shows   [][]int32        // by measured counter and combination: the number of the value that it counts once, −1: none; nil: not decided here
	keys    []int            // question's keys decided here
	values  [][]policy.Value
	filters []*expr
	within  []predicate.Pred // conjuncts of the filter over these columns alone
	only    map[int][]*expr  // counter conditions evaluated here, by measured counter
}

// solver solves one question.
type solver struct {
	lowerer
	s *solved
}

// solve folds a question's conditions and keys into cells.
func solve(q *question, env scalar.Env, n *notes) (*solved, *refuse.Refusal) {
	own := *q
	v := &solver{lowerer{q.table, env, newBox(q.table, env), n, q.offGrid}, &solved{question: &own, work: env.Work}}
	residual, refusal := v.fold(q.where, &v.s.filter)
	if refusal != nil {
		return nil, refusal
	}
	only, refusal := v.foldCounters()
	if refusal != nil {
		return nil, refusal
	}
	residual, only = v.narrow(residual, only)
	v.s.parts = v.split(residual, only)
	_, v.s.empty = v.s.filter.(predicate.Never)
	v.s.cells = 1
	for _, p := range v.s.parts {
		if refusal := v.classify(p); refusal != nil {
			return nil, refusal
		}
		v.s.grain = append(v.s.grain, p.columns...)
		if p.classes == 0 {
			v.s.cells, v.s.empty = 0, true
		} else if v.s.cells *= p.classes; v.s.cells > maxCells {
			return nil, tooManyCells.At(v.positionOfKeys(), strconv.Itoa(v.s.cells), maxCells)
		}
	}
	if refusal := v.withinCells(); refusal != nil {
		return nil, refusal
	}
	v.multiply()
	v.s.orderCounters()
	return v.s, nil
}

func (v *solver) positionOfKeys() int {
	if len(v.s.keys) > 0 {
		return v.s.keys[0].pos
	}
	return -1
}

// fold adds what the database can test to pred and returns the other conditions.
func (v *solver) fold(where []*expr, pred *predicate.Pred) (residual []*expr, refusal *refuse.Refusal) {
	for _, e := range conjuncts(where) {
		t, ok, refusal := v.lower(e)
		if refusal != nil {
			return nil, refusal
		}
		if ok {
			*pred = predicate.All(*pred, t.holds)
		} else if !v.implied(e) {
			residual = append(residual, e)
		}
	}
	return residual, nil
}

// conjuncts flattens ANDs.
func conjuncts(where []*expr) []*expr {
	var out []*expr
	for _, e := range where {
		if e.form == formAnd {
			out = append(out, conjuncts(e.args)...)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// split joins keys and conditions that share a column into one part; parts are in the order of their first column's name.
func (v *solver) split(residual []*expr, only map[int][]*expr) []*part {
	type item struct {
		columns []int
		put     func(p *part)
	}
	var items []item
	for k, e := range v.s.keys {
		if !e.isConstant() {
			items = append(items, item{e.cols, func(p *part) { p.keys = append(p.keys, k) }})
		}
	}
	for _, e := range residual {
		items = append(items, item{e.cols, func(p *part) { p.filters = append(p.filters, e) }})
	}
	for _, sum := range v.s.sums {
		if sum != nil && sum.expr != nil {
			items = append(items, item{sum.expr.cols, func(*part) {}})
		}
	}
	for _, values := range v.s.values {
		if columns := values.columns(); len(columns) > 0 {
			items = append(items, item{columns, func(*part) {}})
		}
	}
	for c := range v.s.counts {
		for _, e := range only[c] {
			items = append(items, item{e.cols, func(p *part) { p.only[c] = append(p.only[c], e) }})
		}
	}
	lists := [][]*expr{v.s.keys, residual}
	for _, values := range v.s.values {
		lists = append(lists, values.parts())
	}
	for _, list := range only {
		lists = append(lists, list)
	}
	for _, columns := range v.decidesKeys(lists...) {
		items = append(items, item{columns, func(*part) {}})
	}
	var parts []*part
	for _, it := range items {
		joined := &part{columns: it.columns, only: map[int][]*expr{}}
		it.put(joined)
		rest := parts[:0:0]
		for _, p := range parts {
			if !shares(p.columns, joined.columns) {
				rest = append(rest, p)
				continue
			}
			joined.columns = union(p.columns, joined.columns)
			joined.keys = append(p.keys, joined.keys...)
			joined.filters = append(p.filters, joined.filters...)
			for c, list := range p.only {
				joined.only[c] = append(list, joined.only[c]...)
			}
		}
		parts = append(rest, joined)
	}
	for _, p := range parts {
		slices.Sort(p.keys)
	}
	sortParts(v.table, parts)
	return parts
}

// sortParts orders the columns of each part, and the parts by their first column, by name: a policy may list its columns
// in any order.
func sortParts(t *policy.Table, parts []*part) {
	byName := func(a, b int) int { return strings.Compare(t.Columns[a].Name, t.Columns[b].Name) }
	for _, p := range parts {
		p.columns = slices.Clone(p.columns)
		slices.SortFunc(p.columns, byName)
	}
	slices.SortFunc(parts, func(a, b *part) int {
		if len(a.columns) == 0 || len(b.columns) == 0 { // of a constant that is added up
			return len(a.columns) - len(b.columns)
		}
		return byName(a.columns[0], b.columns[0])
	})
}

func shares(a, b []int) bool {
	return slices.ContainsFunc(a, func(c int) bool { return slices.Contains(b, c) })
}

// untold is an aggregate whose error depends on the data.
type untold struct {
	name string
	pos  int
}

// key is a join key in sight.
type key struct {
	name    string
	column  *policy.Column // of table.Keys
	present int            // position, counted from 1, of the boolean column that says whether it is not NULL; 0: it never is
}

// set is a grouping set: the question's keys that its rows are grouped by.
type set []int

// on is the question over the same rows for some of the keys and conditions.
func (q *question) on(keys set, conditions []*expr, counters []counter) *question {
	sub := &question{table: q.table, where: q.where, counters: counters, sql: q.sql, conditions: len(conditions), perGroup: q.perGroup, offGrid: q.offGrid}
	for _, k := range keys {
		sub.keys = append(sub.keys, q.keys[k])
	}
	sub.keys = append(sub.keys, conditions...)
	return sub
}

// groupingSets are the sets of a question; without GROUPING SETS there is one of all keys.
func (q *question) groupingSets() []set {
	if q.sets != nil {
		return q.sets
	}
	var all set
	for k := range q.keys {
		if q.levels[k] == nil {
			all = append(all, k)
		}
	}
	return []set{all}
}

// keysText names the values of some keys in a cell.
func (s *solved) keysText(cell int, keys []int) string {
	values := make([]policy.Value, len(keys))
	for i, k := range keys {
		values[i] = s.keyValue(k, cell)
	}
	return keyText(values)
}

// units are a counter of different units: of the rows of a table with one row for each unit and group (docs/adr/0012).
// With a further join key, of different values of it, each within one unit.
type units struct {
	key int // position in the table's keys; −1: the unit's own
}

// name tells counters of units from others; nil is none.
func (u *units) name() string {
	if u == nil {
		return ""
	}
	return "|units " + strconv.Itoa(u.key)
}
