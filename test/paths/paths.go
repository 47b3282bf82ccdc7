// Package paths counts how often each access path, each of the ways that the planner has to answer a question, is
// possible and how often it is taken, over statements that people and tools ask (docs/paths.md). It plans without data:
//
//	SELECT count(*) FROM people WHERE age < 30
//
// may be answered by widening (the rows around its own are counted beside it), a declared range release, a range
// release of her own or a fresh count: four paths are possible, one is taken, and the next best of the others would
// have been so much further off. What is taken counts as bought for the statements after it. Only tests import this
// package.
package paths

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/workload"
	"github.com/dpproxy/dpproxy/policy"
)

// Analyst asks statements one after another, and holds what their plans have bought.
type Analyst struct {
	Context reuse.Context
	tally   *Tally
	list    []reuse.Holding
}

// NewAnalyst is one with the settings that the first dataset of a policy begins a session with. What she asks is
// counted in the tally.
func NewAnalyst(p *policy.Policy, now time.Time, tally *Tally) *Analyst {
	d := p.Datasets[0]
	a := &Analyst{tally: tally, Context: reuse.Context{Policy: p, Dataset: d, User: "alice", Now: now, Alternatives: true,
		Left:     func(int64) int { return 100 },
		Settings: plans.Settings{Epsilon: d.Defaults.Epsilon, Confidence: d.Defaults.Confidence, Zone: time.UTC, SearchPath: []string{"public"}}}}
	a.Forget()
	return a
}

// Forget drops what she holds.
func (a *Analyst) Forget() { a.list, a.Context.Holdings = nil, reuse.NewIndex() }

// Ask plans the statements of a text, and buys what they cost where keep is set.
func (a *Analyst) Ask(text string, params []policy.Value, keep bool) {
	statements, refusal := parse.Parse(text)
	if refusal != nil {
		a.tally.Refused++
		return
	}
	for _, s := range statements {
		switch s.Kind {
		case parse.KindSelect:
			a.plan(s, params, keep)
		case parse.KindExplain:
			a.plan(s.Explain.Statement, params, false)
		case parse.KindSet:
			a.set(s)
		case parse.KindReset:
			a.Context.Settings = NewAnalyst(a.Context.Policy, a.Context.Now, a.tally).Context.Settings
		}
	}
}

// set follows SET of what changes the choice of a path.
func (a *Analyst) set(s parse.Statement) {
	if len(s.Values) != 1 {
		return
	}
	set, value := &a.Context.Settings, s.Values[0]
	switch s.Name {
	case "dp.epsilon":
		if e, err := privacy.ParseEpsilon(value); err == nil {
			set.Epsilon = e
		}
	case "dp.max_error":
		if set.MaxError = 0; value != "off" {
			_, _ = fmt.Sscan(value, &set.MaxError)
		}
	case "dp.delta":
		if d, err := privacy.ParseDelta(value); err == nil {
			set.Delta = d
		}
	case "dp.alarms":
		_, _ = fmt.Sscan(value, &set.Alarms)
	case "dp.release":
		set.Release = value == "on"
	}
}

func (a *Analyst) plan(s parse.Statement, params []policy.Value, keep bool) {
	p, refusal := planner.Build(s, params, a.Context)
	if refusal != nil {
		a.tally.Refused++
		return
	}
	a.tally.byError = a.Context.Settings.MaxError > 0
	a.tally.add(p)
	if !keep {
		return
	}
	a.buy(append(p.Bought(), p.Finds...))
}

func (a *Analyst) buy(list []*plans.Measure) {
	for _, m := range list {
		if m.Held {
			continue
		}
		h := reuse.Holding{ID: int64(len(a.list) + 1), Digest: m.Digest, Spec: m.Spec, Cost: m.Cost, Described: m.Describe(), At: a.Context.Now}
		if m.Refinement != nil {
			h.Refinable = plans.RefinableLevels{Level: m.Refinement.Level, Top: m.Refinement.Top}
		}
		a.list = append(a.list, h)
		a.Context.Holdings.(*reuse.Index).Add(h)
	}
}

// Batch plans the statements together, as `dpproxy price` and `dpproxy release` do with a report, and buys what answers
// them.
func (a *Analyst) Batch(texts []string) {
	var items []workload.BatchItem
	for _, text := range texts {
		statements, refusal := parse.Parse(text)
		if refusal != nil {
			continue
		}
		for _, s := range statements {
			if s.Kind == parse.KindSelect {
				items = append(items, workload.BatchItem{Statement: s, Settings: a.Context.Settings})
			}
		}
	}
	c := a.Context
	c.Holdings, c.Alternatives = nil, false
	b, err := workload.PlanBatch(items, c, a.Context.Dataset.Defaults.MaxEpsilon)
	if err != nil || len(b.Measures) == 0 {
		return
	}
	a.tally.Batches++
	chosen := math.Inf(1)
	for _, s := range b.Strategies {
		if s.Chosen {
			chosen = s.Error
		}
	}
	for _, s := range b.Strategies {
		c := a.tally.of("batch: " + s.Name)
		c.Possible++
		if !s.Chosen {
			continue
		}
		next := math.Inf(1)
		for _, other := range b.Strategies {
			if other.Name != s.Name {
				next = min(next, other.Error)
			}
		}
		c.take(math.Sqrt(next / chosen))
	}
	for _, m := range b.Measures {
		how := strings.TrimPrefix(m.Why, "part of a batch: ")
		if i := strings.LastIndex(how, " for "); i >= 0 {
			how = how[:i]
		}
		c := a.tally.of("measure of a batch: " + strings.Replace(how, "nothing measures it better together with others", "by itself", 1))
		c.Possible++
		c.take(math.NaN())
	}
	a.buy(b.Measures)
}

