package choose

import (
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms/totals"
	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/bind"
	"github.com/dpproxy/dpproxy/planner/derived"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// LeafPlan is what becomes of a question: the rows of its leaf, and what is asked to fill them.
type LeafPlan struct {
	*linear.Question
	Sets     []linear.Set
	Frames   []*linear.Query // by set: its rows
	Requests []*Request
	base     *LeafPlan     // whose cells answer it: see rollUp
	Turned   linear.Turned // nil: not. Its answer is turned over
	At       [][]int       // by candidate: its counters
	presence bool          // it counts rows only to say which groups have any
}

// Request is a question in cells of its own, and what it fills of a leaf plan. Its keys are some of the leaf plan's,
// then conditions.
type Request struct {
	*linear.Query
	set         linear.Set
	Reads       []int // the leaf plan's sets whose rows its cells add up to
	Projections []Projection
	weight      float64 // of its error at the whole cost: the sum over what it fills
	each        []int   // its cells, of which CellsOf hands out one

	// Ladder is what the last key is a step of, whose cells hold shares of units' totals, those of totals below 0 behind
	// the others; nil means they are counts.
	Ladder totals.Ladder
}

// Projection is one counter of the leaf plan as a request counts it: in all rows, or where a condition holds.
type Projection struct {
	Of        int // the leaf plan's counter
	Counter   int // the asked question's
	condition int // the asked question's key, −1: none
}

// LeafPlanner turns the questions of a statement into leaf plans. What it looks at is public: the policy, the
// statement, and expected errors at the session's epsilon.
type LeafPlanner struct {
	Binder    *aggregate.Binder
	Notes     *semantics.Notes
	Optimizer *Optimizer
	SetBySet  bool // grouping sets are not measured at once
	byRows    bool // counts and sums are not of units' totals
}

// askedTogether parts counters by what one request asks: those that add up, and those of each column whose presence is
// asked for; those of different values; those of each kind of units.
func askedTogether(counters []linear.Counter) (together [][]int, different []int, ofUnits [][]int) {
	var additive []int
	present, units := map[string]int{}, map[string]int{}
	into := func(lists *[][]int, at map[string]int, name string, i int) {
		if _, known := at[name]; !known {
			at[name] = len(*lists)
			*lists = append(*lists, nil)
		}
		(*lists)[at[name]] = append((*lists)[at[name]], i)
	}
	for i, c := range counters {
		switch {
		case c.Width != nil: // known once it is decided how its counter is read
		case c.Choice != nil || c.Threshold != nil: // asked by itself
		case c.Presence != "":
			into(&together, present, c.Presence, i)
		case c.Units != nil:
			into(&ofUnits, units, c.Units.Name(), i)
		case c.Values != nil:
			different = append(different, i)
		default:
			additive = append(additive, i)
		}
	}
	if len(additive) > 0 {
		together = slices.Insert(together, 0, additive)
	}
	return together, different, ofUnits
}

// leafPlan finds what is asked for a question.
func (v *LeafPlanner) leafPlan(q *linear.Question) (*LeafPlan, *refuse.Refusal) {
	if q.Turned != nil {
		return v.turnedLeafPlan(q.Turned)
	}
	lp := &LeafPlan{Question: q, Sets: q.GroupingSets(), Frames: make([]*linear.Query, len(q.GroupingSets()))}
	together, different, ofUnits := askedTogether(q.Counters)
	for _, counters := range together {
		if refusal := v.additive(lp, counters); refusal != nil {
			return nil, refusal
		}
	}
	for s := range lp.Sets {
		if len(different) > 0 {
			a, refusal := v.plain(q, lp.Sets[s], different)
			if refusal != nil {
				return nil, refusal
			}
			a.Reads = []int{s}
			lp.Requests = append(lp.Requests, a)
		}
		for _, counters := range ofUnits {
			asks, refusal := v.perUnit(q, lp.Sets[s], counters)
			if refusal != nil {
				return nil, refusal
			}
			for _, a := range asks {
				a.Reads = []int{s}
			}
			lp.Requests = append(lp.Requests, asks...)
		}
	}
	return lp, v.frame(lp)
}

// frame finds the rows of each set: those of a request of the same keys, where there is one.
func (v *LeafPlanner) frame(lp *LeafPlan) *refuse.Refusal {
	for s, keys := range lp.Sets {
		if first := slices.IndexFunc(lp.Sets[:s], func(other linear.Set) bool { return slices.Equal(other, keys) }); first >= 0 {
			lp.Frames[s] = lp.Frames[first]
			continue
		}
		for _, a := range lp.Requests {
			// An only counter's condition is a condition on its rows where there are no keys: the row is there without
			// them.
			if a.Table == lp.Table && slices.Equal(a.set, keys) && len(a.Keys) == len(keys) && !(a.Empty && len(keys) == 0) {
				lp.Frames[s] = a.Query
				break
			}
		}
		if lp.Frames[s] != nil {
			continue
		}
		var refusal *refuse.Refusal
		if lp.Frames[s], refusal = linear.Solve(lp.On(keys, nil, nil), v.Binder.Env, v.Notes); refusal != nil {
			return refusal
		}
	}
	return nil
}

// plain asks for counters side by side.
func (v *LeafPlanner) plain(q *linear.Question, keys linear.Set, counters []int) (*Request, *refuse.Refusal) {
	a := &Request{set: keys}
	list := make([]linear.Counter, len(counters))
	for i, c := range counters {
		list[i] = q.Counters[c]
		a.Projections = append(a.Projections, Projection{c, i, -1})
	}
	return v.solved(a, q.On(keys, nil, list))
}

// Wanted reports whether something has to be counted for the ask: where no cell is read, nothing has.
func (a *Request) Wanted() bool {
	return a.Measured() && slices.ContainsFunc(a.Projections, func(f Projection) bool { return a.Counting[f.Counter] >= 0 && a.CellsWhere(f.condition) > 0 })
}

func (v *LeafPlanner) solved(a *Request, q *linear.Question) (*Request, *refuse.Refusal) {
	var refusal *refuse.Refusal
	if a.Query, refusal = linear.Solve(q, v.Binder.Env, v.Notes); refusal != nil {
		return nil, refusal
	}
	a.weight = v.weight(a)
	return a, nil
}

// split asks for what counters count, without their conditions, by combination of whether these hold: nil where that
// cannot be decided on cells, or needs too many.
func (v *LeafPlanner) split(q *linear.Question, keys linear.Set, counters []int) *Request {
	a := &Request{set: keys}
	var conditions []*semantics.Expr
	var list []linear.Counter
	for _, c := range counters {
		condition, known := v.condition(q.Counters[c].Where, &conditions)
		if !known {
			return nil
		}
		bare := linear.Counter{Sum: q.Counters[c].Sum}
		at := slices.IndexFunc(list, func(have linear.Counter) bool { return have.Sum.Name() == bare.Sum.Name() })
		if at < 0 {
			at = len(list)
			list = append(list, bare)
		}
		if condition >= 0 {
			condition += len(keys)
		}
		a.Projections = append(a.Projections, Projection{c, at, condition})
	}
	quiet := LeafPlanner{Binder: v.Binder, Notes: new(semantics.Notes), Optimizer: v.Optimizer}
	a, refusal := quiet.solved(a, q.On(keys, conditions, list))
	if refusal != nil {
		return nil
	}
	v.Notes.AddAll(*quiet.Notes)
	return a
}

// maxConditions bounds the conditions that split a count: their combinations are cells.
const maxConditions = 64

// condition is the place of a conjunction among the conditions, −1 for one without parts. Not known: it is a constant,
// or one too many.
func (v *LeafPlanner) condition(where []*semantics.Expr, conditions *[]*semantics.Expr) (at int, known bool) {
	if len(where) == 0 {
		return -1, true
	}
	t := &semantics.Translator{Env: v.Binder.Env, Params: v.Binder.Params}
	e := where[0]
	for _, next := range where[1:] {
		var refusal *refuse.Refusal
		if e, refusal = t.Junction(semantics.FormAnd, e.Pos, e, next); refusal != nil {
			return 0, false
		}
	}
	if at = slices.IndexFunc(*conditions, func(have *semantics.Expr) bool { return have.Canon == e.Canon }); at >= 0 {
		return at, true
	}
	*conditions = append(*conditions, e)
	return len(*conditions) - 1, !e.IsConstant() && len(*conditions) <= maxConditions
}

// Spots lists, for each row of a frame, the ask's cells that add up to it; nil means each row is the cell itself.
func (a *Request) Spots(frame *linear.Query, keys linear.Set) map[int][]int {
	if a.Query == frame {
		return nil
	}
	rows := map[string]int{}
	for cell := range frame.Cells {
		rows[frame.KeysText(cell, semantics.IdentityOf(len(keys)))] = cell
	}
	at := make([]int, len(keys))
	for i, k := range keys {
		at[i] = slices.Index(a.set, k)
	}
	out := map[int][]int{}
	for cell := range a.Cells {
		if row, known := rows[a.KeysText(cell, at)]; known {
			out[row] = append(out[row], cell)
		}
	}
	return out
}

// CellsOf are the ask's cells that make up a row for a fill.
func (a *Request) CellsOf(f Projection, row int, spots map[int][]int) []int {
	cells := spots[row]
	if spots == nil {
		if len(a.each) <= row {
			a.each = semantics.IdentityOf(max(a.Cells, row+1))
		}
		cells = a.each[row : row+1 : row+1]
	}
	if f.condition < 0 {
		return cells
	}
	var out []int
	for _, cell := range cells {
		if a.KeyValue(f.condition, cell) == true {
			out = append(out, cell)
		}
	}
	return out
}

// turnedLeafPlan is the leaf plan of the flat question.
func (v *LeafPlanner) turnedLeafPlan(f linear.Turned) (*LeafPlan, *refuse.Refusal) {
	flat, at := f.Flat()
	own := *v
	own.byRows = true
	lp, refusal := own.leafPlan(flat)
	if refusal != nil {
		return nil, refusal
	}
	lp.Turned, lp.At = f, at
	if r := f.Ranking(); r != nil && len(lp.Requests) == 1 && len(lp.Frames[0].Concealed()) == 0 {
		if c := v.topK(r, flat); c != nil {
			c.Counted = countedBy(lp)
			lp.Requests[0].Asked = linear.Counted{TopK: c}
		}
	}
	return lp, nil
}

// LeafPlans finds what is asked for the questions of a bound statement, and what is chosen.
func (v *LeafPlanner) LeafPlans() (leaves, chosen []*LeafPlan, refusal *refuse.Refusal) {
	for _, q := range v.Binder.Questions {
		for _, set := range q.Choices {
			if set.Arg == nil {
				continue
			}
			if refusal = semantics.Closed(q.Table, set.Arg); refusal != nil {
				return nil, nil, refusal
			}
		}
	}
	leaves = make([]*LeafPlan, len(v.Binder.Questions))
	for i, q := range v.Binder.Questions {
		presence := countPresence(q)
		planner := *v
		planner.byRows = planner.byRows || presence // as choices are
		if leaves[i], refusal = planner.leafPlan(q); refusal != nil {
			return nil, nil, refusal
		}
		leaves[i].presence = presence
		v.noteKeys(q)
		for _, a := range leaves[i].Requests {
			a.Asked = linear.Counted{First: leaves[i].topOf(a), TopK: a.Counted().TopK}
		}
	}
	if chosen, refusal = v.choices(leaves); refusal != nil {
		return nil, nil, refusal
	}
	thresholds, refusal := v.thresholds(leaves)
	if refusal != nil {
		return nil, nil, refusal
	}
	chosen = append(chosen, thresholds...)
	for _, lp := range slices.Concat(leaves, chosen) {
		for _, a := range lp.Requests {
			if refusal := a.Bounded(); refusal != nil {
				return nil, nil, refusal
			}
		}
	}
	return leaves, chosen, nil
}

// ValueOf is the value of key k in a row of a set, which NULL is where the row is not grouped by it.
func (lp *LeafPlan) ValueOf(k int, frame *linear.Query, keys linear.Set, cell int) policy.Value {
	if level, ok := lp.Levels[k]; ok {
		return linear.LevelOf(level, keys)
	}
	if at := slices.Index(keys, k); at >= 0 {
		return frame.KeyValue(at, cell)
	}
	return nil
}

// perUnit asks for the numbers of units in the groups of some keys.
//
// With the unit's own key it has at most one row in each group: the derived table has one for each unit and combination
// of classes of cells, and no two combinations have equal keys, since in each column the classes are determined by all
// keys that read it.
//
// How many groups a unit is in is its total of rows of that table, and asked for as such where no bound of a unit's
// rows is declared (ofTotals).
func (v *LeafPlanner) perUnit(q *linear.Question, keys linear.Set, counters []int) ([]*Request, *refuse.Refusal) {
	u := &derived.PerUnit{From: q.Table}
	var refusal *refuse.Refusal
	if u.Where, refusal = v.Binder.Lowered(q.Table, q.Where); refusal != nil {
		return nil, refusal
	}
	sub := &linear.Question{SQL: q.SQL, PerGroup: 1, OffGrid: q.OffGrid, Frequency: q.Frequency}
	if key := q.Counters[counters[0]].Units.Key; key != nil {
		u.JoinKeys, u.Present, sub.PerGroup = []*policy.Column{q.Table.Keys[key.At]}, true, 0
	}
	if u.Keys, refusal = v.unitKeys(q, keys, &sub.Keys); refusal != nil {
		return nil, refusal
	}
	for _, c := range counters {
		where, refusal := v.some(q, u, q.Counters[c].Where)
		if refusal != nil {
			return nil, refusal
		}
		sub.Counters = append(sub.Counters, linear.Counter{Where: where})
	}
	if sub.Table = derived.NewPerUnit(u); sub.Table == nil {
		return nil, bind.WideAggregate.At((&linear.Solver{Query: &linear.Query{Question: q}}).PositionOfKeys())
	}
	lp := &LeafPlan{Question: sub, Sets: []linear.Set{semantics.IdentityOf(len(sub.Keys))}}
	asks, rest := v.ofTotals(lp, semantics.IdentityOf(len(counters)))
	if len(rest) > 0 {
		a, refusal := v.better(sub, rest)
		if refusal != nil {
			return nil, refusal
		}
		asks = append(asks, a)
	}
	for _, a := range asks {
		a.set = keys
		for i := range a.Projections {
			a.Projections[i].Of = counters[a.Projections[i].Of]
		}
	}
	return asks, nil
}

// better asks for counters of a question side by side, or by combination of their conditions.
func (v *LeafPlanner) better(q *linear.Question, counters []int) (*Request, *refuse.Refusal) {
	keys := linear.Set(semantics.IdentityOf(len(q.Keys)))
	a, refusal := v.plain(q, keys, counters)
	if refusal != nil || !conditional(q, counters) {
		return a, refusal
	}
	if split := v.split(q, keys, counters); split != nil && split.weight < a.weight {
		return split, nil
	}
	return a, nil
}

// unitKeys are what a unit's rows are grouped by for some keys of a question, each over one column at most; the keys
// over the grouped rows are added to moved.
func (v *LeafPlanner) unitKeys(
	q *linear.Question, keys linear.Set, moved *[]*semantics.Expr,
) (list []derived.UnitKey, _ *refuse.Refusal) {
	byColumn := map[int]int{} // the derived column of each column
	for _, k := range keys {
		e := q.Keys[k]
		if len(e.Cols) > 1 {
			return nil, distinctKeys.At(e.Pos, q.Table.Dataset.Unit.Name)
		}
		if len(e.Cols) == 1 {
			if _, known := byColumn[e.Cols[0]]; !known {
				byColumn[e.Cols[0]] = len(list)
				key, refusal := v.unitKey(q, keys, e.Cols[0])
				if refusal != nil {
					return nil, refusal
				}
				list = append(list, key)
			}
			e = e.Moved(byColumn[e.Cols[0]])
		}
		*moved = append(*moved, e)
	}
	return list, nil
}

// unitKey puts the cells of a column into classes on which all keys over it are the same.
func (v *LeafPlanner) unitKey(q *linear.Question, keys linear.Set, column int) (derived.UnitKey, *refuse.Refusal) {
	c := q.Table.Columns[column]
	if len(c.Product) > 0 {
		return derived.UnitKey{Column: c}, nil // its parts together tell its cells
	}
	var over []*semantics.Expr
	for _, k := range keys {
		if e := q.Keys[k]; slices.Equal(e.Cols, []int{column}) {
			if over = append(over, e); e.Form == semantics.FormColumn {
				return derived.UnitKey{Column: c}, nil
			}
		}
	}
	first, refusal := linear.FirstCellsOf(semantics.NewBox(q.Table, v.Binder.Env), column, over)
	return derived.UnitKey{Column: c, First: first}, refusal
}

// some is the condition that a unit has rows for which where holds: that their number is above 0.
func (v *LeafPlanner) some(q *linear.Question, u *derived.PerUnit, where []*semantics.Expr) ([]*semantics.Expr, *refuse.Refusal) {
	if len(where) == 0 {
		return nil, nil
	}
	holds, refusal := v.Binder.Lowered(q.Table, where)
	if refusal != nil || holds == nil {
		return nil, refusal
	}
	at := slices.IndexFunc(u.Aggregates, func(have derived.UnitAggregate) bool {
		return slices.Equal(predicate.Encode(nil, have.Where), predicate.Encode(nil, holds))
	})
	if at < 0 {
		at = len(u.Aggregates)
		u.Aggregates = append(u.Aggregates, derived.UnitAggregate{Kind: derived.UnitCount, Where: holds})
	}
	n := semantics.ColumnExpr(len(u.Keys)+at, policy.Int8, -1, where[0].Pos)
	t := &semantics.Translator{Env: v.Binder.Env, Params: v.Binder.Params}
	e, refusal := t.Combine(">", where[0].Pos, n, semantics.ConstantExpr(int64(0), policy.Int8, -1))
	return []*semantics.Expr{e}, refusal
}

// noteKeys notes what a number of different values of a join key is.
func (v *LeafPlanner) noteKeys(q *linear.Question) {
	for _, c := range q.Counters {
		if c.Units != nil && c.Units.Key != nil {
			name := q.Table.Keys[c.Units.Key.At].Name
			v.Notes.Add("different values of " + name[strings.LastIndex(name, ".")+1:] + " are counted within each " + q.Table.Dataset.Unit.Name + ": one that two of them share counts twice")
		}
	}
}
