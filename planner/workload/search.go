package workload

import (
	"fmt"
	"iter"
	"math/big"
	"slices"
	"strings"

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

// maxTried bounds the steps that one search looks at: with n requests over one table a round has up to n²/2 of them,
// each of which takes time in n, so that 1,000 ranges of a report would take hours without it. Where a round ends
// early, the best step that was seen is the last one: the partitions by columns and by tables have been looked at
// whatever the number.
const maxTried = 3000

// maxMoved bounds the requests of a cluster from which one is moved: one of very many changes little, and what is left
// of them takes long to look at.
const maxMoved = 100

// search goes downhill from a partition: it joins two clusters, or moves one request to another cluster or out of its
// own, as long as that lowers the error. The best step is taken. At last all ways to measure each cluster are looked
// at. It looks at up to twice maxTried steps: O(maxTried · n) in time, besides the maxBatchWork cells of all clusters.
func (w *batch) search(clusters []*cluster) []*cluster {
	clusters = slices.Clone(clusters)
	for tried := 0; tried < maxTried; {
		best, least := []*cluster(nil), w.total(clusters)*(1-1e-9)
		for _, steps := range []func([]*cluster) iter.Seq[func() []*cluster]{w.joins, w.moves} {
			for step := range steps(clusters) {
				if tried++; tried >= 2*maxTried {
					break
				}
				next := step()
				if next == nil {
					continue
				}
				if e := w.total(next); e < least {
					best, least = next, e
				}
			}
			if best != nil {
				break
			}
		}
		if best == nil {
			break
		}
		clusters = best
	}
	for i, k := range clusters {
		if full := w.of(k.asks, true); full != nil && full.error() < k.error() {
			clusters[i] = full
		}
	}
	return clusters
}

// besides are the clusters but those at some places, and others.
func besides(clusters []*cluster, i, j int, others ...*cluster) []*cluster {
	var out []*cluster
	for at, k := range clusters {
		if at != i && at != j {
			out = append(out, k)
		}
	}
	return append(out, others...)
}

// joins yields the steps that make two clusters one; a step that cannot be taken is nil.
func (w *batch) joins(clusters []*cluster) iter.Seq[func() []*cluster] {
	return func(yield func(func() []*cluster) bool) {
		for i := range clusters {
			for j := range i {
				if clusters[i].asks[0].Table != clusters[j].asks[0].Table {
					continue
				}
				if !yield(func() []*cluster {
					k := w.of(slices.Concat(clusters[j].asks, clusters[i].asks), false)
					if k == nil {
						return nil
					}
					return besides(clusters, i, j, k)
				}) {
					return
				}
			}
		}
	}
}

// moves yields the steps that put one request into another cluster, or into one of its own.
func (w *batch) moves(clusters []*cluster) iter.Seq[func() []*cluster] {
	return func(yield func(func() []*cluster) bool) {
		for i, from := range clusters {
			if len(from.asks) < 2 || len(from.asks) > maxMoved {
				continue
			}
			for n, a := range from.asks {
				rest := w.of(slices.Delete(slices.Clone(from.asks), n, n+1), false)
				if !yield(func() []*cluster { return w.moved(clusters, i, -1, rest, []*workRequest{a}) }) {
					return
				}
				for j, to := range clusters {
					if rest == nil || j == i || to.asks[0].Table != a.Table {
						continue
					}
					if !yield(func() []*cluster { return w.moved(clusters, i, j, rest, append(slices.Clone(to.asks), a)) }) {
						return
					}
				}
			}
		}
	}
}

// moved is a partition with the rest of a cluster and another one, of the requests, in place of two.
func (w *batch) moved(clusters []*cluster, i, j int, rest *cluster, asks []*workRequest) []*cluster {
	if rest == nil {
		return nil
	}
	k := w.of(asks, false)
	if k == nil {
		return nil
	}
	return besides(clusters, i, j, rest, k)
}

// keyOfRequests names a set of requests.
func keyOfRequests(asks []*workRequest) string {
	ids := make([]string, len(asks))
	for i, a := range asks {
		ids[i] = fmt.Sprintf("%05d", a.id)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

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

// StepChoice is what a step of a discretised column costs: a finer one has more cells, so that ranges are further off;
// a coarser one moves bounds further. Nothing of it is read from data.
type StepChoice struct {
	Step     string
	Declared bool
	Cells    int
	RMSE     float64 // of all ranges over the column at the price, in rows
	Rounding string  // the most that a bound between two steps moves, in the column's unit, in words
	Rows     float64 // the same in rows where the policy's expected ones are spread evenly; 0 means none, or it expects none
	Not      string  // why there is no such step
}

// maxSteps bounds the cells of a step that is considered.
const maxSteps = 1 << 17

// StepChoices tells of a column's declared step, a tenth and ten times of it, for a range release at a cost.
func StepChoices(c *policy.Column, cost privacy.Cost) []StepChoice {
	var list []StepChoice
	for _, tenths := range []int64{1, 10, 100} {
		list = append(list, stepChoice(c, tenths, cost))
	}
	return list
}

func stepChoice(c *policy.Column, tenths int64, cost privacy.Cost) StepChoice {
	d, cells := c.Domain, int64(c.Domain.Regular)
	out := StepChoice{Declared: tenths == 10}
	scaled := *d
	switch {
	case tenths == 10:
	case d.Step.Decimal.Coefficient != nil && tenths == 1:
		scaled.Step.Decimal.Scale++
	case d.Step.Decimal.Coefficient != nil:
		scaled.Step.Decimal.Coefficient = new(big.Int).Mul(d.Step.Decimal.Coefficient, big.NewInt(10))
	case tenths == 1 && d.Step.Whole%10 != 0:
		out.Step, out.Not = "a tenth of "+semantics.StepText(d), "the column has no values between"
		return out
	default:
		scaled.Step.Whole = d.Step.Whole * tenths / 10
	}
	cells = (cells*10 + tenths - 1) / tenths
	extra := int64(c.Domain.Size() - c.Domain.Regular)
	out.Step, out.Cells = semantics.StepText(&scaled), int(cells+extra)
	out.Rounding, out.Rows = WorstRounding(&scaled, float64(c.Table.ExpectedRows)/float64(cells))
	if out.Cells > maxSteps {
		out.Not = "more cells than a release has"
		return out
	}
	spec, err := mechanisms.Ranges(out.Cells, c.Table.ContributionTo(out.Cells), cost)
	if err != nil {
		out.Not = err.Error()
		return out
	}
	out.RMSE = spec.RMSE(mechanisms.AllRanges)
	return out
}

// WorstRounding is the most that a bound within a step moves when it snaps, to the step's start: as many rows are
// counted on the wrong side of it where each step has so many. Whole numbers and dates have values between two steps
// only where a step is of several.
func WorstRounding(d *policy.Domain, rows float64) (string, float64) {
	step := d.Step.Whole
	if d.Step.Decimal.Coefficient != nil || step < 1 {
		return "less than " + semantics.StepText(d), rows
	}
	within := *d
	within.Step.Whole = step - 1
	switch d.Min.(type) {
	case int64, policy.Date:
		if step == 1 {
			return "nothing", 0
		}
		return "at most " + semantics.StepText(&within), rows * float64(step-1) / float64(step)
	}
	return "less than " + semantics.StepText(d), rows
}
