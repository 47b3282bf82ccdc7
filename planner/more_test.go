package planner

import (
	"flag"
	"fmt"
	"math/big"
	"math/rand"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dpproxy/dpproxy/internal/material"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/refuse"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/policy"
)

var moreDraws = flag.Int("more-draws", 400, "how often TestMoreIsNeverWorse draws a statement, two ε and what is held")

// lawCorpus is statements over one policy, which is there with its releases, none of them insisted on, and without any.
type lawCorpus struct {
	name         string
	with, direct *policy.Policy
	statements   []parse.Statement
	values       []policy.Value
	now          time.Time
}

var (
	insisted = regexp.MustCompile(`, insist: true`)
	declared = regexp.MustCompile(`(?m)^        releases:\n(          - .*\n)+`)
)

func lawPolicies(t *testing.T, path, after, more string) (with, direct *policy.Policy) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := insisted.ReplaceAllString(strings.Replace(string(data), after, after+more, 1), "")
	if with, err = policy.Parse([]byte(text), path); err == nil {
		direct, err = policy.Parse([]byte(declared.ReplaceAllString(text, "")), path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return with, direct
}

// selects are the SELECTs among texts, as far as they parse.
func selects(texts []string) (list []parse.Statement) {
	for _, text := range texts {
		statements, refusal := parse.Parse(text)
		if refusal != nil {
			continue
		}
		for _, s := range statements {
			if s.Kind == parse.KindSelect {
				list = append(list, s)
			}
		}
	}
	return list
}

// goldenTexts are the statements of a file of golden plans.
func goldenTexts(t *testing.T, path string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(data), "\n\n\n") {
		head, _, _ := strings.Cut(block, "\n----")
		lines := strings.Split(strings.TrimSpace(head), "\n")
		for len(lines) > 0 && (strings.HasPrefix(lines[0], "#") || strings.HasPrefix(lines[0], "plan") || strings.HasPrefix(lines[0], "buy")) {
			lines = lines[1:]
		}
		list = append(list, strings.Join(lines, "\n"))
	}
	return list
}

const lawOnline = `          - {kind: online, name: o, columns: [sex, {column: income, step: 1000}, active, age], epsilon: 1, updates: 2}
          - {kind: online, name: drawn, columns: [sex, {column: score, step: 5}], epsilon: 0.3, updates: 3}
`

func lawCorpora(t *testing.T) []lawCorpus {
	t.Helper()
	moment := time.Date(2026, 6, 15, 10, 30, 0, 0, time.UTC)
	people := lawCorpus{name: "people", now: fixedNow, values: []policy.Value{int64(40)}}
	people.with, people.direct = lawPolicies(t, "testdata/policy.yaml", "          - {kind: histogram, columns: [sex, age], epsilon: 0.8}\n", lawOnline)
	for _, name := range []string{"count", "group", "where", "sets", "releases", "widen", "alternatives", "distinct", "subqueries"} {
		people.statements = append(people.statements, selects(goldenTexts(t, "testdata/"+name+".txt"))...)
	}
	people.statements = append(people.statements, selects([]string{
		"SELECT sex, count(*) FROM people GROUP BY sex", "SELECT count(*) FROM people WHERE income >= 50000", "SELECT count(*) FROM people WHERE income < 100000 AND active",
		"SELECT count(*) FROM people WHERE income >= 1000 AND active", "SELECT count(*) FROM people WHERE income >= 1000 AND sex = 'Male'", "SELECT active, count(*) FROM people WHERE income < 150000 GROUP BY 1",
		"SELECT (SELECT count(*) FROM people WHERE age < 40), (SELECT count(*) FROM visits)", "SELECT (SELECT count(*) FROM people WHERE active) - (SELECT count(*) FROM people WHERE income >= 1000 AND active)", "SELECT count(*) FROM visits",
		"SELECT count(*) FROM people WHERE age < 40", "SELECT count(*) FROM people WHERE active", "SELECT count(*) FROM people WHERE score < 5", "SELECT age, count(*) FROM people GROUP BY age", "SELECT count(*) FROM people WHERE age BETWEEN 30 AND 39",
	})...)
	dashboard := lawCorpus{name: "dashboard", now: moment}
	dashboard.with, dashboard.direct = lawPolicies(t, "testdata/dashboard.yaml", "releases:\n", "")
	for _, chart := range dashboardCharts(t) {
		dashboard.statements = append(dashboard.statements, selects([]string{chart.sql})...)
	}
	list := []lawCorpus{people, dashboard}
	if data, err := os.ReadFile(material.Path(t, "clients", "bi-shapes.sql")); err == nil {
		shop := lawCorpus{name: "BI tools", now: fixedNow, values: []policy.Value{"paid"}, statements: selects(strings.Split(string(data), "\n;;\n")[1:])}
		shop.with, shop.direct = lawPolicies(t, "testdata/shop.yaml", "          - {name: id, type: bigint, keys: join}\n", `        releases:
          - {kind: range, columns: [amount], epsilon: 0.4}
          - {kind: range, columns: [placed_at], epsilon: 0.4}
          - {kind: histogram, columns: [status, qty], epsilon: 0.2}
`)
		list = append(list, shop)
	}
	return list
}

