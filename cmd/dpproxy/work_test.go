package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dpproxy/dpproxy/backend"
	"github.com/dpproxy/dpproxy/internal/memory"
	"github.com/dpproxy/dpproxy/internal/simulation"
	"github.com/dpproxy/dpproxy/ledger"
	"github.com/dpproxy/dpproxy/mechanisms"
	"github.com/dpproxy/dpproxy/mechanisms/noise"
	"github.com/dpproxy/dpproxy/mechanisms/privacy"
	"github.com/dpproxy/dpproxy/planner"
	"github.com/dpproxy/dpproxy/planner/parse"
	"github.com/dpproxy/dpproxy/planner/plans"
	"github.com/dpproxy/dpproxy/planner/reuse"
	"github.com/dpproxy/dpproxy/planner/scalar"
	"github.com/dpproxy/dpproxy/policy"
	"github.com/dpproxy/dpproxy/proxy"
	"github.com/dpproxy/dpproxy/proxy/encoding"
	"github.com/dpproxy/dpproxy/proxy/pipeline"
	"github.com/dpproxy/dpproxy/rewrite"
	"github.com/dpproxy/dpproxy/rewrite/dialect"
	"github.com/dpproxy/dpproxy/sandbox"
	"github.com/dpproxy/dpproxy/service"
	"github.com/dpproxy/dpproxy/test/kit"
)

// Time is noisy and what is counted is not: testdata/work.txt holds, for a dozen things that users wait for, how much
// memory they allocate and how often they do what is dear. TestWork fails where one of these grows by a third, and, so
// that gains are kept, where one falls by a third before it is written down by -update.

// amount is something counted of one run.
type amount struct {
	name  string
	count float64
}

// job runs something by the number of the run, and tells what is counted beside memory; nil means nothing.
type job struct {
	name string
	run  func(i int)
	also func() []amount // so far; what a run adds is its amount
}

// Of runs the mean is taken, of so many such means the least: what the runtime and clocks do in between is in some of
// them.
const runs, means = 10, 3

// measured is what a run does, by numbers of runs from n on.
func (c job) measured(n int) []amount {
	again := func() {
		for range runs {
			c.run(n)
			n++
		}
	}
	again() // what is made once is made
	var least []amount
	for range means {
		var before, after runtime.MemStats
		var was, is []amount
		runtime.GC() // pools are empty in the same places
		if c.also != nil {
			was = c.also()
		}
		runtime.ReadMemStats(&before)
		again()
		runtime.ReadMemStats(&after)
		if c.also != nil {
			is = c.also()
		}
		own := []amount{{"allocations", float64(after.Mallocs - before.Mallocs)}, {"bytes", float64(after.TotalAlloc - before.TotalAlloc)}}
		for i := range is {
			own = append(own, amount{is[i].name, is[i].count - was[i].count})
		}
		for i := range own {
			own[i].count /= runs
			if least != nil {
				own[i].count = min(own[i].count, least[i].count)
			}
		}
		least = own
	}
	return least
}

// compare tells what is wrong with a figure that was another one.
func (f amount) compare(was float64) error {
	const little = .5 // of a thing that is counted, less than one in two runs
	switch {
	case f.count > was*4/3 && f.count > was+little:
		return fmt.Errorf("%s: %s, a third more than %s: what grew? (-update writes it down where it must be)", f.name, written(f.count), written(was))
	case f.count < was*2/3 && f.count < was-little:
		return fmt.Errorf("%s: %s, a third less than %s: write it down by -update, so that it is kept", f.name, written(f.count), written(was))
	}
	return nil
}

func written(v float64) string {
	if v < 100 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

const workFile = "testdata/work.txt"

// readWork is the golden file: a line for each amount, `case<TAB>what<TAB>count`.
func readWork(t *testing.T) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(workFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	was := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		at := strings.LastIndexByte(line, '\t')
		v, err := strconv.ParseFloat(strings.TrimSpace(line[at+1:]), 64)
		if at < 0 || err != nil {
			t.Fatalf("%s: %q: %v", workFile, line, err)
		}
		was[line[:at]] = v
	}
	return was
}

