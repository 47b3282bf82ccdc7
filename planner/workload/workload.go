// Package workload plans many statements at once: what is measured once for all of them, so that the errors of a whole
// report are least for its cost (dpproxy price, and batches in the policy file). Of a report of ninety charts over one
// table there may be a set of marginals, a tree of ranges and a few counts by themselves.
package workload

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/choose"
	"github.com/dpproxy/dpproxy/planner/linear"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/predicate"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/semantics"
	"github.com/dpproxy/dpproxy/policy"
)

// Batch is a report or a dashboard planned as a whole: the releases that answer all of its statements at the least
// expected error for one cost. It depends on the policy and the statements alone.
type Batch struct {
	Dataset    *policy.Dataset
	Measures   []*plans.Measure
	Cost       privacy.Cost
	Statements []BatchStatement
	Strategies []BatchStrategy  // for the whole batch, at equal cost
	OneByOne   privacy.Cost     // what asking one by one costs, each answer as exact as the batch's
	Columns    []*policy.Column // discretised ones that the statements read, each once
}

// BatchStatement is what becomes of one statement of a batch.
type BatchStatement struct {
	Refusal   *refuse.Refusal // why it is not part of the batch
	Measures  []int           // that its counts are read from
	Values    int
	Sums      bool    // sums besides, of which nothing is reported
	RMSE      float64 // of its values; of a choice nothing is known before the data
	HalfWidth int64   // the largest, at the confidence
	ByClamp   float64 // above 0: the largest of values of units' totals, for each 1 that the clamp of one comes to be
	Alone     privacy.Cost
	From      string // where a statement before answers it: nothing is charged then
}

// BatchStrategy is a way to measure the whole batch.
type BatchStrategy struct {
	Name   string
	Error  float64 // the mean squared error of the statements' values, in proportion to dividing the cost between them
	Chosen bool
}

// BatchItem is a statement of a batch, with the settings of the session that asks it.
type BatchItem struct {
	Statement parse.Statement
	Settings  plans.Settings
}

// PlanBatch plans statements together for an epsilon. Confidence is the context's. Of a dataset of either accountant,
// for ε and for ρ, as one statement is: planner.Build.
func PlanBatch(list []BatchItem, c reuse.Context, epsilon privacy.Epsilon) (*Batch, error) {
	c.Settings.Epsilon = epsilon
	if c.Dataset.Accountant != privacy.Either || c.Priced != 0 {
		return planBatch(list, c, epsilon)
	}
	c.Priced = privacy.Pure
	pure, err := planBatch(list, c, epsilon)
	if err != nil || len(pure.Measures) == 0 {
		return pure, err
	}
	c.Priced = privacy.ZCDP
	concentrated, err := planBatch(list, c, epsilon)
	if err != nil {
		return pure, nil
	}
	sum, n := 0., 0
	for i, some := range pure.Statements {
		if other := concentrated.Statements[i]; some.RMSE > 0 && other.RMSE > 0 {
			sum, n = sum+2*math.Log(some.RMSE/other.RMSE), n+1
		}
	}
	if chosen, _ := c.Better(pure.Plan().Charge(), concentrated.Plan().Charge(), math.Exp(sum/float64(max(n, 1)))); chosen == privacy.ZCDP {
		return concentrated, nil
	}
	return pure, nil
}

// planBatch plans statements together in one unit.
func planBatch(list []BatchItem, c reuse.Context, epsilon privacy.Epsilon) (*Batch, error) {
	alone := &choose.Optimizer{Weigher: choose.Weigher{Context: c}}
	w := &batch{c: c, cost: alone.Share(1), p: choose.Order(c.Accountant()), best: map[string]*cluster{}}
	b := &Batch{Dataset: c.Dataset, Statements: make([]BatchStatement, len(list))}
	for i, item := range list {
		own := c
		own.Settings = item.Settings // its dp.epsilon too: the statement is taken apart as it will be when it is asked
		asks, refusal := requestsOf(item.Statement, i, own)
		if refusal != nil {
			b.Statements[i].Refusal = refusal
			continue
		}
		w.add(asks)
	}
	if len(w.asks) == 0 {
		return b, nil
	}
	for _, a := range w.asks {
		b.readColumns(a)
	}
	w.share = choose.PartOfCost(w.cost, max(1, choose.WholeShare/int64(len(w.asks))))
	if w.share.IsZero() {
		return nil, fmt.Errorf("epsilon is %s, too small for %d questions", epsilon, len(w.asks))
	}
	if err := w.weigh(); err != nil {
		return nil, err
	}
	clusters, err := w.choose(b)
	if err != nil {
		return nil, err
	}
	if err := w.measure(b, clusters); err != nil {
		return nil, err
	}
	w.tellErrors(b, clusters)
	return b, nil
}