// lawAnswer is what a plan promises.
type lawAnswer struct {
	plan    *plans.Plan
	refusal *refuse.Refusal
}

// width is the half-width of each column whose error is known before there is data; −1: it is not.
func (a lawAnswer) width(i int) float64 {
	switch c := a.plan.Columns[i]; {
	case c.Error != nil:
		return float64(c.Error.HalfWidth)
	case c.Off != nil:
		f, _ := new(big.Rat).Set(c.Off).Float64()
		return f
	}
	return -1
}

// widest is the widest bar of the counts that an answer is made of; −1: it is not known.
func (a lawAnswer) widest() float64 {
	most := -1.
	for _, leaf := range a.plan.Leaves {
		for _, c := range leaf.Counts {
			for _, run := range c.Runs {
				if run.Measure < 0 || run.Mix != nil || run.Selected != nil || run.Threshold != nil || c.Unit != nil || !mechanisms.Is[*mechanisms.Counts](a.plan.Measures[run.Measure].Spec) {
					return -1
				}
				most = max(most, float64(plans.LargestError(a.plan.Measures[run.Measure].Spec.Only(run.Counter), run.Spans, a.plan.Confidence).HalfWidth))
			}
		}
	}
	return most
}

// wider is where one answer has a wider bar than another, or lacks; empty means nowhere. Several questions of a
// statement share its ε, and of those that are held for less one may be bought, so that of these the widest bar is
// looked at.
func (a lawAnswer) wider(than lawAnswer) string {
	switch {
	case than.refusal != nil:
		return ""
	case a.refusal != nil:
		return "refused: " + a.refusal.Message
	case len(a.plan.Inner)+len(than.plan.Inner)+len(a.plan.Finds)+len(than.plan.Finds) > 0:
		return ""
	}
	if len(a.plan.Leaves) > 1 {
		if one, other := a.widest(), than.widest(); one > other && other >= 0 {
			return fmt.Sprintf("the widest bar is ±%v, and was ±%v", one, other)
		}
		return ""
	}
	for i := range a.plan.Columns {
		if one, other := a.width(i), than.width(i); one > other && other >= 0 {
			return fmt.Sprintf("column %d is within ±%v, and was within ±%v", i+1, one, other)
		}
	}
	return ""
}

func (a lawAnswer) String() string {
	if a.refusal != nil {
		return a.refusal.Message
	}
	var ways []string
	for _, m := range a.plan.Measures {
		ways = append(ways, fmt.Sprintf("%s %q held %v for %s (%s)", m.Kind, m.Name, m.Held, m.Cost, m.Why))
	}
	return a.plan.Cost.String() + ": " + strings.Join(ways, "; ")
}

// lawDraw is one drawn case.
type lawDraw struct {
	lawCorpus
	held []reuse.Holding
	left map[int64]int
	r    *rand.Rand
}

func (d *lawDraw) context(t *testing.T, p *policy.Policy, e privacy.Epsilon, release bool) reuse.Context {
	c := testContext(t, p)
	c.Now, c.Settings.Epsilon, c.Settings.Release = d.now, e, release
	c.Holdings = &shelf{list: d.held}
	c.Left = func(id int64) int { return d.left[id] }
	return c
}

func (d *lawDraw) ask(c reuse.Context, s parse.Statement) lawAnswer {
	p, refusal := Build(s, d.values, c)
	return lawAnswer{p, refusal}
}

// buy puts what a plan buys on the shelf.
func (d *lawDraw) buy(p *plans.Plan) {
	for _, m := range append(p.Bought(), p.Finds...) {
		h := reuse.Holding{ID: int64(len(d.held) + 1), Digest: m.Digest, Spec: m.Spec, Cost: m.Cost, Described: m.Describe(), At: d.now}
		if m.Refinement != nil {
			h.Refinable = plans.RefinableLevels{Level: m.Refinement.Level, Top: m.Refinement.Top}
		}
		if mechanisms.Is[*mechanisms.Online](m.Spec) {
			d.left[h.ID] = d.r.Intn(3) // 0: it has stopped
		}
		d.held = append(d.held, h)
	}
}

var lawLevels = []int64{20_000, 50_000, 90_000, 100_000, 110_000, 200_000, 300_000, 400_000, 490_000, 500_000, 510_000, 790_000, 800_000, 1_000_000}