func TestWork(t *testing.T) {
	was, text, now := readWork(t), &strings.Builder{}, map[string]float64{}
	cases := workCases(t)
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
	for _, c := range cases {
		for _, f := range c.measured(0) {
			name := c.name + "\t" + f.name
			fmt.Fprintf(text, "%s\t%s\n", name, written(f.count))
			now[name] = f.count
			before, known := was[name]
			if !*kit.Update && !known {
				t.Errorf("%s: %s is not written down: -update", c.name, f.name)
			} else if err := f.compare(before); !*kit.Update && err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	if *kit.Update {
		if err := os.WriteFile(workFile, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if len(now) != len(was) {
		t.Errorf("%s has %d figures, %d are counted: -update", workFile, len(was), len(now))
	}
	t.Log("\n" + text.String())
	regressionsShow(t, cases, now)
}

// regressionsShow: what must be seen. Each job is the same with a fault in it, and other numbers, so that nothing is
// remembered.
func regressionsShow(t *testing.T, cases []job, now map[string]float64) {
	named := map[string]job{}
	for _, c := range cases {
		named[c.name] = c
	}
	twice := func(name string) job {
		c := named[name]
		own := c.run
		c.run = func(i int) { own(2 * i); own(2*i + 1) }
		return c
	}
	// The half-width of each range by an inversion, as it was before ADR 80: a plan beside it that is made as now.
	inverting := named[firstRange]
	plan := inverting.run
	inverting.run = func(i int) { plan(i); invert(t, i) }
	for _, f := range []struct {
		name    string
		planted job
		seen    []string
	}{
		{"nothing is planted", named[firstRange], nil},
		{"a range is planned twice", twice(firstRange), []string{"allocations", "bytes"}},
		{"each range is inverted", inverting, []string{"inversions"}},
		{"a statement is parsed twice", twice("parse a count"), []string{"allocations"}},
		{"a statement is charged twice", twice("charge one release on SQLite"), []string{"flushes", "writes"}},
		{"a histogram is drawn twice", twice("draw a histogram of 4,096 cells"), []string{"random bytes"}},
		{"what is asked again is bought again", named["buy a count over the wire"].as("ask again over the wire"), []string{"allocations", "flushes", "queries of the database", "random bytes"}},
	} {
		found := []string{}
		for _, own := range f.planted.measured(500) {
			if own.compare(now[f.planted.name+"\t"+own.name]) != nil {
				found = append(found, own.name)
			}
		}
		for _, name := range f.seen {
			if !slices.Contains(found, name) {
				t.Errorf("%s: %s does not show it, only %v", f.name, name, found)
			}
		}
		if f.seen == nil && len(found) > 0 {
			t.Errorf("%s, and %v show it", f.name, found)
		}
	}
	for _, c := range []struct {
		count, was float64
		wrong      bool
	}{{133, 100, false}, {134, 100, true}, {67, 100, false}, {66, 100, true}, {0, 0, false}, {.4, 0, false}, {1, 0, true}, {0, 1, true}} {
		if err := (amount{"x", c.count}).compare(c.was); (err != nil) != c.wrong {
			t.Errorf("%v after %v: %v", c.count, c.was, err)
		}
	}
}

// as is the same job under another's name.
func (c job) as(name string) job {
	c.name = name
	return c
}

const firstRange = "plan a held range, first asked"

// workCases are what is counted.
func workCases(t *testing.T) []job {
	ctx := context.Background()
	shop, err := policy.Read("../../planner/testdata/dashboard.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := memory.Dir(t)
	d := demo{dir: dir, listen: "127.0.0.1:0", rows: 2000, out: new(discard)}
	if err := d.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	people, err := policy.Read(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	kit.Edit(t, filepath.Join(dir, "policy.yaml"), "{min: 0, max: 250000, step: 1000}", "{min: 0, max: 4095, step: 1}", "{column: income, step: 10000}, ", "",
		"type: integer, domain: {min: 0, max: 4095, step: 1}", "type: integer, nulls: exclude, domain: {min: 0, max: 4095, step: 1}")
	fine, err := policy.Read(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	held := holding(t, fine, "SELECT count(*) FROM people WHERE income BETWEEN 20 AND 3000", "SELECT count(*) FROM people WHERE age > 50")
	ranges := parsed(t, "SELECT count(*) FROM people WHERE income BETWEEN $1 AND $2")
	inversions := func() []amount { return []amount{{"inversions", float64(noise.Inversions())}} }
	cases := []job{
		{"parse a count", func(int) {
			parsed(t, "SELECT sex, count(*) FROM people WHERE age BETWEEN 30 AND 40 GROUP BY sex")
		}, nil},
		{"plan a held count", planning(t, held, "SELECT count(*) FROM people WHERE age > 50"), inversions},
		{firstRange, func(i int) {
			if p := built(t, held, ranges, int64(7*i%1900), int64(2000+11*i%2000)); !p.Cost.IsZero() {
				t.Fatal(p.Cost)
			}
		}, inversions},
		{"plan a fresh count", planning(t, holding(t, fine), "SELECT count(*) FROM people WHERE age > 50 AND sex = 'Female'"), inversions},
		{"plan a chart of 17,520 hours by month", planning(t, holding(t, shop), "SELECT date_trunc('month', placed_at), count(*) FROM orders GROUP BY 1 ORDER BY 1"), inversions},
		{"plan a chart of 17,520 hours by hour of the day", planning(t, holding(t, shop), "SELECT extract(hour FROM placed_at), status, count(*) FROM orders GROUP BY 1, 2"), inversions},
		{"plan a chart of 17,520 hours by hour of the day, from a range release", planning(t, holding(t, shop), "SELECT extract(hour FROM placed_at), count(*) FROM orders GROUP BY 1"), inversions},
		{"plan a chart of 17,520 hours by weekday", planning(t, holding(t, shop), "SELECT extract(dow FROM placed_at), count(*) FROM orders GROUP BY 1"), inversions},
		{"plan a chart of 17,520 hours, each a row", planning(t, holding(t, shop), "SELECT date_trunc('hour', placed_at), count(*) FROM orders GROUP BY 1"), inversions},
		{"plan groups on the demo, with online releases", planning(t, holding(t, people), "SELECT sex, education, count(*) FROM people WHERE age > 50 AND income > 30000 GROUP BY sex, education"), inversions},
		{"plan beside ten thousand held", planning(t, manyOf(t, shop), "SELECT count(*) FROM orders WHERE qty = 4 AND placed_at < date '2026-01-01' AND status = 'paid'"), inversions},
		{"render a count for DuckDB", rendering(t, people, "SELECT sex, education, count(*) FROM people WHERE income > 30000 GROUP BY sex, education"), nil},
		charging(t),
		{"estimate 4,096 cells of a range release", estimating(t), nil},
		{"sort 100 rows in Go", sorting(t), nil},
		{"encode a row", encode(t), nil},
		drawing(t),
	}
	return append(cases, asking(t, filepath.Join(dir, "policy.yaml"))...)
}

func parsed(t testing.TB, sql string) parse.Statement {
	t.Helper()
	statements, refusal := parse.Parse(sql)
	if refusal != nil {
		t.Fatal(sql, refusal)
	}
	return statements[0]
}

func built(t testing.TB, c reuse.Context, s parse.Statement, params ...policy.Value) *plans.Plan {
	t.Helper()
	p, refusal := planner.Build(s, params, c)
	if refusal != nil {
		t.Fatal(refusal)
	}
	return p
}

// holding is what an analyst plans in who has bought the answers of some statements.
func holding(t testing.TB, p *policy.Policy, statements ...string) reuse.Context {
	t.Helper()
	d, index := p.Datasets[0], reuse.NewIndex()
	c := reuse.Context{Policy: p, Dataset: d, User: "analyst", Holdings: index, Now: time.Date(2026, 6, 15, 10, 30, 0, 0, time.UTC),
		Settings: plans.Settings{Epsilon: d.Defaults.Epsilon, Confidence: d.Defaults.Confidence, Zone: time.UTC, SearchPath: []string{"public"}}}
	c.Settings.Epsilon, c.Settings.Release = d.Defaults.MaxEpsilon, true
	for i, sql := range statements {
		buy(index, built(t, c, parsed(t, sql)), i)
	}
	return c
}

func buy(index *reuse.Index, p *plans.Plan, id int) {
	for _, m := range p.Measures {
		if !m.Held {
			index.Add(reuse.Holding{ID: int64(id + 1), Digest: m.Digest, Spec: m.Spec, Cost: m.Cost, Described: m.Describe()})
		}
	}
}

// manyOf is the same with ten thousand of them over one table.
func manyOf(t testing.TB, p *policy.Policy) reuse.Context {
	t.Helper()
	own := *p.Datasets[0]
	own.Buying.Cells = 0
	c := holding(t, p)
	c.Dataset = &own
	bare, r := c, rand.New(rand.NewPCG(1, 2))
	bare.Holdings = nil
	statement := parsed(t, "SELECT count(*) FROM orders WHERE qty = $1 AND placed_at >= date '2025-01-01' + $2::integer AND placed_at < date '2025-01-01' + $3::integer")
	for i := range 10_000 {
		from := r.Int64N(600)
		buy(c.Holdings.(*reuse.Index), built(t, bare, statement, r.Int64N(20), from, from+1+r.Int64N(100)), i)
	}
	return c
}

func planning(t testing.TB, c reuse.Context, sql string) func(int) {
	statement := parsed(t, sql)
	return func(int) { built(t, c, statement) }
}

func rendering(t testing.TB, p *policy.Policy, sql string) func(int) {
	m := built(t, holding(t, p), parsed(t, sql)).Measures[0]
	return func(int) {
		if _, err := rewrite.Render(m, dialect.DuckDB); err != nil {
			t.Fatal(err)
		}
	}
}

// invert finds the half-width of a sum like a range's of a p-identity release, some hundred noises of different
// weights.
func invert(t testing.TB, i int) {
	d, err := noise.New(noise.Laplace, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	var terms []noise.Term
	for j := range 300 {
		terms = append(terms, noise.Term{Weight: 1 / float64(2+i+j), Count: 1})
	}
	d.HalfWidthOf(terms, .05)
}

// disk is a ledger's, on which operations are counted.
func disk(t *testing.T) (*simulation.Mount, string) {
	t.Helper()
	m := simulation.NewDisk(rand.New(rand.NewPCG(1, 2))).Mount(rand.New(rand.NewPCG(3, 4)), "counted-"+filepath.Base(t.TempDir())+strconv.Itoa(int(mounts.Add(1))), t.TempDir())
	t.Cleanup(m.Unmount)
	return m, "sqlite:/counted.ledger"
}

var mounts atomic.Int64

func doneBy(m *simulation.Mount) []amount {
	flushes, writes, bytes := m.Done()
	return []amount{{"flushes", float64(flushes)}, {"writes", float64(writes)}, {"bytes written", float64(bytes)}}
}

func charging(t *testing.T) job {
	m, url := disk(t)
	l, err := ledger.Open(context.Background(), url, ledger.Options{Disk: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	epsilon := func(micro int64) privacy.Cost { return privacy.Cost{Epsilon: privacy.MicroEpsilon(micro)} }
	policyDigest := sha256.Sum256([]byte("policy"))
	if err := l.Adopt(context.Background(), ledger.Terms{PolicyDigest: policyDigest, Datasets: []ledger.DatasetTerms{{ID: "census", Accountant: privacy.Pure, Neighbors: privacy.AddRemove, Unit: "person people.id",
		Relations: []string{"public.people"}, Cap: epsilon(1e9), Budgets: map[string]ledger.BudgetTerms{"*": {Limit: epsilon(1e9)}}}}}); err != nil {
		t.Fatal(err)
	}
	spec, err := mechanisms.Plain(1, 1, mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, epsilon(1000))
	if err != nil {
		t.Fatal(err)
	}
	return job{"charge one release on SQLite", func(i int) {
		it := ledger.Item{Kind: "count", Name: "count", Table: "public.people", Cost: epsilon(1000), Spec: spec}
		binary.BigEndian.PutUint64(it.Digest[:], uint64(i))
		out, err := l.Charge(context.Background(), ledger.Request{User: "alice", Dataset: "census", Items: []ledger.Item{it}, PolicyDigest: policyDigest})
		if err != nil {
			t.Fatal(err)
		}
		l.Abandon(out[0].Receipt)
	}, func() []amount { return doneBy(m) }}
}

func inPlace(cells []int32, _ int) int { return int(cells[0]) }

func groups(n int) (list []privacy.Group) {
	for i := range n {
		list = append(list, privacy.Group{Cells: []int32{int32(i)}, Counts: []int64{int64(i)}})
	}
	return list
}

// bits counts what is drawn of a source.
type bits struct {
	from io.Reader
	n    atomic.Int64
}

func (b *bits) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.n.Add(int64(n))
	return n, err
}

func drawing(t *testing.T) job {
	spec, err := mechanisms.Plain(1, 4096, mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1e5)})
	if err != nil {
		t.Fatal(err)
	}
	random, list := &bits{from: rand.NewChaCha8([32]byte{})}, groups(1000)
	return job{"draw a histogram of 4,096 cells", func(int) {
		if _, err := mechanisms.Release(spec, inPlace, privacy.Seal(list), random); err != nil {
			t.Fatal(err)
		}
	}, func() []amount { return []amount{{"random bytes", float64(random.n.Load())}} }}
}

func estimating(t *testing.T) func(int) {
	spec, err := mechanisms.Ranges(4096, mechanisms.Contribution{Rows: 1, Neighbors: privacy.AddRemove}, privacy.Cost{Epsilon: privacy.MicroEpsilon(1e5)})
	if err != nil {
		t.Fatal(err)
	}
	noisy, err := mechanisms.Release(spec, inPlace, privacy.Seal(groups(1000)), rand.NewChaCha8([32]byte{}))
	if err != nil {
		t.Fatal(err)
	}
	return func(int) {
		if _, err := mechanisms.NewEstimate(spec, noisy); err != nil {
			t.Fatal(err)
		}
	}
}

var twoColumns = []sandbox.Column{{Name: "k", Type: policy.Text, Typmod: -1}, {Name: "n", Type: policy.Int8, Typmod: -1}}

func sorting(t *testing.T) func(int) {
	rows := sandbox.Rows{Columns: twoColumns}
	for i := range 100 {
		rows.Data = append(rows.Data, []policy.Value{fmt.Sprint("k", i), int64(i * 37 % 100)})
	}
	leaf, key, count := privacy.Published(rows), scalar.Column(0, policy.Text, -1), scalar.Column(1, policy.Int8, -1)
	d := &plans.Direct{Items: []scalar.Expr{key, count}, Sort: []plans.SortKey{{By: count, Descending: true}}, Limit: 10}
	return func(int) {
		if _, err := sandbox.Direct(context.Background(), d, nil, leaf); err != nil {
			t.Fatal(err)
		}
	}
}

func encode(t *testing.T) func(int) {
	rows := privacy.Published(sandbox.Rows{Columns: twoColumns, Data: [][]policy.Value{{"Female", int64(123456)}}})
	e := encoding.NewEncoder(twoColumns, nil, encoding.Style{Zone: time.UTC}, nil)
	buffer := make([]byte, 0, 1024)
	return func(int) {
		if _, err := e.Row(buffer, rows, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// watched is a backend whose calls are counted.
type watched struct {
	backend.Backend
	readies, queries atomic.Int64
}

func (w *watched) Ready(ctx context.Context, q ...rewrite.Query) error {
	w.readies.Add(1)
	return w.Backend.Ready(ctx, q...)
}

func (w *watched) Execute(ctx context.Context, q rewrite.Query, r []*ledger.Receipt, step time.Duration) ([]privacy.Sensitive[[]privacy.Group], error) {
	w.queries.Add(1)
	return w.Backend.Execute(ctx, q, r, step)
}

// asking are whole statements over the wire, their client included: one that is held, a first range, one that pays, and
// one for the sandbox.
func asking(t *testing.T, path string) []job {
	ctx, stop := context.WithCancel(context.Background())
	m, url := disk(t)
	kit.Edit(t, path, "sqlite:dpproxy.ledger", url, "listen: 127.0.0.1:6432", "listen: 127.0.0.1:0", `"*": {epsilon: 10, `, `"*": {epsilon: 1000, `, "cap: {epsilon: 100,", "cap: {epsilon: 10000,")
	log := slog.New(slog.DiscardHandler)
	h, err := service.Open(ctx, path, ledger.Options{Disk: m}, log)
	if err != nil {
		t.Fatal(err)
	}
	watch, random := &watched{Backend: h.Backend}, &bits{from: rand.NewChaCha8([32]byte{})}
	metrics := proxy.NewMetrics()
	answers := pipeline.NewAnswerer(watch, h.Ledger, h.Engine, random, log, metrics)
	answers.UsePublic(&h.Public)
	server, err := proxy.New(proxy.Config{Policy: h.Policy, Pipeline: answers, Workers: answers.Workers(), Log: log, Metrics: metrics, Secret: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
		answers.Drain()
		h.Close()
	})
	<-server.Listening()
	conn, err := pgconn.Connect(ctx, "postgres://analyst:analyst@"+server.Addr().String()+"/demo?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	ask := func(sql string) {
		if _, err := conn.Exec(ctx, sql).ReadAll(); err != nil {
			t.Fatal(sql, err)
		}
	}
	also := func() []amount {
		return append([]amount{{"inversions", float64(noise.Inversions())}, {"looks at the database", float64(watch.readies.Load())}, {"queries of the database", float64(watch.queries.Load())},
			{"random bytes", float64(random.n.Load())}}, doneBy(m)...)
	}
	ask("SET dp.epsilon = 0.5")
	ask("SET dp.release = on")
	ask("SELECT count(*) FROM people WHERE income BETWEEN 20 AND 3000")
	if _, err := conn.Prepare(ctx, "range", "SELECT count(*) FROM people WHERE income BETWEEN $1 AND $2", nil); err != nil {
		t.Fatal(err)
	}
	run := func(low, high int) {
		if r := conn.ExecPrepared(ctx, "range", [][]byte{strconv.AppendInt(nil, int64(low), 10), strconv.AppendInt(nil, int64(high), 10)}, nil, nil).Read(); r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	run(20, 3000)
	return []job{
		{"ask again over the wire, prepared", func(int) { run(20, 3000) }, also},
		{"ask a held range for the first time over the wire, prepared", func(i int) { run(4+7*i%1900, 2003+11*i%2000) }, also},
		{"ask again over the wire", func(int) { ask("SELECT count(*) FROM people WHERE income BETWEEN 20 AND 3000") }, also},
		{"ask a held range for the first time over the wire", func(i int) {
			ask(fmt.Sprintf("SELECT count(*) FROM people WHERE income BETWEEN %d AND %d", 3+7*i%1900, 2003+11*i%2000)) // no end of a range above
		}, also},
		{"buy a count over the wire", func(i int) {
			ask(fmt.Sprintf("SELECT count(*) FROM people WHERE sex = 'Female' AND income > %d AND age < %d", 10+i, 90-i%80))
		}, also},
	}
}