// readColumns lists the discretised columns of a request.
func (b *Batch) readColumns(a *workRequest) {
	for _, t := range a.Table.Base() {
		columns, _ := a.Columns()
		for _, c := range columns {
			if c.Table == t && c.Domain != nil && c.Domain.Ordered() {
				b.Columns = predicate.WithColumn(b.Columns, c)
			}
		}
	}
}

// batch is what the statements of a batch ask for.
type batch struct {
	c    reuse.Context
	cost privacy.Cost
	// An even share of the cost, at which ways to measure are compared: noise of whole numbers grows a little otherwise
	// at large costs than at small ones.
	share privacy.Cost
	p     float64 // the power of the cost that errors fall with
	asks  []*workRequest
	best  map[string]*cluster
	work  int // cells that were looked at

	covers int // comparisons of a count with one before it
}

// add adds a statement's requests, each measure once.
func (w *batch) add(asks []*workRequest) {
	for _, a := range asks {
		at := slices.IndexFunc(w.asks, func(have *workRequest) bool { return have.digest == a.digest })
		if at < 0 {
			w.asks = append(w.asks, a)
			continue
		}
		have := w.asks[at]
		have.rows, have.statements = append(have.rows, a.rows...), append(have.statements, a.statements...)
	}
}

// weigh gives each value its weight: a statement's mean squared error counts in proportion to asking it alone; a value
// that was asked for before counts nothing more.
func (w *batch) weigh() error {
	values := map[int]int{}
	for _, a := range w.asks {
		for _, r := range a.rows {
			values[r.statement]++
		}
	}
	for i, a := range w.asks {
		if a.id = i; a.chosen {
			continue
		}
		spec, err := a.alone(w.share)
		if err != nil {
			return err
		}
		variance, seen := variances(spec, w.c.Settings.Confidence), map[string]bool{}
		for k := range a.rows {
			r := &a.rows[k]
			key := fmt.Sprint(r.counter, r.cells)
			if r.weight = 0; !seen[key] {
				r.weight = 1 / (float64(values[r.statement]) * a.errorAlone(*r, variance))
			}
			seen[key] = true
		}
	}
	return nil
}

// of is the best cluster of some requests; nil where they cannot be measured together.
func (w *batch) of(asks []*workRequest, all bool) *cluster {
	key := fmt.Sprint(all, " ", keyOfRequests(asks))
	if k, known := w.best[key]; known {
		return k
	}
	var k *cluster
	if w.work < maxBatchWork {
		var work int
		k, work = jointCluster(asks, w.share, all)
		w.work += work
	}
	if len(asks) == 1 {
		if own, err := aloneCluster(asks[0], w.c, w.share); err == nil && (k == nil || own.error() <= k.error()) {
			k = own
		}
	}
	w.best[key] = k
	return k
}

// total is the error of clusters that divide the cost in the best way.
func (w *batch) total(clusters []*cluster) float64 {
	weights := make([]float64, len(clusters))
	for i, k := range clusters {
		weights[i] = k.error()
	}
	return choose.Divided(weights, w.p)
}

// partition measures groups of requests, each by its best cluster; what cannot be measured together is measured alone.
func (w *batch) partition(groups [][]*workRequest) (clusters []*cluster, err error) {
	for _, g := range groups {
		if k := w.of(g, true); k != nil {
			clusters = append(clusters, k)
			continue
		}
		for _, a := range g {
			k := w.of([]*workRequest{a}, true)
			if k == nil {
				k, err = aloneCluster(a, w.c, w.share)
			}
			if err != nil {
				return nil, err
			}
			clusters = append(clusters, k)
		}
	}
	return clusters, nil
}

// groups puts requests with one key together, in the order of their first ones.
func (w *batch) groups(key func(*workRequest) string) (groups [][]*workRequest) {
	at := map[string]int{}
	for i, a := range w.asks {
		name := fmt.Sprint("alone ", i)
		if a.wholly() && !a.chosen {
			name = a.Table.Schema + "." + a.Table.Name + " " + key(a)
		}
		g, ok := at[name]
		if !ok {
			g = len(groups)
			at[name], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], a)
	}
	return groups
}