// TestMoreIsNeverWorse is privacy rule 28: over what people and tools ask, with anything held, a larger dp.epsilon, or
// one more release held, widens no bar and refuses nothing that was answered; nothing is bought that a direct count
// would tell more exactly for the same cost; and what has stopped is not in the way.
func TestMoreIsNeverWorse(t *testing.T) {
	corpora := lawCorpora(t)
	asked, compared, stopped := 0, 0, 0
	for n := range *moreDraws {
		d := &lawDraw{lawCorpus: corpora[n%len(corpora)], left: map[int64]int{}, r: rand.New(rand.NewSource(int64(n)))}
		draw := func() privacy.Epsilon { return privacy.MicroEpsilon(lawLevels[d.r.Intn(len(lawLevels))]) }
		q := d.statements[d.r.Intn(len(d.statements))]
		for range d.r.Intn(5) {
			s := d.statements[d.r.Intn(len(d.statements))]
			at, release := draw(), d.r.Intn(2) == 0
			switch d.r.Intn(6) {
			case 0, 1:
				s = q
			case 2:
				at, release = privacy.MicroEpsilon(1_000_000), true // what the dearest releases cost
				s = d.statements[len(d.statements)-1-d.r.Intn(min(12, len(d.statements)))]
			}
			if before := d.ask(d.context(t, d.with, at, release), s); before.refusal == nil {
				d.buy(before.plan)
			}
		}
		less, more := draw(), draw()
		if less.Micro() > more.Micro() {
			less, more = more, less
		}
		one, other := d.ask(d.context(t, d.with, less, false), q), d.ask(d.context(t, d.with, more, false), q)
		asked++
		for _, left := range d.left {
			if left == 0 {
				stopped++
			}
		}
		fault := func(what string, worse, better lawAnswer) {
			t.Errorf("draw %d, %s: %s: %s\n  %s\n  worse:  %s\n  better: %s", n, d.name, what, worse.wider(better), q.Text, worse, better)
		}
		if other.wider(one) != "" {
			fault(fmt.Sprintf("ε %s after ε %s", more, less), other, one)
		}
		if one.refusal != nil {
			continue
		}
		compared++
		if !one.plan.Cost.Fits(privacy.Cost{Epsilon: less}) {
			t.Errorf("draw %d: costs %s of ε %s: %s", n, one.plan.Cost, less, q.Text)
		}
		if cost := one.plan.Cost.Epsilon; cost.Micro() > 0 {
			bare := d.context(t, d.direct, cost, false)
			bare.Holdings = &shelf{}
			if direct := d.ask(bare, q); one.wider(direct) != "" {
				fault("for the price of a direct count", one, direct)
			}
		}
		had := len(d.held)
		if extra := d.ask(d.context(t, d.with, draw(), d.r.Intn(2) == 0), d.statements[d.r.Intn(len(d.statements))]); extra.refusal == nil {
			d.buy(extra.plan)
		}
		if len(d.held) > had {
			if richer := d.ask(d.context(t, d.with, less, false), q); richer.wider(one) != "" {
				fault("with one more release held", richer, one)
			}
		}
	}
	t.Logf("%d drawn, %d compared, %d sessions had stopped", asked, compared, stopped)
}

// TestBarsDecide: a range of a held release has a larger variance than a count for ε 0.1, and a narrower bar, since it
// is a sum of many noises: it answers.
func TestBarsDecide(t *testing.T) {
	people := lawCorpora(t)[0]
	d := &lawDraw{lawCorpus: people, left: map[int64]int{}, r: rand.New(rand.NewSource(1))}
	asked := func(at int64, release bool, age int) lawAnswer {
		s := selects([]string{fmt.Sprintf("SELECT count(*) FROM people WHERE age < %d", age)})[0]
		return d.ask(d.context(t, d.with, privacy.MicroEpsilon(at), release), s)
	}
	d.buy(asked(500_000, true, 40).plan)
	closer := 0
	for age := 1; age < 119; age++ {
		one, other := asked(20_000, false, age), asked(100_000, false, age)
		if other.wider(one) != "" {
			t.Errorf("age < %d: %s: %s, %s", age, other.wider(one), one, other)
		}
		if held := other.plan.Measures[0]; held.Held && other.plan.Columns[0].Error.Variance > 200.2 {
			closer++
		}
	}
	if closer == 0 {
		t.Error("no range has a larger variance and a narrower bar")
	}
}

// TestHeldPartsDoNotWiden: of two questions one is held for ε 0.1. At a little more than that it is bought anew only if
// the other one does not pay for it.
func TestHeldPartsDoNotWiden(t *testing.T) {
	d := &lawDraw{lawCorpus: lawCorpora(t)[0], left: map[int64]int{}, r: rand.New(rand.NewSource(1))}
	asked := func(at int64, text string) lawAnswer {
		return d.ask(d.context(t, d.with, privacy.MicroEpsilon(at), false), selects([]string{text})[0])
	}
	d.buy(asked(100_000, "SELECT count(*) FROM people WHERE kids < 4").plan)
	last := asked(20_000, "SELECT (SELECT count(*) FROM people WHERE kids < 4), (SELECT count(*) FROM people WHERE score < 5)")
	for _, at := range []int64{50_000, 99_999, 100_000, 100_001, 110_000, 150_000, 199_999, 200_000, 200_001, 250_000, 400_000, 1_000_000} {
		now := asked(at, "SELECT (SELECT count(*) FROM people WHERE kids < 4), (SELECT count(*) FROM people WHERE score < 5)")
		if last.widest() < 0 || now.wider(last) != "" {
			t.Errorf("ε %d: %s: %s, %s", at, now.wider(last), last, now)
		}
		last = now
	}
}
