package planner

import (
	"slices"

	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// sheet is what becomes of a question: the rows of its leaf, and what is asked to fill them.
type sheet struct {
	*question
	sets   []set
	frames []*solved // by set: its rows
	asks   []*ask
	base   *sheet  // whose cells answer it: see lean
	turned turned  // nil: not. Its answer is turned over
	at     [][]int // by candidate: its counters
}

// ask is a question in cells of its own, and what it fills of a sheet. Its keys are some of the sheet's, then conditions.
type ask struct {
	*solved
	set    set
	reads  []int // the sheet's sets whose rows its cells add up to
	fills  []fill
	weight float64 // of its error at the whole cost: the sum over what it fills
}

// fill is one counter of the sheet as an ask counts it: in all rows, or where a condition holds.
type fill struct {
	of        int // the sheet's counter
	counter   int // the asked question's
	condition int // the asked question's key, −1: none
}

// sheeter turns the questions of a statement into sheets. What it looks at is public: the policy, the statement, and
// expected errors at the session's epsilon.
type sheeter struct {
	b        *binder
	notes    *notes
	ch       *chooser
	setBySet bool // grouping sets are not measured at once
}

// sheet finds what is asked for a question.
func (v *sheeter) sheet(q *question) (*sheet, *refuse.Refusal) {
	if q.turned != nil {
		return v.turnedSheet(q.turned)
	}
	sh := &sheet{question: q, sets: q.groupingSets(), frames: make([]*solved, len(q.groupingSets()))}
	var additive, different []int
	units := map[string][]int{}
	var order []string
	for i, c := range q.counters {
		switch {
		case c.width != nil: // known once it is decided how its counter is read
		case c.choice != nil || c.alarm != nil: // asked by itself
		case c.units != nil:
			name := c.units.name()
			if units[name] == nil {
				order = append(order, name)
			}
			units[name] = append(units[name], i)
		case c.values != nil:
			different = append(different, i)
		default:
			additive = append(additive, i)
		}
	}
	if len(additive) > 0 {
		if refusal := v.additive(sh, additive); refusal != nil {
			return nil, refusal
		}
	}
	for s := range sh.sets {
		if len(different) > 0 {
			a, refusal := v.plain(q, sh.sets[s], different)
			if refusal != nil {
				return nil, refusal
			}
			a.reads = []int{s}
			sh.asks = append(sh.asks, a)
		}
		for _, name := range order {
			a, refusal := v.perUnit(q, sh.sets[s], units[name])
			if refusal != nil {
				return nil, refusal
			}
			a.reads = []int{s}
			sh.asks = append(sh.asks, a)
		}
	}
	return sh, v.frame(sh)
}

// frame finds the rows of each set: those of an ask of the same keys, where there is one.
func (v *sheeter) frame(sh *sheet) *refuse.Refusal {
	for s, keys := range sh.sets {
		if first := slices.IndexFunc(sh.sets[:s], func(other set) bool { return slices.Equal(other, keys) }); first >= 0 {
			sh.frames[s] = sh.frames[first]
			continue
		}
		for _, a := range sh.asks {
			// An only counter's condition is a condition on its rows where there are no keys: the row is there without them.
			if a.table == sh.table && slices.Equal(a.set, keys) && len(a.keys) == len(keys) && !(a.empty && len(keys) == 0) {
				sh.frames[s] = a.solved
				break
			}
		}
		if sh.frames[s] != nil {
			continue
		}
		var refusal *refuse.Refusal
		if sh.frames[s], refusal = solve(sh.on(keys, nil, nil), v.b.env, v.notes); refusal != nil {
			return refusal
		}
	}
	return nil
}

// plain asks for counters side by side.
func (v *sheeter) plain(q *question, keys set, counters []int) (*ask, *refuse.Refusal) {
	a := &ask{set: keys}
	list := make([]counter, len(counters))
	for i, c := range counters {
		list[i] = q.counters[c]
		a.fills = append(a.fills, fill{c, i, -1})
	}
	return v.solved(a, q.on(keys, nil, list))
}

// wanted tells whether something has to be counted for the ask: where no cell is read, nothing has.
func (a *ask) wanted() bool {
	return a.measured() && slices.ContainsFunc(a.fills, func(f fill) bool { return a.counting[f.counter] >= 0 && a.cellsWhere(f.condition) > 0 })
}

func (v *sheeter) solved(a *ask, q *question) (*ask, *refuse.Refusal) {
	var refusal *refuse.Refusal
	if a.solved, refusal = solve(q, v.b.env, v.notes); refusal != nil {
		return nil, refusal
	}
	a.weight = v.weight(a)
	return a, nil
}

// split asks for what counters count, without their conditions, by combination of whether these hold: nil where that
// cannot be decided on cells, or needs too many.
func (v *sheeter) split(q *question, keys set, counters []int) *ask {
	a := &ask{set: keys}
	var conditions []*expr
	var list []counter
	for _, c := range counters {
		condition, known := v.condition(q.counters[c].where, &conditions)
		if !known {
			return nil
		}
		bare := counter{sum: q.counters[c].sum}
		at := slices.IndexFunc(list, func(have counter) bool { return have.sum.name() == bare.sum.name() })
		if at < 0 {
			at = len(list)
			list = append(list, bare)
		}
		if condition >= 0 {
			condition += len(keys)
		}
		a.fills = append(a.fills, fill{c, at, condition})
	}
	quiet := sheeter{b: v.b, notes: new(notes), ch: v.ch}
	a, refusal := quiet.solved(a, q.on(keys, conditions, list))
	if refusal != nil {
		return nil
	}
	v.notes.addAll(*quiet.notes)
	return a
}

// mostConditions bounds the conditions that split a count: their combinations are cells.
const mostConditions = 64

// condition is the place of a conjunction among the conditions, −1 for one without parts. Not known: it is a constant, or
// one too many.
func (v *sheeter) condition(where []*expr, conditions *[]*expr) (at int, known bool) {
	if len(where) == 0 {
		return -1, true
	}
	t := &translator{env: v.b.env, params: v.b.params}
	e := where[0]
	for _, next := range where[1:] {
		var refusal *refuse.Refusal
		if e, refusal = t.junction(formAnd, e.pos, e, next); refusal != nil {
			return 0, false
		}
	}
	if at = slices.IndexFunc(*conditions, func(have *expr) bool { return have.canon == e.canon }); at >= 0 {
		return at, true
	}
	*conditions = append(*conditions, e)
	return len(*conditions) - 1, !e.isConstant() && len(*conditions) <= mostConditions
}

// spots lists, for each row of a frame, the ask's cells that add up to it; nil: each row is the cell itself.
func (a *ask) spots(frame *solved, keys set) map[int][]int {
	if a.solved == frame {
		return nil
	}
	rows := map[string]int{}
	for cell := range frame.cells {
		rows[frame.keysText(cell, identityOf(len(keys)))] = cell
	}
	at := make([]int, len(keys))
	for i, k := range keys {
		at[i] = slices.Index(a.set, k)
	}
	out := map[int][]int{}
	for cell := range a.cells {
		if row, known := rows[a.keysText(cell, at)]; known {
			out[row] = append(out[row], cell)
		}
	}
	return out
}

// cellsOf are the ask's cells that make up a row for a fill.
func (a *ask) cellsOf(f fill, row int, spots map[int][]int) []int {
	cells := []int{row}
	if spots != nil {
		cells = spots[row]
	}
	if f.condition < 0 {
		return cells
	}
	var out []int
	for _, cell := range cells {
		if a.keyValue(f.condition, cell) == true {
			out = append(out, cell)
		}
	}
	return out
}

// turnedSheet is the sheet of the flat question.
func (v *sheeter) turnedSheet(f turned) (*sheet, *refuse.Refusal) {
	flat, at := f.Flat()
	sh, refusal := v.sheet(flat)
	if refusal != nil {
		return nil, refusal
	}
	sh.turned, sh.at = f, at
	if r := f.Race(); r != nil && len(sh.asks) == 1 {
		if c := v.contest(r, flat); c != nil {
			c.counted = countedBy(sh)
			sh.asks[0].contest = c
		}
	}
	return sh, nil
}

// sheets finds what is asked for the questions of a bound statement, and what is chosen.
func (v *sheeter) sheets() (sheets, chosen []*sheet, refusal *refuse.Refusal) {
	for _, q := range v.b.questions {
		for _, set := range q.choices {
			if set.arg == nil {
				continue
			}
			if refusal = closed(q.table, set.arg); refusal != nil {
				return nil, nil, refusal
			}
		}
	}
	sheets = make([]*sheet, len(v.b.questions))
	for i, q := range v.b.questions {
		if sheets[i], refusal = v.sheet(q); refusal != nil {
			return nil, nil, refusal
		}
		v.tellKeys(q)
		for _, a := range sheets[i].asks {
			a.first = sheets[i].topOf(a)
		}
	}
	if chosen, refusal = v.choices(sheets); refusal != nil {
		return nil, nil, refusal
	}
	alarms, refusal := v.alarms(sheets)
	return sheets, append(chosen, alarms...), refusal
}

// valueOf is the value of key k in a row of a set, which NULL is where the row is not grouped by it.
func (sh *sheet) valueOf(k int, frame *solved, keys set, cell int) policy.Value {
	if level, ok := sh.levels[k]; ok {
		return levelOf(level, keys)
	}
	if at := slices.Index(keys, k); at >= 0 {
		return frame.keyValue(at, cell)
	}
	return nil
}
