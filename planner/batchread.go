package planner

import (
	"math"
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/policy"
)

// part of a workload: one ask of one statement, with the values that are read from it.
type workAsk struct {
	*solved
	digest     Digest
	rows       []workRow
	id         int
	statements []int
	chosen     bool // cells are looked for among counts, as a median is
}

// workRow is a value of an answer: the sum of cells of one counter.
type workRow struct {
	statement int
	counter   int
	cells     []int
	weight    float64
}

// wholly tells whether an ask is about cells of the grid alone, in counts of rows: what releases of other cells can answer.
func (a *workAsk) wholly() bool {
	if a.table.Derived != nil || a.table.Opened || a.perGroup > 0 || a.summed() != nil {
		return false
	}
	_, ok := a.columns()
	return ok
}

// asksOf lists what a statement asks for, or why it cannot be part of a workload.
func asksOf(s parse.Statement, at int, c Context) (asks []*workAsk, refusal *refuse.Refusal) {
	c.Work = nil // of the statement alone
	c = c.limited()
	defer c.stopped(&refusal)
	if s.Kind != parse.KindSelect {
		return nil, s.NotSelect()
	}
	b := newBinder(c, &parameters{values: []policy.Value{}, types: s.ParamTypes})
	o := &opening{found: map[*policy.Column]*finding{}, values: map[*policy.Column][]string{}, tables: map[*policy.Table]*policy.Table{}}
	b.open, b.text, b.top = o, s.Text, s.Select()
	if _, refusal = b.bind(b.top); refusal != nil {
		return nil, s.Placed(refusal)
	}
	ch := &chooser{c: c, now: b.env.Clock, stocks: map[*policy.Table]*Stock{}, open: o}
	sheets, chosen, refusal := (&sheeter{b: b, notes: new(notes), ch: ch, setBySet: true}).sheets()
	if refusal != nil {
		return nil, s.Placed(refusal)
	}
	for _, sh := range sheets {
		for _, a := range sh.asks {
			if a.wanted() {
				asks = append(asks, &workAsk{solved: a.solved, digest: a.measure(a.kind(), "").Digest, rows: rowsOf(sh, a, at), statements: []int{at}})
			}
		}
	}
	for _, sh := range chosen {
		for _, a := range sh.asks {
			if a.wanted() {
				asks = append(asks, &workAsk{solved: a.solved, digest: a.choiceMeasure().Digest, chosen: true, statements: []int{at}})
			}
		}
	}
	return asks, nil
}

// rowsOf lists the values of a sheet that are read from one of its asks, as fill reads them.
func rowsOf(sh *sheet, a *ask, statement int) (rows []workRow) {
	for _, s := range a.reads {
		frame, keys := sh.frames[s], sh.sets[s]
		spots := a.spots(frame, keys)
		for _, row := range frame.rowOrder() {
			for _, f := range a.fills {
				counter, cells := a.counting[f.counter], a.cellsOf(f, row, spots)
				if counter >= 0 && len(cells) > 0 {
					rows = append(rows, workRow{statement, counter, slices.Clone(cells), 1})
				}
			}
		}
	}
	return rows
}

// alone is the spec that asks for this by itself at a cost.
func (a *workAsk) alone(cost privacy.Cost) (mechanisms.Spec, error) {
	if a.chosen {
		return a.choice(cost)
	}
	return a.fresh(cost)
}

// errorAlone is the variance of a value that is read from the ask's own cells.
func (a *workAsk) errorAlone(r workRow, variances []float64) float64 {
	return float64(len(r.cells)) * variances[r.counter]
}

// variances are those of one cell of each counter.
func variances(spec mechanisms.Spec, confidence mechanisms.Confidence) []float64 {
	list := make([]float64, spec.Counters)
	for c := range list {
		list[c] = spec.Only(c).Errors(confidence).Variance(predicate.One(0))
	}
	return list
}

// order is the power of a part of the cost by which errors grow: noise grows as 1/cost (pure) or 1/√cost (zCDP).
func order(a privacy.Accountant) float64 {
	if a == privacy.ZCDP {
		return 1
	}
	return 2
}

// divided is the least sum of errors w/s^p over shares s of one.
func divided(weights []float64, p float64) float64 {
	sum := 0.0
	for _, w := range weights {
		sum += math.Pow(w, 1/(p+1))
	}
	return math.Pow(sum, p+1)
}
