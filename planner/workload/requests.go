package workload

import (
	"slices"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/aggregate"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/discovery"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/outerquery"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// part of a workload: one request of one statement, with the values that are read from it.
type workRequest struct {
	*linear.Query
	digest     plans.Digest
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

// wholly reports whether a request is about cells of the grid alone, in counts of rows: what releases of other cells
// can answer.
func (a *workRequest) wholly() bool {
	if a.Table.Derived != nil || a.Table.Opened || a.PerGroup > 0 || a.Summed() != nil {
		return false
	}
	_, ok := a.Columns()
	return ok
}

// requestsOf lists what a statement asks for, or why it cannot be part of a workload.
func requestsOf(s parse.Statement, at int, c reuse.Context) (asks []*workRequest, refusal *refuse.Refusal) {
	c.Work = nil // of the statement alone
	c = c.Limited()
	defer c.Stopped(&refusal)
	if s.Kind != parse.KindSelect {
		return nil, s.NotSelect()
	}
	b := aggregate.NewBinder(c, &semantics.Parameters{Values: []policy.Value{}, Types: s.ParamTypes})
	o := discovery.New()
	b.Open, b.Text, b.Top = o, s.Text, s.Select()
	b.AnswerNothingFirst()
	if _, refusal = outerquery.Bind(b); refusal != nil {
		return nil, s.Placed(refusal)
	}
	if o.Lacks() {
		return nil, s.Placed(semantics.OpenColumn.At(-1, "that it asks for"))
	}
	ch := &choose.Optimizer{Now: b.Env.Clock, Views: map[*policy.Table]*reuse.Views{}, Open: o}
	ch.Context = c
	leaves, chosen, refusal := (&choose.LeafPlanner{Binder: b, Notes: new(semantics.Notes), Optimizer: ch, SetBySet: true}).LeafPlans()
	if refusal != nil {
		return nil, s.Placed(refusal)
	}
	for _, lp := range leaves {
		for _, a := range lp.Requests {
			if a.Wanted() {
				asks = append(asks, &workRequest{Query: a.Query, digest: a.Measure(a.Kind(), "").Digest, rows: rowsOf(lp, a, at), statements: []int{at}})
			}
		}
	}
	for _, lp := range chosen {
		for _, a := range lp.Requests {
			if a.Wanted() {
				asks = append(asks, &workRequest{Query: a.Query, digest: a.ChoiceMeasure().Digest, chosen: true, statements: []int{at}})
			}
		}
	}
	return asks, nil
}

// rowsOf lists the values of a leaf plan that are read from one of its requests, as fill reads them.
func rowsOf(lp *choose.LeafPlan, a *choose.Request, statement int) (rows []workRow) {
	for _, s := range a.Reads {
		frame, keys := lp.Frames[s], lp.Sets[s]
		spots := a.Spots(frame, keys)
		for _, row := range frame.RowOrder() {
			for _, f := range a.Projections {
				counter, cells := a.Counting[f.Counter], a.CellsOf(f, row, spots)
				if counter >= 0 && len(cells) > 0 {
					rows = append(rows, workRow{statement, counter, slices.Clone(cells), 1})
				}
			}
		}
	}
	return rows
}

// alone is the spec that asks for this by itself at a cost.
func (a *workRequest) alone(cost privacy.Cost) (mechanisms.Spec, error) {
	if a.chosen {
		return a.Choice(cost)
	}
	return a.Fresh(cost)
}

// errorAlone is the variance of a value that is read from the ask's own cells.
func (a *workRequest) errorAlone(r workRow, variances []float64) float64 {
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