// choose finds the clusters with the least error: by statement, by columns, one for each table, and, from the best of
// these, by joining two as long as that lowers the error.
func (w *batch) choose(b *Batch) ([]*cluster, error) {
	var alone []*cluster
	for _, a := range w.asks {
		k, err := aloneCluster(a, w.c, w.share)
		if err != nil {
			return nil, err
		}
		alone = append(alone, k)
	}
	best := alone
	consider := func(name string, clusters []*cluster) {
		e := w.total(clusters)
		b.Strategies = append(b.Strategies, BatchStrategy{Name: name, Error: e / w.total(alone)})
		if e < w.total(best) {
			best = clusters
		}
	}
	consider("each statement by itself", alone)
	columns := w.groups(func(a *workRequest) string { return textOfColumns(a.Query) })
	own, err := w.partition(columns)
	if err != nil {
		return nil, err
	}
	consider("one release for each set of columns", own)
	tables, err := w.partition(w.groups(func(*workRequest) string { return "" }))
	if err != nil {
		return nil, err
	}
	for _, name := range w.names(tables) {
		consider("one release for each table: "+name, restrictedTo(tables, name))
	}
	for _, start := range [][]*cluster{alone, own, best} {
		joined := w.search(start)
		if e := w.total(joined); e < w.total(best) {
			best = joined
		}
	}
	consider("several releases, each for some of the statements", best)
	chosen := false
	for i := range b.Strategies {
		if !chosen && b.Strategies[i].Error == w.total(best)/w.total(alone) {
			b.Strategies[i].Chosen, chosen = true, true
		}
	}
	return best, nil
}

func textOfColumns(s *linear.Query) string {
	columns, _ := s.Columns()
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// names are those of the ways in which some cluster of several requests can be measured.
func (w *batch) names(clusters []*cluster) (names []string) {
	for _, k := range clusters {
		for _, way := range k.ways {
			if k.cells != nil && !slices.Contains(names, way.Name) {
				names = append(names, way.Name)
			}
		}
	}
	return names
}

// restrictedTo measures each cluster in the best way of a name, where it has one.
func restrictedTo(clusters []*cluster, name string) []*cluster {
	out := make([]*cluster, len(clusters))
	for i, k := range clusters {
		out[i] = k
		if at := slices.IndexFunc(k.ways, func(way mechanisms.Candidate) bool { return way.Name == name }); at >= 0 {
			same := *k
			same.ways = k.ways[at:]
			out[i] = &same
		}
	}
	return out
}

// measure makes the measures and divides the cost.
func (w *batch) measure(b *Batch, clusters []*cluster) error {
	total, parts := 0.0, make([]float64, len(clusters))
	for i, k := range clusters {
		parts[i] = math.Pow(max(k.error(), math.SmallestNonzeroFloat64), 1/(w.p+1))
		total += parts[i]
	}
	unit := w.cost // the least that something can cost, for each; the rest is divided
	if unit.Epsilon.Micro() > 0 {
		unit.Epsilon = privacy.MicroEpsilon(1)
	} else {
		unit.Rho = privacy.PicoRho(1)
	}
	rest := privacy.Cost{Epsilon: privacy.MicroEpsilon(w.cost.Epsilon.Micro() - int64(len(clusters))*unit.Epsilon.Micro()),
		Rho: privacy.PicoRho(w.cost.Rho.Pico() - int64(len(clusters))*unit.Rho.Pico())}
	for i, k := range clusters {
		share := int64(choose.WholeShare)
		if len(clusters) > 1 {
			share = max(1, int64(parts[i]/total*float64(choose.WholeShare-len(clusters))))
		}
		m, err := k.measure(choose.PartOfCost(rest, share).Plus(unit))
		if err != nil {
			return err
		}
		b.Measures, b.Cost = append(b.Measures, m), b.Cost.Plus(m.Cost)
	}
	return nil
}

// measure is what the cluster buys at a cost.
func (k *cluster) measure(cost privacy.Cost) (m *plans.Measure, err error) {
	if k.cells == nil {
		a := k.asks[0]
		if a.chosen {
			m = a.ChoiceMeasure()
		} else {
			m = a.Query.Measure(a.Kind(), "")
		}
		m.Name = "batch of " + a.Table.Name + a.About()
		m.Spec, err = a.alone(cost)
		m.Why = "part of a batch: nothing measures it better together with others"
	} else {
		if k.ways[0].Spec.Counts().Strategy.IsCube() {
			k.cells.Marginals = &linear.Marginals{Strategy: k.ways[0].Spec.Counts().Strategy}
		}
		m = k.cells.Measure(WorkloadKind, "batch of "+k.cells.Table.Name+": "+strings.ReplaceAll(textOfColumns(k.cells), ",", ", "))
		m.Spec, err = mechanisms.OfStrategy(1, k.cells.Cells, k.ways[0].Spec.Counts().Strategy, k.cells.Contribution(), cost)
		m.Why = fmt.Sprintf("part of a batch: %s for %s", k.name(), semantics.Plural(int64(len(k.asks)), "question"))
	}
	m.Shared, m.Cost = true, cost
	return m, err
}

// WorkloadKind is the kind of a release for several statements.
const WorkloadKind = "workload"

// Plan is the batch as what buys its releases.
func (b *Batch) Plan() *plans.Plan {
	p := &plans.Plan{Dataset: b.Dataset, Measures: b.Measures, Cost: b.Cost}
	h := sha256.New()
	for _, m := range b.Measures {
		h.Write(append(m.Digest[:], m.Cost.String()...))
	}
	p.Statement = plans.Digest(h.Sum(nil))
	return p
}