// Count is how often a path was there and taken.
type Count struct {
	Possible int
	Taken    int
	gains    []float64 // by which the next best path would have been further off
	free     int       // Taken: for nothing
	saved    int       // free: another path would have cost something
}

func (c *Count) take(gain float64) {
	if c.Taken++; !math.IsNaN(gain) && !math.IsInf(gain, 0) {
		c.gains = append(c.gains, gain)
	}
}

// Tally is what was counted.
type Tally struct {
	Statements int // that were planned
	Private    int // of which read a private table
	Questions  int // of these: what had to be measured, each with its paths
	Refused    int
	Batches    int
	byError    bool // of the statement that is counted: dp.max_error was set
	counts     map[string]*Count
}

func (t *Tally) of(path string) *Count {
	if t.counts == nil {
		t.counts = map[string]*Count{}
	}
	if t.counts[path] == nil {
		t.counts[path] = &Count{}
	}
	return t.counts[path]
}

// Taken is how often a path was taken.
func (t *Tally) Taken(path string) int { return t.of(path).Taken }

// add counts the questions of a plan: each is a run of alternatives that begins with the one that was taken.
func (t *Tally) add(p *plans.Plan) {
	t.Statements++
	if len(p.Measures) > 0 || len(p.Finds) > 0 {
		t.Private++
	}
	for range p.Finds {
		c := t.of("key discovery")
		t.Questions++
		c.Possible++
		c.take(math.NaN())
	}
	for _, leaf := range p.Leaves {
		if leaf.Synthetic != nil {
			t.Questions++
			c := t.of("synthetic rows")
			c.Possible++
			c.take(math.NaN())
		}
	}
	var question []plans.Alternative
	for _, a := range p.Alternatives {
		if a.Taken && len(question) > 0 {
			t.question(question)
			question = nil
		}
		question = append(question, a)
	}
	if len(question) > 0 {
		t.question(question)
	}
}

func (t *Tally) question(list []plans.Alternative) {
	t.Questions++
	taken := list[0]
	possible := map[string]bool{t.pathOf(taken): true}
	next, costs := math.Inf(1), false
	for _, a := range list[1:] {
		possible[t.pathOf(a)] = true
		if t.pathOf(a) == t.pathOf(taken) {
			continue
		}
		next = min(next, off(a))
		costs = costs || !a.Held
	}
	for path := range possible {
		t.of(path).Possible++
	}
	c := t.of(t.pathOf(taken))
	c.take(next / off(taken))
	if taken.Held {
		if c.free++; costs {
			c.saved++
		}
	}
}

// off is how far an alternative is off: its standard deviation, or the rank error of a choice.
func off(a plans.Alternative) float64 {
	if a.Rank > 0 {
		return a.Rank
	}
	if a.Error.Variance == 0 {
		return math.NaN()
	}
	return math.Sqrt(a.Error.Variance)
}

// pathOf is how the path of an alternative is counted: with what is measured, where that differs.
func (t *Tally) pathOf(a plans.Alternative) string {
	path := a.Path
	switch path {
	case "selection", "declared release", "fresh count", "ski rental":
		path += ": " + a.Kind
	}
	if t.byError && !a.Held {
		path += ", for an error"
	}
	return path
}

// Table is the counts as text.
func (t *Tally) Table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d statements planned, %d refused; %d of a private table, with %d questions; %d batches\n", t.Statements, t.Refused, t.Private, t.Questions, t.Batches)
	fmt.Fprintf(&b, "%-58s %8s %8s %8s %8s %10s\n", "path", "possible", "taken", "free", "saved", "next best")
	names := slices.SortedFunc(maps.Keys(t.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.counts[b].Taken, t.counts[a].Taken), cmp.Compare(a, b))
	})
	for _, name := range names {
		c, gain := t.counts[name], ""
		if n := len(c.gains); n > 0 {
			slices.Sort(c.gains)
			gain = fmt.Sprintf("%.2f x", c.gains[n/2])
		}
		fmt.Fprintf(&b, "%-58s %8d %8d %8d %8d %10s\n", name, c.Possible, c.Taken, c.free, c.saved, gain)
	}
	return b.String()
}
